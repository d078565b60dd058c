"""Records that say of nobody that they are theirs: no identity takes these out.

A null, empty or blank value of a subject column, and NaN, name nobody. Every other text does,
"NA", "nan" and "null" included: somebody may be called that, and only the user knows. It is said.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from erasable.workspace.data.catalogue import DataSet

__all__ = ["count", "remarks"]

_GAPS = pa.array(
    sorted({each.casefold() for each in pa.csv.ConvertOptions().null_values if each} | {"none"})
)
"""What programs write for a gap, case folded."""


def count(records: pa.Table, known: DataSet) -> int:
    """Count records in none of whose subject columns anybody is named.

    Examples
    --------
    >>> known = DataSet(1, "mails", {}, "id", (("to", "id"), ("from", "id")), (), 1, 1, None)
    >>> count(pa.table({"to": ["0a", None, None], "from": [None, "0b", None]}), known)
    1
    """
    gaps = [pc.is_null(records[column]) for column in known.subject_columns]
    found: int = pc.sum(reduce(pc.and_, gaps)).as_py() or 0 if gaps else records.num_rows
    return found


def remarks(raw: pa.Table, known: DataSet) -> tuple[str, ...]:
    """Say which subject columns hold texts that may have been meant for nobody, a line each.

    Parameters
    ----------
    raw : pyarrow.Table
        As it came, with identities.
    known : DataSet

    Examples
    --------
    >>> known = DataSet(1, "visits", {}, "id", (("patient", "id"),), (), 1, 1, None)
    >>> remarks(pa.table({"patient": ["p1", "NA", None]}), known)
    ("in 1 of 3 records the subject column 'patient' holds what programs write for a gap ...",)
    """
    found = []
    for column in known.subject_columns:
        values = raw[column]
        if not pa.types.is_string(values.type):
            continue
        folded = pc.utf8_lower(pc.utf8_trim_whitespace(values))
        n = pc.sum(pc.is_in(folded, _GAPS)).as_py() or 0
        if n:
            found.append(
                f"in {n:,} of {len(values):,} records the subject column {column!r} holds what "
                "programs write for a gap (NA, nan, null, None): it is taken for somebody's "
                "identity; leave it empty in the source where nobody is meant"
            )
    return tuple(found)

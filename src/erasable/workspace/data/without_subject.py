"""Records that say of nobody that they are theirs: no identity takes these out.

A null, empty or blank value of a subject column, and NaN, name nobody. Every other text does,
"NA", "nan" and "null" included: somebody may be called that, and only the user knows. It is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from erasable.workspace.data.arrow_files import CSV_NULLS

_GAPS = pa.array(sorted({each.casefold() for each in CSV_NULLS if each} | {"none"}))
"""What programs write for a gap, case folded."""


def count(records: pa.Table, subjects: Sequence[str]) -> int:
    """Count records in none of whose subject columns anybody is named.

    Examples
    --------
    >>> count(pa.table({"to": ["0a", None, None], "from": [None, "0b", None]}), ["to", "from"])
    1
    """
    gaps = [pc.is_null(records[column]) for column in subjects]
    found: int = pc.sum(reduce(pc.and_, gaps)).as_py() or 0 if gaps else records.num_rows
    return found


def doubtful(raw: pa.Table, subjects: Sequence[str]) -> dict[str, int]:
    """Count the texts of each subject column that may have been meant for nobody.

    Parameters
    ----------
    raw : pyarrow.Table
        As it came, with identities.
    subjects : sequence of str

    Examples
    --------
    >>> doubtful(pa.table({"patient": ["p1", "NA", None]}), ["patient"])
    {'patient': 1}
    """
    found = dict.fromkeys(subjects, 0)
    for column in subjects:
        if pa.types.is_string(raw[column].type):
            folded = pc.utf8_lower(pc.utf8_trim_whitespace(raw[column]))
            found[column] = pc.sum(pc.is_in(folded, _GAPS)).as_py() or 0
    return found


def remarks(counts: Mapping[str, int], n_records: int) -> tuple[str, ...]:
    """Say in which subject columns there are such texts, a line each.

    Parameters
    ----------
    counts : mapping of column to int
        See `doubtful`.
    n_records : int
        Of how many records.

    Examples
    --------
    >>> remarks({"patient": 1, "doctor": 0}, 3)
    ("in 1 of 3 records the subject column 'patient' holds what programs write for a gap ...",)
    """
    return tuple(
        f"in {n:,} of {n_records:,} records the subject column {column!r} holds what "
        "programs write for a gap (NA, nan, null, None): it is taken for somebody's "
        "identity; leave it empty in the source where nobody is meant"
        for column, n in counts.items()
        if n
    )

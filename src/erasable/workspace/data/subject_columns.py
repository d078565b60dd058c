"""Subject columns that may not say what was meant: values for a gap, and types that are missing.

A null, empty or blank value of a subject column, and NaN, name no person: no identity takes such
records out. Every other text names one, "NA", "nan" and "null" included: it may be a person's name,
and only the user knows. A message says so.

By default two spellings of an address are two people. A person who asks to be erased under the
other spelling would be told that nothing is there. So a type has to be named for addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from erasable.core._arrow_files import CSV_NULLS
from erasable.core.errors import InvalidIdsError
from erasable.workspace.identity.looks import Looks

_GAPS = sorted({each.casefold() for each in CSV_NULLS if each} | {"none"})
"""Texts that programs write for a gap, case folded."""


def count_without(records: pa.Table, subjects: Sequence[str]) -> int:
    """Count the records with gaps in all of their subject columns.

    >>> sent = pa.table({"to": ["0a", None, None], "from": [None, "0b", None]})
    >>> count_without(sent, ["to", "from"])
    1
    """
    gaps = [pc.is_null(records[column]) for column in subjects]
    found: int = pc.sum(reduce(pc.and_, gaps)).as_py() or 0 if gaps else records.num_rows
    return found


def doubtful(raw: pa.Table, subjects: Sequence[str]) -> dict[str, int]:
    """Count the texts of each subject column that may have been meant as a gap.

    `raw` has identities, not tokens.

    >>> doubtful(pa.table({"patient": ["p1", "NA", None]}), ["patient"])
    {'patient': 1}
    """
    found = dict.fromkeys(subjects, 0)
    for column in subjects:
        if pa.types.is_string(raw[column].type):
            folded = pc.utf8_lower(pc.utf8_trim_whitespace(raw[column]))
            found[column] = pc.sum(pc.is_in(folded, pa.array(_GAPS))).as_py() or 0
    return found


def remarks(counts: Mapping[str, int], n_records: int, looks: Looks) -> tuple[str, ...]:
    """Say what may be a mistake in subject columns, a line each.

    See `doubtful` for `counts`.

    >>> remarks({"patient": 1, "doctor": 0}, 3, Looks([]))
    ("in 1 of 3 records the subject column 'patient' holds what programs write for a gap ...",)
    """
    messages = [
        f"in {n:,} of {n_records:,} records the subject column {column!r} holds what "
        "programs write for a gap (NA, nan, null, None): it is taken for somebody's "
        "identity; leave it empty in the source where nobody is meant"
        for column, n in counts.items()
        if n
    ]
    messages += [
        f"the subject column {column!r} holds values that look like addresses, and its type is "
        "id: Ann@x.org and ann@x.org are two people there, and each is to be asked for as it is "
        "spelled"
        for column in looks.addresses
    ]
    return tuple(messages)


def refuse_untyped(looks: Looks) -> None:
    """Ask for the types of columns of a new data set for which none was named.

    Do so only where values look like addresses or telephone numbers.

    >>> refuse_untyped(Looks(["patient"]))
    """
    if looks.addresses:
        raise InvalidIdsError(
            f"{_described(looks.addresses)} values that look like addresses, and no type was "
            "named; expected one, because by default Ann@x.org and ann@x.org are two people; write "
            f"{_written(looks.addresses, 'email')}, or {_written(looks.addresses, 'id')} to keep "
            "the two apart"
        )
    if looks.telephones:
        raise InvalidIdsError(
            f"{_described(looks.telephones)} values that look like telephone numbers, and no type "
            "was named; expected one; bring each number to one spelling in the source, because "
            "under any type two spellings are two people, and write "
            f"{_written(looks.telephones, 'id')}"
        )


def _described(columns: Sequence[str]) -> str:
    many = len(columns) > 1
    named = " and ".join(map(repr, columns))
    return f"the subject column{'s' if many else ''} {named} hold{'' if many else 's'}"


def _written(columns: Sequence[str], kind: str) -> str:
    return "--subject " + ",".join(f"{column}:{kind}" for column in columns)

"""Subject columns whose type nobody named, and whose values look as if one were needed.

By default two spellings of an address are two people. A person who asks to be erased under the
other spelling would be told that nothing is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from erasable.core.errors import InvalidIdsError
from erasable.workspace.identity.looks import Looks


def refuse(looks: Looks) -> None:
    """Ask for the types of columns of a new data set for which none was named.

    Raises
    ------
    InvalidIdsError
        Values look like addresses or telephone numbers.

    Examples
    --------
    >>> refuse(Looks(["patient"]))
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


def remarks(looks: Looks) -> tuple[str, ...]:
    """Say in which columns of type "id" addresses have come in later, a line each."""
    return tuple(
        f"the subject column {column!r} holds values that look like addresses, and its type is "
        "id: Ann@x.org and ann@x.org are two people there, and each is to be asked for as it is "
        "spelled"
        for column in looks.addresses
    )


def _described(columns: Sequence[str]) -> str:
    many = len(columns) > 1
    named = " and ".join(map(repr, columns))
    return f"the subject column{'s' if many else ''} {named} hold{'' if many else 's'}"


def _written(columns: Sequence[str], kind: str) -> str:
    return "--subject " + ",".join(f"{column}:{kind}" for column in columns)

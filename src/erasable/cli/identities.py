"""Read identities from where they do not show: a file, or standard input.

What stands on a command line stands in the list of processes and in the shell's history, too.
Lines are handed on as they are: which spaces belong to an identity, its type says.
"""

from __future__ import annotations

from collections.abc import Sequence

from erasable.cli.files import as_text, load
from erasable.core.errors import InvalidIdsError


def gathered(typed: Sequence[str], file: str | None) -> list[str]:
    """Return the identities of a command line and of a file, each once, in order.

    Parameters
    ----------
    typed : sequence of str
    file : str or None
        One identity a line, with the spaces around it; "-" is standard input. Blank lines are
        skipped: no record belongs to a blank identity.

    Raises
    ------
    InvalidIdsError
        The file has none, or no lines.
    WorkspaceError
        It is no text in UTF-8.
    NotInWorkspaceError
        There is no such file.

    Examples
    --------
    >>> gathered(["patient-7", "patient-9", "patient-7"], None)
    ['patient-7', 'patient-9']
    """
    found = [*typed, *(_lines(file) if file is not None else ())]
    return list(dict.fromkeys(found))


def one(typed: str | None, file: str | None) -> str:
    """Return the one identity of a command line or of a file.

    Raises
    ------
    InvalidIdsError
        There is none, or several.

    Examples
    --------
    >>> one("patient-7", None)
    'patient-7'
    """
    found = gathered([] if typed is None else [typed], file)
    if len(found) != 1:
        raise InvalidIdsError(
            f"{len(found)} identities were given; expected one; name it, or pass --file with one "
            "line"
        )
    return found[0]


def pair(typed: Sequence[str], file: str | None) -> tuple[str, str]:
    """Return the two identities of a command line or of a file.

    Raises
    ------
    InvalidIdsError
        There are not two, or they are the same.

    Examples
    --------
    >>> pair(["patient-7", "patient-9"], None)
    ('patient-7', 'patient-9')
    """
    found = gathered(typed, file)
    if len(found) != 2:
        raise InvalidIdsError(
            f"{len(found)} different identities were given; expected two; name them, or pass "
            "--file with a line for each"
        )
    return found[0], found[1]


def _lines(file: str) -> list[str]:
    named = "standard input" if file == "-" else repr(file)
    data = load(file, "one identity a line", stdin=True)
    text = as_text(data, named, "one identity a line")
    lines = text.replace("\r\n", "\n")
    if "\r" in lines:
        raise InvalidIdsError(
            f"{named} has carriage returns within lines; expected one identity a line, with line "
            "feeds (or both) at the ends; convert it, as with `tr '\\r' '\\n'`"
        )
    found = [each for each in lines.split("\n") if each.strip()]
    if not found:
        raise InvalidIdsError(f"{named} is empty; expected one identity a line")
    return found

"""Identities from files or standard input.

A command line is visible in the list of processes and in the shell's history. Lines are passed on
unchanged: the type of an identity says which spaces belong to it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import TYPE_CHECKING, Any

import erasable.cli.show as show
from erasable.cli.files import as_text, load
from erasable.cli.frame import fail
from erasable.core.errors import InvalidIdsError

if TYPE_CHECKING:
    from erasable.workspace.requests.intake import Ask


def gathered(typed: Sequence[str], file: str | None) -> list[str]:
    """Return the identities of a command line and of a file, each once, in order.

    The file has one identity a line, with the spaces around it; "-" is standard input. Blank lines
    are skipped. Raise InvalidIdsError if the file has no identity.

    >>> gathered(["patient-7", "patient-9", "patient-7"], None)
    ['patient-7', 'patient-9']
    """
    found = [*typed, *(_lines(file) if file is not None else ())]
    return list(dict.fromkeys(found))


def asked(typed: Sequence[str], file: str | None, columns: Mapping[str, str]) -> list[Ask]:
    """Return the identities of a command line and of a file as `Ask`, each once, in order.

    The file is as for `gathered`; or, if `columns` names the columns of "identity" and optionally
    "type", "reference" and "received", CSV with a header (with tabs if its name ends in .tsv),
    whose empty lines are skipped. Raise InvalidIdsError if it lacks a column, or has a line without
    an identity or with too few or too many values.

    >>> asked(["patient-7"], None, {})
    [Ask(value='patient-7', type=None, reference=None, received_at=None, place=None)]
    """
    from erasable.workspace.requests.intake import Ask  # late: it takes the whole ledger

    if columns:
        if file is None or "identity" not in columns or columns.keys() - _SAID.keys():
            fail(
                f"--column was given {', '.join(columns)}{'' if file else ', and no --file'}; "
                "expected the column of the identity, and type=COL, reference=COL and received=COL "
                "besides, of a CSV file; write --column mail --column reference=ticket, say"
            )
        return [*map(Ask, dict.fromkeys(typed)), *_rows(file, columns)]
    found = {each: Ask(each) for each in typed}
    for number, each in _numbered(file) if file is not None else ():
        found.setdefault(each, Ask(each, place=f"line {number:,} of {_named(file)}"))
    return list(found.values())


def moment(given: str, name: str) -> datetime:
    """Return the time of a text."""
    try:
        at = datetime.fromisoformat(given)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        fail(
            f"{name} is {show.one_line(given)[:40]!r}; expected a date or time as 2026-03-31 "
            "or 2026-03-31T09:30"
        )


_SAID = {"identity": "value", "type": "type", "reference": "reference", "received": "received_at"}


def _rows(file: str | None, columns: Mapping[str, str]) -> Iterator[Ask]:
    from erasable.workspace.requests.intake import Ask

    what, named = "CSV with a header", _named(file)
    text = as_text(load(str(file), what, stdin=True), named, what)
    separator = "\t" if str(file).lower().endswith(".tsv") else ","
    rows = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    seen: set[Ask] = set()
    number, head = 1, None
    try:
        for row in rows:
            place, number = f"line {number:,} of {named}", rows.line_num + 1
            if not any(map(str.strip, row)):
                continue
            if head is None:
                head = row
                _check_head(head, columns, named)
                continue
            if len(row) != len(head):
                raise InvalidIdsError(
                    f"{place}: it has {len(row)} values; expected {len(head)}, as in the header"
                )
            said = {_SAID[name]: row[head.index(column)] for name, column in columns.items()}
            if not said["value"].strip():
                raise InvalidIdsError(f"{place}: it names nobody; expected an identity")
            ask: dict[str, Any] = {name: each for name, each in said.items() if each.strip()}
            if "received_at" in ask:
                ask["received_at"] = moment(ask["received_at"].strip(), f"{place}: received")
            ask |= {name: ask[name].strip() for name in ("type", "reference") if name in ask}
            if Ask(**ask) not in seen:
                seen.add(Ask(**ask))
                yield Ask(**ask, place=place)
    except csv.Error as error:
        raise InvalidIdsError(
            f"line {rows.line_num:,} of {named}: it is not CSV ({error}); expected a header and "
            "values between commas, with quotes where they hold some"
        ) from None
    if not seen:
        raise InvalidIdsError(f"{named} is empty; expected {what}, and an identity a line")


def _check_head(head: Sequence[str], columns: Mapping[str, str], named: str) -> None:
    for column in columns.values():
        if head.count(column) != 1:
            raise InvalidIdsError(
                f"{named} has the column {column!r} {head.count(column)} times; expected it once, "
                f"among: {', '.join(head)}"
            )


def one(typed: str | None, file: str | None) -> str:
    """Return the one identity of a command line or of a file; raise InvalidIdsError otherwise."""
    found = gathered([] if typed is None else [typed], file)
    if len(found) != 1:
        raise InvalidIdsError(
            f"{len(found)} identities were given; expected one; name it, or pass --file with one "
            "line"
        )
    return found[0]


def pair(typed: Sequence[str], file: str | None) -> tuple[str, str]:
    """Return the two identities of a command line or of a file; raise InvalidIdsError otherwise."""
    found = gathered(typed, file)
    if len(found) != 2:
        raise InvalidIdsError(
            f"{len(found)} different identities were given; expected two; name them, or pass "
            "--file with a line for each"
        )
    return found[0], found[1]


def _named(file: str | None) -> str:
    return "standard input" if file == "-" else repr(file)


def _lines(file: str) -> list[str]:
    return [each for _, each in _numbered(file)]


def _numbered(file: str) -> list[tuple[int, str]]:
    named = _named(file)
    data = load(file, "one identity a line", stdin=True)
    text = as_text(data, named, "one identity a line")
    lines = text.replace("\r\n", "\n")
    if "\r" in lines:
        raise InvalidIdsError(
            f"{named} has carriage returns within lines; expected one identity a line, with line "
            "feeds (or both) at the ends; convert it, as with `tr '\\r' '\\n'`"
        )
    found = [(at, each) for at, each in enumerate(lines.split("\n"), 1) if each.strip()]
    if not found:
        raise InvalidIdsError(f"{named} is empty; expected one identity a line")
    return found

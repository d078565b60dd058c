"""Values in documents of JSON and in paths of partitions, compared next to their names."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from erasable.workspace.targets.inspection import Inspection, Name

_PAIRS = re.compile(r"(?:^|[/?&,;\s])([^=/?&,;\s]+)=([^/?&,;\s]*)")  # as in person=17/part.parquet
_BLANKS = re.compile(r"[\s\ufeff]*")


def compare_document(
    value: Any,
    names: Collection[str],
    inspection: Inspection,
    elsewhere: set[Name] | None = None,
) -> None:
    """Compare the values of a document with the names that lead to them.

    Values of other names are put into `elsewhere`.
    """
    try:
        _compare_within(value, names, inspection, set() if elsewhere is None else elsewhere)
    except RecursionError:
        inspection.is_compared = False


def _compare_within(
    value: Any, names: Collection[str], inspection: Inspection, elsewhere: set[Name]
) -> None:
    if isinstance(value, dict):
        are_statistics = "numRecords" in value  # of a Delta table
        for name, each in value.items():
            if are_statistics and name == "nullCount":
                continue
            _compare_name(str(name), inspection)
            _compare_within(each, {*names, str(name)}, inspection, elsewhere)
    elif isinstance(value, list | tuple):
        for each in value:
            _compare_within(each, names, inspection, elsewhere)
    elif isinstance(value, str):
        if (within := document_in(value)) is not None:
            _compare_within(within, names, inspection, elsewhere)
        else:
            inspection.look_at_tokens(_encoded(value), names, elsewhere=elsewhere)
            compare_pairs(value, inspection)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        inspection.compare([value], names, elsewhere=elsewhere)


def _compare_name(name: str, inspection: Inspection) -> None:
    """Compare a name that may be an identity itself, or say which partition it is of."""
    if "=" in name:
        compare_pairs(name, inspection)
    else:
        inspection.look_at_tokens(_encoded(name))


def compare_pairs(text: str, inspection: Inspection) -> None:
    """Compare values after their names, as those of partitions in the paths of files."""
    for name, value in _PAIRS.findall(text) if "=" in text else ():
        of = unquote(name)
        inspection.look_at_tokens(_encoded(unquote(value)), {of, of.rpartition(".")[2]})


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def document_in(text: str) -> Any:
    """Parse a text as a JSON object or list; return None for other texts."""
    found = documents_in(text)
    return found[0] if found is not None and len(found) == 1 else found


def documents_in(text: str) -> list[Any] | None:
    """Return the objects and lists of JSON that a text consists of; None if of others."""
    found, at = list[Any](), _next(text, 0)
    try:
        while at < len(text):
            if text[at] not in "{[":
                return None
            value, end = _DECODER.raw_decode(text, at)
            found.append(value)
            at = _next(text, end)
    except (ValueError, RecursionError):
        return None
    return found or None


def begins_document(text: str) -> bool:
    """Tell whether a text begins as an object or a list of JSON does."""
    return text[_next(text, 0) :][:1] in ("{", "[")


def _next(text: str, at: int) -> int:
    """Return where the next character is that is no blank, nor a mark of the encoding."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _every_value(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with a list where it has a name several times."""
    found = dict(pairs)
    if len(found) < len(pairs):
        every: dict[str, list[Any]] = {}
        for name, value in pairs:
            every.setdefault(name, []).append(value)
        found = {name: of if len(of) > 1 else of[0] for name, of in every.items()}
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_every_value)

"""JSON lines, an object a line; a column has one type in all of the file.

The law kept here: no value is changed, and none is rounded. A key that a line lacks is a gap, as
null is. An error describes the fault of a file in one line, without the identity of a person.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from erasable.core.errors import SourceError
from erasable.workspace.data.column_types import describe_type
from erasable.workspace.data.delimited import (
    BROKEN,
    head_of,
    misencoded,
    open_unpacked,
    refuse_other_files,
    unreadable,
)
from erasable.workspace.ledger.kinds import is_unicode

_AT_ONCE = 10_000  # records of a batch
_BYTES = 1 << 24  # of a batch; no line may be longer
_SHOWN = 40  # characters of a value in a message
_Records: TypeAlias = "list[tuple[int, dict[str, Any]]]"
_GAP = type(None)
_NESTED = {dict, list}
_EXACT = 2**53  # floats hold every whole number up to this one
_OF = {bool: "true or false", int: "numbers", float: "numbers", str: "text"}


def json_batches(path: Path, identities: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Read a file of JSON lines; see `erasable.workspace.data.sources.Source.batches`.

    A file of several batches is read twice: first for its columns and their types. All batches have
    one schema, of numbers, truth values and text.
    """
    head = head_of(path)
    refuse_other_files(path, head, "JSON lines", option=False)
    found = _Columns(str(path), identities)
    kept: list[_Records] = []
    for n, records in enumerate(_records(path, head)):
        found.add(records)
        kept = [] if n else [records]
    for records in kept or _records(path, head):
        yield found.batch(records)


def _records(path: Path, head: bytes) -> Iterator[_Records]:
    """Read objects with the numbers of their lines, a batch at a time; blank lines are skipped."""
    records: _Records = []
    number = n_bytes = 0
    try:
        with open_unpacked(path) as file:
            while line := file.readline(_BYTES + 1):
                number, n_bytes = number + 1, n_bytes + len(line)
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    records.append((number, _object(path, line, number, head)))
                if len(records) == _AT_ONCE or n_bytes >= _BYTES:
                    yield records
                    records, n_bytes = [], 0
    except SourceError:
        raise
    except BROKEN:
        raise unreadable(path) from None
    if records:
        yield records


def _object(path: Path, line: bytes, number: int, head: bytes) -> dict[str, Any]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise misencoded(path, head, option=False) from None
    try:
        found = _DECODER.decode(text)
        if "\\u" in text and not is_unicode(found):
            found = None  # half of a character
    except (ValueError, RecursionError):
        found = None
    if len(line) <= _BYTES and isinstance(found, dict):
        return found
    raise SourceError(
        f"{str(path)!r} holds no JSON object in line {number:,}; expected one in each line, of at "
        f"most {_BYTES >> 20} MB, that names each column once, with numbers that floats hold"
    )


def _float(text: str) -> float:
    found = float(text)
    if math.isinf(found):  # as 1e999
        raise ValueError
    return found


def _constant(text: str) -> float | None:
    return None if text == "NaN" else float(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_constant, object_pairs_hook=_once)


class _Columns:
    """The columns of a file, in the order of arrival, and their types so far."""

    def __init__(self, place: str, identities: Collection[str]) -> None:
        self._place, self._identities = place, identities
        self._classes: dict[str, set[type]] = {}
        self._least: dict[str, int] = {}
        self._most: dict[str, int] = {}

    def add(self, records: _Records) -> None:
        """Note the columns and types of some records."""
        for _, record in records:
            if not record.keys() <= self._classes.keys():
                self._classes |= {name: set() for name in record if name not in self._classes}
        came = {name: [record.get(name) for _, record in records] for name in self._classes}
        classes = {name: set(map(type, values)) - {_GAP} for name, values in came.items()}
        joined = {name: classes[name] | self._classes[name] for name in came}
        if any(
            len({_OF.get(each) for each in some} - {None}) > 1 or some & _NESTED
            for some in joined.values()
        ):
            self._refuse_first(records)
        self._classes = joined
        for name, values in came.items():
            if int in classes[name]:
                whole = [value for value in values if type(value) is int]
                self._least[name] = min(*whole, self._least.get(name, whole[0]))
                self._most[name] = max(*whole, self._most.get(name, whole[0]))

    def _refuse_first(self, records: _Records) -> NoReturn:
        for line, record in records:
            for name, value in record.items():
                if isinstance(value, dict | list):
                    self._refuse_nested(name, line)
                before = {_OF[each] for each in self._classes[name]}
                if value is not None and before and _OF[type(value)] not in before:
                    self._refuse(name, value, line, before.pop())
                if value is not None:
                    self._classes[name].add(type(value))
        raise AssertionError

    def _kind(self, name: str) -> pa.DataType:
        classes = self._classes[name]
        if not classes:
            return pa.null()
        if classes == {int}:
            least, most = self._least[name], self._most[name]
            if least >= -(2**63) and most < 2**63:
                return pa.int64()
            if least >= 0 and most < 2**64:
                return pa.uint64()
        if classes <= {int, float}:
            return pa.float64()
        return pa.bool_() if classes == {bool} else pa.string()

    def batch(self, records: _Records) -> pa.RecordBatch:
        """Make a batch of some records."""
        kinds = {name: self._kind(name) for name in self._classes}
        large = [
            name
            for name, kind in kinds.items()
            if pa.types.is_floating(kind)
            and (self._most.get(name, 0) > _EXACT or self._least.get(name, 0) < -_EXACT)
        ]
        for line, record in records if large else ():
            for name in large:
                value = record.get(name)
                if type(value) is int and not _is_float(value):
                    self._refuse(name, value, line, describe_type(kinds[name]))
        arrays = []
        for name, kind in kinds.items():
            values = [record.get(name) for _, record in records]
            if pa.types.is_floating(kind):
                values = [None if value is None else float(value) for value in values]
            arrays.append(pa.array(values, kind))
        return pa.RecordBatch.from_arrays(arrays, names=list(kinds))

    def _refuse(self, name: str, value: Any, line: int, expected: str) -> NoReturn:
        shown = repr(value) if isinstance(value, str) else json.dumps(value)
        short = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
        given = "a value" if name in self._identities else short
        raise SourceError(
            f"column {name!r} holds {given} in line {line:,} of {self._place!r}; expected "
            f"{expected}, as in other lines; bring the column to one type"
        )

    def _refuse_nested(self, name: str, line: int) -> NoReturn:
        raise SourceError(
            f"{self._place!r} has a structure or list in {name!r} in line {line:,}; expected "
            "numbers, text, true, false or null; flatten it, or leave it out"
        )


def _is_float(value: int) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False

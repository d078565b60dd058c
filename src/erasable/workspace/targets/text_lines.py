"""Lines of texts in which values are compared next to their names: JSON, CSV, and any others."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from erasable.workspace.targets.inspection import Inspection

_LONGEST = 1 << 26  # bytes of a line
_PAIRS = re.compile(r"(?:^|[/?&,;\s])([^=/?&,;\s]+)=([^/?&,;\s]*)")  # as in person=17/part.parquet
_DELIMITERS = ",;\t|"


def folders_of(path: Path) -> list[str]:
    """Return the names of the folders of a file, also of a copy that has them in its name."""
    return unquote(str(path)).split("/")[:-1]


def compared_lines(parts: Iterable[bytes], path: Path, inspection: Inspection) -> Iterator[bytes]:
    """Pass the parts of a text on, and compare the values in its lines."""
    if not inspection.has_exact:
        yield from parts
        return
    kept, lines = b"", _Lines(path, inspection)
    for part in parts:
        data = kept + part
        end = data.rfind(b"\n") + 1
        if not end and len(data) > _LONGEST:
            end = len(data)
        lines.compare(data[:end])
        kept = data[end:]
        yield part
    lines.compare(kept)


def compare_document(value: Any, names: Collection[str], inspection: Inspection) -> None:
    """Compare the values of a document with the names that lead to them."""
    if isinstance(value, dict):
        are_statistics = "numRecords" in value  # of a Delta table
        for name, each in value.items():
            if are_statistics and name == "nullCount":
                continue
            _compare_name(str(name), inspection)
            compare_document(each, {*names, str(name)}, inspection)
    elif isinstance(value, list | tuple):
        for each in value:
            compare_document(each, names, inspection)
    elif isinstance(value, str):
        if (within := _document(value)) is not None:
            compare_document(within, names, inspection)
        else:
            inspection.look_at_tokens(_encoded(value), names)
            compare_pairs(value, inspection)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        inspection.compare([value], names)


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


def _document(text: str) -> Any:
    """Return the object or list that a text is in JSON; None if it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text, object_pairs_hook=_every_value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _every_value(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with a list where it has a name several times."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = [found[name], value] if name in found else value
    return found


class _Lines:
    """The lines of a text, of which those are read that have a value."""

    def __init__(self, path: Path, inspection: Inspection) -> None:
        name = path.name.lower()
        self._may_be_csv = ".csv" in name or ".tsv" in name
        self._inspection = inspection
        self._header: list[str] | None = None
        self._delimiter = ""

    def compare(self, data: bytes) -> None:
        """Compare the values in some whole lines."""
        if self._may_be_csv and self._header is None and data:
            self._read_header(data.partition(b"\n")[0])
        stop = 0
        for begin, _ in self._inspection.places_in(data):
            if begin < stop:
                continue  # in a line that was read
            stop = data.find(b"\n", begin) + 1 or len(data)
            self._compare_line(data[data.rfind(b"\n", 0, begin) + 1 : stop])

    def _read_header(self, line: bytes) -> None:
        text, self._header = line.decode("utf-8-sig", errors="replace"), []
        for sign in _DELIMITERS:
            row = next(csv.reader([text], delimiter=sign), [])
            if not self._inspection.near.isdisjoint(row):
                self._delimiter, self._header = sign, row
                return

    def _compare_line(self, line: bytes) -> None:
        text = line.decode(errors="replace").strip()
        if (found := _document(text)) is None and text.startswith('"'):
            found = _document(f"{{{text.rstrip(',')}}}")  # a line of a longer document
        if found is not None:
            compare_document(found, (), self._inspection)
        elif (row := self._row(text)) is not None:
            for name, value in row:
                if name in self._inspection.near or not self._inspection.are_all_near:
                    self._inspection.look_at_tokens(value.encode(), {name}, self._header)
        else:
            self._inspection.look_at_tokens(line)

    def _row(self, text: str) -> list[tuple[str, str]] | None:
        """Return the values of a row of CSV with their columns; None if it is no whole row."""
        if not self._header:
            return None
        try:
            row = next(csv.reader([text], delimiter=self._delimiter, strict=True), [])
        except csv.Error:
            return None
        is_whole = len(row) == len(self._header)
        return list(zip(self._header, row, strict=True)) if is_whole else None

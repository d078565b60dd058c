"""Lines of texts in which values are compared next to their names: JSON, CSV, and any others."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from erasable.workspace.targets.inspection import Inspection, Name
from erasable.workspace.targets.nested_values import (
    begins_document,
    compare_document,
    document_in,
    documents_in,
)

_LONGEST = 1 << 26  # bytes of a line
_LONGEST_ROW = 1 << 20  # bytes of lines that are a row of CSV together
_ESCAPED = re.compile(rb"(?:\\u[0-9A-Fa-f]{4})+|\\/")
_DELIMITERS = ",;\t|"


def folders_of(path: Path, inspection: Inspection) -> list[str]:
    """Return the names of the folders of a file, those of its place alone if that is known."""
    own = path if inspection.root is None else path.relative_to(inspection.root)
    return [unquote(each) for each in own.parent.parts]


def columns_of_folders(path: Path, inspection: Inspection) -> list[str]:
    """Return the names of the columns that the folders of a file give, as in person=17."""
    return [each.partition("=")[0] for each in folders_of(path, inspection) if "=" in each]


def compared_lines(parts: Iterable[bytes], path: Path, inspection: Inspection) -> Iterator[bytes]:
    """Pass the parts of a text on, and compare the values in its lines, or in its documents."""
    if not inspection.has_exact:
        yield from parts
        return
    kept, lines = b"", _Lines(path, inspection)
    for part in parts:
        kept += part
        is_long = len(kept) > _LONGEST
        if is_long or not lines.is_document(kept):
            end = kept.rfind(b"\n") + 1
            if not end and is_long:  # what it is cut into may be no whole values
                inspection.is_compared = False
                end = len(kept)
            lines.compare(kept[:end])
            kept = kept[end:]
        yield part
    lines.end(kept)


class _Lines:
    """The lines of a text, of which those are read that have a value."""

    def __init__(self, path: Path, inspection: Inspection) -> None:
        name, folders = path.name.lower(), folders_of(path, inspection)
        self._of_folders = columns_of_folders(path, inspection)
        self._may_be_csv = ".csv" in name or ".tsv" in name
        self._inspection = inspection
        self._header: list[str] | None = None
        self._every: frozenset[str] | None = None  # columns of the header and of folders
        self._delimiter = ""
        self._open = b""  # lines of a row of CSV with a quote that is not closed in them
        self._is_document: bool | None = None  # of several lines
        # Lakes write of columns whose names they do not repeat.
        self._has_name = (
            "_delta_log" in folders
            or name.endswith(".metadata.json")
            or not inspection.near.isdisjoint(self._of_folders)
        )
        names = (re.escape(json.dumps(each)[1:-1]).encode() for each in inspection.near)
        self._key = re.compile(rb'"(?:%s)\\*"\s*:' % b"|".join(names))
        self._elsewhere: set[Name] = set()  # values of other names

    def is_document(self, data: bytes) -> bool:
        """Tell whether a text begins with a document of several lines, as far as it is known."""
        if self._is_document is None and b"\n" in data.lstrip():
            text = data.lstrip().partition(b"\n")[0].decode(errors="replace")
            may_be = begins_document(text) and not self._may_be_csv
            self._is_document = may_be and document_in(text) is None
        return self._is_document is True

    def compare(self, data: bytes, *, is_last: bool = False) -> None:
        """Compare the values in some whole lines."""
        if self._may_be_csv and self._header is None and data:
            self._read_header(data.partition(b"\n")[0])
        data, self._open = self._open + data, b""
        self._has_name = self._has_name or self._key.search(data) is not None
        plain = _unescaped(data)
        places = self._inspection.places_in(plain)
        has_value = (
            self._place_within(places)
            if plain == data
            else self._spelled_among({plain[begin:end] for begin, end in places})
        )
        for line in self._rows(data, is_last):
            if has_value(line):
                self._compare_line(line)

    def _place_within(self, places: list[tuple[int, int]]) -> Callable[[bytes], bool]:
        """Return what tells, line after line, whether a place is in it."""
        left = iter(places)
        at, place = 0, next(left, None)

        def tell(line: bytes) -> bool:
            nonlocal at, place
            at += len(line) + 1
            is_within = False
            while place is not None and place[0] < at:
                is_within, place = True, next(left, None)
            return is_within

        return tell

    def _spelled_among(self, there: set[bytes]) -> Callable[[bytes], bool]:
        """Return what tells whether a line, which has escapes, has some words and numbers."""
        with_signs = self._inspection.with_signs(there)

        def tell(line: bytes) -> bool:
            own = _unescaped(line) if there else b""
            tokens = self._inspection.tokens_of(own)
            return not there.isdisjoint(tokens) or any(each in own for each in with_signs)

        return tell

    def end(self, data: bytes) -> None:
        """Compare the rest of the text."""
        found = None
        if self.is_document(data) and self._inspection.spellings_in(_unescaped(data)):
            found = documents_in(data.decode(errors="replace"))
        if found is None:
            self.compare(data, is_last=True)
        else:
            self._compare_document(found, data)
        if self._elsewhere and not self._has_name:
            self._inspection.found |= self._elsewhere

    def _rows(self, data: bytes, is_last: bool) -> Iterator[bytes]:
        """Return the lines of a text, those of a row of CSV together."""
        lines = data.removesuffix(b"\n").split(b"\n")
        if not self._header or b'"' not in data:
            yield from lines
            return
        row, n_quotes = list[bytes](), 0
        for line in lines:
            row.append(line)
            n_quotes += line.count(b'"')
            if n_quotes % 2 == 0:
                yield b"\n".join(row)
                row, n_quotes = [], 0
        left = b"\n".join(row)
        if is_last or len(left) > _LONGEST_ROW:
            yield from row
        elif row:
            self._open = left + b"\n"

    def _read_header(self, line: bytes) -> None:
        text, self._header = line.decode("utf-8-sig", errors="replace").rstrip("\r"), []
        rows = {sign: _row_of(text, sign) or [] for sign in _DELIMITERS}
        near = self._inspection.near
        known = [sign for sign, row in rows.items() if not near.isdisjoint(row)]
        if not known and not near.isdisjoint(self._of_folders):
            known = [max(rows, key=lambda sign: len(rows[sign]))]
        for sign in known[:1]:
            self._delimiter, self._header = sign, rows[sign]
            self._every = frozenset([*rows[sign], *self._of_folders])

    def _compare_line(self, line: bytes) -> None:
        text = line.decode(errors="replace").strip("\r\n")
        if (found := document_in(text)) is not None:
            self._compare_document(found, line)
        elif (row := self._row(text)) is not None:
            self._compare_row(row)
            for each in text.split("\n") if "\n" in text else ():  # quotes may be no borders
                if (row := self._whole(each.rstrip("\r").split(self._delimiter))) is not None:
                    self._compare_row(row)
        elif b"\n" in line:
            for own in line.split(b"\n"):
                self._compare_line(own)
        else:
            self._inspection.look_at_tokens(_unescaped(line))

    def _compare_document(self, found: Any, data: bytes) -> None:
        self._has_name = self._has_name or self._key.search(data) is not None
        compare_document(found, (), self._inspection, self._elsewhere)

    def _compare_row(self, row: Iterable[tuple[str, str]]) -> None:
        for name, value in row:
            self._inspection.look_at_tokens(value.encode(), {name}, self._every)
            if (within := document_in(value)) is not None:
                compare_document(within, {name}, self._inspection)

    def _row(self, text: str) -> list[tuple[str, str]] | None:
        """Return the values of a row of CSV with their columns; None if it is no whole row."""
        row = _row_of(text, self._delimiter) if self._header else None
        return None if row is None else self._whole(row)

    def _whole(self, row: list[str]) -> list[tuple[str, str]] | None:
        header = self._header or []
        return list(zip(header, row, strict=True)) if len(row) == len(header) else None


def _row_of(text: str, delimiter: str) -> list[str] | None:
    """Return the values of a line of CSV; None if a quote is not closed in it."""
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return None


def _unescaped(data: bytes) -> bytes:
    """Return a text in which the characters are as they are that JSON can escape."""
    if b"\\u" not in data and b"\\/" not in data:
        return data
    return _ESCAPED.sub(_escaped, data)


def _escaped(found: re.Match[bytes]) -> bytes:
    text = json.loads(b'"' + found[0] + b'"')
    return str(text).encode("utf-8", "replace")

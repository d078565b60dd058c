"""CSV and JSON lines: rows of people leave or change, and every byte of the other lines stays."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import os
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from erasable.core.errors import SourceError
from erasable.workspace.targets.columns import (
    ArrowBatch,
    Batch,
    Keys,
    check_subjects,
    joined,
    leaves_of,
)
from erasable.workspace.targets.overwriting import MASK, check_overwritten, is_kept
from erasable.workspace.targets.protocol import Settings

Given = Mapping[str, "str | None"]

_AT_ONCE = 20_000  # rows
_LONGEST = 1 << 28  # characters of a value
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_DAMAGED = "the file is damaged, or of another kind than its name says"
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, UnicodeError)
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "latin-1"),
)  # fmt: skip


def unpacked_name(name: str) -> str:
    """Return the name that a file has when it is not compressed.

    >>> unpacked_name("visits.csv.gz"), unpacked_name("Visits.CSV")
    ('visits.csv', 'visits.csv')
    """
    name = name.lower()
    return next((name.removesuffix(end) for end in _PACKED if name.endswith(end)), name)


def _packing(name: str) -> str:
    return next((end for end in _PACKED if name.lower().endswith(end)), "")


@contextmanager
def unpacked(file: BinaryIO, name: str) -> Iterator[io.BufferedReader]:
    """Read a file from its beginning, uncompressed if its name says so; it stays open."""
    end = _packing(name)
    with ExitStack() as stack:
        file = stack.enter_context(os.fdopen(os.dup(file.fileno()), "rb"))
        file.seek(0)
        found: Any = file
        if end == ".zst":
            raw = pa.PythonFile(file, mode="r")
            found = io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
        elif end:
            opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[end]
            found = io.BufferedReader(stack.enter_context(opener(file, "rb")))
        yield found


@contextmanager
def packed(file: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed as its name says; the file stays open."""
    end = _packing(name)
    if not end:
        yield file
    elif end == ".zst":
        copy = os.fdopen(os.dup(file.fileno()), "wb")
        with copy, pa.CompressedOutputStream(pa.PythonFile(copy, mode="w"), "zstd") as found:
            yield found
        file.seek(0, os.SEEK_END)
    else:
        opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[end]
        with opener(file, "wb") as found:
            yield found


class Format(ABC):
    """A kind of files; `name` is that of a file, `place` names it in messages."""

    def __init__(self, name: str, place: str, settings: Settings, given: Given) -> None:
        self.name = name
        self.place = place
        self.settings = settings
        self.given = given

    @abstractmethod
    def batches(self, file: BinaryIO) -> Iterator[Batch]:
        """Read all rows; raise SourceError where one cannot be read."""

    @abstractmethod
    def rewrite(self, file: BinaryIO, new: BinaryIO, keys: Keys) -> None:
        """Write a file without the rows of people, or with these overwritten."""

    def check(self, schema: pa.Schema) -> None:
        """Raise SourceError if people cannot be found, or not erased, in such columns."""
        check_subjects(schema, self.settings.subjects, self.given, self.place)
        check_overwritten(schema, self.settings, self.given, self.place)

    def refuse(self, row: int, why: str) -> NoReturn:
        """Raise the error for a row that cannot be read."""
        raise SourceError(f"row {row:,} of {self.place} cannot be read: {why}; nothing was changed")


class Lines:
    """The lines of a file with their ends, as characters that become the same bytes again."""

    def __init__(self, file: io.BufferedReader) -> None:
        head = file.peek(4)[:4]
        self.mark, self.encoding = next(
            ((mark, name) for mark, name in _MARKS if head.startswith(mark)), (b"", "latin-1")
        )
        file.read(len(self.mark))
        self._file = file

    def __iter__(self) -> Iterator[str]:
        """Return lines as they are stored."""
        with io.TextIOWrapper(self._file, encoding=self.encoding, newline="") as text:
            yield from text

    def text(self, line: str) -> str:
        """Return what a line says."""
        if self.encoding != "latin-1" or line.isascii():
            return line
        data = line.encode("latin-1")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("cp1252", "replace")

    def stored(self, text: str, like: str) -> str:
        """Return a line as it is stored; `like` is another line."""
        if self.encoding != "latin-1":
            return text
        try:
            like.encode("latin-1").decode()
        except UnicodeDecodeError:
            return text.encode("cp1252", "replace").decode("latin-1")
        return text.encode().decode("latin-1")


# -- CSV -------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Some rows of CSV."""

    lines: Lines
    start: bytes  # the header as it is stored, in the first part
    header: list[str]
    raws: list[str]  # rows as they are stored
    rows: list[list[str]]


class CsvFormat(Format):
    """CSV with a header, and one of several delimiters."""

    def batches(self, file: BinaryIO) -> Iterator[Batch]:
        """Read all rows."""
        for part in self._parts(file, self._delimiter(file)):
            yield ArrowBatch(_table(part.header, part.rows), self.given)

    def rewrite(self, file: BinaryIO, new: BinaryIO, keys: Keys) -> None:
        """Write a file without the rows of people, or with these overwritten."""
        delimiter = self._delimiter(file)
        with packed(new, self.name) as to:
            for lines, start, header, raws, rows in self._parts(file, delimiter):
                full = [at for at, row in enumerate(rows) if row]
                gone = np.zeros(len(rows), dtype=bool)
                gone[full] = ArrowBatch(_table(header, rows), self.given).rows_of(
                    keys, self.settings.subjects
                )
                for at in np.flatnonzero(gone).tolist():
                    raws[at] = self._changed(header, raws[at], rows[at], delimiter, lines)
                to.write(start + "".join(raws).encode(lines.encoding))

    def _parts(self, file: BinaryIO, delimiter: str) -> Iterator[_Part]:
        """Return some rows at a time."""
        with unpacked(file, self.name) as opened:
            lines = self._lines(opened)
            records = enumerate(self._records(lines, delimiter), 1)
            _, (first, header) = next(records, (0, ("", None)))
            if header is None:
                raise SourceError(f"{self.place} is empty; expected a header")
            self.check(pa.schema([(name, pa.string()) for name in header]))
            start = lines.mark + first.encode(lines.encoding)
            raws, rows = list[str](), list[list[str]]()
            for number, (raw, row) in records:
                if row and len(row) != len(header):
                    self.refuse(number, f"it has {len(row)} values; expected {len(header)}")
                raws.append(raw)
                rows.append(row)
                if len(rows) == _AT_ONCE:
                    yield _Part(lines, start, header, raws, rows)
                    start, raws, rows = b"", [], []
            yield _Part(lines, start, header, raws, rows)

    def _lines(self, opened: io.BufferedReader) -> Lines:
        try:
            return Lines(opened)
        except _BROKEN:
            self.refuse(1, _DAMAGED)

    def _records(self, lines: Lines, delimiter: str) -> Iterator[tuple[str, list[str]]]:
        """Return rows as stored and their values; a row may have several lines."""
        pending: list[str] = []

        def feed() -> Iterator[str]:
            for line in lines:
                pending.append(line)
                yield lines.text(line)

        number = 0
        try:
            for row in _with_long_values(csv.reader(feed(), delimiter=delimiter, strict=True)):
                number += 1
                yield "".join(pending), row
                pending.clear()
        except csv.Error:
            self.refuse(number + 1, "expected values with quotes doubled, and a quote at their end")
        except _BROKEN:
            self.refuse(number + 1, _DAMAGED)

    def _delimiter(self, file: BinaryIO) -> str:
        """Return the delimiter with which the header has a subject."""
        likely = "\t,;|" if unpacked_name(self.name).endswith(".tsv") else ",;\t|"
        wanted = {subject.field for subject in self.settings.subjects}
        for delimiter in likely:
            with unpacked(file, self.name) as opened:
                try:
                    _, names = next(self._records(self._lines(opened), delimiter), ("", []))
                except SourceError:
                    continue
                if wanted.intersection(names):
                    return delimiter
        return likely[0]

    def _changed(
        self, header: Sequence[str], raw: str, row: list[str], delimiter: str, lines: Lines
    ) -> str:
        if self.settings.action == "delete":
            return ""
        new = [
            value if is_kept(name, self.settings.keep) else self._overwritten(value)
            for name, value in zip(header, row, strict=True)
        ]
        quoted = raw.count('"') >= 2 * len(row)
        end = raw[len(raw.rstrip("\r\n")) :]
        text = io.StringIO()
        writer = csv.writer(
            text, delimiter=delimiter, lineterminator=end,
            quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
        )  # fmt: skip
        writer.writerow(new)
        return lines.stored(text.getvalue(), raw)

    def _overwritten(self, value: str) -> str:
        return MASK if self.settings.action == "mask" and value and not _is_number(value) else ""


def _with_long_values(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Read rows of CSV with a limit of their own, which is one for the whole process."""
    while True:
        limit = csv.field_size_limit(_LONGEST)
        try:
            row = next(rows, None)
        finally:
            csv.field_size_limit(limit)
        if row is None:
            return
        yield row


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return value.lower() in ("true", "false")
    return True


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> pa.Table:
    full = [row for row in rows if row]
    columns = zip(*full, strict=True) if full else ([] for _ in header)
    arrays = [pa.array([value or None for value in each], pa.string()) for each in columns]
    return pa.Table.from_arrays(arrays, names=list(header))


# -- JSON lines ------------------------------------------------------------------------------------


class JsonFormat(Format):
    """JSON lines: an object in each line."""

    def batches(self, file: BinaryIO) -> Iterator[Batch]:
        """Read all rows."""
        n, found = 0, False
        for _, raws, rows in self._parts(file):
            batch = JsonBatch(raws, rows, self.given)
            n += batch.n_rows
            found = found or any(batch.has(each.field) for each in self.settings.subjects)
            yield batch
        if n and not found:
            raise SourceError(
                f"{self.place} has none of the keys "
                f"{', '.join(repr(each.field) for each in self.settings.subjects)}; expected one "
                "or more in some line"
            )

    def rewrite(self, file: BinaryIO, new: BinaryIO, keys: Keys) -> None:
        """Write a file without the rows of people, or with these overwritten."""
        with packed(new, self.name) as to:
            for start, raws, rows in self._parts(file):
                gone = JsonBatch(raws, rows, self.given).rows_of(keys, self.settings.subjects)
                for at in np.flatnonzero(gone).tolist():
                    raws[at] = self._changed(raws[at], rows[at])
                to.write(start + b"".join(raws))

    def _parts(self, file: BinaryIO) -> Iterator[tuple[bytes, list[bytes], list[Any]]]:
        """Return some rows at a time: a mark of the encoding, lines as stored, and objects."""
        number, start = 0, b""
        raws, rows = list[bytes](), list[Any]()
        with unpacked(file, self.name) as opened:
            try:
                for number, line in enumerate(opened, 1):
                    if number == 1 and line.startswith(codecs.BOM_UTF8):
                        start, line = codecs.BOM_UTF8, line[3:]
                    raws.append(line)
                    rows.append(self._object(line, number))
                    if len(rows) == _AT_ONCE:
                        yield start, raws, rows
                        start, raws, rows = b"", [], []
            except _BROKEN:
                self.refuse(number + 1, _DAMAGED)
        yield start, raws, rows

    def _object(self, line: bytes, number: int) -> Any:
        if not line.strip():
            return {}
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            self.refuse(number, "expected an object of JSON in a line")
        if any(line.count(each) > 1 for each in self._keys.values()):
            for name in self._twice(line):
                self.refuse(number, f"an object has the key {name!r} more than once; expected one")
        for subject in self.settings.subjects:
            value = _value_of(row, subject.field)
            if isinstance(value, list | dict):
                self.refuse(number, f"{subject.field!r} is a list or an object; expected a value")
            if value is not _NONE and is_kept(subject.field, self.settings.keep):
                self.refuse(number, f"{subject.field!r} names a person; expected others to keep")
        return row

    @cached_property
    def _keys(self) -> dict[str, bytes]:
        """Keys that lead to identities, and as they are spelled."""
        fields = [each.field for each in self.settings.subjects]
        names = {name for field in fields for name in (field, *field.split("."))}
        return {name: json.dumps(name, ensure_ascii=False).encode() for name in sorted(names)}

    def _twice(self, line: bytes) -> list[str]:
        """Return which of these keys an object has more than once: readers choose either value."""
        found = list[str]()

        def look_at(pairs: list[tuple[str, Any]]) -> None:
            counts = Counter(key for key, _ in pairs)
            found.extend(name for name in self._keys if counts[name] > 1)

        json.loads(line, object_pairs_hook=look_at)
        return found

    def _changed(self, raw: bytes, row: Any) -> bytes:
        if self.settings.action == "delete":
            return b""
        new = self._overwritten(row, "")
        spaced = b'": ' in raw or b'", ' in raw
        escaped = raw.isascii() or b"\\ud" in raw.lower()  # half of a pair has no bytes
        text = json.dumps(new, ensure_ascii=escaped, separators=None if spaced else (",", ":"))
        return text.encode(errors="surrogatepass") + raw[len(raw.rstrip(b"\r\n")) :]

    def _overwritten(self, value: Any, path: str) -> Any:
        if path and is_kept(path, self.settings.keep):
            return value
        if isinstance(value, dict):
            within = f"{path}." if path else ""
            return {key: self._overwritten(each, within + key) for key, each in value.items()}
        return MASK if self.settings.action == "mask" and isinstance(value, str) else None


class JsonBatch(Batch):
    """Rows of JSON lines."""

    def __init__(self, raws: Sequence[bytes], rows: Sequence[Any], given: Given) -> None:
        self.n_rows = len(rows)
        self.given = given
        self._raws = raws
        self._rows = rows

    def has(self, field: str) -> bool:
        """Tell whether any row has a key."""
        return field in self.given or any(_value_of(row, field) is not _NONE for row in self._rows)

    def values(self, field: str) -> tuple[np.ndarray, list[Any]] | None:
        """Return the distinct values of a key, and which of them each row has."""
        known: dict[Any, int] = {}
        at = np.full(self.n_rows, -1, dtype=np.int64)
        for number, row in enumerate(self._rows):
            value = _value_of(row, field)
            if value is not None and not isinstance(value, bool) and value is not _NONE:
                at[number] = known.setdefault((type(value), value), len(known))
        return (at, [value for _, value in known]) if known else None

    def leaves(self, rows: np.ndarray) -> Iterator[Any]:
        """Return the values of some rows."""
        for at in np.flatnonzero(rows).tolist():
            yield from leaves_of(self._rows[at])

    def text(self, rows: np.ndarray) -> Iterator[bytes]:
        """Return some rows as they are stored, and what is escaped in them."""
        chosen = np.flatnonzero(rows).tolist()
        yield b"".join(self._raws[at] for at in chosen)
        yield joined(self._rows[at] for at in chosen if b"\\" in self._raws[at])


_NONE = object()


def _value_of(row: dict[str, Any], field: str) -> Any:
    """Return the value of a key, or of one within objects, as in "person.mail"; else `_NONE`.

    Of objects in a list it is the list of theirs.
    """
    if field in row or "." not in field:
        return row.get(field, _NONE)
    parts = field.split(".")
    for n in range(len(parts) - 1, 0, -1):
        within = row.get(".".join(parts[:n]))
        if isinstance(within, dict):
            return _value_of(within, ".".join(parts[n:]))
        if isinstance(within, list):
            found = [
                _value_of(each, ".".join(parts[n:])) for each in within if isinstance(each, dict)
            ]
            return [each for each in found if each is not _NONE] or _NONE
    return _NONE

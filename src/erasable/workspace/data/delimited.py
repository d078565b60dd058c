"""Read text files with separators, a block at a time; a column has one type in all of them.

The law kept here: the type of a column is that which the whole file has, as if it were read at
once, wherever blocks begin. What is wrong is said in one line, without repeating values.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from erasable.core._arrow_files import csv_bytes, csv_reader
from erasable.core.errors import SourceError
from erasable.workspace.data.encodings import HEAD, kind_of_file, why_not_utf8
from erasable.workspace.data.files import check_there

_BLOCK = 1 << 24  # bytes of a CSV file that are parsed at once: no row may be longer
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_ERRORS = (pa.ArrowException, OSError, ValueError, EOFError, zlib.error)
_LADDER = (
    pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.timestamp("s"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.float64(),
    pa.string(), pa.binary(),
)  # fmt: skip
"""The types that a column of text is tried as, in this order; anything is the last."""


def csv_batches(
    path: Path, separator: str, text_columns: Iterable[str]
) -> Iterator[pa.RecordBatch]:
    """Read a text file with a header; see `erasable.workspace.data.sources.Source.batches`.

    The file is read twice where it has several blocks: for the types, then for the values.

    Yields
    ------
    pyarrow.RecordBatch
        Of one schema. The first may be empty: it tells the columns.

    Raises
    ------
    SourceError
        It is not there, or is no such file.
    """
    check_there(path)
    try:
        head = _head(path)
        _refuse_other_files(path, head)
        known = dict.fromkeys(text_columns, pa.string())
        types, whole = _types(path, separator, known)
        if whole is not None:
            _check_text(path, head, whole.schema)
            yield whole
            return
        reader = csv_reader(path, separator, types, _BLOCK)
        _check_text(path, head, reader.schema)
        yield pa.RecordBatch.from_pylist([], reader.schema)
        yield from reader
    except SourceError:
        raise
    except UnicodeDecodeError:
        raise _misencoded(path, head) from None
    except _ERRORS:
        problem = _problem(path, separator)
        raise (_misencoded(path, head) if problem is None else _as_error(path, problem)) from None


def _types(
    path: Path, separator: str, known: Mapping[str, pa.DataType]
) -> tuple[dict[str, pa.DataType], pa.RecordBatch | None]:
    """Find the types of all columns; return the whole file, too, where it has one block.

    The first block suggests them. Where a later one does not suit them, all of the file is read as
    text, and the type of each column is the first of the ladder that holds all its values.
    """
    reader = csv_reader(path, separator, known, _BLOCK)
    names = reader.schema.names
    types = {**dict(zip(names, reader.schema.types, strict=True)), **known}
    first, n = pa.RecordBatch.from_pylist([], reader.schema), 0
    try:
        for n, batch in enumerate(reader, 1):
            first = batch if n == 1 else None
        return types, first
    except pa.ArrowInvalid:
        texts = dict.fromkeys(names, pa.string())
    before = None
    while types != before:
        before = types.copy()
        for batch in csv_reader(path, separator, texts, _BLOCK):
            for name, column in zip(names, batch.columns, strict=True):
                if types[name] != pa.string():
                    types[name] = _fitting(types[name], column)
    return types, None


def _fitting(kind: pa.DataType, texts: pa.Array) -> pa.DataType:
    """Return the first type of the ladder, from one on, that all of some texts can be read as."""
    written = csv_bytes(pa.table({"x": texts}))
    for wider in _LADDER[_LADDER.index(kind) :]:
        try:
            csv_reader(written, ",", {"x": wider}, len(written)).read_all()
        except pa.ArrowInvalid:
            continue
        return wider
    return pa.string()


def _problem(path: Path, separator: str) -> str | None:
    """Say what is wrong with a file besides its encoding, None where nothing is."""
    try:
        names = csv_reader(path, separator, {}, _BLOCK).schema.names
        for _ in csv_reader(path, separator, dict.fromkeys(names, pa.binary()), _BLOCK):
            pass
    except UnicodeDecodeError:
        return None
    except _ERRORS as error:
        return str(error)
    return None


def _head(path: Path) -> bytes:
    """Read the beginning of the text in a file."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not path.name.lower().endswith(".gz"):
        return head
    if not head.startswith(b"\x1f\x8b"):
        raise SourceError(
            f"{str(path)!r} is not compressed by gzip; expected that, by its name; rename it, or "
            "compress it"
        )
    with gzip.open(path) as unpacked:
        return unpacked.read(HEAD)


def _refuse_other_files(path: Path, head: bytes) -> None:
    found = kind_of_file(head)
    if found is not None:
        name, remedy = found
        raise SourceError(f"{str(path)!r} is {name}; expected text with separators; {remedy}")
    # Text in UTF-16 has zeros, or a mark that is no UTF-8; some of it would be read all the same.
    if (b"\0" in head or head[:2] in (b"\xff\xfe", b"\xfe\xff")) and why_not_utf8(head):
        raise _misencoded(path, head)


def _check_text(path: Path, head: bytes, schema: pa.Schema) -> None:
    if any("\0" in name for name in schema.names) or any(map(pa.types.is_binary, schema.types)):
        raise _misencoded(path, head)


def _misencoded(path: Path, head: bytes) -> SourceError:
    why = why_not_utf8(head) or (
        "in some of its lines; expected that in all of them; convert it, as with "
        "`iconv -f latin1 -t utf-8`"
    )
    return SourceError(f"{str(path)!r} is not encoded in UTF-8, {why}")


def _as_error(path: Path, message: str) -> SourceError:
    if "Empty CSV" in message:
        return SourceError(
            f"{str(path)!r} is empty; expected a line of column names and records; "
            "check that it is whole"
        )
    if ragged := _RAGGED.search(message):
        row = f"row {ragged[1]}" if ragged[1] else "a row"
        return SourceError(
            f"{str(path)!r} has {ragged[3]} columns in {row}; expected {ragged[2]}; mend that "
            "row: a separator in a value needs quotes around the value"
        )
    if "straddl" in message:
        return SourceError(
            f"{str(path)!r} has a row of over {_BLOCK >> 20} MB, or a quote that does not end; "
            "expected shorter rows; mend the quotes"
        )
    return SourceError(
        f"{str(path)!r} cannot be read as a table; expected text with separators, whole, that you "
        "may read; check its format and permissions"
    )

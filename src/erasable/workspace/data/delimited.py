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

from erasable.core.errors import SourceError
from erasable.workspace.data.arrow_files import csv_reader
from erasable.workspace.data.encodings import HEAD, kind_of_file, why_not_utf8
from erasable.workspace.data.files import check_there

_BLOCK = 1 << 24  # bytes of a CSV file that are parsed at once: no row may be longer
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_UNFIT = re.compile(r"In CSV column #(\d+): .*?conversion error(?:.*?invalid value '(.*)')?", re.S)
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
    except (pa.ArrowException, OSError, ValueError, EOFError, zlib.error) as error:
        if _tells_of_encoding(str(error)):
            raise _misencoded(path, head) from None
        raise _as_error(path, str(error)) from None


def _types(
    path: Path, separator: str, known: Mapping[str, pa.DataType]
) -> tuple[dict[str, pa.DataType], pa.RecordBatch | None]:
    """Find the types of all columns; return the whole file, too, where it has one block.

    The first block suggests them. A value that does not fit has its column taken for the next type
    that it does fit, and the file read from its beginning.
    """
    types, names = dict(known), list[str]()
    while True:
        first, n = None, 0
        try:
            reader = csv_reader(path, separator, types, _BLOCK)
            names = reader.schema.names
            types = {**dict(zip(names, reader.schema.types, strict=True)), **known}
            for batch in reader:
                n += 1
                first = batch if n == 1 else None
        except pa.ArrowInvalid as error:
            unfit = _UNFIT.search(str(error))
            if unfit is None or not names or "invalid UTF8" in str(error):
                raise
            name = names[int(unfit[1])]
            types[name] = _next(types[name], unfit[2])
            continue
        return types, first if n else pa.RecordBatch.from_pylist([], reader.schema)


def _next(kind: pa.DataType, value: str | None) -> pa.DataType:
    """Return the next type of the ladder that holds a value which does not fit this one."""
    rest = _LADDER[_LADDER.index(kind) + 1 :]
    for wider in rest if value is not None and value.isprintable() and '"' not in value else ():
        try:
            line = f'x,y\n"{value}",\n'.encode()
            csv_reader(line, ",", {"x": wider}, _BLOCK).read_all()
        except pa.ArrowInvalid:
            continue
        return wider
    return rest[0]


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


def _tells_of_encoding(message: str) -> bool:
    return "invalid UTF8" in message or "codec can't" in message


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

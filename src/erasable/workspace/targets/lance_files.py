"""Data and index files of Lance (format 2), read by Lance itself.

Lance packs texts and numbers in ways of its own, and its client hides rows that are deleted. So a
table is made, in a temporary folder, that has one file as its only part: Lance then reads all
its rows, deleted ones too, also if no manifest of the store names the file.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from erasable.workspace.targets.decoded_tables import look_at_batch
from erasable.workspace.targets.inspection import Inspection, Undecodable

_FOOTER = struct.Struct("<QQQIIHH4s")
_ROWS = 1 << 14


def is_data(tail: bytes) -> bool:
    """Tell whether a file is one of data; manifests end in a similar way."""
    if len(tail) < _FOOTER.size:
        return False
    first, columns, buffers, n_buffers, n_columns, major, _, magic = _footer(tail)
    in_order = first <= columns <= buffers and buffers - columns == 16 * n_columns
    return magic == b"LANC" and in_order and n_buffers < 1 << 16 and major in (0, 2)


def look_at_lance(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    """Look at all columns of a file."""
    try:
        import lancedb  # late: it takes two seconds, and files of Lance can be met without it
    except ImportError:
        raise Undecodable("it is a file of Lance, and lancedb is not installed") from None
    try:
        manifest = _manifest(file)
    except (ValueError, IndexError, KeyError, struct.error) as error:
        raise Undecodable("it is a file of Lance of another version") from error
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "t.lance")
        for name in ("_versions", "data"):
            (table / name).mkdir(parents=True)
        (table / "data" / "x.lance").symlink_to(path.absolute())
        (table / "_versions" / f"{2**64 - 2}.manifest").write_bytes(manifest)
        try:
            opened = lancedb.connect(folder).open_table("t")
            for batch in opened.search(None).to_batches(_ROWS):
                look_at_batch(batch, inspection)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # Lance panics where it cannot read a file
            raise Undecodable(f"Lance does not read it ({type(error).__name__})") from error


def _footer(data: bytes) -> tuple[int, int, int, int, int, int, int, bytes]:
    return _FOOTER.unpack(data[-_FOOTER.size :])


def _manifest(file: BinaryIO) -> bytes:
    """Make the manifest of a table with this file alone, of the schema that it holds."""
    size = file.seek(0, 2)
    file.seek(size - _FOOTER.size)
    _, _, buffers, _, _, major, minor, _ = _footer(file.read())
    file.seek(buffers)
    at, n = struct.unpack("<QQ", file.read(16))
    file.seek(at)
    descriptor = dict(_parsed(file.read(n)))
    fields = [value for number, value in _parsed(_bytes(descriptor[1])) if number == 1]
    parsed = [dict(_parsed(_bytes(each))) for each in fields]
    ids = [int(each.get(3, 0)) for each in parsed]
    parents = {each.get(4, 0) for each in parsed}
    is_old = (major, minor) < (2, 1)  # every field has a column there
    columns, n_columns = [], 0
    for each in ids:
        is_leaf = is_old or each not in parents
        columns.append(n_columns if is_leaf else -1)
        n_columns += is_leaf
    data_file = (
        _field(1, b"x.lance") + _field(2, b"".join(map(_varint, ids)))
        + _field(3, b"".join(map(_varint, columns)))
        + _field(4, major) + _field(5, minor) + _field(6, size)
    )  # fmt: skip
    fragment = _field(2, data_file) + _field(4, int(descriptor.get(2, 0)))
    body = (
        b"".join(_field(1, _renamed(_bytes(each), at)) for at, each in enumerate(fields))
        + _field(2, fragment) + _field(3, 1)
        + _field(15, _field(1, b"lance") + _field(2, f"{major}.{minor}".encode()))
    )  # fmt: skip
    return struct.pack("<I", len(body)) + body + struct.pack("<QHH4s", 0, 0, 2, b"LANC")


def _renamed(field: bytes, at: int) -> bytes:
    """Name a column by its place: some names are Lance's own, or have dots."""
    return b"".join(
        _field(number, b"c%d" % at if number == 2 else value) for number, value in _parsed(field)
    )


# -- Protocol Buffers ------------------------------------------------------------------------------


def _parsed(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == 0:
            value, at = _read_varint(data, at)
            yield key >> 3, value
        elif key & 7 == 2:
            n, at = _read_varint(data, at)
            if at + n > len(data):
                raise ValueError("a field is too long")
            yield key >> 3, data[at : at + n]
            at += n
        else:
            raise ValueError("a field of a kind that Lance does not have")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes are expected")
    return value

"""Files of Avro, such as Iceberg's manifests: their blocks decompressed, and their values."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from erasable.workspace.targets.inspection import unsnappied

_LARGEST = 1 << 30  # bytes of a block

Path: TypeAlias = tuple[str, ...]
Leaf: TypeAlias = tuple[Path, Any]


class AvroFile:
    """A file of Avro, read from its beginning; ValueError or EOFError where it is damaged."""

    def __init__(self, file: BinaryIO) -> None:
        if file.read(4) != b"Obj\x01":
            raise ValueError("it does not begin as Avro does")
        self._file = file
        self.metadata: dict[bytes, bytes] = {}
        while n := _long(file):
            if n < 0:
                n, _ = -n, _long(file)
            for _ in range(n):
                key = _sized(file)
                self.metadata[key] = _sized(file)
        self._sync = _read(file, 16)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Return the blocks, decompressed, each with its number of records."""
        codec = self.metadata.get(b"avro.codec", b"null").decode(errors="replace")
        if codec not in _CODECS:
            raise ValueError("the codec is not known")
        while first := self._file.read(1):
            n = _long(self._file, first)
            yield n, _CODECS[codec](_sized(self._file))
            if _read(self._file, 16) != self._sync:
                raise ValueError("a block does not end as it should")

    def values(self, n: int, block: bytes) -> Iterator[tuple[Path, Any]]:
        """Return all values of the records of a block, each with the names of its fields."""
        schema = json.loads(self.metadata[b"avro.schema"])
        data = io.BytesIO(block)
        for _ in range(_number(data, n)):
            yield from _values(data, schema, {}, ())
        if data.read(1):
            raise ValueError("there are more bytes than values")


def _values(data: io.BytesIO, schema: Any, named: dict[str, Any], path: Path) -> Iterator[Leaf]:
    """Read a value by its schema (Avro 1.11, binary encoding)."""
    if isinstance(schema, list):
        schema = schema[_long(data)]
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    kind = schema["type"]
    if not isinstance(kind, str) or kind in named:
        yield from _values(data, kind, named, path)
        return
    if "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        for field in schema["fields"]:
            yield from _values(data, field["type"], named, (*path, field["name"]))
    elif kind in ("array", "map"):
        while n := _long(data):
            if n < 0:
                n, _ = -n, _long(data)
            for _ in range(_number(data, n)):
                if kind == "map":
                    yield (*path, "key"), _sized(data).decode()
                items = schema["items" if kind == "array" else "values"]
                yield from _values(data, items, named, path)
    elif kind != "null":
        yield path, _PLAIN[kind](data, schema)


_PLAIN: dict[str, Callable[[BinaryIO, Any], Any]] = {
    "boolean": lambda data, _: _read(data, 1) != b"\0",
    "int": lambda data, _: _long(data),
    "long": lambda data, _: _long(data),
    "float": lambda data, _: struct.unpack("<f", _read(data, 4))[0],
    "double": lambda data, _: struct.unpack("<d", _read(data, 8))[0],
    "bytes": lambda data, _: _sized(data),
    "string": lambda data, _: _sized(data).decode(),
    "enum": lambda data, schema: schema["symbols"][_long(data)],
    "fixed": lambda data, schema: _read(data, schema["size"]),
}


def _zstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        found: bytes = stream.read()
    return found


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda data: data,
    "deflate": lambda data: zlib.decompress(data, -15),
    "snappy": lambda data: unsnappied(data[:-4]),  # four bytes are a checksum
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "zstandard": _zstd,
}


def _read(file: BinaryIO, n: int) -> bytes:
    data = file.read(n)
    if len(data) < n:
        raise EOFError("the file has no end")
    return data


def _sized(file: BinaryIO) -> bytes:
    n = _long(file)
    if not 0 <= n <= _LARGEST:
        raise ValueError("a size is not one")
    return _read(file, n)


def _number(data: io.BytesIO, n: int) -> int:
    """Return a number of values, which each take a byte at least: else a damaged one has no end."""
    if not 0 <= n <= len(data.getbuffer()):
        raise ValueError("there are more values than bytes")
    return n


def _long(file: BinaryIO, first: bytes = b"") -> int:
    value = shift = 0
    while shift < 70:
        byte = (first or _read(file, 1))[0]
        first = b""
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1)
    raise ValueError("a number is too long")

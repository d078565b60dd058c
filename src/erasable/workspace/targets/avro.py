"""Blocks of Avro files, such as Iceberg's manifests, decompressed."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pyarrow as pa

from erasable.workspace.targets.inspection import unsnappied

_LARGEST = 1 << 30  # bytes of a block


def avro_blocks(file: BinaryIO) -> Iterator[bytes]:
    """Return the metadata of an Avro file, and its blocks; ValueError where it is damaged."""
    if file.read(4) != b"Obj\x01":
        raise ValueError("it does not begin as Avro does")
    metadata: dict[bytes, bytes] = {}
    while n := _long(file):
        if n < 0:
            n, _ = -n, _long(file)
        for _ in range(n):
            key = _sized(file)
            metadata[key] = _sized(file)
    sync = _read(file, 16)
    yield b"\0".join(each for pair in metadata.items() for each in pair)
    codec = metadata.get(b"avro.codec", b"null").decode(errors="replace")
    if codec not in _CODECS:
        raise ValueError("the codec is not known")
    while first := file.read(1):
        _long(file, first)  # number of records
        yield _CODECS[codec](_sized(file))
        if _read(file, 16) != sync:
            raise ValueError("a block does not end as it should")


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

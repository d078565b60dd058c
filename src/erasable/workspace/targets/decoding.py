"""Decoding of files by what they hold, not by their names, so that a search sees the values.

Whole files: gzip, Zstandard, LZ4, bzip2, xz, zlib, framed Snappy and zip, also one in another;
Avro, and Parquet, Arrow, ORC, Lance and SQLite in modules of their own. In files of other formats:
frames of Zstandard, LZ4, gzip and zlib, and LZ4 blocks after their sizes, wherever they begin.
"""

from __future__ import annotations

import bz2
import io
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from erasable.core._byte_search import overlapping
from erasable.workspace.targets import decoded_tables, lance_files, manifests, sqlite_pages
from erasable.workspace.targets.avro import AvroFile
from erasable.workspace.targets.embedded import look_for_frames
from erasable.workspace.targets.inspection import Inspection, Undecodable, is_text, unsnappied
from erasable.workspace.targets.nested_values import compare_pairs
from erasable.workspace.targets.text_lines import compared_lines, folders_of

AT_ONCE = 1 << 22  # bytes that are looked through at a time
_LOOKED_AT = 4_096  # bytes that say whether a file is a text
_DEEPEST = 3  # of formats in each other
_LARGEST = 1 << 36  # bytes that a file may become


def inspect(path: Path, inspection: Inspection) -> None:
    """Look for values in a file, as it is and decoded; Undecodable says what was not."""
    with path.open("rb") as file:
        _inspect(file, path, inspection, 0)


_File: TypeAlias = "io.BufferedReader[Any] | io.BufferedRandom"


def _inspect(file: _File, path: Path, inspection: Inspection, depth: int) -> None:
    head, tail = file.peek(64)[:64], b""
    if file.seekable():
        file.seek(max(file.seek(0, 2) - 64, 0))
        tail = file.read()
        file.seek(0)
    if depth > _DEEPEST:
        raise Undecodable(f"it is packed more than {_DEEPEST} times")
    if decoder := _decoder_of(head):
        if file.seekable():
            _look_through(file, inspection)
        with _as_file(decoder(file)) as decoded:
            _inspect(decoded, path, inspection, depth + 1)
    elif head.startswith(b"Obj\x01"):
        with _told_once():
            _look_at_avro(file, path, inspection)
    elif look := _reader_of(head, tail):
        if file.seekable():
            _look_through(file, inspection)
            look(file, path, inspection, depth)
            return
        with tempfile.TemporaryFile() as kept:
            shutil.copyfileobj(file, kept, AT_ONCE)
            kept.seek(0)
            _inspect(kept, path, inspection, depth)
    else:
        _inspect_unknown(file, path, inspection)


def _look_at_avro(file: BinaryIO, path: Path, inspection: Inspection) -> None:
    """Look at the blocks of a file of Avro, and compare the values of a manifest."""
    found = AvroFile(file)
    is_manifest = manifests.is_manifest(found)
    inspection.is_compared &= is_manifest
    look = inspection.look_at_metadata if is_manifest else inspection.look_at
    look(b"\0".join(each for pair in found.metadata.items() for each in pair))
    for n, block in found.blocks():
        look(block)
        if is_manifest and inspection.has_exact:
            name = unquote(path.name).rpartition("/")[2]
            manifests.compare(found, n, block, name, inspection)


def _look_through(file: BinaryIO, inspection: Inspection) -> None:
    inspection.look_through(iter(partial(file.read, AT_ONCE), b""))
    file.seek(0)


class _Decoded(io.RawIOBase):
    """What a file is decoded to, as a file."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = _guarded(parts)
        self._left = b""
        self._n = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._left = part
        n = min(len(buffer), len(self._left))
        buffer[:n] = self._left[:n]
        self._left = self._left[n:]
        self._n += n
        if self._n > _LARGEST:
            raise Undecodable(f"it becomes larger than {_LARGEST >> 30} GiB")
        return n


def _as_file(parts: Iterator[bytes]) -> io.BufferedReader:
    return io.BufferedReader(_Decoded(parts), AT_ONCE)


def _guarded(parts: Iterator[bytes]) -> Iterator[bytes]:
    with _told_once():
        yield from parts


@contextmanager
def _told_once() -> Iterator[None]:
    """Say in one line what a decoder cannot read."""
    try:
        yield
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        name = type(error).__name__
        raise Undecodable(f"it is damaged, or packed in another way ({name})") from error


def _decoder_of(head: bytes) -> Callable[[BinaryIO], Iterator[bytes]] | None:
    for starts, decoder in (
        ((b"\x1f\x8b\x08",), partial(_arrow_codec, "gzip")),
        ((b"\x28\xb5\x2f\xfd", *_SKIPPABLE), partial(_arrow_codec, "zstd")),
        ((b"\x04\x22\x4d\x18",), partial(_arrow_codec, "lz4")),
        ((b"BZh",), _bzip2),
        ((b"\xfd7zXZ\x00",), _xz),
        ((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), _zlib),
        ((b"\xff\x06\x00\x00sNaPpY",), _snappy),
    ):
        if head.startswith(starts):
            return decoder
    return None


_SKIPPABLE = tuple(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))


_Look = Callable[[BinaryIO, Path, Inspection, int], None]


def _reader_of(head: bytes, tail: bytes) -> _Look | None:
    """Return what looks at files that are not read from the beginning to the end.

    What a file is decoded to has no tail yet.
    """
    if head.startswith(b"PK\x03\x04"):
        return _inspect_zip
    if head.startswith(b"PARE") or tail.endswith(b"PARE"):
        return _refuse("it is encrypted Parquet")
    if head.startswith(b"PAR1"):
        return decoded_tables.look_at_parquet
    if head.startswith(b"ARROW1"):
        return decoded_tables.look_at_arrow
    if head.startswith(b"ORC") and tail[-4:-1] == b"ORC":
        return decoded_tables.look_at_orc
    if head.startswith(b"SQLite format 3\0"):
        return sqlite_pages.look_at_database
    if head[:4] in (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"):
        return sqlite_pages.look_at_log
    if head[8:12] == b"DUCK":
        return _refuse("it is a file of DuckDB, which packs values")
    if tail.endswith(b"LANC") and lance_files.is_data(tail):
        return lance_files.look_at_lance
    return None


def _refuse(reason: str) -> _Look:
    def look(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
        raise Undecodable(reason)

    return look


def _inspect_zip(file: BinaryIO, path: Path, inspection: Inspection, depth: int) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            for each in archive.infolist():
                inspection.look_through([each.filename.encode(errors="replace")])
                compare_pairs(each.filename, inspection)
                with archive.open(each) as member:
                    parts = iter(partial(member.read, AT_ONCE), b"")
                    with _as_file(parts) as decoded:
                        _inspect(decoded, path / each.filename.lstrip("/"), inspection, depth + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:  # also of a password
        raise Undecodable(f"it is a damaged or encrypted archive ({type(error).__name__})") from (
            error
        )


def _inspect_unknown(file: _File, path: Path, inspection: Inspection) -> None:
    """Look at a file of any other format: at its words if it is a text, else for packed parts."""
    if not is_text(file.peek(_LOOKED_AT)[:_LOOKED_AT]):
        inspection.is_compared = False
        look_for_frames(file, inspection)
        return
    is_log = folders_of(path, inspection)[-1:] == ["_delta_log"]
    parts = compared_lines(iter(partial(file.read, AT_ONCE), b""), path, inspection)
    for block in overlapping(parts, inspection.overlap):
        (inspection.look_at_metadata if is_log else inspection.look_at_text)(block)
        inspection.is_compared &= is_text(block)


def _arrow_codec(codec: str, file: BinaryIO) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec) as stream:
        yield from iter(partial(stream.read, AT_ONCE), b"")


def _bzip2(file: BinaryIO) -> Iterator[bytes]:
    with bz2.BZ2File(file) as stream:
        yield from iter(partial(stream.read, AT_ONCE), b"")


def _xz(file: BinaryIO) -> Iterator[bytes]:
    with lzma.LZMAFile(file) as stream:
        yield from iter(partial(stream.read, AT_ONCE), b"")


def _zlib(file: BinaryIO) -> Iterator[bytes]:
    decoder = zlib.decompressobj()
    for part in iter(partial(file.read, AT_ONCE), b""):
        yield decoder.decompress(part, AT_ONCE)
        while decoder.unconsumed_tail:
            yield decoder.decompress(decoder.unconsumed_tail, AT_ONCE)
    yield decoder.flush()
    if not decoder.eof:
        raise EOFError("the stream has no end")


def _snappy(file: BinaryIO) -> Iterator[bytes]:
    """Decode the framing format of Snappy."""
    while head := file.read(4):
        size = int.from_bytes(head[1:4], "little")
        data = file.read(size)
        if len(head) < 4 or len(data) < size:
            raise EOFError("the stream has no end")
        if head[0] == 0x00:
            yield unsnappied(data[4:])
        elif head[0] == 0x01:
            yield data[4:]
        elif head[0] < 0x80:
            raise EOFError("the stream has a part of no known kind")

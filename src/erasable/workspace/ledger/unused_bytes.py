"""Unused bytes of a file of SQLite, where copies of deleted rows stay.

With ``PRAGMA secure_delete`` SQLite overwrites the rows that it deletes. But where it moves rows
from a page to another, it leaves copies in the gap between the pointers of the page and its rows.
The layout is that of https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_FOLDER = "/dev/fd"
_LARGEST = 65536
_INTERIOR, _LEAVES = (2, 5), (10, 13)  # kinds of pages of indexes and of tables


class CannotClearError(Exception):
    """Unused bytes cannot be overwritten in place: the file has to be written anew."""


def open_handle(path: Path) -> int:
    """Return the handle by which SQLite itself has opened a file in this process.

    When a process closes any handle of a file, it loses its locks on it, so another must not be
    opened. Raise CannotClearError if the handle is not found.
    """
    wanted = path.stat()
    for name in os.listdir(_FOLDER) if os.path.isdir(_FOLDER) else []:
        try:
            found = os.fstat(int(name))
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino) and _writes(int(name)):
            return int(name)
    raise CannotClearError


def _writes(handle: int) -> bool:
    try:
        os.pwrite(handle, b"", 0)
    except OSError:
        return False
    return True


def clear(handle: int, roots: Iterable[int]) -> int:
    """Overwrite unused bytes that are not 0, and sync the file; return how many parts there were.

    `roots` are the first pages of the tables and indexes. Nothing may be in the write-ahead log,
    and nobody may write meanwhile; others may read, because only unused bytes change. Raise
    CannotClearError, and change nothing, if the file has another layout than this module knows.
    """
    zeros = bytes(_LARGEST)
    found = [
        (offset, len(part)) for offset, part in _unused(handle, roots) if part != zeros[: len(part)]
    ]
    for offset, size in found:
        if os.pwrite(handle, zeros[:size], offset) != size:
            raise OSError(f"only some of {size} bytes were written")
    if found:
        os.fsync(handle)
    return len(found)


def _unused(handle: int, roots: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the unused parts of the pages of trees, and free pages, with their offsets."""
    head = os.pread(handle, 100, 0)
    # Neither autovacuum nor bytes that pages reserve, such as for checksums, are known here.
    if len(head) < 100 or head[:16] != b"SQLite format 3\0" or _number(head, 52) or head[20]:
        raise CannotClearError
    size = int.from_bytes(head[16:18], "big")
    pages = _Pages(handle, size if size > 1 else _LARGEST)
    waiting = list(roots)
    while waiting:
        number = waiting.pop()
        page = pages.read(number)
        yield from pages.parts(number, page, _gaps(page))
        waiting += _children(page)
    trunk = _number(head, 32)
    while trunk:
        page = pages.read(trunk)
        following, n = struct.unpack_from(">II", page)
        if 8 + 4 * n > pages.size:
            raise CannotClearError
        yield from pages.parts(trunk, page, [(8 + 4 * n, pages.size)])
        for leaf in struct.unpack_from(f">{n}I", page, 8):
            yield from pages.parts(leaf, pages.read(leaf), [(0, pages.size)])
        trunk = following


class _Pages:
    """The pages of a file, each of which is read once."""

    def __init__(self, handle: int, size: int) -> None:
        self._handle, self.size = handle, size
        self._left = os.fstat(handle).st_size // size

    def read(self, number: int) -> bytes:
        """Return a page; raise CannotClearError if there is none, or the pages are a circle."""
        self._left -= 1
        page = os.pread(self._handle, self.size, (number - 1) * self.size) if number > 1 else b""
        if self._left < 0 or len(page) != self.size:
            raise CannotClearError
        return page

    def parts(
        self, number: int, page: bytes, gaps: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield parts of a page with their offsets in the file."""
        for begin, end in gaps:
            yield (number - 1) * self.size + begin, page[begin:end]


def _gaps(page: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the unused parts of the page of a tree begin and end."""
    kind, block, n, start = struct.unpack_from(">BHHH", page)
    whole = len(page)
    begin, start = (12 if kind in _INTERIOR else 8) + 2 * n, start or _LARGEST
    if kind not in (*_INTERIOR, *_LEAVES) or not begin <= start <= whole:
        raise CannotClearError
    yield begin, start
    end = start
    while block:
        if not end <= block <= whole - 4:  # blocks are in order
            raise CannotClearError
        following, size = struct.unpack_from(">HH", page, block)
        end = block + size
        if size < 4 or end > whole:
            raise CannotClearError
        yield block + 4, end
        block = following


def _children(page: bytes) -> list[int]:
    """Return the pages below a page of a tree."""
    if page[0] not in _INTERIOR:
        return []
    (n,) = struct.unpack_from(">H", page, 3)
    return [_number(page, 8), *(_number(page, at) for at in struct.unpack_from(f">{n}H", page, 12))]


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")

"""Pages of a file in the memory of a process, and changes of the file meanwhile.

The law kept here: mapped memory belongs to the arrays made of it. Nothing else writes to it, and it
stays the same when the file changes: a process copies the pages that a change is about to write,
and if another process has mapped the file, a new file takes its place. So a model, or the rest of
one until it is collected, can read its arrays and overwrite rows in them as long as it has them.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from erasable.core.mapped.disk import Files, open_no_link
from erasable.core.row_arrays import Slot

__all__ = [
    "BLOCK",
    "PAGE",
    "PIECE",
    "Memory",
    "Overlaid",
    "change_file",
    "gaps",
    "in_a_row",
    "laid_out",
    "lock",
    "pieces_of",
    "rounded",
    "sole_use",
]

PAGE = 4096
BLOCK = 2**14
PIECE = 256 * BLOCK
GUARD = 0
"""Free bytes after each array: tests make pages there that cannot be accessed."""


def rounded(slot: Sequence[int]) -> list[int]:
    """Return a slot up to the end of its last page, which it shares with none."""
    return [slot[0], -(-slot[1] // PAGE) * PAGE + GUARD]


def gaps(used: Iterable[Sequence[int]], size: int) -> list[list[int]]:
    """Return the slots between others."""
    found, end = [], 0
    for offset, length in [*sorted(map(list, used)), [size, 0]]:
        if offset > end:
            found.append([end, offset - end])
        end = max(end, offset + length)
    return found


def laid_out(arrays: Sequence[NDArray[np.uint8]], begin: int) -> tuple[list[list[int]], int]:
    """Return slots for arrays, one after the other from `begin` on, and the end of the last."""
    slots = []
    for array in arrays:
        slots.append([begin, array.size])
        begin += rounded(slots[-1])[1]
    return slots, begin


def pieces_of(
    arrays: Sequence[NDArray[np.uint8]], slots: Sequence[Sequence[int]], size: int
) -> Iterator[memoryview]:
    """Yield the contents of a file, some blocks at a time."""
    piece = np.zeros(PIECE, np.uint8)
    for begin in range(0, size, PIECE):
        end = min(size, begin + PIECE)
        piece[:] = 0
        for array, (offset, length) in zip(arrays, slots, strict=True):
            low, high = max(begin, offset), min(end, offset + length)
            if low < high:
                piece[low - begin : high - begin] = array[low - offset : high - offset]
        yield piece[: end - begin].data


def in_a_row(pages: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last page of each run of consecutive pages."""
    first = last = None
    for page in pages:
        if last is not None and page == last + 1:
            last = page
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = page
    if first is not None and last is not None:
        yield first, last


if sys.platform == "win32":  # on which a mapped file is never replaced
    LOCK_EX = LOCK_NB = LOCK_SH = LOCK_UN = 0

    def flock(handle: int, operation: int) -> None:
        """Lock nothing."""
else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock


_LIVE: weakref.WeakSet[Memory] = weakref.WeakSet()
_LISTING = threading.Lock()


class Memory(mmap.mmap):
    """The first bytes of a file, copy-on-write; mapped as long as an array is made of it."""

    handle: int  # has a lock on the file, shared with all who map it; closed with the mapping
    file: tuple[int, int]  # device and inode
    forked = False  # a forked process may have it, too; both share one lock

    @classmethod
    def of(cls, handle: int, size: int) -> Memory:
        """Map as many bytes of a file that `lock` has opened."""
        made = cls(handle, size, access=mmap.ACCESS_COPY)
        made.handle, made.file = handle, _file(handle)
        weakref.finalize(made, os.close, handle).atexit = False
        with _LISTING:
            _LIVE.add(made)
        return made

    def arrays(self, slots: Sequence[Sequence[int]]) -> list[Slot]:
        """Return the bytes of slots as arrays, which keep the mapping alive."""
        return [Slot(size, np.uint8, self, offset) for offset, size in slots]

    def keep(self, runs: Sequence[tuple[int, memoryview]]) -> None:
        """Copy the pages that are about to be written in the file."""
        memory = np.ndarray(len(self), np.uint8, self)
        for offset, data in runs:
            first_bytes = memory[offset // PAGE * PAGE : offset + len(data) : PAGE]
            first_bytes[...] = first_bytes.copy()


class Overlaid:
    r"""Bytes of a file, with others in the place of some, or after them.

    >>> after = Overlaid(np.arange(4, dtype=np.uint8), [(3, memoryview(b"ab"))])
    >>> bytes(after.read(1, 6))
    b'\x01\x02ab\x00'
    """

    def __init__(self, before: NDArray[np.uint8], runs: Sequence[tuple[int, memoryview]]) -> None:
        self._before = before
        self._runs = sorted(runs, key=lambda run: run[0])
        self._starts = [offset for offset, _ in self._runs]

    def read(self, begin: int, end: int) -> memoryview:
        """Copy bytes; bytes outside of both are 0."""
        out = bytearray(end - begin)
        known = self._before[begin:end]
        out[: known.size] = known.data
        for number in range(max(0, bisect_right(self._starts, begin) - 1), len(self._runs)):
            offset, data = self._runs[number]
            if offset >= end:
                break
            low, high = max(begin, offset), min(end, offset + len(data))
            if low < high:
                out[low - begin : high - begin] = data[low - offset : high - offset]
        return memoryview(out)


def lock(path: Path) -> int:
    """Open a file under a lock: no process changes it in place while it is open."""
    handle = open_no_link(os.fspath(path), os.O_RDONLY)
    with contextlib.suppress(OSError):  # a file system without locks, where `sole_use` fails, too
        flock(handle, LOCK_SH)
    return handle


@contextlib.contextmanager
def sole_use(path: Path) -> Iterator[list[Memory] | None]:
    """Keep other processes from mapping a file, in the block.

    Yield the mappings of this process; None if another process has mapped the file, or may have.
    """
    handle = open_no_link(os.fspath(path), os.O_RDONLY)
    try:
        with _LISTING:
            own = [each for each in _LIVE if each.file == _file(handle)]
        if any(each.forked for each in own):
            yield None
            return
        try:
            for each in own:
                flock(each.handle, LOCK_UN)
            flock(handle, LOCK_EX | LOCK_NB)
            alone = True
        except OSError:
            alone = False
        try:
            yield own if alone else None
        finally:
            with contextlib.suppress(OSError):
                flock(handle, LOCK_UN)
                for each in own:
                    flock(each.handle, LOCK_SH)
    finally:
        os.close(handle)


def change_file(
    files: Files, key: str, runs: Sequence[tuple[int, memoryview]], own: list[Memory] | None
) -> None:
    """Write runs of bytes into a file; `own` is the result of `sole_use`."""
    if own is not None:
        for each in own:
            each.keep(runs)
        files.patch(key, runs)
        return
    path = files.path(key)
    after = Overlaid(np.memmap(path, np.uint8, "r"), runs)
    size = max([path.stat().st_size, *(offset + len(data) for offset, data in runs)])
    with files.writing(key) as append:
        for begin in range(0, size, PIECE):
            append(after.read(begin, min(size, begin + PIECE)))


def _before_fork() -> None:
    _LISTING.acquire()  # so that no other thread has it in the child
    for each in _LIVE:
        each.forked = True


if hasattr(os, "register_at_fork"):
    _AFTER = _LISTING.release
    os.register_at_fork(before=_before_fork, after_in_parent=_AFTER, after_in_child=_AFTER)


def _file(handle: int) -> tuple[int, int]:
    told = os.fstat(handle)
    return told.st_dev, told.st_ino

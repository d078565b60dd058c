"""Where arrays lie in a file: each in pages of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "PAGE", "PIECE", "gaps", "in_a_row", "laid_out", "pieces_of", "rounded"]

PAGE = 4096
BLOCK = 2**14
PIECE = 256 * BLOCK
GUARD = 0
"""Bytes after each array that stay free: tests have pages there that cannot be accessed."""


def rounded(slot: Sequence[int]) -> list[int]:
    """Return a slot up to the end of its last page, which it has for itself."""
    return [slot[0], -(-slot[1] // PAGE) * PAGE + GUARD]


def gaps(used: Iterable[Sequence[int]], size: int) -> list[list[int]]:
    """Return the slots between others.

    >>> gaps([[8, 8], [0, 4]], 20)
    [[4, 4], [16, 4]]
    """
    found, end = [], 0
    for offset, length in [*sorted(map(list, used)), [size, 0]]:
        if offset > end:
            found.append([end, offset - end])
        end = max(end, offset + length)
    return found


def laid_out(arrays: Sequence[NDArray[np.uint8]], begin: int) -> tuple[list[list[int]], int]:
    """Return slots for arrays, one after the other from `begin` on, and where the last ends."""
    slots = []
    for array in arrays:
        slots.append([begin, array.size])
        begin += rounded(slots[-1])[1]
    return slots, begin


def pieces_of(
    arrays: Sequence[NDArray[np.uint8]], slots: Sequence[Sequence[int]], size: int
) -> Iterator[memoryview]:
    """Yield what a file is to hold, some blocks at a time."""
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
    """Yield the first and the last of pages that follow each other.

    >>> list(in_a_row([3, 4, 5, 9]))
    [(3, 5), (9, 9)]
    """
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

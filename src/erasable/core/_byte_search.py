"""Search for many byte strings in streams of bytes, in any case of the letters a to z.

A string of digits alone is found where no other digit is before or after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from erasable.core._byte_kernels import Index, Patterns, fill, next_lz4, rarest_windows, search

SHORTEST = 6  # bytes of a string
_WINDOWS = ((8, 8), (SHORTEST, 4), (SHORTEST, 1))
"""Widths of windows, and how many of them in a row; the next are for strings without such."""
_COMMON = 128  # cost of a window; with one in a row, a search goes on with any
_LARGEST = 1 << 20  # bytes that a packed block may become
_SMALL = 64  # below which a block may be one by chance
_LOWER = np.frombuffer(bytes(range(256)).lower(), dtype=np.uint8)


class ByteSearch:
    """Byte strings of six bytes or more, and which of them were found.

    >>> search = ByteSearch([b"ann@example.org", b"bob@example.org"])
    >>> search.look_through([b"to: Ann@exam", b"ple.org"])
    >>> search.found()
    {b'ann@example.org'}
    """

    def __init__(self, strings: Iterable[bytes]) -> None:
        """Prepare a search; ValueError for strings that are too short."""
        self._given: dict[bytes, list[bytes]] = {}  # by their letters as small ones
        for each in dict.fromkeys(strings):
            self._given.setdefault(each.lower(), []).append(each)
        if any(len(each) < SHORTEST for each in self._given):
            raise ValueError(f"a mark is shorter than {SHORTEST} bytes")
        # bytes of a stream that are looked at again with those that follow
        self.overlap = max(map(len, self._given), default=1) - 1
        self._parts: list[tuple[list[bytes], Patterns, np.ndarray]] = []
        left = list(self._given)
        for width, stride in _WINDOWS:
            own = [each for each in left if len(each) >= width + stride - 1]
            patterns, costs = _patterns(own, width, stride)
            if stride > 1 and (rare := costs <= _COMMON * stride).sum() < len(own):
                own = [own[at] for at in np.flatnonzero(rare)]
                patterns, _ = _patterns(own, width, stride)
            if own:
                known = set(own)
                left = [each for each in left if each not in known]
                self._parts.append((own, patterns, np.zeros(len(own), dtype=np.bool_)))

    @property
    def n_found(self) -> int:
        """How many strings were found so far, cases of letters counted as one."""
        return sum(int(found.sum()) for _, _, found in self._parts)

    def forget(self) -> None:
        """Look for all strings anew."""
        for _, _, found in self._parts:
            found[:] = False

    def look_at(self, data: bytes | memoryview | np.ndarray) -> None:
        """Look at bytes by themselves."""
        array = data if isinstance(data, np.ndarray) else np.frombuffer(data, dtype=np.uint8)
        if array.size and self._parts:
            array = array.view()
            array.flags.writeable = False  # one kernel for all
            for _, patterns, found in self._parts:
                search(array, _LOWER, patterns, found)

    def look_through(self, parts: Iterable[bytes]) -> None:
        """Look at parts of one stream, also across their borders."""
        for block in overlapping(parts, self.overlap):
            self.look_at(block)

    def found(self) -> set[bytes]:
        """Return the strings that were found, as they were given."""
        lower = (own[at] for own, _, found in self._parts for at in np.flatnonzero(found))
        return {each for found in lower for each in self._given[found]}


def overlapping(parts: Iterable[bytes], n: int) -> Iterator[bytes]:
    """Return the parts of a stream, each after the last n bytes before it."""
    kept = b""
    for part in parts:
        block = kept + part
        yield block
        kept = block[max(len(block) - n, 0) :]


def index_of(keys: np.ndarray) -> Index:
    """Return an index of keys, which may be there several times."""
    bits = max(16, (keys.size * 16).bit_length())
    index = Index(
        np.uint64(64 - bits),
        np.zeros(1 << (bits - 6), dtype=np.uint64),
        np.zeros(1 << (keys.size * 2).bit_length(), dtype=np.uint64),
        np.full(1 << (keys.size * 2).bit_length(), -1, dtype=np.int32),
        np.full(keys.size, -1, dtype=np.int32),
    )
    fill(index, keys)
    return index


def _patterns(
    strings: Sequence[bytes], width: int, stride: int
) -> tuple[Patterns, np.ndarray]:  # fmt: skip
    """Return strings with an index of their rarest windows, and what these cost."""
    starts = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in strings], out=starts[1:])
    text = np.frombuffer(b"".join(strings), dtype=np.uint8)
    windows = np.zeros((len(strings), stride), dtype=np.uint64)
    offsets, costs = np.zeros((2, len(strings)), dtype=np.int64)
    counts = np.zeros(1 << (text.size * 2).bit_length(), dtype=np.int32)
    rarest_windows(text, starts, counts, width, windows, offsets, costs)
    is_number = np.array([each.isdigit() for each in strings], dtype=np.bool_)
    index = index_of(windows.ravel())
    return Patterns(width, stride, index, text, starts, offsets, is_number), costs


def packed_blocks(data: bytes, stop: int | None = None) -> Iterator[np.ndarray]:
    """Decode LZ4 blocks that have their size before them, wherever before `stop` they begin."""
    array = np.frombuffer(data, dtype=np.uint8)
    out = np.empty(_LARGEST, dtype=np.uint8)
    at, stop = 0, len(data) if stop is None else stop
    while at >= 0:
        at, end, size = next_lz4(array, at, stop, out)
        if at >= 0:
            yield out[:size].copy()
            at = at + 1 if size < _SMALL else end

"""Search for many byte strings in streams of bytes, in any case of the letters a to z.

A string of digits alone is found where no other digit is before or after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from erasable.core._byte_kernels import Patterns, index_windows, next_lz4, search

_WIDTHS = (8, 6)  # of windows: the second for strings shorter than the first
_LARGEST = 1 << 20  # bytes that a packed block may become
_SMALL = 64  # below which a block may be one by chance
_TRIED = 16  # windows of a string, of which the rarest is taken
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
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
        if any(len(each) < _WIDTHS[-1] for each in self._given):
            raise ValueError(f"a mark is shorter than {_WIDTHS[-1]} bytes")
        # bytes of a stream that are looked at again with those that follow
        self.overlap = max(map(len, self._given), default=1) - 1
        self._parts: list[tuple[list[bytes], Patterns, np.ndarray]] = []
        for width, longer in zip(_WIDTHS, (float("inf"), _WIDTHS[0]), strict=True):
            own = [each for each in self._given if width <= len(each) < longer]
            if own:
                self._parts.append((own, _patterns(own, width), np.zeros(len(own), dtype=np.bool_)))

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


def _patterns(strings: Sequence[bytes], width: int) -> Patterns:
    starts = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in strings], out=starts[1:])
    text = np.frombuffer(b"".join(strings), dtype=np.uint8)
    offsets, windows = _rarest(text, starts, width)
    bits = max(16, (len(strings) * 32).bit_length())
    n_places = 1 << (len(strings) * 2).bit_length()
    shift = np.uint64(64 - bits)
    bitmap = np.zeros(1 << (bits - 6), dtype=np.uint64)
    keys = np.zeros(n_places, dtype=np.uint64)
    firsts = np.full(n_places, -1, dtype=np.int64)
    nexts = np.full(len(strings), -1, dtype=np.int64)
    index_windows(windows, _FACTOR, shift, bitmap, keys, firsts, nexts)
    is_number = np.array([each.isdigit() for each in strings])
    return Patterns(
        width, _FACTOR, shift, bitmap, keys, firsts, nexts, text, starts, offsets, is_number
    )  # fmt: skip


def _rarest(
    text: np.ndarray, starts: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Choose a window of each string that few others have: many begin or end alike."""
    room = np.diff(starts) - width
    offsets = room[:, None] * np.arange(_TRIED) // (_TRIED - 1)
    places = starts[:-1, None] + offsets
    windows = np.zeros(places.shape, dtype=np.uint64)
    zeros = np.zeros(places.shape, dtype=np.int64)
    for at in range(width):
        bytes_ = text[places + at]
        windows |= bytes_.astype(np.uint64) << np.uint64(8 * at)
        zeros += bytes_ == 0
    _, which, counts = np.unique(windows, return_inverse=True, return_counts=True)
    costs = counts[which].reshape(windows.shape) * (1 + zeros**2)  # zeros are in most files
    best = np.argmin(costs, axis=1)
    rows = np.arange(best.size)
    return offsets[rows, best], windows[rows, best]


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

"""Kernels of the search for many byte strings at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core._jit import kernel, subroutine


class Patterns(NamedTuple):
    """Byte strings, found by a window of each: an index from windows to strings.

    The window is `width` bytes long, and lies `offsets[i]` bytes after the start of string i.
    """

    width: int
    factor: np.uint64  # of the hash
    shift: np.uint64
    bitmap: np.ndarray  # one bit for each value of the hash
    keys: np.ndarray  # windows, in a table with open addresses
    firsts: np.ndarray  # the first string with that window, -1 where the place is free
    nexts: np.ndarray  # the next string with the same window, -1 where there is none
    text: np.ndarray  # the strings, one after the other
    starts: np.ndarray
    offsets: np.ndarray
    is_number: np.ndarray  # whether a string is of digits alone, and is no part of more digits


@subroutine
def _same(data: np.ndarray, at: int, patterns: Patterns, which: int, lower: np.ndarray) -> bool:
    first, last = patterns.starts[which], patterns.starts[which + 1]
    if at < 0 or at + (last - first) > data.size:
        return False
    for i in range(last - first):
        if lower[data[at + i]] != patterns.text[first + i]:
            return False
    if patterns.is_number[which]:
        before = at > 0 and 48 <= data[at - 1] < 58
        after = at + last - first < data.size and 48 <= data[at + last - first] < 58
        return not (before or after)
    return True


@kernel
def search(data: np.ndarray, lower: np.ndarray, patterns: Patterns, found: np.ndarray) -> None:
    """Set `found` for each string that the data hold."""
    width = patterns.width
    top = np.uint64(8 * (width - 1))
    n_places = np.uint64(patterns.keys.size - 1)
    window = np.uint64(0)
    for i in range(data.size):
        window = (window >> np.uint64(8)) | (np.uint64(lower[data[i]]) << top)
        value = (window * patterns.factor) >> patterns.shift
        if (patterns.bitmap[value >> np.uint64(6)] >> (value & np.uint64(63))) & np.uint64(1):
            place = value & n_places
            while patterns.firsts[place] >= 0:
                if patterns.keys[place] == window:
                    which = patterns.firsts[place]
                    while which >= 0:
                        if not found[which]:
                            at = i - width + 1 - patterns.offsets[which]
                            if _same(data, at, patterns, which, lower):
                                found[which] = True
                        which = patterns.nexts[which]
                place = (place + np.uint64(1)) & n_places


@kernel
def index_windows(
    windows: np.ndarray, factor: np.uint64, shift: np.uint64, bitmap: np.ndarray,
    keys: np.ndarray, firsts: np.ndarray, nexts: np.ndarray,
) -> None:  # fmt: skip
    """Fill the index of `Patterns`."""
    n_places = np.uint64(keys.size - 1)
    for i in range(windows.size):
        window = windows[i]
        value = (window * factor) >> shift
        bitmap[value >> np.uint64(6)] |= np.uint64(1) << (value & np.uint64(63))
        place = value & n_places
        while firsts[place] >= 0 and keys[place] != window:
            place = (place + np.uint64(1)) & n_places
        keys[place] = window
        nexts[i] = firsts[place]
        firsts[place] = i


class Directions(NamedTuple):
    """Pieces of vectors, found at any length: an index from the ratio of two numbers to pieces.

    The two numbers are at `pairs[i]` and after it in row i of `pieces`, whose rest is not a number.
    """

    shift: np.uint32
    bitmap: np.ndarray  # one bit for each value of the hash of a ratio
    keys: np.ndarray  # ratios without their last bits, in a table with open addresses
    firsts: np.ndarray
    nexts: np.ndarray
    owners: np.ndarray  # of an entry of the index: which piece
    pieces: np.ndarray
    sizes: np.ndarray
    pairs: np.ndarray


_FACTOR_32 = np.uint32(0x9E3779B1)
_TOLERANCE = 4e-6  # of a number in single precision that was divided by lengths a few times


@subroutine
def _is_along(numbers: np.ndarray, at: int, directions: Directions, which: int) -> bool:
    size, pair = directions.sizes[which], directions.pairs[which]
    first = at - pair
    if first < 0 or first + size > numbers.size:
        return False
    piece = directions.pieces[which]
    scale = float(numbers[at]) / piece[pair]
    if not scale > 0:
        return False
    for i in range(size):
        expected = scale * piece[i]
        if not abs(float(numbers[first + i]) - expected) <= _TOLERANCE * abs(expected):
            return False
    return True


@kernel
def search_directions(numbers: np.ndarray, directions: Directions, found: np.ndarray) -> None:
    """Set `found` for each piece that numbers in single precision hold."""
    n_places = np.uint32(directions.keys.size - 1)
    for i in range(numbers.size - 1):
        key = np.float32(numbers[i + 1] / numbers[i]).view(np.uint32) >> np.uint32(6)
        value = np.uint32(np.uint32(key * _FACTOR_32) >> directions.shift)
        word = directions.bitmap[value >> np.uint32(6)]
        if (word >> np.uint64(value & np.uint32(63))) & np.uint64(1):
            place = value & n_places
            while directions.firsts[place] >= 0:
                if directions.keys[place] == key:
                    entry = directions.firsts[place]
                    while entry >= 0:
                        which = directions.owners[entry]
                        if not found[which] and _is_along(numbers, i, directions, which):
                            found[which] = True
                        entry = directions.nexts[entry]
                place = np.uint32(place + np.uint32(1)) & n_places


@kernel
def has_run(data: np.ndarray, byte: int, stride: int, n: int) -> bool:
    """Tell whether a byte is at n places, each so many bytes after the one before."""
    for i in range(data.size - stride * (n - 1)):
        if data[i] == byte:
            k = 1
            while k < n and data[i + k * stride] == byte:
                k += 1
            if k == n:
                return True
    return False


@kernel
def index_ratios(
    entries: np.ndarray, shift: np.uint32, bitmap: np.ndarray,
    keys: np.ndarray, firsts: np.ndarray, nexts: np.ndarray,
) -> None:  # fmt: skip
    """Fill the index of `Directions`."""
    n_places = np.uint32(keys.size - 1)
    for i in range(entries.size):
        key = entries[i]
        value = np.uint32(key * _FACTOR_32) >> shift
        bitmap[value >> np.uint32(6)] |= np.uint64(1) << np.uint64(value & np.uint32(63))
        place = value & n_places
        while firsts[place] >= 0 and keys[place] != key:
            place = (place + np.uint32(1)) & n_places
        keys[place] = key
        nexts[i] = firsts[place]
        firsts[place] = i


@kernel
def next_lz4(data: np.ndarray, start: int, stop: int, out: np.ndarray) -> tuple[int, int, int]:
    """Find the next LZ4 block that has its size, in four bytes, before it, and decode it.

    Return where it begins, where it ends, and how many bytes are in `out`; -1 where there is none.
    Blocks without a repetition are passed over: their bytes are in the data as they are.
    """
    for at in range(start, stop):
        if at + 8 > data.size or data[at + 3] != 0:
            continue
        size = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16
        if size < 16 or size > out.size or data[at + 4] < 16:
            continue
        i, n, repeats = at + 4, 0, False
        while i < data.size:
            token = int(data[i])
            i += 1
            length = token >> 4
            if length == 15:
                while i < data.size:
                    more = int(data[i])
                    i += 1
                    length += more
                    if more != 255:
                        break
            if n + length > size or i + length > data.size:
                break
            for _ in range(length):
                out[n] = data[i]
                n += 1
                i += 1
            if n == size:
                if repeats:
                    return at, i, n
                break
            if i + 2 > data.size:
                break
            back = int(data[i]) | int(data[i + 1]) << 8
            i += 2
            if back == 0 or back > n:
                break
            length = (token & 15) + 4
            if length == 19:
                while i < data.size:
                    more = int(data[i])
                    i += 1
                    length += more
                    if more != 255:
                        break
            if n + length > size:
                break
            for _ in range(length):
                out[n] = out[n - back]
                n += 1
            repeats = True
    return -1, -1, 0

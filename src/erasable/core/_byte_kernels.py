"""Kernels of the search for many byte strings at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core._jit import inlined, kernel, subroutine

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
HASH_BEGIN, HASH_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a
_AT_ONCE = 4_096  # places that are filtered before the rest is compared


class Index(NamedTuple):
    """Entries by their keys: a table with open addresses, behind a bitmap that is asked first."""

    shift: np.uint64  # of the hash
    bitmap: np.ndarray  # one bit for each value of the hash
    keys: np.ndarray
    firsts: np.ndarray  # the first entry with that key, -1 where the place is free
    nexts: np.ndarray  # the next entry with the same key, -1 where there is none


@inlined
def _may_have(index: Index, key: np.uint64) -> np.int64:
    """Return 1 if a key may be in an index, else 0."""
    value = (key * _FACTOR) >> index.shift
    word = index.bitmap[value >> np.uint64(6)]
    return np.int64((word >> (value & np.uint64(63))) & np.uint64(1))


@inlined
def _first(index: Index, key: np.uint64) -> int:
    """Return the first entry with a key, -1 if there is none."""
    last = np.uint64(index.keys.size - 1)
    place = ((key * _FACTOR) >> index.shift) & last
    while index.firsts[place] >= 0 and index.keys[place] != key:
        place = (place + np.uint64(1)) & last
    return int(index.firsts[place])


@kernel
def fill(index: Index, keys: np.ndarray) -> None:
    """Put keys into an index, the entries of which are their numbers."""
    last = np.uint64(index.keys.size - 1)
    for entry in range(keys.size):
        key = keys[entry]
        value = (key * _FACTOR) >> index.shift
        index.bitmap[value >> np.uint64(6)] |= np.uint64(1) << (value & np.uint64(63))
        place = value & last
        while index.firsts[place] >= 0 and index.keys[place] != key:
            place = (place + np.uint64(1)) & last
        index.keys[place] = key
        index.nexts[entry] = index.firsts[place]
        index.firsts[place] = entry


class Patterns(NamedTuple):
    """Byte strings, and an index of windows at `stride` places in a row of each.

    So one of every `stride` places of the data is looked at. Entry `stride * i + k` is the window
    of string i that begins `offsets[i] + k` bytes after its start.
    """

    width: int  # bytes of a window, eight at most
    stride: int
    entries: Index
    text: np.ndarray  # the strings, one after the other
    starts: np.ndarray
    offsets: np.ndarray
    is_number: np.ndarray  # whether a string is of digits alone, and is no part of more digits


_FOLD = np.uint64(0x2020202020202020)  # makes letters that differ in case alike, and few others


@inlined
def _word(data: np.ndarray, at: int) -> np.uint64:
    first, word = np.uint64(at), np.uint64(0)  # of an index with a sign, bytes are loaded singly
    for k in range(8):
        word |= np.uint64(data[first + np.uint64(k)]) << np.uint64(8 * k)
    return word


@inlined
def _folded(word: np.uint64, width: int) -> np.uint64:
    """Return bytes of a word without the bit in which small letters differ from capitals."""
    return (word | _FOLD) << np.uint64(64 - 8 * width)


@inlined
def _window(data: np.ndarray, at: int, width: int) -> np.uint64:
    """Return `_folded` of bytes with which the data may end."""
    word = np.uint64(0)
    for k in range(width):
        word |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return _folded(word, width)


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


@subroutine
def _look(
    data: np.ndarray, at: int, entry: int, lower: np.ndarray, patterns: Patterns, found: np.ndarray
) -> None:
    """Compare what is around a window with the strings that have it."""
    while entry >= 0:
        which = entry // patterns.stride
        if not found[which]:
            start = at - patterns.offsets[which] - entry % patterns.stride
            found[which] = _same(data, start, patterns, which, lower)
        entry = patterns.entries.nexts[entry]


@kernel
def search(data: np.ndarray, lower: np.ndarray, patterns: Patterns, found: np.ndarray) -> None:
    """Set `found` for each string that the data hold."""
    width, stride = patterns.width, patterns.stride
    n_windows, n_words = (data.size - width) // stride + 1, (data.size - 8) // stride + 1
    maybe = np.empty(_AT_ONCE, dtype=np.int64)
    for start in range(0, n_windows, _AT_ONCE):
        n, stop = 0, min(start + _AT_ONCE, n_windows)
        for i in range(start, min(stop, n_words)):
            maybe[n] = i
            n += int(_may_have(patterns.entries, _folded(_word(data, i * stride), width)))
        for i in range(max(start, n_words), stop):
            maybe[n] = i
            n += 1
        for i in maybe[:n]:
            entry = _first(patterns.entries, _window(data, i * stride, width))
            if entry >= 0:
                _look(data, i * stride, entry, lower, patterns, found)


_DIGITS = 15  # significant digits of a number by which it is looked for
AS_POWER, ZERO = np.uint64(1), np.uint64(2)  # keys of numbers with an exponent, and of 0
_PLACES, _MOST_PLACES = 2_048, 290  # beyond these, numbers have fewer digits, down to 0


@inlined
def _number_key(data: np.ndarray, begin: int, end: int) -> np.uint64:
    """Return the `number_key` of a token in decimal notation; 0 for a token that is no number."""
    digits, n, places, is_after, has_digits = 0, 0, 0, False, False
    for at in range(begin + (data[begin] in (43, 45)), end):
        sign = data[at]
        if sign == 46 and not is_after:
            is_after = True
        elif 48 <= sign <= 57:
            has_digits = True
            if n > 0 or sign != 48:
                if n < _DIGITS:
                    digits = 10 * digits + int(sign) - 48
                n += 1
                places += not is_after
            elif is_after:
                places -= 1
        else:
            return AS_POWER if has_digits and sign in (69, 101) else np.uint64(0)
    if not has_digits or n == 0:
        return ZERO if has_digits else np.uint64(0)
    if abs(places) > _MOST_PLACES:
        return AS_POWER
    for _ in range(_DIGITS - n):
        digits *= 10
    return np.uint64(digits * _PLACES + places + _PLACES // 2)


def number_key(digits: int, places: int) -> int:
    """Return the key of a number with fifteen significant digits, so many before its point."""
    return digits * _PLACES + places + _PLACES // 2


@kernel
def find_tokens(
    data: np.ndarray, at: int, is_inner: np.ndarray, words: Index, numbers: Index,
    places: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """Find tokens from a place on that may be some words or numbers.

    Write where they begin and end; return how many, and where the search stopped.
    """
    n = 0
    while at < data.size and n < places.shape[0]:
        if not is_inner[data[at]]:
            at += 1
            continue
        begin, key = at, HASH_BEGIN
        while at < data.size and is_inner[data[at]]:
            key = (key ^ np.uint64(data[at])) * HASH_FACTOR
            at += 1
        number = _number_key(data, begin, at)
        if (_may_have(words, key) and _first(words, key) >= 0) or (
            number > 0 and _may_have(numbers, number) and _first(numbers, number) >= 0
        ):
            places[n, 0], places[n, 1] = begin, at
            n += 1
    return n, at


@kernel
def rarest_windows(
    text: np.ndarray, starts: np.ndarray, counts: np.ndarray, width: int, windows: np.ndarray,
    offsets: np.ndarray, costs: np.ndarray,
) -> None:  # fmt: skip
    """Find of each string the windows in a row that are rarest, where they begin, their cost.

    `counts` are zeros, a power of two of them, for windows by a hash.
    """
    stride = windows.shape[1]
    last = np.uint64(counts.size - 1)
    own = np.zeros(max(text.size, 1), dtype=np.int64)
    for at in range(starts[-1] - width + 1):  # those of two strings are rare as well
        counts[((_window(text, at, width) * _FACTOR) >> np.uint64(32)) & last] += 1
    for which in range(offsets.size):
        first, total = starts[which], 0
        for i in range(starts[which + 1] - first - width + 1):
            n_zeros = 0  # zeros and spaces, which look alike here, are in most files
            for k in range(width):
                n_zeros += text[first + i + k] in (0, 32)
            value = (_window(text, first + i, width) * _FACTOR) >> np.uint64(32)
            own[i] = counts[value & last] * (1 + n_zeros * n_zeros)
            total += own[i]
            if i >= stride:
                total -= own[i - stride]
            if i == stride - 1 or (i >= stride and total < costs[which]):
                offsets[which], costs[which] = i - stride + 1, total
        for k in range(stride):
            windows[which, k] = _window(text, first + offsets[which] + k, width)


class Directions(NamedTuple):
    """Pieces of vectors, found at any length by the ratios of `stride` pairs of their numbers.

    So one of every `stride` numbers of the data is looked at. `owners` of an entry of the index is
    `stride * i + k` for numbers k and k + 1 of piece i. Its number `bases[i]`, and that of what may
    be the piece, give the ratio of lengths. The rest of row i of `pieces` is not a number.
    """

    stride: int
    entries: Index  # by ratios without their last bits
    owners: np.ndarray
    pieces: np.ndarray
    sizes: np.ndarray
    bases: np.ndarray


_TOLERANCE = 4e-6  # of a number in single precision that was divided by lengths a few times
DROPPED = np.uint64(35)  # bits of a double, of which a number in single precision has none but six
_CBOR = 5  # bytes of a number, of which the first is:
_HEAD = 0xFA


@inlined
def _single(data: np.ndarray, at: int, step: int) -> np.float32:
    first, bits = np.uint64(at), np.uint64(0)
    if step == _CBOR:
        for k in range(1, 5):
            bits = (bits << np.uint64(8)) | np.uint64(data[first + np.uint64(k)])
    else:
        for k in range(4):
            bits |= np.uint64(data[first + np.uint64(k)]) << np.uint64(8 * k)
    return np.uint32(bits).view(np.float32)


@inlined
def _ratio(data: np.ndarray, at: int, step: int) -> np.uint64:
    """Return the ratio of the number after a number to it, without its last bits.

    In double precision it is never subnormal, with which processors are slow.
    """
    ratio = np.float64(_single(data, at + step, step)) / np.float64(_single(data, at, step))
    return np.float64(ratio).view(np.uint64) >> DROPPED


@subroutine
def _is_along(data: np.ndarray, at: int, step: int, directions: Directions, which: int) -> bool:
    size, base = directions.sizes[which], directions.bases[which]
    if at < 0 or at + step * size > data.size:
        return False
    piece = directions.pieces[which]
    scale = float(_single(data, at + step * base, step)) / piece[base]
    if not scale > 0:
        return False
    for i in range(size):
        if step == _CBOR and data[at + step * i] != _HEAD:
            return False
        expected = scale * piece[i]
        number = float(_single(data, at + step * i, step))
        if not abs(number - expected) <= _TOLERANCE * abs(expected):
            return False
    return True


@kernel
def search_directions(
    data: np.ndarray, step: int, directions: Directions, found: np.ndarray
) -> None:
    """Set `found` for each piece that the data hold in single precision, wherever it begins.

    A number has `step` bytes: 4 if it is plain, 5 if it is as CBOR has it.
    """
    n_places = data.size - 2 * step + 1
    stride = step * directions.stride
    maybe = np.empty(_AT_ONCE, dtype=np.int64)
    n = 0
    for start in range(0, n_places, stride):
        for at in range(start, min(start + step, n_places)):
            if step == _CBOR and (data[at] != _HEAD or data[at + _CBOR] != _HEAD):
                continue
            maybe[n] = at
            n += int(_may_have(directions.entries, _ratio(data, at, step)))
        if n > _AT_ONCE - _CBOR or start + stride >= n_places:
            for at in maybe[:n]:
                entry = _first(directions.entries, _ratio(data, at, step))
                while entry >= 0:
                    owner = directions.owners[entry]
                    which = owner // directions.stride
                    if not found[which]:
                        first = at - step * (owner % directions.stride)
                        found[which] = _is_along(data, first, step, directions, which)
                    entry = directions.entries.nexts[entry]
            n = 0


@kernel
def next_pair(data: np.ndarray, at: int, stop: int, is_wanted: np.ndarray) -> int:
    """Return where two bytes are next that are wanted, by their number; -1 where there are none."""
    for i in range(at, min(stop, data.size - 1)):
        if is_wanted[np.int64(data[i]) << 8 | np.int64(data[i + 1])]:
            return i
    return -1


@kernel
def add_counts(data: np.ndarray, counts: np.ndarray) -> None:
    """Count bytes: 256 numbers in all rows together, of which there are four.

    A processor waits if it counts the same byte twice in a row at one place.
    """
    whole = data.size // 4 * 4
    for i in range(0, whole, 4):
        for k in range(4):
            counts[k, data[i + k]] += 1
    for i in range(whole, data.size):
        counts[0, data[i]] += 1


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

"""Ranks of the values of a column, by a radix sort.

It sorts bits, and equal numbers must have equal bits: records have no -0.0 here, and NaN is
sorted by its bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints, Ints32, Words

_SIGN = np.uint64(1 << 63)
_DIGITS, _BITS = 8, np.uint64(8)
_MASK = np.uint64(255)


def rank(column: Floats) -> tuple[Floats, Ints, NDArray[np.int32]]:
    """Return distinct numbers, ascending; how often each is there; and the rank of every one.

    >>> values, counts, codes = rank(np.array([0.5, -7.0, 0.5]))
    >>> values.tolist(), counts.tolist(), codes.tolist()
    ([-7.0, 0.5], [1, 2], [1, 0, 1])
    """
    n = column.size
    keys, rows = np.empty((2, n), dtype=np.uint64), np.empty((2, n), dtype=np.int32)
    codes, counts = np.empty(n, dtype=np.int32), np.zeros(n, dtype=np.int64)
    words = np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
    at = _sort(words, keys, rows, np.zeros((_DIGITS, 256), dtype=np.int64))
    values = np.empty(n, dtype=np.float64)
    found = _number(words, keys[at], rows[at], values.view(np.uint64), counts, codes)
    return values[:found], counts[:found], codes


@kernel
def _sort(words: Words, keys: Words, rows: Ints32, starts: Ints) -> Any:
    """Sort numbers by their bits, from one line of `keys` and `rows` to the other; say in which."""
    n = words.size
    for i in range(n):
        word = words[i]
        # Of negative numbers, those with larger bits are smaller.
        word = ~word if word & _SIGN else word | _SIGN
        keys[0, i], rows[0, i] = word, i
        for digit in range(_DIGITS):
            starts[digit, (word >> (np.uint64(digit) * _BITS)) & _MASK] += 1
    at = 0
    for digit in range(_DIGITS):
        before, largest = 0, 0
        for each in range(256):
            size = starts[digit, each]
            starts[digit, each] = before
            before, largest = before + size, max(largest, size)
        if largest == n:
            continue  # all have the same digit
        shift = np.uint64(digit) * _BITS
        source, source_rows, out, out_rows = keys[at], rows[at], keys[1 - at], rows[1 - at]
        for i in range(n):
            word = source[i]
            own = (word >> shift) & _MASK
            place = starts[digit, own]
            starts[digit, own] = place + 1
            out[place], out_rows[place] = word, source_rows[i]
        at = 1 - at
    return at


@kernel
def _number(
    words: Words, keys: Words, rows: Ints32, values: Words, counts: Ints, codes: Ints32
) -> Any:
    """Give distinct numbers their ranks; return how many there are."""
    found = 0
    for i in range(keys.size):
        if i == 0 or keys[i] != keys[i - 1]:
            values[found] = words[rows[i]]
            found += 1
        counts[found - 1] += 1
        codes[rows[i]] = found - 1
    return found

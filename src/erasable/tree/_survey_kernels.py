"""What a feature offers to a node: values drawn among those its records have, and the counts there.

The law it keeps: the draw is a bottom-k sample. Every distinct value that is present has a
priority, a hash of the value, of the feature's name, and of the path to the node; the values with
the lowest priorities are drawn. When a record goes, the draw changes only if a drawn value goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import inlined
from erasable.tree._hash_kernels import mix32
from erasable.tree._layout import HISTOGRAM, SMALL, SQUARES, Codes, Ints, Rules, Words, Work

__all__ = ["survey"]

_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _draw(drawn: Words, found: int, value: np.uint64) -> int:
    """Put a value among those drawn, which are sorted and of which the highest may fall out."""
    place = found
    while place > 0 and drawn[place - 1] > value:
        place -= 1
    if place > 0 and drawn[place - 1] == value:
        return found
    if found < drawn.size:
        found += 1
    for j in range(found - 1, place, -1):
        drawn[j] = drawn[j - 1]
    drawn[place] = value
    return found


@inlined
def _sort_codes(drawn: Words, found: int, code: Codes) -> None:
    for j in range(found):
        value = np.int32(drawn[j] & _LOW)
        place = j
        while place > 0 and code[place - 1] > value:
            code[place] = code[place - 1]
            place -= 1
        code[place] = value


@inlined
def _by_value(
    packed: Words,
    n_values: int,
    m: int,
    key: np.uint64,
    rules: Rules,
    work: Work,
    code: Codes,
    count: Codes,
    left: Ints,
) -> tuple[Any, Any]:
    """Count the records of every value, and draw among those that there are."""
    table, sizes, heads, drawn = work.histogram, work.sizes, work.heads, work.drawn
    table[:n_values] = 0
    sizes[:n_values] = 0
    for i in range(m):
        word = packed[work.rows[i]]
        own = np.int64(word & _LOW)
        heads[own] = word
        sizes[own] += 1
        if rules.criterion == SQUARES:
            table[own, 0] += work.weights[i]
            table[own, 1] += work.weights[i] * work.y[i]
        else:
            table[own, work.y[i]] += work.weights[i]
    found = 0
    for c in range(n_values):
        if sizes[c]:
            value = (mix32((heads[c] >> _32) ^ key) << _32) | (heads[c] & _LOW)
            if found < drawn.size or value < drawn[found - 1]:
                found = _draw(drawn, found, value)
    _sort_codes(drawn, found, code)
    below, c = 0, 0
    for j in range(found):
        for s in range(left.shape[1]):
            left[j, s] = left[j - 1, s] if j else 0
        while c <= code[j]:
            if sizes[c]:
                below += sizes[c]
                for s in range(left.shape[1]):
                    left[j, s] += table[c, s]
            c += 1
        count[j, 0], count[j, 1] = sizes[code[j]], below
    return found, np.int64(drawn[found - 1] & _LOW)


@inlined
def _by_rank(
    packed: Words,
    m: int,
    key: np.uint64,
    rules: Rules,
    work: Work,
    code: Codes,
    count: Codes,
    left: Ints,
) -> tuple[Any, Any]:
    """Sort few records, and draw among their values only if there are more than are wanted."""
    ranked, drawn = work.sorted, work.drawn
    distinct = 0
    for i in range(m):
        value = ((packed[work.rows[i]] & _LOW) << _32) | np.uint64(i)
        place = i
        while place > 0 and ranked[place - 1] > value:
            ranked[place] = ranked[place - 1]
            place -= 1
        ranked[place] = value
    for i in range(m):
        distinct += i == 0 or ranked[i] >> _32 != ranked[i - 1] >> _32
    found: Any = 0
    last: Any = 0
    every = distinct <= drawn.size
    if not every:
        for i in range(m):
            if i == 0 or ranked[i] >> _32 != ranked[i - 1] >> _32:
                word = packed[work.rows[np.int64(ranked[i] & _LOW)]]
                value = (mix32((word >> _32) ^ key) << _32) | (word & _LOW)
                if found < drawn.size or value < drawn[found - 1]:
                    found = _draw(drawn, found, value)
        _sort_codes(drawn, found, code)
        last = np.int64(drawn[found - 1] & _LOW)
    j, before = 0, 0
    for s in range(left.shape[1]):
        left[0, s] = 0
    for i in range(m):
        k = np.int64(ranked[i] & _LOW)
        if rules.criterion == SQUARES:
            left[j, 0] += work.weights[k]
            left[j, 1] += work.weights[k] * work.y[k]
        else:
            left[j, work.y[k]] += work.weights[k]
        c = np.int32(ranked[i] >> _32)
        if i > 0 and ranked[i] >> _32 != ranked[i - 1] >> _32:
            before = i
        ends = i == m - 1 or np.int32(ranked[i + 1] >> _32) != c
        if ends and (every or c == code[j]):
            code[j], count[j, 0], count[j, 1] = c, i + 1 - before, i + 1
            j += 1
            if j == code.size or (not every and j == found):
                break
            for s in range(left.shape[1]):
                left[j, s] = left[j - 1, s]
    return j, last


@inlined
def _find_bins(m: int, found: int, work: Work, code: Codes) -> None:
    """Tell for each record how many of the values drawn are below its own."""
    codes, bins = work.codes, work.bins
    for i in range(m):
        bins[i] = 0
    for j in range(found):
        bound = code[j]
        for i in range(m):
            bins[i] += np.int32(codes[i] > bound)


@inlined
def survey(
    packed: Words,
    n_values: int,
    m: int,
    key: np.uint64,
    rules: Rules,
    work: Work,
    code: Codes,
    count: Codes,
    left: Ints,
) -> tuple[Any, Any]:
    """Draw values of a feature among those of the `m` records at hand, and count the records.

    Parameters
    ----------
    packed : ndarray of shape (n_rows,), uint64
        Hash and code of each row's value.
    n_values : int
        How many codes there are.
    m : int
        How many records there are in `work`.
    key : uint64
        Of the feature in the node; 32 bits.
    rules, work
        See `erasable.tree._layout`.
    code, count, left : ndarray of shape (sample,), (sample, 2) and (sample, n_stats)
        Overwritten with the codes drawn, ascending; with how many records have each value, and
        how many at most it; and with the stats of the latter.

    Returns
    -------
    found : int
        How many values were drawn: `sample`, or all that there are.
    last : int
        Code of the one that was drawn last.
    """
    if m <= SMALL:
        return _by_rank(packed, m, key, rules, work, code, count, left)
    if n_values <= HISTOGRAM and n_values <= m + 8:
        return _by_value(packed, n_values, m, key, rules, work, code, count, left)
    drawn, codes, bins, table = work.drawn, work.codes, work.bins, work.histogram
    found, highest = 0, _EVERYTHING
    for i in range(m):
        word = packed[work.rows[i]]
        codes[i] = np.int32(word & _LOW)
        value = (mix32((word >> _32) ^ key) << _32) | (word & _LOW)
        if value < highest:
            found = _draw(drawn, found, value)
            if found == drawn.size:
                highest = drawn[found - 1]
    _sort_codes(drawn, found, code)
    _find_bins(m, found, work, code)
    table[: found + 1] = 0
    for j in range(found):
        count[j, 0] = count[j, 1] = 0
    for i in range(m):
        bin_ = bins[i]
        if rules.criterion == SQUARES:
            table[bin_, 0] += work.weights[i]
            table[bin_, 1] += work.weights[i] * work.y[i]
        else:
            table[bin_, work.y[i]] += work.weights[i]
        if bin_ < found:
            count[bin_, 1] += 1
            count[bin_, 0] += codes[i] == code[bin_]
    for j in range(found):
        for s in range(left.shape[1]):
            left[j, s] = table[j, s] + (left[j - 1, s] if j else 0)
        if j:
            count[j, 1] += count[j - 1, 1]
    return found, np.int64(drawn[found - 1] & _LOW)

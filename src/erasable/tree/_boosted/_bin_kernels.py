"""Edges of bins, and codes of values.

The edges of a feature are its distinct values with the lowest hashes. A hash depends on the value
and the feature's name, so that edges are a function of the set of records, and a deletion changes
them only where the last record of an edge goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Words
from erasable.tree._boosted._layout import GAP
from erasable.tree._hash_kernels import mix64

_SLOTS = 4096
_MASK = np.uint64(_SLOTS - 1)
_ROOM = 1024
_AT_ONCE = 64
_EVERY = ~np.uint64(0)


@subroutine
def hash_of(value: float, key: np.uint64) -> np.uint64:
    """Hash a value that is no -0.0."""
    return mix64(np.float64(value).view(np.uint64) ^ key)


@subroutine
def _file(slots: Ints, hashes: Words, n: int) -> None:
    """File what is held by its hash."""
    slots[:] = -1
    for i in range(n):
        place = hashes[i] & _MASK
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & _MASK
        slots[place] = i


@subroutine
def _narrow(hashes: Words, values: Floats, n: int, most: int) -> None:
    """Keep those of the lowest hashes."""
    order = np.argsort(hashes[:n])[:most]
    kept_hashes, kept = hashes[order].copy(), values[order].copy()
    hashes[: order.size] = kept_hashes
    values[: order.size] = kept


@kernel
def copy_columns(matrix: NDArray[Any], rows: Ints, every: bool, columns: Ints, out: Floats) -> None:
    """Copy columns to lines, of some rows or of `every` one, in blocks that stay in the cache."""
    n = out.shape[1]
    for start in range(0, n, _AT_ONCE):
        for j in range(columns.size):
            for i in range(start, min(start + _AT_ONCE, n)):
                out[j, i] = matrix[i if every else rows[i], columns[j]]


@kernel
def find_edges(column: Floats, key: np.uint64, most: int, out: Floats) -> int:
    """Write the distinct values with the lowest hashes, ascending; return how many there are.

    -0.0 counts as 0.0, and NaN is no value.
    """
    hashes, values = np.empty(_ROOM, np.uint64), np.empty(_ROOM)
    slots = np.empty(_SLOTS, np.int64)
    _file(slots, hashes, 0)
    n, limit = 0, _EVERY
    last = np.nan
    for i in range(column.size):
        value = column[i] + 0.0
        if value == last or value != value:
            continue
        word = hash_of(value, key)
        if word > limit:
            continue
        last = value
        place = word & _MASK
        while slots[place] >= 0 and hashes[slots[place]] != word:
            place = (place + np.uint64(1)) & _MASK
        if slots[place] >= 0:
            continue
        hashes[n], values[n] = word, value
        slots[place] = n
        n += 1
        if n == _ROOM:
            _narrow(hashes, values, n, most)
            n, limit = most, hashes[most - 1]
            _file(slots, hashes, n)
    if n > most:
        _narrow(hashes, values, n, most)
        n = most
    out[:n] = np.sort(values[:n])
    return n


@kernel
def hash_edges(edges: Floats, key: np.uint64, out: Words) -> None:
    """Hash edges."""
    for i in range(edges.size):
        out[i] = hash_of(edges[i], key)


@kernel
def find_codes(
    column: Floats, rows: Ints, edges: Floats, categorical: bool, feature: int,
    codes: NDArray[np.uint8], counts: Ints,
) -> None:  # fmt: skip
    """Write codes of the values, one for each of `rows`, into the column of a feature.

    `counts` has as many numbers as there are edges, and counts the values that are one; or none.
    """
    size = edges.size
    for i in range(column.size):
        value = column[i]
        if value != value:
            codes[rows[i], feature] = GAP
            continue
        low, width = 0, size
        while width > 0:
            half = width // 2
            inside = low + half
            if edges[inside] < value:
                low = inside + 1
                width -= half + 1
            else:
                width = half
        found = low < size and edges[low] == value
        if found and counts.size:
            counts[low] += 1
        codes[rows[i], feature] = size if categorical and not found else low


@kernel
def gain(
    values: Floats, edges: Floats, hashes: Words, sizes: Ints, keys: Words,
    gained: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Say which features get an edge by values, a line for each record."""
    most = edges.shape[1]
    for f in range(sizes.size):
        size = sizes[f]
        limit = _EVERY if size < most else hashes[f, :size].max()
        for i in range(values.shape[0]):
            value = values[i, f] + 0.0
            if value != value or hash_of(value, keys[f]) > limit:
                continue
            place = np.searchsorted(edges[f, :size], value)
            if place == size or edges[f, place] != value:
                gained[f] = True


@kernel
def lose(values: Floats, edges: Floats, sizes: Ints, counts: Ints, lost: NDArray[np.bool_]) -> None:
    """Take values, a line for each record, out of the counts of edges; say which lose an edge."""
    for i in range(values.shape[0]):
        for f in range(sizes.size):
            value = values[i, f]
            place = np.searchsorted(edges[f, : sizes[f]], value) if value == value else sizes[f]
            if place < sizes[f] and edges[f, place] == value:
                counts[f, place] -= 1
                if counts[f, place] == 0:
                    lost[f] = True

"""Kernels of exact second moments: rows cut in halves, added and taken out.

A gridded value is an integer number m of quanta, ``|m| <= 2**26``, cut in two halves,
``m = h 2**13 + l`` with ``|h| <= 2**13`` and ``|l| <= 2**12``. Over ``2**27`` rows the sums of
m, of ``h h'``, of ``h l' + l h'`` and of ``l l'`` are integers of at most ``2**53``: exact in
float64, in any order. Pairs of columns are packed: row j of the upper triangle holds the pairs
(j, j) to (j, p - 1), and the rows follow each other.

Loops write one or two arrays and read few, which is what lets the compiler vectorise them.
"""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import quantise
from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import HALF, ROUND_HALF
from erasable.core.arrays import Flags, Floats, Indices, Ints, Matrix


@subroutine
def halve(
    row: Matrix,
    first: int,
    columns: Floats,
    sums: Floats,
    sign: float,
    upper: Floats,
    lower: Floats,
) -> None:
    """Cut the values of a row, from column `first` on, into `upper` and `lower`; add to `sums`.

    `columns` are the origin, the magic number and the quanta in a unit of every column.
    """
    stop = first + row.size
    origin, magic = columns[0, first:stop], columns[1, first:stop]
    per_quantum = columns[2, first:stop]
    h, rest = upper[first:stop], lower[first:stop]
    total = sums[first:stop]
    # `lower` holds m before it holds l: one array less to write.
    for j in range(row.size):
        rest[j] = quantise(np.float64(row[j]) - origin[j], magic[j]) * per_quantum[j]
    for j in range(row.size):
        total[j] += sign * rest[j]
    for j in range(row.size):
        h[j] = ((rest[j] + ROUND_HALF) - ROUND_HALF) / HALF
    for j in range(row.size):
        rest[j] -= h[j] * HALF


@subroutine
def add_products(h: Floats, lower: Floats, sign: float, products: Floats) -> None:
    """Add the products of a row's halves to the packed pairs, or subtract them."""
    start, p = 0, h.size
    for j in range(p):
        stop = start + p - j
        upper_j, lower_j = sign * h[j], sign * lower[j]
        h_tail, l_tail = h[j:], lower[j:]
        hh, hl, ll = products[0, start:stop], products[1, start:stop], products[2, start:stop]
        for k in range(p - j):
            hh[k] += upper_j * h_tail[k]
        for k in range(p - j):
            hl[k] += upper_j * l_tail[k] + lower_j * h_tail[k]
        for k in range(p - j):
            ll[k] += lower_j * l_tail[k]
        start = stop


@kernel
def update(
    matrix: Matrix,
    targets: Floats,
    rows: Ints,
    sign: float,
    columns: Floats,
    sums: Floats,
    products: Floats,
    scratch: Floats,
) -> None:
    """Add rows to the sums and the products, or subtract them if `sign` is -1."""
    h, lower = scratch[0], scratch[1]
    for i in range(rows.size):
        halve(matrix[rows[i]], 0, columns, sums, sign, h, lower)
        halve(targets[rows[i]], matrix.shape[1], columns, sums, sign, h, lower)
        add_products(h, lower, sign, products)


@kernel
def cut_block(
    matrix: Matrix,
    targets: Floats,
    rows: Ints,
    first_row: int,
    columns: Floats,
    sums: Floats,
    block: Floats,
) -> None:
    """Fill the rows of `block` with h of all columns, then l of all columns.

    If `rows` is empty, they are the rows from `first_row` on, as many as `block` has room for.
    """
    every, p = rows.size == 0, sums.size
    for i in range(block.shape[0]):
        r = first_row + i if every else rows[i]
        h, lower = block[i, :p], block[i, p:]
        halve(matrix[r], 0, columns, sums, 1.0, h, lower)
        if targets.shape[1] > 0:
            halve(targets[r], matrix.shape[1], columns, sums, 1.0, h, lower)


@kernel
def update_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    n_features: int,
    targets: Floats,
    rows: Ints,
    sign: float,
    wanted: Flags,
    columns: Floats,
    sums: Floats,
    products: Floats,
) -> None:
    """Add sparse rows with dense targets to the sums and pairs that a wanted column is part of."""
    p = sums.size
    places = np.empty(p, dtype=np.int64)
    h, lower = np.empty(p), np.empty(p)
    for i in range(rows.size):
        r, size = rows[i], 0
        for e in range(indptr[r], indptr[r + 1]):
            j = indices[e]
            m = quantise(np.float64(data[e]), columns[1, j]) * columns[2, j]
            if m != 0.0:
                places[size], h[size] = j, ((m + ROUND_HALF) - ROUND_HALF) / HALF
                lower[size] = m - h[size] * HALF
                size += 1
                if wanted[j]:
                    sums[j] += sign * m
        for k in range(targets.shape[1]):
            j = n_features + k
            m = quantise(targets[r, k] - columns[0, j], columns[1, j]) * columns[2, j]
            places[size], h[size] = j, ((m + ROUND_HALF) - ROUND_HALF) / HALF
            lower[size] = m - h[size] * HALF
            size += 1
            if wanted[j]:
                sums[j] += sign * m
        for a in range(size):
            j = places[a]
            start = j * p - j * (j - 1) // 2 - j
            every = wanted[j]
            upper_a, lower_a = sign * h[a], sign * lower[a]
            for b in range(a, size):
                if every or wanted[places[b]]:
                    place = start + places[b]
                    products[0, place] += upper_a * h[b]
                    products[1, place] += upper_a * lower[b] + lower_a * h[b]
                    products[2, place] += lower_a * lower[b]


@kernel
def clear_columns(wanted: Flags, sums: Floats, products: Floats) -> None:
    """Set to 0 the sums and pairs that a wanted column is part of."""
    place, p = 0, sums.size
    for j in range(p):
        if wanted[j]:
            sums[j] = 0.0
        for k in range(j, p):
            if wanted[j] or wanted[k]:
                products[:, place] = 0.0
            place += 1


@kernel
def put_columns(chosen: Ints, found: Floats, products: Floats) -> None:
    """Write ``found[:, i, k]``, products of column ``chosen[i]`` with column k, to the pairs."""
    p = found.shape[2]
    for i in range(chosen.size):
        for k in range(p):
            j, other = min(chosen[i], k), max(chosen[i], k)
            place = j * p - j * (j - 1) // 2 - j + other
            for half in range(3):
                products[half, place] = found[half, i, k]


@kernel
def pack(square: Floats, sign: float, products: Floats) -> None:
    """Add products of (h, l), of which the upper triangle is given, to the packed pairs."""
    place, p = 0, square.shape[0] // 2
    for j in range(p):
        for k in range(j, p):
            products[0, place] += sign * square[j, k]
            products[1, place] += sign * (square[j, p + k] + square[k, p + j])
            products[2, place] += sign * square[p + j, p + k]
            place += 1

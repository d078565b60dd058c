"""Kernels of the moments: exact sums of gridded rows, and what is solved from them.

A gridded value is an integer number m of quanta, ``|m| <= 2**26``, cut in two halves,
``m = h 2**13 + l`` with ``|h| <= 2**13`` and ``|l| <= 2**12``, so that sums of m, h h, h l and
l l over ``2**27`` rows are integers below ``2**53``: exact in float64, and fast there. Solving
uses error-free transformations (Dekker 1971; Ogita, Rump and Oishi 2005, SumK) in a fixed order.
"""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import quantise
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Indices, Ints, Ints32, Matrix

HALF = 2.0**13
ROUND_HALF = 1.5 * 2.0**65
SPLITTER = 2.0**27 + 1.0


@kernel
def accumulate(
    matrix: Matrix,
    rows: Ints,
    every: bool,
    sign: float,
    origin: Floats,
    magic: Floats,
    per_quantum: Floats,
    sums: Floats,
    scratch: Floats,
) -> None:
    """Add the rows to `sums` (m, hh, hl, ll), or subtract them if `sign` is -1."""
    m, h = scratch[0], scratch[1]
    s, hh, hl, ll = sums[0], sums[1], sums[2], sums[3]
    for i in range(matrix.shape[0] if every else rows.size):
        row = matrix[i if every else rows[i]]
        for j in range(row.size):
            m[j] = quantise(np.float64(row[j]) - origin[j], magic[j]) * per_quantum[j]
        for j in range(row.size):
            s[j] += sign * m[j]
        for j in range(row.size):
            upper = (m[j] + ROUND_HALF) - ROUND_HALF
            m[j] -= upper
            h[j] = upper / HALF
        for j in range(row.size):
            hh[j] += sign * (h[j] * h[j])
        for j in range(row.size):
            hl[j] += sign * (h[j] * m[j])
        for j in range(row.size):
            ll[j] += sign * (m[j] * m[j])


@kernel
def accumulate_by_class(
    matrix: Matrix,
    rows: Ints,
    every: bool,
    codes: Ints32,
    columns: Floats,
    sums: Floats,
    scratch: Floats,
) -> None:
    """Add the rows to the sums (m, hh, hl, ll) of their classes, ``sums[codes[row]]``.

    `columns` are the origin, the magic number and the quanta in a unit of every column.
    """
    m, h = scratch[0], scratch[1]
    origin, magic, per_quantum = columns[0], columns[1], columns[2]
    for i in range(matrix.shape[0] if every else rows.size):
        r = i if every else rows[i]
        row, own = matrix[r], sums[codes[r]]
        s, hh, hl, ll = own[0], own[1], own[2], own[3]
        for j in range(row.size):
            m[j] = quantise(np.float64(row[j]) - origin[j], magic[j]) * per_quantum[j]
        for j in range(row.size):
            s[j] += m[j]
        for j in range(row.size):
            upper = (m[j] + ROUND_HALF) - ROUND_HALF
            m[j] -= upper
            h[j] = upper / HALF
        for j in range(row.size):
            hh[j] += h[j] * h[j]
        for j in range(row.size):
            hl[j] += h[j] * m[j]
        for j in range(row.size):
            ll[j] += m[j] * m[j]


@kernel
def column_sums(
    matrix: Matrix, rows: Ints, j: int, origin: float, magic: float, per_quantum: float
) -> tuple[float, float, float, float]:
    """Return the sums (m, hh, hl, ll) of column `j` over `rows`."""
    s = hh = hl = ll = 0.0
    for i in range(rows.size):
        m = quantise(np.float64(matrix[rows[i], j]) - origin, magic) * per_quantum
        upper = (m + ROUND_HALF) - ROUND_HALF
        h, lower = upper / HALF, m - upper
        s += m
        hh += h * h
        hl += h * lower
        ll += lower * lower
    return s, hh, hl, ll


@subroutine
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum and its error, ``a + b`` exactly."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


@subroutine
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return the rounded product and its error, ``a * b`` exactly, without fused multiply-add."""
    product = a * b
    scaled = SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


@subroutine
def divide(high: float, low: float, divisor: float) -> tuple[float, float]:
    """Return the quotient of a double-double by a double, as a double-double."""
    quotient = high / divisor
    product, error = two_product(quotient, divisor)
    return two_sum(quotient, (((high - product) - error) + low) / divisor)


@kernel
def means(n: float, sums: Floats, origin: Floats, quantum: Floats, out: Floats) -> None:
    """Fill `out` with the mean of each column."""
    for j in range(out.size):
        high, low = divide(sums[0, j], 0.0, n)
        total, error = two_sum(origin[j], high * quantum[j])
        out[j] = total + (error + low * quantum[j])


@kernel
def variances(n: float, sums: Floats, quantum: Floats, out: Floats) -> None:
    """Fill `out` with population variances, ``(n sum m^2 - (sum m)^2) / n^2`` squared quanta.

    The numerator is an integer below ``2**107``, given as eight floats whose sum it is; four
    sweeps of two-sums leave its leading 106 bits, whatever cancels.
    """
    terms = np.empty(8)
    for j in range(out.size):
        terms[0], terms[1] = two_product(n * (HALF * HALF), sums[1, j])
        terms[2], terms[3] = two_product(n * (2.0 * HALF), sums[2, j])
        terms[4], terms[5] = two_product(n, sums[3, j])
        terms[6], terms[7] = two_product(-sums[0, j], sums[0, j])
        for _ in range(4):
            for k in range(1, 8):
                terms[k], terms[k - 1] = two_sum(terms[k], terms[k - 1])
        rest = 0.0
        for k in range(7):
            rest += terms[k]
        high, low = two_sum(terms[7], rest)
        high, low = divide(high, low, n)
        high, low = divide(high, low, n)
        out[j] = (high + low) * quantum[j] * quantum[j]


@kernel
def accumulate_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    columns: Flags,
    sign: float,
    magic: Floats,
    per_quantum: Floats,
    sums: Floats,
) -> None:
    """Add the values of sparse rows in some columns to `sums` (m, hh, hl, ll), or subtract them."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if not columns[j]:
                continue
            m = quantise(np.float64(data[e]), magic[j]) * per_quantum[j]
            upper = (m + ROUND_HALF) - ROUND_HALF
            h, lower = upper / HALF, m - upper
            sums[0, j] += sign * m
            sums[1, j] += sign * (h * h)
            sums[2, j] += sign * (h * lower)
            sums[3, j] += sign * (lower * lower)

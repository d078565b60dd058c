"""The gradient of a softmax in double-double arithmetic: about 100 bits, whatever cancels.

It is used where a float64 gradient cannot tell on which side of a boundary an optimum lies: once
at the end where there are many coefficients, else seldom; see `_newton`. Records are taken in
blocks, so that what is done to each of their logits is done to several at once.
"""

from __future__ import annotations

import numpy as np

from erasable.core._centring_kernels import add as add_double
from erasable.core._centring_kernels import multiply as times_double
from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import two_product, two_sum
from erasable.core.arrays import Floats, Indices, Ints, Ints32
from erasable.linear_model._lattice import Pair
from erasable.linear_model._softmax_exact import (
    divide_double,
    exp_doubles,
)

AT_ONCE = 256


@subroutine
def _residuals(
    high: Floats, low: Floats, codes: Ints32, reference: bool, weights: Floats, squares: Floats
) -> float:
    """Put residuals in the place of logits, of shape (m, n).

    Adds their squares to `squares`, and returns the sum of what the records' classes lack.
    """
    m, n = high.shape
    powers = np.zeros(n, dtype=np.int64)
    most, rest = np.zeros(n), np.zeros(n)
    if not reference:
        most[:], rest[:] = high[0], low[0]
    for k in range(m):
        for i in range(n):
            if high[k, i] > most[i] or (high[k, i] == most[i] and low[k, i] > rest[i]):
                most[i], rest[i] = high[k, i], low[k, i]
    for k in range(m):
        for i in range(n):
            high[k, i], low[k, i] = add_double(high[k, i], low[k, i], -most[i], -rest[i])
        exp_doubles(high[k], low[k], powers)
    own, own_low, others, others_low = np.zeros((4, n))
    for k in range(m):
        for i in range(n):
            z, w = high[k, i], low[k, i]
            mine = codes[i] == k
            own[i], own_low[i] = (z if mine else own[i]), (w if mine else own_low[i])
            z, w = (0.0 if mine else z), (0.0 if mine else w)
            others[i], others_low[i] = add_double(others[i], others_low[i], z, w)
    if reference:  # whose logit is 0: no larger than the largest
        for i in range(n):
            most[i], rest[i] = -most[i], -rest[i]
        exp_doubles(most, rest, powers)
        for i in range(n):
            z, w = most[i], rest[i]
            mine = codes[i] == m
            own[i], own_low[i] = (z if mine else own[i]), (w if mine else own_low[i])
            z, w = (0.0 if mine else z), (0.0 if mine else w)
            others[i], others_low[i] = add_double(others[i], others_low[i], z, w)
    for i in range(n):
        own[i], own_low[i] = add_double(own[i], own_low[i], others[i], others_low[i])
        z, w = divide_double(others[i], others_low[i], own[i], own_low[i])
        others[i], others_low[i] = times_double(z, w, weights[i], 0.0)
    for k in range(m):
        for i in range(n):
            z, w = divide_double(high[k, i], low[k, i], own[i], own_low[i])
            z, w = times_double(z, w, weights[i], 0.0)
            mine = codes[i] == k
            high[k, i], low[k, i] = (-others[i] if mine else z), (-others_low[i] if mine else w)
            squares[k] += high[k, i] * high[k, i]
    missing = 0.0
    for i in range(n):
        missing += others[i]
    return missing


@subroutine
def _next_rows(
    weights: Floats, start: int, codes: Ints32, rows: Ints, own: Floats, of: Ints32
) -> int:
    """List some rows that count, from `start` on, with weights and classes; return how many."""
    n = 0
    for i in range(start, weights.size):
        if n == rows.size:
            break
        if weights[i] != 0.0:
            rows[n], own[n], of[n] = i, weights[i], codes[i]
            n += 1
    return n


@kernel
def exact_gradient(
    matrix: Floats,
    origin: Floats,
    unit: Floats,
    weights: Floats,
    codes: Ints32,
    reference: bool,
    intercept: bool,
    theta: Floats,
    rest: Floats,
    out: Floats,
    out_low: Floats,
    squares: Floats,
) -> float:
    """Add the gradient at ``theta + rest`` to ``out + out_low``.

    Adds the squares of the residuals to `squares`, and returns the sum of ``s (1 - p)``.
    """
    d, m = matrix.shape[1], theta.shape[0]
    row, row_low, products, errors = np.zeros((4, d))
    rows, own = np.zeros(AT_ONCE, dtype=np.int64), np.zeros(AT_ONCE)
    of = np.zeros(AT_ONCE, dtype=np.int32)
    missing, start = 0.0, 0
    while True:
        n = _next_rows(weights, start, codes, rows, own, of)
        if n == 0:
            break
        start = rows[n - 1] + 1
        high, low = np.zeros((m, n)), np.zeros((m, n))
        for r in range(n):
            _scaled(matrix[rows[r]], origin, unit, row, row_low)
            for k in range(m):
                z, w = (theta[k, d], rest[k, d]) if intercept else (0.0, 0.0)
                own_theta = theta[k, :d], rest[k, :d]
                high[k, r], low[k, r] = _dot_double(
                    (row, row_low), own_theta, z, w, (products, errors)
                )
        missing += _residuals(high, low, of[:n], reference, own[:n], squares)
        for r in range(n):
            _scaled(matrix[rows[r]], origin, unit, row, row_low)
            for k in range(m):
                a, b = high[k, r], low[k, r]
                _add_row(row, row_low, a, b, out[k], out_low[k])
                if intercept:
                    out[k, d], out_low[k, d] = add_double(out[k, d], out_low[k, d], a, b)
    row[:] = 0.0
    row_low[:] = 0.0
    products[:] = 0.0
    errors[:] = 0.0
    return missing


@subroutine
def _scaled(values: Floats, origin: Floats, unit: Floats, row: Floats, row_low: Floats) -> None:
    """Fill a row, and what of it is rounded off, with values in units of their columns."""
    for j in range(row.size):
        u, v = two_sum(np.float64(values[j]), -origin[j])
        row[j], row_low[j] = u * unit[j], v * unit[j]


@subroutine
def _dot_double(
    of_row: Pair, coefficients: Pair, z: float, w: float, scratch: Pair
) -> tuple[float, float]:
    """Return the dot product of a row with coefficients, plus ``z + w``.

    Halves are added to halves, without error but in the low parts, so that loops are vectorised.
    """
    (row, row_low), (theta, rest), (high, low) = of_row, coefficients, scratch
    left = row.size
    for j in range(left):
        high[j], error = two_product(row[j], theta[j])
        low[j] = error + (row[j] * rest[j] + row_low[j] * theta[j])
    while left > 1:
        half = left // 2
        shift = left - half
        for j in range(half):
            high[j], error = two_sum(high[j], high[shift + j])
            low[j] += low[shift + j] + error
        left = shift
    if row.size:
        z, w = add_double(z, w, high[0], low[0])
    return z, w


@subroutine
def _add_row(
    row: Floats, row_low: Floats, a: float, b: float, out: Floats, out_low: Floats
) -> None:
    """Add ``(a + b)`` times a row."""
    for j in range(row.size):
        u, v = times_double(row[j], row_low[j], a, b)
        out[j], out_low[j] = add_double(out[j], out_low[j], u, v)


@kernel
def exact_gradient_sparse(
    data: Floats,
    indices: Indices,
    indptr: Indices,
    unit: Floats,
    weights: Floats,
    codes: Ints32,
    reference: bool,
    intercept: bool,
    theta: Floats,
    rest: Floats,
    out: Floats,
    out_low: Floats,
    squares: Floats,
) -> float:
    """Add the gradient of the rows of a sparse matrix; see `exact_gradient`."""
    m, d = theta.shape[0], unit.size
    longest = 0
    for i in range(weights.size):
        longest = max(longest, indptr[i + 1] - indptr[i])
    row, none, own_theta, own_rest, products, errors = np.zeros((6, longest))
    rows, own = np.zeros(AT_ONCE, dtype=np.int64), np.zeros(AT_ONCE)
    of = np.zeros(AT_ONCE, dtype=np.int32)
    missing, start = 0.0, 0
    while True:
        n = _next_rows(weights, start, codes, rows, own, of)
        if n == 0:
            break
        start = rows[n - 1] + 1
        high, low = np.zeros((m, n)), np.zeros((m, n))
        for r in range(n):
            first, size = indptr[rows[r]], indptr[rows[r] + 1] - indptr[rows[r]]
            for e in range(size):
                row[e] = np.float64(data[first + e]) * unit[np.uint64(indices[first + e])]
            for k in range(m):
                z, w = (theta[k, d], rest[k, d]) if intercept else (0.0, 0.0)
                for e in range(size):
                    j = np.uint64(indices[first + e])
                    own_theta[e], own_rest[e] = theta[k, j], rest[k, j]
                of_row, mine = (row[:size], none[:size]), (own_theta[:size], own_rest[:size])
                high[k, r], low[k, r] = _dot_double(of_row, mine, z, w, (products, errors))
        missing += _residuals(high, low, of[:n], reference, own[:n], squares)
        for r in range(n):
            first, size = indptr[rows[r]], indptr[rows[r] + 1] - indptr[rows[r]]
            for e in range(size):
                row[e] = np.float64(data[first + e]) * unit[np.uint64(indices[first + e])]
            for k in range(m):
                a, b = high[k, r], low[k, r]
                for e in range(size):
                    products[e], errors[e] = times_double(row[e], 0.0, a, b)
                sums, rests = out[k], out_low[k]
                for e in range(size):
                    j = np.uint64(indices[first + e])
                    sums[j], rests[j] = add_double(sums[j], rests[j], products[e], errors[e])
                if intercept:
                    out[k, d], out_low[k, d] = add_double(out[k, d], out_low[k, d], a, b)
    for scratch in (row, own_theta, own_rest, products, errors):
        scratch[:] = 0.0
    return missing

"""The gradient of a softmax in double-double arithmetic: about 100 bits, whatever cancels.

A number is the unevaluated sum of two floats (Dekker 1971). It is used where a float64 gradient
cannot tell on which side of a boundary an optimum lies, which is seldom; see `_newton`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._moment_kernels import two_product, two_sum
from erasable.linear_model._softmax_kernels import LIMIT, Codes, Floats

__all__ = [
    "add_double",
    "add_products",
    "divide_double",
    "exact_gradient",
    "exact_gradient_sparse",
    "exp_double",
    "times_double",
]

Indices = NDArray[np.int32] | NDArray[np.int64]

# ln 2 in three parts, of which the first two have 40 bits: an exponent times these is exact.
_LN2_A, _LN2_B, _LN2_C = 0.6931471805601177, -1.7239444525610826e-13, -4.00865610552017e-26
# 1/3!, 1/4! and 1/5!
_THIRD, _THIRD_LOW = 0.16666666666666666, 9.25185853854297e-18
_FOURTH, _FOURTH_LOW = 0.041666666666666664, 2.3129646346357427e-18
_FIFTH, _FIFTH_LOW = 0.008333333333333333, 1.1564823173178714e-19
_SQUARINGS = 9


@kernel
def add_double(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """Return ``(a + b) + (c + d)``."""
    total, error = two_sum(a, c)
    low, lower = two_sum(b, d)
    total, error = two_sum(total, error + low)
    return two_sum(total, error + lower)


@kernel
def times_double(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """Return ``(a + b) (c + d)``."""
    product, error = two_product(a, c)
    return two_sum(product, error + (a * d + b * c))


@kernel
def divide_double(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """Return ``(a + b) / (c + d)``."""
    first = a / c
    high, low = times_double(first, 0.0, c, d)
    high, low = add_double(a, b, -high, -low)
    second = high / c
    again, lower = times_double(second, 0.0, c, d)
    high, low = add_double(high, low, -again, -lower)
    total, error = two_sum(first, second)
    return two_sum(total, error + high / c)


@kernel
def exp_double(high: float, low: float) -> tuple[float, float]:
    """Return the exponential of a sum of 0 or less, to ``2**-98`` of itself or ``2**-1060``.

    At -700 and below it is that of -700. Reduced to ``|r| < 0.35 / 512``, eight terms of Taylor's
    series of ``exp(r) - 1``, the last of them in doubles, and nine times ``2 y + y**2``, which is
    ``(1 + y)**2 - 1``.
    """
    if not high > -LIMIT:
        high, low = -LIMIT, 0.0
    k = np.rint(high * 1.4426950408889634)
    a, b = two_sum(high, -k * _LN2_A)
    a, b = add_double(a, b, low, 0.0)
    a, b = add_double(a, b, -k * _LN2_B, -k * _LN2_C)
    small = math.ldexp(1.0, -_SQUARINGS)
    a, b = a * small, b * small
    y = ((a / 40320.0 + 1.0 / 5040.0) * a + 1.0 / 720.0) * a
    y, z = add_double(_FIFTH, _FIFTH_LOW, y, 0.0)
    y, z = times_double(y, z, a, b)
    y, z = add_double(_FOURTH, _FOURTH_LOW, y, z)
    y, z = times_double(y, z, a, b)
    y, z = add_double(_THIRD, _THIRD_LOW, y, z)
    y, z = times_double(y, z, a, b)
    y, z = add_double(0.5, 0.0, y, z)
    y, z = times_double(y, z, a, b)
    y, z = add_double(1.0, 0.0, y, z)
    y, z = times_double(y, z, a, b)
    for _ in range(_SQUARINGS):
        s, t = times_double(y, z, y, z)
        y, z = add_double(2.0 * y, 2.0 * z, s, t)
    y, z = add_double(1.0, 0.0, y, z)
    scale = math.ldexp(1.0, int(k))
    return y * scale, z * scale


@kernel
def residuals_double(
    high: Floats, low: Floats, code: int, reference: bool, weight: float, a: Floats, b: Floats
) -> float:
    """Fill (a, b) with the residuals of one record's logits, and return what its class lacks."""
    m = high.size
    most, rest = (0.0, 0.0) if reference else (high[0], low[0])
    for k in range(m):
        if high[k] > most or (high[k] == most and low[k] > rest):
            most, rest = high[k], low[k]
    own, own_low, others, others_low = 0.0, 0.0, 0.0, 0.0
    for k in range(m + 1):
        if k == m and not reference:
            break
        z, w = (high[k], low[k]) if k < m else (0.0, 0.0)
        z, w = add_double(z, w, -most, -rest)
        z, w = exp_double(z, w) if z != 0.0 or w != 0.0 else (1.0, 0.0)
        if k < m:
            a[k], b[k] = z, w
        if k == code:
            own, own_low = z, w
        else:
            others, others_low = add_double(others, others_low, z, w)
    total, error = add_double(own, own_low, others, others_low)
    lacking, lacking_low = divide_double(others, others_low, total, error)
    lacking, lacking_low = times_double(lacking, lacking_low, weight, 0.0)
    for k in range(m):
        if k == code:
            a[k], b[k] = -lacking, -lacking_low
        else:
            z, w = divide_double(a[k], b[k], total, error)
            a[k], b[k] = times_double(z, w, weight, 0.0)
    return lacking


@kernel
def exact_gradient(
    matrix: NDArray[np.float64],
    origin: Floats,
    unit: Floats,
    weights: Floats,
    codes: Codes,
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
    n, d = matrix.shape
    m = theta.shape[0]
    row, row_low = np.zeros(d), np.zeros(d)
    high, low, a, b = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    products, errors = np.zeros(d), np.zeros(d)
    missing = 0.0
    for i in range(n):
        if weights[i] == 0.0:
            continue
        for j in range(d):
            u, v = two_sum(np.float64(matrix[i, j]), -origin[j])
            row[j], row_low[j] = u * unit[j], v * unit[j]
        for k in range(m):
            z, w = (theta[k, d], rest[k, d]) if intercept else (0.0, 0.0)
            high[k], low[k] = _dot_double(
                row, row_low, theta[k, :d], rest[k, :d], z, w, products, errors
            )
        missing += residuals_double(high, low, codes[i], reference, weights[i], a, b)
        for k in range(m):
            squares[k] += a[k] * a[k]
            _add_row(row, row_low, a[k], b[k], out[k], out_low[k])
            if intercept:
                out[k, d], out_low[k, d] = add_double(out[k, d], out_low[k, d], a[k], b[k])
    row[:] = 0.0
    row_low[:] = 0.0
    products[:] = 0.0
    errors[:] = 0.0
    return missing


@kernel
def _dot_double(
    row: Floats,
    row_low: Floats,
    theta: Floats,
    rest: Floats,
    z: float,
    w: float,
    high: Floats,
    low: Floats,
) -> tuple[float, float]:
    """Return the dot product of a row with coefficients, plus ``z + w``.

    Halves are added to halves, without error but in the low parts, so that loops are vectorised.
    """
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


@kernel
def _add_row(
    row: Floats, row_low: Floats, a: float, b: float, out: Floats, out_low: Floats
) -> None:
    """Add ``(a + b)`` times a row."""
    for j in range(row.size):
        u, v = times_double(row[j], row_low[j], a, b)
        out[j], out_low[j] = add_double(out[j], out_low[j], u, v)


@kernel
def exact_gradient_sparse(
    data: NDArray[np.float64],
    indices: Indices,
    indptr: Indices,
    unit: Floats,
    weights: Floats,
    codes: Codes,
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
    high, low, a, b = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
    missing = 0.0
    for i in range(weights.size):
        if weights[i] == 0.0:
            continue
        for k in range(m):
            z, w = (theta[k, d], rest[k, d]) if intercept else (0.0, 0.0)
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                u, v = times_double(np.float64(data[e]) * unit[j], 0.0, theta[k, j], rest[k, j])
                z, w = add_double(z, w, u, v)
            high[k], low[k] = z, w
        missing += residuals_double(high, low, codes[i], reference, weights[i], a, b)
        for k in range(m):
            squares[k] += a[k] * a[k]
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                u, v = times_double(np.float64(data[e]) * unit[j], 0.0, a[k], b[k])
                out[k, j], out_low[k, j] = add_double(out[k, j], out_low[k, j], u, v)
            if intercept:
                out[k, d], out_low[k, d] = add_double(out[k, d], out_low[k, d], a[k], b[k])
    return missing


@kernel
def add_products(
    rows: Floats,
    rows_low: Floats,
    coefficients: Floats,
    coefficients_low: Floats,
    out: Floats,
    out_low: Floats,
) -> None:
    """Add to ``out + out_low``, shape (m, D, m, D), the products of rows with themselves.

    `coefficients`, shape (n, m, m), say how often for each pair of logits.
    """
    n, width = rows.shape
    m = coefficients.shape[1]
    for i in range(n):
        for j in range(width):
            for h in range(j + 1):
                a, b = times_double(rows[i, j], rows_low[i, j], rows[i, h], rows_low[i, h])
                if a == 0.0:
                    continue
                for k in range(m):
                    for g in range(m):
                        c, d = times_double(a, b, coefficients[i, k, g], coefficients_low[i, k, g])
                        out[k, j, g, h], out_low[k, j, g, h] = add_double(
                            out[k, j, g, h], out_low[k, j, g, h], c, d
                        )

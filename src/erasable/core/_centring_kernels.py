"""Kernels that make centred moments of exact sums, in double-double, in a fixed order.

A number is the sum of two floats, the second at most half an ulp of the first, which is good for
106 bits. The error-free transformations are those of `erasable.core._moment_kernels`.
"""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import HALF, divide, two_product, two_sum
from erasable.core.arrays import Floats

SPLIT_SUM = 1.5 * 2.0**79  # adding it and taking it away rounds to a multiple of 2**27


@subroutine
def multiply(high: float, low: float, by_high: float, by_low: float) -> tuple[float, float]:
    """Return the product of two double-doubles."""
    product, error = two_product(high, by_high)
    return two_sum(product, error + (high * by_low + low * by_high))


@subroutine
def add(high: float, low: float, to_high: float, to_low: float) -> tuple[float, float]:
    """Return the sum of two double-doubles."""
    total, error = two_sum(high, to_high)
    small, tiny = two_sum(low, to_low)
    total, error = two_sum(total, error + small)
    return two_sum(total, error + tiny)


@subroutine
def ratio(high: float, low: float, by_high: float, by_low: float) -> tuple[float, float]:
    """Return the quotient of two double-doubles."""
    quotient = high / by_high
    back, error = multiply(quotient, 0.0, by_high, by_low)
    return two_sum(quotient, (((high - back) - error) + low) / by_high)


@kernel
def centre(n: float, sums: Floats, products: Floats, high: Floats, low: Floats) -> None:
    """Fill `high` + `low`, symmetric, with ``sum (m - mean)(m' - mean')`` over n rows.

    About the whole numbers c nearest to the means all is exact: with ``r = s - n c``, the
    integer ``sum m m' - c s' - r c'`` has at most 81 bits, and from it ``r r' / n``, at most
    n / 4, is to be taken away.
    """
    p = sums.size
    nearest, rest = np.empty(p), np.empty(p)
    upper, lower = np.empty(p), np.empty(p)
    for j in range(p):
        nearest[j] = np.rint(sums[j] / n)
        rest[j] = sums[j] - n * nearest[j]
        upper[j] = (sums[j] + SPLIT_SUM) - SPLIT_SUM
        lower[j] = sums[j] - upper[j]
    start = 0
    for j in range(p):
        stop = start + p - j
        hh, hl, ll = products[0, start:stop], products[1, start:stop], products[2, start:stop]
        high_j, low_j, nearest_k, rest_k = high[j, j:], low[j, j:], nearest[j:], rest[j:]
        upper_k, lower_k = upper[j:], lower[j:]
        nearest_j, rest_j = nearest[j], rest[j]
        for k in range(p - j):
            high_j[k] = hh[k] * (HALF * HALF) + hl[k] * HALF
        for k in range(p - j):
            low_j[k] = two_sum(hh[k] * (HALF * HALF), hl[k] * HALF)[1] + ll[k]
        for k in range(p - j):
            total, error = two_sum(high_j[k], -nearest_j * upper_k[k])
            rest_of_it = (low_j[k] - nearest_j * lower_k[k]) + error
            small, tiny = two_sum(rest_of_it, -rest_j * nearest_k[k])
            high_j[k], error = two_sum(total, small)
            low_j[k] = error + tiny
        for k in range(p - j):
            product = rest_j * rest_k[k]
            quotient = product / n
            back, error = two_product(quotient, n)
            total, small = two_sum(high_j[k], -quotient)
            small += low_j[k] - ((product - back) - error) / n
            high_j[k], low_j[k] = two_sum(total, small)
        for k in range(1, p - j):
            high[j + k, j], low[j + k, j] = high_j[k], low_j[k]
        start = stop


@kernel
def means(n: float, sums: Floats, high: Floats, low: Floats) -> None:
    """Fill `high` + `low` with the means of the columns, in quanta from their origins."""
    for j in range(sums.size):
        high[j], low[j] = divide(sums[j], 0.0, n)


@subroutine
def add_outer(
    times: float,
    times_low: float,
    by_high: Floats,
    by_low: Floats,
    high: Floats,
    low: Floats,
) -> None:
    """Add ``times v v'`` to a symmetric matrix; everything in double-double."""
    for j in range(by_high.size):
        factor, rest = multiply(times, times_low, by_high[j], by_low[j])
        high_j, low_j = high[j], low[j]
        for k in range(by_high.size):
            product, error = multiply(factor, rest, by_high[k], by_low[k])
            high_j[k], low_j[k] = add(high_j[k], low_j[k], product, error)

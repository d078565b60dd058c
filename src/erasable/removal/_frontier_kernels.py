"""Kernel of the frontier of sparse rows: a row changes only the sums of its own columns."""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import Floats, Ints, Matrix
from erasable.core._jit import kernel
from erasable.core._sparse_kernels import Indices

__all__ = ["walk"]

_AFRESH = 1024  # steps after which the running sums are made again, so that errors do not grow


@kernel
def walk(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    order: Ints,
    left: Floats,
    n: float,
    weights: Floats,
    own: Floats,
    other: Floats,
    alpha: Floats,
    epsilon: Floats,
) -> None:
    """Fill half the weighted squared distances of the mean of what is left to two means.

    `left` is the sum of all rows, and is used up. With r the sum of what is left, ``|r / n - m|**2
    = |r|**2 / n**2 - 2 <r, m> / n + |m|**2``, whose parts change with a row's columns alone.
    """
    square = to_own = to_other = own_square = other_square = 0.0
    for j in range(own.size):
        own_square += weights[j] * own[j] * own[j]
        other_square += weights[j] * other[j] * other[j]
    for b in range(order.size + 1):
        if b % _AFRESH == 0:
            square = to_own = to_other = 0.0
            for j in range(own.size):
                square += weights[j] * left[j] * left[j]
                to_own += weights[j] * left[j] * own[j]
                to_other += weights[j] * left[j] * other[j]
        here = square / (n * n)
        alpha[b] = max(0.5 * (here - 2.0 * to_own / n + own_square), 0.0)
        epsilon[b] = max(0.5 * (here - 2.0 * to_other / n + other_square), 0.0)
        if b == order.size:
            break
        i = order[b]
        for e in range(indptr[i], indptr[i + 1]):
            j, value = indices[e], np.float64(data[e])
            square += weights[j] * value * (value - 2.0 * left[j])
            to_own -= weights[j] * value * own[j]
            to_other -= weights[j] * value * other[j]
            left[j] -= value
        n -= 1.0

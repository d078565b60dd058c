"""Gaussian processes in many samples of who stays: a Cholesky factor for each, row by row.

Of sample `s`, `members[s, :sizes[s]]` are the records that stay and ``factors[s]`` the lower factor
of their matrix. A further record `j` adds the row `x` that solves ``L x = k_Sj``, and ``d^2 =
k_jj - x'x`` is what is left of its variance (Chen, Zhang and Zhou, 2018).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel

__all__ = ["determinant_gains", "extend", "variance_gains"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def _solve(
    j: int, m: int, K: Floats, members: Ints, factor: Floats, scale: float, x: Floats
) -> float:
    """Write the row of record j into x; return x'x."""
    total = 0.0
    for a in range(m):
        value = scale * K[members[a], j]
        for b in range(a):
            value -= factor[a, b] * x[b]
        value /= factor[a, a]
        x[a] = value
        total += value * value
    return total


@kernel
def determinant_gains(
    j: int, K: Floats, scale: float, noise: float, members: Ints, sizes: Ints, factors: Floats,
    least: float, out: Floats,
) -> None:  # fmt: skip
    """Write log d^2 of each sample into `out`."""
    x = np.empty(members.shape[1])
    for s in range(len(sizes)):
        left = noise + scale * K[j, j]
        left -= _solve(j, sizes[s], K, members[s], factors[s], scale, x)
        out[s] = np.log(max(left, least))


@kernel
def variance_gains(
    j: int, K: Floats, Q: Floats, noise: float, members: Ints, sizes: Ints, factors: Floats,
    least: float, out: Floats,
) -> None:  # fmt: skip
    """Write into `out` by how much record j lowers the variance of the targets, in each sample.

    The covariance of a target with `j`, given the members, is ``k_tj - k_tS b``, where b solves
    ``K_SS b = k_Sj``; its square is summed over targets by ``Q = K_.T K_T.``, without them.
    """
    x, b = np.empty(members.shape[1]), np.empty(members.shape[1])
    for s in range(len(sizes)):
        m = sizes[s]
        left = noise + K[j, j] - _solve(j, m, K, members[s], factors[s], 1.0, x)
        if left <= least:
            out[s] = 0.0
            continue
        for a in range(m - 1, -1, -1):
            value = x[a]
            for c in range(a + 1, m):
                value -= factors[s, c, a] * b[c]
            b[a] = value / factors[s, a, a]
        total = Q[j, j]
        for a in range(m):
            inner = -2.0 * Q[members[s, a], j]
            for c in range(m):
                inner += b[c] * Q[members[s, a], members[s, c]]
            total += b[a] * inner
        out[s] = max(total, 0.0) / left


@kernel
def extend(
    j: int, K: Floats, scale: float, noise: float, members: Ints, sizes: Ints, factors: Floats,
    least: float, stays: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Add record j to the samples in which it stays.

    Where nothing of its variance is left, it is as good as there already, and is left out.
    """
    for s in range(len(sizes)):
        m = sizes[s]
        if stays[s]:
            row = factors[s, m]
            left = noise + scale * K[j, j]
            left -= _solve(j, m, K, members[s], factors[s], scale, row)
            if left > least:
                row[m] = np.sqrt(left)
                members[s, m] = j
                sizes[s] = m + 1

"""Kernel of a Gaussian that is refitted, mean and covariance, with every record."""

from __future__ import annotations

import math

import numpy as np

from erasable.core._grid_kernels import Floats
from erasable.core._jit import kernel

__all__ = ["refits"]


@kernel
def refits(
    rows: Floats,
    inverse: Floats,
    log_determinant: float,
    total: Floats,
    n: float,
    prior: float,
    means: Floats,
    covariances: Floats,
    log_determinants: Floats,
    out: Floats,
) -> None:
    """Fill `out` with KL(p1, p) and KL(p2, p) before each of the rows is added.

    With K the sum of products of the rows so far and of `prior` times the identity, the covariance
    of n rows of mean m is ``(K - n m m') / (n + prior)``. `inverse` is that of K, and `total` the
    sum of the rows; both are used up: a row changes K by one product, and its inverse and
    determinant by the formulas of Sherman and Morrison.
    """
    d = total.size
    mean, towards = np.empty(d), np.empty(d)
    for b in range(rows.shape[0]):
        size = n + prior
        for j in range(d):
            mean[j] = total[j] / n
        times_mean = inverse @ mean
        rest = 1.0 - n * (mean @ times_mean)
        spread = log_determinant + math.log(rest) - d * math.log(size)
        for i in range(2):
            for j in range(d):
                towards[j] = mean[j] - means[i, j]
            trace = 0.0
            for j in range(d):
                for k in range(d):
                    trace += inverse[j, k] * covariances[i, j, k]
            trace += n * (times_mean @ (covariances[i] @ times_mean)) / rest
            along = times_mean @ towards
            away = towards @ (inverse @ towards) + n * along * along / rest
            out[i, b] = 0.5 * (size * (trace + away) - d + spread - log_determinants[i])
        row = rows[b]
        times_row = inverse @ row
        more = 1.0 + row @ times_row
        for j in range(d):
            for k in range(d):
                inverse[j, k] -= times_row[j] * times_row[k] / more
        log_determinant += math.log(more)
        for j in range(d):
            total[j] += row[j]
        n += 1.0

"""Kernels over rows: distances, products, norms, and Gaussians that follow them one by one.

The result for a row is a function of that row alone, bit for bit, wherever it stands. Sums run in
eight lanes in a fixed order, so equal rows have equal scores.
"""

from __future__ import annotations

import math

import numpy as np

from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Indices, Ints, Matrix

_LANES = 8


@kernel
def distances(matrix: Matrix, centre: Floats, out: Floats) -> None:
    """Fill `out` with the squared Euclidean distance of each row to a centre."""
    lanes = np.zeros(_LANES)
    d = centre.size
    whole = d - d % _LANES
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for k in range(_LANES):
            lanes[k] = 0.0
        for j in range(0, whole, _LANES):
            for k in range(_LANES):
                difference = np.float64(row[j + k]) - centre[j + k]
                lanes[k] += difference * difference
        for j in range(whole, d):
            difference = np.float64(row[j]) - centre[j]
            lanes[j - whole] += difference * difference
        out[i] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
            (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        )


@kernel
def products(matrix: Matrix, centre: Floats, out: Floats) -> None:
    """Fill `out` with the scalar product of each row and a centre."""
    lanes = np.zeros(_LANES)
    d = centre.size
    whole = d - d % _LANES
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for k in range(_LANES):
            lanes[k] = 0.0
        for j in range(0, whole, _LANES):
            for k in range(_LANES):
                lanes[k] += np.float64(row[j + k]) * centre[j + k]
        for j in range(whole, d):
            lanes[j - whole] += np.float64(row[j]) * centre[j]
        out[i] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
            (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        )


@kernel
def sparse_products(
    data: Matrix, indices: Indices, indptr: Indices, centre: Floats, out: Floats
) -> None:
    """Fill `out` with the scalar product of each sparse row and a centre."""
    for i in range(out.size):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[e]) * centre[indices[e]]
        out[i] = total


@kernel
def sparse_distances(
    data: Matrix, indices: Indices, indptr: Indices, centre: Floats, out: Floats
) -> None:
    """Fill `out` with squared distances to a centre.

    Columns where nothing is stored add the rest of the centre's square: exactly 0 where the row is
    the centre, because both squares are summed in one order.
    """
    norm = 0.0
    for j in range(centre.size):
        norm += centre[j] * centre[j]
    for i in range(out.size):
        near = covered = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            here = centre[indices[e]]
            difference = np.float64(data[e]) - here
            near += difference * difference
            covered += here * here
        out[i] = near + max(norm - covered, 0.0)


@kernel
def cut(matrix: Matrix, origin: Floats, per_unit: Floats, out: Floats) -> None:
    """Fill `out` with the rows in whole quanta, ``rint((x - origin) * per_unit)``."""
    for i in range(matrix.shape[0]):
        row, target = matrix[i], out[i]
        for j in range(row.size):
            target[j] = np.rint((np.float64(row[j]) - origin[j]) * per_unit[j])


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
    sum of the rows; both are changed in place: a row changes K by one product, and its inverse and
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

    `left` is the sum of all rows, and is changed in place. With r the sum of what is left, ``|r / n
    - m|**2 = |r|**2 / n**2 - 2 <r, m> / n + |m|**2``, whose parts change with a row's columns
    alone.
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

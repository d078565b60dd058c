"""Kernels of losses that are squares of what lies outside an interval.

A record's score f costs the square of its *gap*, the distance from an interval: for a classifier
from 1 upwards or from -1 downwards, as its target is 1 or -1; for a regression from
``target - epsilon`` to ``target + epsilon``. A record that has a gap is *active*: on side 1 where
its score is too low, on side 2 where it is too high, on side 0 where it costs nothing.

Numbers in pairs (high, low) are double-doubles.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._centring_kernels import add as add_double
from erasable.core._centring_kernels import multiply as times_double
from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import two_product, two_sum
from erasable.core.arrays import Flags, Floats, Ints

_FINE = 2.0**22


@subroutine
def _ends(target: float, epsilon: float) -> tuple[float, float]:
    """Return the ends of an interval; `epsilon` is below 0 for a classifier."""
    if epsilon >= 0.0:
        return target - epsilon, target + epsilon
    return (1.0, np.inf) if target > 0.0 else (-np.inf, -1.0)


@kernel
def decide(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    norms: Floats,
    epsilon: float,
    error: float,
    fixed: float,
    sides: NDArray[np.int8],
    slack: Floats,
) -> None:
    """Fill in the side of each record, and by what a change of the coefficients may not alter it.

    `slack` is a bound of the norm of the change. A score is wrong by ``fixed + error * norm``; a
    record that may be at an end, as far as this tells, stays on its side.
    """
    for i in range(scores.size):
        slack[i] = np.inf
        if weights[i] == 0.0:
            sides[i] = 0
            continue
        if epsilon == 0.0:  # any record costs its square
            sides[i] = 1
            continue
        low, high = _ends(targets[i], epsilon)
        below, above = low - scores[i], scores[i] - high
        left = min(abs(below), abs(above)) - fixed - error * norms[i]
        if left > 0.0:
            sides[i] = 1 if below > 0.0 else 2 if above > 0.0 else 0
        slack[i] = max(left, 0.0) / max(norms[i], 1e-300)


@kernel
def decide_exactly(
    high: Floats,
    low: Floats,
    targets: Floats,
    errors: Floats,
    tolerances: Floats,
    epsilon: float,
    sides: NDArray[np.int8],
    gaps: Floats,
) -> None:
    """Fill in sides of some records; 0 for those whose scores are within tolerances of an end.

    `gaps` are bounds of what the gaps of these are now, with errors of the scores.
    """
    for i in range(high.size):
        sides[i], gaps[i] = 0, 0.0
        start, stop = _ends(targets[i], epsilon)
        total, error = two_sum(start, -high[i])
        below = total + (error - low[i]) if start > -np.inf else -np.inf
        total, error = two_sum(high[i], -stop)
        above = total + (error + low[i]) if stop < np.inf else -np.inf
        if below > tolerances[i]:
            sides[i] = 1
        elif above > tolerances[i]:
            sides[i] = 2
        elif max(below, above) >= -tolerances[i]:
            gaps[i] = errors[i] + max(below, above, 0.0)


@kernel
def slope(
    scores: Floats,
    change: Floats,
    share: float,
    targets: Floats,
    weights: Floats,
    epsilon: float,
    factors: Floats,
) -> float:
    """Return how steep the weighted sum of the squares of the gaps is, at ``share`` of a change."""
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            low, high = _ends(targets[i], epsilon)
            score = scores[i] + share * change[i]
            below, above = max(low - score, 0.0), max(score - high, 0.0)
            total += weights[i] * (factors[1] * above - factors[0] * below) * change[i]
    return 2.0 * total


@kernel
def slope_exactly(
    high: Floats,
    low: Floats,
    change: Floats,
    rest: Floats,
    share: float,
    targets: Floats,
    weights: Floats,
    epsilon: float,
    factors: Floats,
) -> float:
    """Return what `slope` does, of scores and changes in pairs."""
    total = 0.0
    for i in range(high.size):
        if weights[i] != 0.0:
            start, stop = _ends(targets[i], epsilon)
            u, v = times_double(change[i], rest[i], share, 0.0)
            score, score_low = add_double(high[i], low[i], u, v)
            below, above = 0.0, 0.0
            if start > -np.inf:
                gap, error = two_sum(start, -score)
                below = max(gap + (error - score_low), 0.0)
            if stop < np.inf:
                gap, error = two_sum(score, -stop)
                above = max(gap + (error + score_low), 0.0)
            total += weights[i] * (factors[1] * above - factors[0] * below) * change[i]
    return 2.0 * total


@kernel
def near(slack: Floats, moved: float, out: Flags) -> int:
    """Mark the records that a change of the coefficients may have moved across an end."""
    found = 0
    for i in range(slack.size):
        out[i] = slack[i] <= moved
        found += out[i]
    return found


@kernel
def split(
    matrix: Floats,
    origin: Floats,
    unit: Floats,
    intercept: bool,
    targets: Floats,
    weights: Floats,
    scale: float,
    coarse: Floats,
    fine: Floats,
    heavy: Floats,
    light: Floats,
) -> None:
    """Fill in rows in units, with 1 and the target behind them, and these times their weights.

    Each is a multiple of 2**-22 (times `scale`, if weighted) and the rest. `scale` is a power of
    two, no weight is larger.
    """
    n, d = matrix.shape
    width = coarse.shape[1]
    row, rest = np.zeros(width), np.zeros(width)
    for i in range(n):
        for j in range(d):
            value, error = two_sum(np.float64(matrix[i, j]), -origin[j])
            row[j], rest[j] = value * unit[j], error * unit[j]
        if intercept:
            row[d] = 1.0
        row[width - 1] = targets[i]
        weight = weights[i]
        for j in range(width):
            high = np.rint(row[j] * _FINE) / _FINE
            coarse[i, j], fine[i, j] = high, (row[j] - high) + rest[j]
            product, error = two_product(row[j], weight)
            high = np.rint(product * (_FINE / scale)) * (scale / _FINE)
            heavy[i, j], light[i, j] = high, (product - high) + (error + rest[j] * weight)


@kernel
def pairs(
    matrix: Floats, origin: Floats, unit: Floats, intercept: bool, high: Floats, low: Floats
) -> None:
    """Fill in rows in units, as pairs, with 1 behind them where there is an intercept."""
    n, d = matrix.shape
    for i in range(n):
        for j in range(d):
            value, error = two_sum(np.float64(matrix[i, j]), -origin[j])
            high[i, j], low[i, j] = value * unit[j], error * unit[j]
        if intercept:
            high[i, d] = 1.0


@kernel
def scores_exactly(
    high: Floats, low: Floats, theta: Floats, rest: Floats, out: Floats, out_low: Floats
) -> None:
    """Fill in the scores of rows, as pairs."""
    for i in range(high.shape[0]):
        z, w = 0.0, 0.0
        for j in range(theta.size):
            u, v = times_double(high[i, j], low[i, j], theta[j], rest[j])
            z, w = add_double(z, w, u, v)
        out[i], out_low[i] = z, w


@kernel
def add_products(
    high: Floats,
    low: Floats,
    targets: Floats,
    weights: Floats,
    places: Ints,
    sums: Floats,
    rests: Floats,
) -> None:
    """Add weighted products of rows, with their targets behind them, to the sums of their sides.

    `sums` and `rests` have shape (2, W, W); the lower triangles are filled. Weights may be
    negative.
    """
    width = sums.shape[1]
    row, rest = np.zeros(width), np.zeros(width)
    for i in range(high.shape[0]):
        row[: width - 1], rest[: width - 1] = high[i], low[i]
        row[width - 1] = targets[i]
        of_side, of_rest = sums[places[i]], rests[places[i]]
        for j in range(width):
            a, b = times_double(row[j], rest[j], weights[i], 0.0)
            line, line_low = of_side[j], of_rest[j]
            for k in range(j + 1):
                u, v = times_double(row[k], rest[k], a, b)
                line[k], line_low[k] = add_double(line[k], line_low[k], u, v)


@kernel
def normal_equations(
    sums: Floats,
    rests: Floats,
    factors: Floats,
    strengths: Floats,
    bent: Floats,
    strength: float,
    matrix: Floats,
    matrix_low: Floats,
    right: Floats,
    right_low: Floats,
) -> None:
    """Fill in the matrix and the right side of what is solved where the sides are given.

    The matrix is ``diag(strengths) + strength * bent bent' + 2 sum_side factor * products``.
    """
    width = right.size
    for j in range(width):
        for k in range(j + 1):
            z, w = two_product(bent[j], bent[k])
            z, w = times_double(z, w, strength, 0.0)
            if j == k:
                z, w = add_double(z, w, strengths[j], 0.0)
            for side in range(2):
                u, v = sums[side, j, k], rests[side, j, k]
                u, v = times_double(u, v, 2.0 * factors[side], 0.0)
                z, w = add_double(z, w, u, v)
            matrix[j, k], matrix_low[j, k] = z, w
            matrix[k, j], matrix_low[k, j] = z, w
        z, w = 0.0, 0.0
        for side in range(2):
            u, v = sums[side, width, j], rests[side, width, j]
            u, v = times_double(u, v, 2.0 * factors[side], 0.0)
            z, w = add_double(z, w, u, v)
        right[j], right_low[j] = z, w


@kernel
def residual(
    matrix: Floats,
    matrix_low: Floats,
    right: Floats,
    right_low: Floats,
    theta: Floats,
    rest: Floats,
    out: Floats,
    sizes: Floats,
) -> None:
    """Fill in ``matrix theta - right``, rounded, and the sums of the magnitudes of its terms."""
    width = right.size
    high, low = -right, -right_low
    for k in range(width):  # rows are columns: the loop inside is vectorised
        a, b = theta[k], rest[k]
        line, line_low = matrix[k], matrix_low[k]
        for j in range(width):
            u, v = times_double(line[j], line_low[j], a, b)
            high[j], low[j] = add_double(high[j], low[j], u, v)
    for j in range(width):
        out[j] = high[j] + low[j]
        size = abs(right[j])
        for k in range(width):
            size += abs(matrix[j, k] * theta[k])
        sizes[j] = size

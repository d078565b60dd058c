"""Movements of centroids, in a metric that may have changed as well.

A metric whose weights change is a movement, too. With ``w`` now ``q w``, the difference of a
record's squared distances to ``a`` and ``b``, which is a product of ``a - b`` and ``2 x - a - b``,
changes by at most ``|(q - 1)(a - b)| (d1 + d2)`` in the old metric, by Cauchy and Schwarz; and the
sum of its distances grows by at most ``sqrt(max q)``. Dividing one by the other, the record stays
while ``d2 - d1 > |(q - 1)(a - b)| + max q (moved(a) + moved(b))``, however far away it is. So
``move(c)`` is ``max q moved(c) + |(q - 1)(c - m)|``, with ``m`` the mean of the centroids. The
rounding that a margin was charged with covers that of later metrics up to a factor of 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from erasable.core._jit import subroutine
from erasable.core.arrays import Floats

SHARE = 0.35
"""What the third nearest centroid's movement counts for, in bounds and in limits."""

MOST_GROWTH = 2.0
"""Of a metric, or of a chain of metrics: rounding was charged for no more."""

_TINY = 1e-250  # sums of squares below it may have lost something to underflow


class Moves(NamedTuple):
    """How far centroids have moved."""

    # (n_groups,); bounds up to which the records of every group are at risk; 0 everywhere means
    # nothing moved at all. Groups are pairs (own, nearest other), or own centroids alone.
    limits: Floats
    moves: Floats  # (k,); how far each centroid moved, in the metric of before
    turn: Floats  # (2, n_features); scratch space


@subroutine
def new_moves(k: int, n_features: int, pairs: bool) -> Moves:
    """Return room for movements of `k` centroids; `pairs`: whether groups are pairs of them."""
    return Moves(np.empty(k * k if pairs else k), np.empty(k), np.empty((2, n_features)))


@subroutine
def movement(
    now: Floats, then: Floats, weights_now: Floats, weights_then: Floats, pairs: bool, out: Moves
) -> float:
    """Write how far centroids moved from `then` to `now`; return the most by which distances grew.

    They grew with the metric, by a factor of at least 1; weights are empty for the Euclidean
    metric.
    """
    limits, moves, turn = out.limits, out.moves, out.turn
    k, d = now.shape
    weighted = weights_now.size > 0
    high = 1.0
    least = 0.0
    if weighted:
        turned = turn[0]
        middle = turn[1]
        middle[:] = 0.0
        for c in range(k):
            for f in range(d):
                middle[f] += then[c, f]
        for f in range(d):
            middle[f] /= k
            q = weights_now[f] / weights_then[f]
            high = max(high, q)
            r = abs(q - 1.0)
            if r > 0.0:
                # However small the change, distances that rounding alone tells apart may swap.
                r += 2.0**-51
                least = 1e-300
            turned[f] = r * np.sqrt(weights_then[f])
    largest = 0.0
    second = 0.0
    for c in range(k):
        a = now[c]
        b = then[c]
        if weighted:
            total, around = _weighted_move(a, b, weights_then, turned, middle)
            moved = np.sqrt(total) if total >= _TINY else _far_move(a, b, weights_then)
            moves[c] = (high * moved + np.sqrt(around)) * (1.0 + 1e-9) + least
            if high > MOST_GROWTH or not moves[c] >= 0.0:  # not: infinity times 0
                moves[c] = np.inf
        else:
            moves[c] = 0.0
            if not same_row(a, b):
                total = _plain_move(a, b)
                moved = np.sqrt(total) if total >= _TINY else _far_move(a, b, weights_then)
                moves[c] = moved * (1.0 + 1e-9)
        if moves[c] > largest:
            second = largest
            largest = moves[c]
        elif moves[c] > second:
            second = moves[c]
    for a in range(k):
        other = second if moves[a] == largest else largest
        if pairs:
            for b in range(k):
                limit = max(moves[a] + moves[b], SHARE * (moves[a] + other))
                limits[a * k + b] = limit * (1.0 + 1e-9)
        else:
            limits[a] = (moves[a] + other) * (1.0 + 1e-9)
    return float(np.sqrt(high) * (1.0 + 1e-12))


@subroutine
def same_row(a: Floats, b: Floats) -> bool:
    """Tell whether two rows are equal in every bit that matters."""
    f = 0
    d = a.shape[0]
    while f < d and a[f] == b[f]:
        f += 1
    same: bool = f == d
    return same


@subroutine
def _plain_move(a: Floats, b: Floats) -> float:
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    d = a.shape[0]
    for g in range(d // 4):
        f = 4 * g
        t0 = a[f] - b[f]
        t1 = a[f + 1] - b[f + 1]
        t2 = a[f + 2] - b[f + 2]
        t3 = a[f + 3] - b[f + 3]
        s0 += t0 * t0
        s1 += t1 * t1
        s2 += t2 * t2
        s3 += t3 * t3
    for f in range(d // 4 * 4, d):
        t0 = a[f] - b[f]
        s0 += t0 * t0
    return s0 + s1 + s2 + s3


@subroutine
def _far_move(a: Floats, b: Floats, weights: Floats) -> float:
    """At least the distance of two centroids, without squares; 0 only where they are equal."""
    total = 0.0
    for f in range(a.shape[0]):
        if a[f] != b[f]:
            step = abs(a[f] - b[f])
            total += step * np.sqrt(weights[f]) if weights.size > 0 else step
    return total


@subroutine
def _weighted_move(
    a: Floats, b: Floats, weights: Floats, turned: Floats, middle: Floats
) -> tuple[float, float]:
    """Squares of how far a centroid moved, and of what the turned metric makes of its place."""
    s0 = 0.0
    s1 = 0.0
    e0 = 0.0
    e1 = 0.0
    d = a.shape[0]
    for g in range(d // 2):
        f = 2 * g
        t0 = a[f] - b[f]
        t1 = a[f + 1] - b[f + 1]
        s0 += t0 * t0 * weights[f]
        s1 += t1 * t1 * weights[f + 1]
        t0 = b[f] - middle[f]
        t1 = b[f + 1] - middle[f + 1]
        t0 *= turned[f]
        t1 *= turned[f + 1]
        e0 += t0 * t0
        e1 += t1 * t1
    if d % 2 == 1:
        t0 = a[d - 1] - b[d - 1]
        s0 += t0 * t0 * weights[d - 1]
        t0 = (b[d - 1] - middle[d - 1]) * turned[d - 1]
        e0 += t0 * t0
    return s0 + s1, e0 + e1

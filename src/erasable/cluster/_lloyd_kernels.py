"""Kernels of one Lloyd run: whole passes, and centroids from sums."""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32

from ._distances import TILE, DistanceScratch, Points, measure, rank_nearest


@kernel
def assign_some(
    points: Points,
    picks: Ints,
    centers: Floats,
    weights: Floats,
    scratch: DistanceScratch,
    labels: Ints32,
    squared: Floats,
) -> None:
    """Write the nearest centroid of every pick, ties to the lower index, and its distance."""
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    for start in range(0, picks.shape[0], TILE):
        m = measure(points, picks, start, centers, weights, scratch)
        rank_nearest(scratch.distances, m, near, who)
        for r in range(m):
            labels[start + r] = who[0, r]
            squared[start + r] = near[0, r]


@subroutine
def shift_cluster(sums: Floats, counts: Ints, x: Floats, c: int, mass: float) -> None:
    """Add ``mass * x`` to cluster `c`; exact, because `x` lies on the grid."""
    counts[c] += np.int64(mass)
    to = sums[c]
    if mass == 1.0:
        for f in range(x.shape[0]):
            to[f] += x[f]
    elif mass == -1.0:
        for f in range(x.shape[0]):
            to[f] -= x[f]
    else:
        for f in range(x.shape[0]):
            to[f] += mass * x[f]


@subroutine
def next_centers(
    sums: Floats,
    counts: Ints,
    previous: Floats,
    floor_mass: float,
    step: float,
    phase: Floats,
    out: Floats,
) -> None:
    """Write the centroids of the next level: a fixed formula of exact sums.

    Clusters lighter than `floor_mass` are averaged with their previous centroid up to it (the
    gamma-balance of Ginart et al., Algorithm 4, with its missing denominator); an empty cluster
    keeps its centroid. `step` is that of the quantisation lattice, 0 for none; `phase` counts in
    steps.
    """
    k, d = sums.shape
    for c in range(k):
        m = float(counts[c])
        total = sums[c]
        before = previous[c]
        to = out[c]
        if m < floor_mass:
            rest = floor_mass - m
            for f in range(d):
                to[f] = (total[f] + rest * before[f]) / floor_mass
        elif m == 0.0:
            for f in range(d):
                to[f] = before[f]
        else:
            for f in range(d):
                to[f] = total[f] / m
        if step > 0.0:
            for f in range(d):
                to[f] = (np.rint(to[f] / step - phase[f]) + phase[f]) * step


@subroutine
def loss_of(squares: Floats, sums: Floats, counts: Ints, centers: Floats) -> float:
    """Return the k-means loss of a level from exact sums, in a fixed order of operations.

    ``sum_f squares_f + sum_c counts_c |c|^2 - 2 c . sums_c``, where `squares` is the sum of the
    squares of every feature.
    """
    k, d = sums.shape
    total = 0.0
    for f in range(d):
        part = squares[f]
        for c in range(k):
            x = centers[c, f]
            part += x * (float(counts[c]) * x - 2.0 * sums[c, f])
        total += part
    return total


@kernel
def add_to_nearest(
    points: Points,
    centers: Floats,
    weights: Floats,
    scratch: DistanceScratch,
    sums: Floats,
    counts: Ints,
) -> None:
    """Add every point to the sum and the count of its nearest centroid, ties to the lower index.

    Nothing is kept of the points.
    """
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    for start in range(0, points.rows.shape[0], TILE):
        m = measure(points, points.rows, start, centers, weights, scratch)
        rank_nearest(scratch.distances, m, near, who)
        for r in range(m):
            shift_cluster(sums, counts, points.X[points.rows[start + r]], who[0, r], 1.0)

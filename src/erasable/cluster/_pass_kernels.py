"""Kernels that Python calls for a level of a new run; see `_run.run_levels`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints, Ints32

from ._distances import TILE, DistanceScratch, Points, measure, rank_nearest
from ._following import assign, at_risk_of, pays_for
from ._layout import Levels, Rule
from ._levels import stop_at
from ._lloyd_kernels import next_centers, shift_cluster
from ._movement import MOST_GROWTH, Moves, movement, new_moves, same_row


@kernel
def begin_level(t: int, rule: Rule, levels: Levels) -> bool:
    """Write the centroids of level `t`; tell whether they are those of the level before."""
    next_centers(levels.sums[t - 1], levels.counts[t - 1], levels.centers[t - 1],
                 rule.floor_mass, rule.step, rule.phases[t], levels.centers[t])  # fmt: skip
    same = True
    for c in range(levels.centers.shape[1]):
        same = same and same_row(levels.centers[t, c], levels.centers[t - 1, c])
    return same


@kernel
def end_level(t: int, rule: Rule, weights: Floats, levels: Levels) -> int:
    """Return which level is the model, -1 where the run goes on."""
    return stop_at(t, rule, weights, levels)


@kernel
def movement_to(t: int, weights: Floats, pairs: bool, levels: Levels) -> tuple[Moves, float]:
    """Return how far centroids have moved since the level before, and what distances grew by."""
    k, d = levels.centers[t].shape
    moves = new_moves(k, d, pairs)
    stretch = movement(levels.centers[t], levels.centers[t - 1], weights, weights, pairs, moves)
    return moves, 1.0 if weights.size == 0 else stretch


@kernel
def count_at_risk(live: Ints, limits: Floats, bounds: NDArray[np.float32], groups: Ints32) -> int:
    """See `at_risk_of`."""
    return at_risk_of(live, limits, bounds, groups)


@kernel
def pays(at_risk: int, n: int, k: int, n_features: int, growth: float) -> bool:
    """Tell whether to examine those at risk alone, from one level to the next."""
    return growth <= MOST_GROWTH and pays_for(at_risk, n, k, n_features, 0.5)


@kernel
def assign_block(
    points: Points,
    live: Ints,
    weights: Floats,
    pairs: bool,
    limits: Floats,
    factor: float,
    was_labels: NDArray[np.uint16],
    source: int,
    t: int,
    levels: Levels,
    scratch: DistanceScratch,
) -> int:
    """Assign some positions, see `assign`; return how many were examined."""
    return assign(
        points, live, weights, pairs, limits, factor, was_labels, source, t, levels, scratch
    )[0]


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

"""Kernels of a Lloyd run whose records are seen once a level, and keep nothing."""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel
from erasable.core.arrays import Floats, Ints

from ._distances import TILE, Points, Room, measure, rank_nearest
from ._layout import Levels, Rule
from ._lloyd_kernels import loss_of, next_centers, shift_cluster
from ._movement import same_row


@kernel
def add_to_nearest(
    points: Points, centers: Floats, weights: Floats, room: Room, sums: Floats, counts: Ints
) -> None:
    """Add every point to the sum and the count of its nearest centroid, ties to the lower index."""
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    for start in range(0, points.rows.shape[0], TILE):
        m = measure(points, points.rows, start, centers, weights, room)
        rank_nearest(room.distances, m, near, who)
        for r in range(m):
            shift_cluster(sums, counts, points.X[points.rows[start + r]], who[0, r], 1.0)


@kernel
def begin_level(t: int, rule: Rule, levels: Levels) -> tuple[bool, bool]:
    """Write the centroids of level `t`.

    Returns
    -------
    kept, still : bool
        Whether they are what they were, and whether they are those of the level before.
    """
    k, d = levels.centers[t].shape
    fresh = np.empty((k, d))
    next_centers(
        levels.sums[t - 1], levels.counts[t - 1], levels.centers[t - 1],
        rule.floor_mass, rule.step, rule.phases[t], fresh,
    )  # fmt: skip
    kept = True
    still = True
    for c in range(k):
        kept = kept and same_row(fresh[c], levels.centers[t, c])
        still = still and same_row(fresh[c], levels.centers[t - 1, c])
        for f in range(d):
            levels.centers[t, c, f] = fresh[c, f]
    return kept, still


@kernel
def end_level(t: int, rule: Rule, weights: Floats, levels: Levels) -> int:
    """Return which level is the model by the sums of level `t`; -1 where the run goes on."""
    if rule.squares.size > 0:
        levels.losses[t] = loss_of(
            rule.squares, levels.sums[t], levels.counts[t], levels.centers[t]
        )
        if t > 0 and not levels.losses[t] < levels.losses[t - 1]:
            return t - 1
    if rule.shift >= 0.0 and t > 0:
        total = 0.0
        for c in range(levels.centers.shape[1]):
            for f in range(levels.centers.shape[2]):
                step = levels.centers[t, c, f] - levels.centers[t - 1, c, f]
                step = step * step
                total += step * weights[f] if weights.size > 0 else step
        if total <= rule.shift:
            return t
    return -1

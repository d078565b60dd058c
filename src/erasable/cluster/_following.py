"""Levels that are not filed: every record has a bound on the movement of the centroids of now.

So it is in a first fit, and for as long as filing would cost more than it saves. To bring such a
level to other centroids, all bounds are read in one pass; the records that are at risk (see
`_filing`) are examined, and the bounds of the others shrink by the movement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32

from ._distances import TILE, DistanceScratch, Points, load_tile, rank_nearest, tile_distances
from ._filing import rounded_down, tile_bounds
from ._layout import Levels
from ._lloyd_kernels import shift_cluster
from ._movement import MOST_GROWTH, Moves, movement, new_moves

_READ = 24  # cost of reading a bound, and of examining a record beside its `k * d` products
_RANK = 32

Bounds = NDArray[np.float32]
Labels = NDArray[np.uint16]


@subroutine
def at_risk_of(live: Ints, limits: Floats, bounds: Bounds, groups: Ints32) -> int:
    """Count the positions that centroids may have moved away from."""
    at_risk = 0
    for j in live:
        limit = limits[groups[j]]
        at_risk += 1 if (limit > 0.0) & (bounds[j] <= limit) else 0
    return at_risk


@subroutine
def pays_for(at_risk: int, n: int, k: int, n_features: int, most: float) -> bool:
    """Tell whether examining those at risk costs less than examining all n, in order.

    Where more than the share `most` is at risk, it does not: exact bounds are worth something.
    """
    each = k * n_features + _RANK
    if at_risk > most * n:
        return False
    pays: bool = 5 * at_risk * each + 4 * n * _READ < 4 * n * each
    return pays


@subroutine
def pays_to_follow(
    live: Ints,
    limits: Floats,
    bounds: Bounds,
    groups: Ints32,
    k: int,
    n_features: int,
    most: float,
) -> bool:
    """Count who is at risk, and tell whether that `pays_for` examining them alone."""
    at_risk = at_risk_of(live, limits, bounds, groups)
    return pays_for(at_risk, live.shape[0], k, n_features, most)


@subroutine
def assign(
    points: Points,
    live: Ints,
    weights: Floats,
    pairs: bool,
    limits: Floats,
    factor: float,
    was_labels: Labels,
    source: int,
    t: int,
    levels: Levels,
    scratch: DistanceScratch,
) -> tuple[int, int]:
    """Assign every live position at level `t`, given its assignment to former centroids nearby.

    `limits` are those of `movement`, or empty to examine every position; bounds are multiplied by
    `factor`. `was_labels` may be empty, or those of level `t`. `source`, which may be `t`, has the
    former bounds and groups. The sums and masses of level `t` must be the former ones, and are
    changed with the labels. Return how many positions were examined, and how many labels changed.
    """
    centers, sums, counts = levels.centers[t], levels.sums[t], levels.counts[t]
    labels, bounds, groups = levels.labels[t], levels.bounds[t], levels.links[t]
    was_bounds, was_groups = levels.bounds[source], levels.links[source]
    k = centers.shape[0]
    n = live.shape[0]
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    here = np.empty(TILE, np.float32)
    waiting = np.empty(TILE, np.int64)
    fresh = was_labels.size == 0
    if fresh:
        sums[:] = 0.0
        counts[:] = 0
    examined = 0
    flips = 0
    at = 0
    while at < n:
        m = 0
        if limits.size == 0:
            m = min(TILE, n - at)
            copy(live[at : at + m], waiting)
            at += m
        while at < n and m < TILE:
            # Without a branch: who is at risk is hard to predict, and is written to again.
            j = live[at]
            group = was_groups[j]
            bound = float(was_bounds[j])
            limit = limits[group]
            labels[j] = was_labels[j]
            groups[j] = group
            bounds[j] = rounded_down((bound - limit) * factor)
            waiting[m] = j
            m += 1 if (limit > 0.0) & (bound <= limit) else 0
            at += 1
        load_tile(points.X, points.rows, waiting, 0, m, scratch.tile)
        tile_distances(scratch.tile, m, centers, weights, scratch.distances)
        rank_nearest(scratch.distances, m, near, who)
        tile_bounds(near, m, points.X.shape[1], pairs, here)
        for r in range(m):
            j = waiting[r]
            a = who[0, r]
            bounds[j] = here[r]
            groups[j] = np.int32(a * k + who[1, r]) if pairs else np.int32(a)
            if fresh or a != was_labels[j]:
                w = points.mass[j] if points.mass.size > 0 else 1.0
                x = points.X[points.rows[j]]
                if not fresh:
                    shift_cluster(sums, counts, x, was_labels[j], -w)
                shift_cluster(sums, counts, x, a, w)
                flips += 1
            labels[j] = a
        examined += m
    return examined, flips


# -- for threads: see `_run.assign_in_threads` ----------------------------------------------------


@kernel
def movement_to(t: int, weights: Floats, pairs: bool, levels: Levels) -> tuple[Moves, float]:
    """Return how far centroids have moved since the level before, and what distances grew by."""
    k, d = levels.centers[t].shape
    moves = new_moves(k, d, pairs)
    stretch = movement(levels.centers[t], levels.centers[t - 1], weights, weights, pairs, moves)
    return moves, 1.0 if weights.size == 0 else stretch


@kernel
def count_at_risk(live: Ints, limits: Floats, bounds: Bounds, groups: Ints32) -> int:
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
    was_labels: Labels,
    source: int,
    t: int,
    levels: Levels,
    scratch: DistanceScratch,
) -> int:
    """Assign some positions, see `assign`; return how many were examined."""
    return assign(
        points, live, weights, pairs, limits, factor, was_labels, source, t, levels, scratch
    )[0]

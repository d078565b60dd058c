"""The levels of a run that are not filed: a deletion or an addition passes through all records.

Every record has a bound on the movement of the centroids of now. So it is in a first fit, and for
as long as filing would cost more than it saves; a first fit does not wait for the compilation of
`_filed_levels`. To bring a level to other centroids, all bounds are read in one pass; the records
that are at risk (see `_filing`) are examined, and the bounds of the others shrink by the movement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints, Ints32

from ._distances import (
    TILE,
    DistanceScratch,
    Points,
    load_tile,
    measure,
    rank_nearest,
    tile_distances,
)
from ._filing import rounded_down, tile_bounds
from ._layout import Levels, Rule
from ._lloyd import lloyd, shift_cluster
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


@subroutine
def take_out(t: int, points: Points, gone: Ints, levels: Levels) -> None:
    """Take deleted positions out of the sums of level `t`."""
    for g in gone:
        w = points.mass[g] if points.mass.size > 0 else 1.0
        shift_cluster(levels.sums[t], levels.counts[t], points.X[points.rows[g]],
                      levels.labels[t, g], -w)  # fmt: skip


@subroutine
def put_in(
    t: int,
    points: Points,
    come: Ints,
    centers: Floats,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    scratch: DistanceScratch,
) -> None:
    """Assign positions that have come, and add them to the sums of level `t`.

    They are assigned to the centroids, and in the metric, that the level was built with: then it
    is as if they had been there, and may be followed as any other.
    """
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    here = np.empty(TILE, np.float32)
    k, d = centers.shape
    for start in range(0, come.shape[0], TILE):
        m = measure(points, come, start, centers, weights, scratch)
        rank_nearest(scratch.distances, m, near, who)
        tile_bounds(near, m, d, pairs, here)
        for r in range(m):
            j = come[start + r]
            a = who[0, r]
            levels.bounds[t, j] = here[r]
            levels.links[t, j] = np.int32(a * k + who[1, r]) if pairs else np.int32(a)
            levels.labels[t, j] = a
            w = points.mass[j] if points.mass.size > 0 else 1.0
            shift_cluster(levels.sums[t], levels.counts[t], points.X[points.rows[j]], a, w)


@subroutine
def positions_of(alive: Flags, out: Ints) -> Ints:
    """Return the positions that are left, which `out` holds; its last is their number, or -1."""
    if out[-1] < 0:
        n_live = 0
        for j in range(alive.shape[0]):
            if alive[j]:
                out[n_live] = j
                n_live += 1
        out[-1] = n_live
    return out[: out[-1]]


@subroutine
def start_level(t: int, levels: Levels) -> None:
    """Give level `t` the sums and masses of the level before, if there is one."""
    if t > 0:
        copy(levels.sums[t - 1], levels.sums[t])
        copy(levels.counts[t - 1], levels.counts[t])


@subroutine
def _assign_level(
    t: int,
    new: bool,
    moved: bool,
    before: Floats,
    rule: Rule,
    weights: Floats,
    levels: Levels,
    points: Points,
    alive: Flags,
    live: Ints,
    gone: Ints,
    come: Ints,
    former: Floats,
    pairs: bool,
    scratch: DistanceScratch,
) -> tuple[int, int, int]:
    """Assign level `t` from what it was, or from the level before it; see `lloyd`.

    It was assigned in the metric `former`. Where following does not pay, as in a first level, all
    live positions are examined. `live` is scratch space for these, see `positions_of`.
    """
    if not new:
        take_out(t, points, gone, levels)
        put_in(t, points, come, before, former, pairs, levels, scratch)
    if not moved:
        return 0, 0, 0
    own = positions_of(alive, live)
    k, d = before.shape
    moves = new_moves(k, d, pairs)
    whole, source, then, metric = new and t == 0, t, before, former
    if new and t > 0:
        source, then, metric = t - 1, levels.centers[t - 1], weights
    limits, factor, previous = moves.limits, 1.0, levels.labels[source]
    if not whole:
        stretch = movement(levels.centers[t], then, weights, metric, pairs, moves)
        if weights.size == 0:
            stretch = 1.0
        levels.growth[t] = levels.growth[source] * stretch
        factor = (1.0 - 1e-12) / stretch
        # From level to level centroids move by far more than in a deletion, and bounds get loose.
        most = 0.5 if source < t else 1.0
        whole = levels.growth[t] > MOST_GROWTH or not pays_to_follow(
            own, limits, levels.bounds[source], levels.links[source], k, d, most
        )
    if whole or source < t:
        start_level(t, levels)
    if whole:
        limits, factor = limits[:0], 1.0
        previous = levels.labels[t - 1] if t > 0 else previous[:0]
        source = t
        levels.growth[t] = 1.0
    examined, flips = assign(
        points, own, weights, pairs, limits, factor, previous, source, t, levels, scratch
    )
    return examined, 0 if whole or new else flips, 1 if new else 0


_run_down = subroutine(lloyd(_assign_level))


@kernel
def descend(
    points: Points,
    alive: Flags,
    gone: Ints,
    come: Ints,
    built: int,
    rule: Rule,
    former: Floats,
    weights: Floats,
    turned: bool,
    pairs: bool,
    levels: Levels,
    scratch: DistanceScratch,
    start: int,
) -> tuple[int, int, int, int, int]:
    """Run Lloyd's algorithm (`lloyd`), following in whole passes the levels that are built.

    The positions `gone` are no longer alive, and `come` already are. `former` are the weights of
    the metric of the former run.
    """
    live = np.empty(alive.shape[0] + 1, np.int64)
    live[-1] = -1
    return _run_down(
        start, built, turned, rule, weights, levels,
        points, alive, live, gone, come, former, pairs, scratch,
    )  # fmt: skip


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

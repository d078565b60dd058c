"""The levels of a Lloyd run, and how a deletion or an addition passes through them.

Level 0 has the seeds for centroids; level ``t`` has the centroids that the sums of level
``t - 1`` give. Every level keeps its labels, and the exact sums and masses of its clusters.

Here levels are not filed: see `_filed_levels` for those that are. A first fit has no need of them,
and what compiles is what it waits for.
"""

from __future__ import annotations

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints

from ._distances import TILE, DistanceScratch, Points, measure, rank_nearest
from ._filing import tile_bounds
from ._following import assign, pays_to_follow
from ._layout import Levels, Rule
from ._lloyd_kernels import loss_of, next_centers, shift_cluster
from ._movement import MOST_GROWTH, movement, new_moves, same_row


@subroutine
def same(a: Floats, b: Floats) -> bool:
    """Tell whether two centroid tables are equal in every bit that matters."""
    equal = True
    for c in range(a.shape[0]):
        equal = equal and same_row(a[c], b[c])
    return equal


@subroutine
def update_centroids(t: int, moved: bool, rule: Rule, levels: Levels, fresh: Floats) -> bool:
    """Compute the centroids of level `t` from the sums of the level before; tell if they moved.

    They have if `moved` is set. `fresh` is overwritten; the centroids of level 0 are given.
    """
    if t > 0:
        next_centers(levels.sums[t - 1], levels.counts[t - 1], levels.centers[t - 1],
                     rule.floor_mass, rule.step, rule.phases[t], fresh)  # fmt: skip
        if moved or not same(fresh, levels.centers[t]):
            copy(fresh, levels.centers[t])
            return True
    return moved


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
def positions_of(alive: Flags) -> Ints:
    """Return the positions that are left, as `numpy.flatnonzero` does."""
    live = np.empty(alive.shape[0], np.int64)
    n_live = 0
    for j in range(alive.shape[0]):
        if alive[j]:
            live[n_live] = j
            n_live += 1
    return live[:n_live]


@subroutine
def stop_at(t: int, rule: Rule, weights: Floats, levels: Levels) -> int:
    """Return the level whose centroids are the model, if `rule` stops the run at `t`; or -1."""
    if rule.squares.size > 0:
        levels.losses[t] = loss_of(
            rule.squares, levels.sums[t], levels.counts[t], levels.centers[t]
        )
        if t > 0 and not levels.losses[t] < levels.losses[t - 1]:
            return t - 1
    if rule.shift >= 0.0 and t > 0:
        now, before = levels.centers[t], levels.centers[t - 1]
        total = 0.0
        for c in range(now.shape[0]):
            for f in range(now.shape[1]):
                step = now[c, f] - before[c, f]
                step = step * step
                total += step * weights[f] if weights.size > 0 else step
        if total <= rule.shift:
            return t
    return -1


@subroutine
def first_still(final: int, last: int, levels: Levels) -> int:
    """Return the first level whose centroids the next one repeats; `final` if none does."""
    for t in range(last):
        if same(levels.centers[t + 1], levels.centers[t]):
            return t
    return final


@subroutine
def start_level(t: int, levels: Levels) -> None:
    """Give level `t` the sums and masses of the level before, if there is one."""
    if t > 0:
        copy(levels.sums[t - 1], levels.sums[t])
        copy(levels.counts[t - 1], levels.counts[t])


@subroutine
def _assign_level(
    t: int,
    source: int,
    whole: bool,
    points: Points,
    live: Ints,
    before: Floats,
    former: Floats,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    scratch: DistanceScratch,
) -> tuple[int, int]:
    """Assign level `t` from what it was, or from the level before it (`source`).

    That was with the centroids `before` and the metric `former`. Where that does not pay, or with
    `whole`, all live positions are examined.
    """
    k, d = before.shape
    moves = new_moves(k, d, pairs)
    limits, factor, previous = moves.limits, 1.0, levels.labels[source]
    if not whole:
        stretch = movement(levels.centers[t], before, weights, former, pairs, moves)
        if weights.size == 0:
            stretch = 1.0
        levels.growth[t] = levels.growth[source] * stretch
        factor = (1.0 - 1e-12) / stretch
        # From level to level centroids move by far more than in a deletion, and bounds get loose.
        most = 0.5 if source < t else 1.0
        whole = levels.growth[t] > MOST_GROWTH or not pays_to_follow(
            live, limits, levels.bounds[source], levels.links[source], k, d, most
        )
    if whole or source < t:
        start_level(t, levels)
    if whole:
        limits, factor = limits[:0], 1.0
        previous = levels.labels[t - 1] if t > 0 else previous[:0]
        source = t
        levels.growth[t] = 1.0
    examined, flips = assign(
        points, live, weights, pairs, limits, factor, previous, source, t, levels, scratch
    )
    return examined, 0 if whole else flips


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
    """Run Lloyd's algorithm down the levels, following in whole passes those that are built.

    The positions `gone` are no longer alive, and `come` already are. `built` is the last level of
    the former run, -1 without one; `former` are the weights it had, and `turned` tells whether they
    differ. Levels before `start` are taken as they are. Return the last level built, the final one
    (-1 if the run needs more levels), and how many distances were examined, labels changed, and
    levels assigned anew.
    """
    n_levels = levels.centers.shape[0]
    fresh = np.empty_like(levels.centers[0])
    before = np.empty_like(fresh)
    live = np.empty(0, np.int64)
    examined, flips, passes = 0, 0, 0
    last, final = n_levels - 1, -1
    plain = rule.shift < 0.0 and rule.squares.size == 0
    for t in range(start, n_levels):
        new = t > built
        copy(levels.centers[t], before)
        moved = update_centroids(t, turned or new, rule, levels, fresh)
        if new and t > 0 and plain and same(fresh, levels.centers[t - 1]):
            # Nothing moves any more: the levels to come are all the one before.
            last = final = t - 1
            break
        if not new:
            take_out(t, points, gone, levels)
            put_in(t, points, come, before, former, pairs, levels, scratch)
        if moved:
            if live.size == 0:
                live = positions_of(alive)
            source, metric = t, former
            if new and t > 0:
                source, metric = t - 1, weights
                copy(levels.centers[t - 1], before)
            n_examined, flipped = _assign_level(
                t, source, new and t == 0, points, live, before, metric, weights, pairs,
                levels, scratch,
            )  # fmt: skip
            examined += n_examined
            passes += 1 if new else 0
            flips += 0 if new else flipped
        found = stop_at(t, rule, weights, levels)
        if found >= 0:
            last, final = t, found
            break
    if plain:
        final = first_still(final, last, levels)
    return last, final, examined, flips, passes

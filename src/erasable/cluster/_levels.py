"""Lloyd's iteration, and the levels of a run that are not filed.

Level 0 has the seeds for centroids; level ``t`` has the centroids that the sums of level
``t - 1`` give. Every level keeps the exact sums and masses of its clusters, and the labels of
records in memory.

`lloyd` processes the levels; a function that it is given assigns the records of one: those here,
of `_filed_levels`, in threads (`_run`), or block by block (`_stored`).

For filed levels see `_filed_levels`. A first fit does not need them, and does not wait for their
compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


@kernel
def begin_level(
    t: int, moved: bool, rule: Rule, levels: Levels, before: Floats
) -> tuple[bool, bool]:
    """Write the centroids of level `t`, and what they were into `before`; those of level 0 stay.

    Return whether they moved, which is True if `moved` is, and whether the level before has them.
    """
    now = levels.centers[t]
    copy(now, before)
    if t == 0:
        return moved, False
    next_centers(levels.sums[t - 1], levels.counts[t - 1], levels.centers[t - 1],
                 rule.floor_mass, rule.step, rule.phases[t], now)  # fmt: skip
    return moved or not same(now, before), same(now, levels.centers[t - 1])


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


@kernel
def end_level(t: int, rule: Rule, weights: Floats, levels: Levels) -> int:
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


@kernel
def first_still(final: int, last: int, levels: Levels) -> int:
    """Return the first level whose centroids the next one repeats; `final` if none does."""
    for t in range(last):
        if same(levels.centers[t + 1], levels.centers[t]):
            return t
    return final


def lloyd(
    assign_level: Callable[..., tuple[int, int, int]],
) -> Callable[..., tuple[int, int, int, int, int]]:
    """Return Lloyd's algorithm, given a function that assigns the records of a level.

    A subroutine is made of it for kernels; functions that assign in several threads or blocks call
    kernels themselves, and it runs in Python. (numba does not cache kernels that pass functions.)

    ``assign_level(t, new, moved, before, rule, weights, levels, *work)`` brings the sums of level
    `t` up to date with its centroids, which were `before`, and returns how many distances were
    examined, labels changed, and levels assigned anew.
    """

    def run_down(
        start: int,
        built: int,
        turned: bool,
        rule: Rule,
        weights: Floats,
        levels: Levels,
        *work: Any,
    ) -> tuple[int, int, int, int, int]:
        """Process the levels from `start` on.

        `built` is the last level of the former run, -1 without one; `turned` tells whether its
        metric was another. Return the last level built, the final one (-1 if the run needs more
        levels), and the totals of `assign_level`.
        """
        n_levels = levels.centers.shape[0]
        before = np.empty_like(levels.centers[0])
        examined, flips, passes = 0, 0, 0
        last, final = n_levels - 1, -1
        plain = rule.shift < 0.0 and rule.squares.size == 0
        for t in range(start, n_levels):
            new = t > built
            moved, still = begin_level(t, turned or new, rule, levels, before)
            if new and plain and still:
                # Nothing moves any more: the levels to come are all the one before.
                last = final = t - 1
                break
            counts = assign_level(t, new, moved, before, rule, weights, levels, *work)
            examined += counts[0]
            flips += counts[1]
            passes += counts[2]
            found = end_level(t, rule, weights, levels)
            if found >= 0:
                last, final = t, found
                break
        if plain:
            final = first_still(final, last, levels)
        return last, final, examined, flips, passes

    return run_down


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

"""Lloyd's iteration: centroids from sums, and the levels one after the other.

Level 0 has the seeds for centroids; level ``t`` has the centroids that the sums of level
``t - 1`` give. Every level keeps the exact sums and masses of its clusters, and the labels of
records in memory. `lloyd` processes the levels, given a function that assigns the records of one:
see `_levels`, `_filed_levels`, `_run` (in threads) and `_stored` (block by block).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32

from ._distances import TILE, DistanceScratch, Points, measure, rank_nearest
from ._layout import Levels, Rule
from ._movement import same_row


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


# -- records of which nothing is kept --------------------------------------------------------------


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

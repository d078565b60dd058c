"""The levels of a new run, each of them assigned in threads, by blocks of positions.

What it leaves behind is what `descend` does where nothing is built: sums are exact, so that those
of blocks may be added in any order, and a label is a function of its record and the centroids.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints
from erasable.core.threads import over_rows

from . import _pass_kernels as kernels
from ._distances import Points, new_room
from ._layout import Levels, Rule

_NO_LIMITS = np.empty(0)


def run_levels(
    points: Points,
    live: Ints,
    rule: Rule,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    start: int,
    n_jobs: int | None,
) -> tuple[int, int, int, int, int]:
    """Run Lloyd's algorithm from level `start` on, in threads; see `descend`."""
    n_levels = levels.centers.shape[0]
    plain = rule.shift < 0.0 and rule.squares.size == 0
    examined = 0
    for t in range(start, n_levels):
        if t > 0 and kernels.begin_level(t, rule, levels) and plain:
            return t - 1, t - 1, examined, 0, t - start
        examined += _assign(t, points, live, weights, pairs, levels, n_jobs)
        final = kernels.end_level(t, rule, weights, levels)
        if final >= 0:
            return t, final, examined, 0, t + 1 - start
    return n_levels - 1, -1, examined, 0, n_levels - start


def _assign(
    t: int,
    points: Points,
    live: Ints,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    n_jobs: int | None,
) -> int:
    """Assign every live position at level `t`; return how many distances were computed."""
    n, source = live.shape[0], max(t - 1, 0)
    limits, factor = _NO_LIMITS, 1.0
    before: NDArray[np.uint16] = levels.labels[source][: 0 if t == 0 else None]
    if t > 0:
        moves, stretch = kernels.movement_to(t, weights, pairs, levels)

        def at_risk(rows: slice) -> int:
            return kernels.count_at_risk(
                live[rows], moves.limits, levels.bounds[source], levels.links[source]
            )

        growth = levels.growth[source] * stretch
        k, d = levels.centers.shape[1:]
        if kernels.pays(sum(over_rows(at_risk, n, n_jobs)), n, k, d, growth):
            limits, factor = moves.limits, (1.0 - 1e-12) / stretch
        levels.growth[t] = growth if limits.size else 1.0

    def assign(rows: slice) -> tuple[Floats, Ints, int]:
        k, d = levels.centers.shape[1:]
        sums, counts = np.zeros((t + 1, k, d)), np.zeros((t + 1, k), np.int64)
        own = levels._replace(sums=sums, counts=counts)
        examined = kernels.assign_block(
            points, live[rows], weights, pairs, limits, factor, before, source, t, own,
            new_room(d, k),
        )  # fmt: skip
        return sums[t], counts[t], examined

    levels.sums[t] = levels.sums[source] if t > 0 else 0.0
    levels.counts[t] = levels.counts[source] if t > 0 else 0
    examined = 0
    for sums, counts, seen in over_rows(assign, n, n_jobs):
        levels.sums[t] += sums
        levels.counts[t] += counts
        examined += seen
    return examined

"""The levels of a Lloyd run, and how a deletion passes through them.

Level 0 has the seeds for centroids; level ``t`` has the centroids that the sums of level
``t - 1`` give. Every level keeps its labels, and the exact sums and masses of its clusters.
"""

from __future__ import annotations

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints

from ._distances import Points, Room
from ._filing import file_level
from ._following import assign, pays_to_follow
from ._layout import FREE, Files, Levels, Rule
from ._lloyd_kernels import loss_of, next_centers, reexamine, shift_cluster
from ._movement import MOST_GROWTH, movement, new_moves, same_row


@subroutine
def _same(a: Floats, b: Floats) -> bool:
    """Tell whether two centroid tables are equal in every bit that matters."""
    equal = True
    for c in range(a.shape[0]):
        equal = equal and same_row(a[c], b[c])
    return equal


@subroutine
def _pass(
    t: int, points: Points, live: Ints, weights: Floats, pairs: bool, levels: Levels, room: Room
) -> None:
    """Assign every live position at level `t`."""
    previous = levels.labels[t][:0]
    if t > 0:
        previous = levels.labels[t - 1]
        copy(levels.sums[t - 1], levels.sums[t])
        copy(levels.counts[t - 1], levels.counts[t])
    assign(points, live, weights, pairs, np.empty(0), 1.0, previous, t, t, levels, room)
    levels.growth[t] = 1.0


@subroutine
def _follow(
    t: int,
    source: int,
    points: Points,
    live: Ints,
    before: Floats,
    former: Floats,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    room: Room,
) -> tuple[int, int]:
    """Assign level `t` from what it was, or from the level before it (`source`).

    That was with the centroids `before` and the metric `former`.
    """
    k, d = before.shape
    if source < t:
        copy(levels.sums[source], levels.sums[t])
        copy(levels.counts[source], levels.counts[t])
    moves = new_moves(k, d, pairs)
    stretch = movement(levels.centers[t], before, weights, former, pairs, moves)
    if weights.size == 0:
        stretch = 1.0
    levels.growth[t] = levels.growth[source] * stretch
    # From level to level centroids move by far more than in a deletion, and bounds get loose.
    most = 0.5 if source < t else 1.0
    if levels.growth[t] > MOST_GROWTH or not pays_to_follow(
        live, moves.limits, levels.bounds[source], levels.links[source], k, d, most
    ):
        _pass(t, points, live, weights, pairs, levels, room)
        return live.shape[0], 0
    return assign(
        points, live, weights, pairs, moves.limits, (1.0 - 1e-12) / stretch,
        levels.labels[source], source, t, levels, room,
    )  # fmt: skip


@subroutine
def _file(t: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: Files) -> None:
    """File every live position of level `t` under the centroids of now."""
    files.stamps[t] = FREE
    files.snapshots[t] = 0.0
    files.stamps[t, 0] = clock
    files.growth[t, 0] = levels.growth[t]
    copy(levels.centers[t], files.snapshots[t, 0])
    copy(weights, files.weights[t, 0])
    file_level(t, live, levels, files)


@kernel
def file_all(
    built: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: Files
) -> None:
    """File every level that may change.

    The labels of level 0 change with the metric alone, for its centroids are the seeds.
    """
    for t in range(0 if weights.size > 0 else 1, built + 1):
        _file(t, live, clock, weights, levels, files)


@subroutine
def _continue(t: int, levels: Levels, files: Files) -> None:
    """Begin level `t` as the level before it, from which it will differ in few records."""
    copy(levels.sums[t - 1], levels.sums[t])
    copy(levels.counts[t - 1], levels.counts[t])
    copy(levels.labels[t - 1], levels.labels[t])
    copy(levels.bounds[t - 1], levels.bounds[t])
    copy(levels.links[t - 1], levels.links[t])
    levels.tops[t] = levels.tops[t - 1]
    copy(files.head[t - 1], files.head[t])
    copy(files.lowest[t - 1], files.lowest[t])
    copy(files.stamps[t - 1], files.stamps[t])
    copy(files.growth[t - 1], files.growth[t])
    copy(files.snapshots[t - 1], files.snapshots[t])
    copy(files.weights[t - 1], files.weights[t])


@kernel
def descend(
    points: Points,
    alive: Flags,
    gone: Ints,
    n_alive: int,
    clock: int,
    built: int,
    rule: Rule,
    former: Floats,
    weights: Floats,
    turned: bool,
    pairs: bool,
    filed: bool,
    levels: Levels,
    files: Files,
    picks: Ints,
    room: Room,
    start: int,
) -> tuple[int, int, int, int, int]:
    """Run Lloyd's algorithm down the levels, reusing those that are built.

    Parameters
    ----------
    alive : ndarray of shape (n_positions,), bool
        Which positions are left.
    gone : ndarray of int64
        Positions deleted since the levels were built; already not alive.
    built : int
        The last level that holds a run of the records before; -1 when none does.
    former, turned : ndarray of shape (n_features,) or empty, and bool
        Weights when the levels were built, and whether `weights` are others.
    filed : bool
        Whether `files` are in use; without them, levels are followed in whole passes.
    picks : ndarray of shape (n_positions,), int64
        Scratch space.
    start : int
        The level to begin with; those before are taken as they are.

    Returns
    -------
    built, final : int
        The last level built now, and the one whose centroids are the model; `final` is -1 where
        the run would go on if there was room for more levels.
    examined, flips, passes : int
        Distances re-examined, labels that changed, and levels assigned anew.
    """
    n_levels = levels.centers.shape[0]
    k = levels.centers.shape[1]
    fresh = np.empty_like(levels.centers[0])
    before = np.empty_like(fresh)
    live = np.empty(0, np.int64)
    examined = 0
    flips = 0
    passes = 0
    last = n_levels - 1
    final = -1
    plain = rule.shift < 0.0 and rule.squares.size == 0
    for t in range(start, n_levels):
        moved = turned or t > built
        copy(levels.centers[t], before)
        if t > 0:
            next_centers(levels.sums[t - 1], levels.counts[t - 1], levels.centers[t - 1],
                         rule.floor_mass, rule.step, rule.phases[t], fresh)  # fmt: skip
            if moved or not _same(fresh, levels.centers[t]):
                moved = True
                copy(fresh, levels.centers[t])
        if t > built and t > 0 and plain and _same(fresh, levels.centers[t - 1]):
            # Nothing moves any more: the levels to come are all the one before.
            last = t - 1
            final = t - 1
            break
        # Level 0 of a metric that never changes is not filed, and cannot be continued.
        cloned = t > built and filed and plain and (t > 1 or weights.size > 0)
        if cloned:
            _continue(t, levels, files)
        if t <= built:
            for g in gone:
                w = points.mass[g] if points.mass.size > 0 else 1.0
                shift_cluster(levels.sums[t], levels.counts[t], points.X[points.rows[g]],
                              levels.labels[t, g], -w)  # fmt: skip
        anew = t > built and not cloned and (filed or t == 0)
        if filed and not anew and moved:
            seen, flipped = reexamine(
                t, points, alive, n_alive, clock, weights, pairs, levels, files, picks, room
            )
            if seen < 0:
                anew = True
            else:
                examined += seen
                flips += flipped
        if live.size == 0 and (anew or (moved and not filed)):
            live = np.flatnonzero(alive)
        if not filed and not anew and t > built:
            seen, _ = _follow(t, t - 1, points, live, levels.centers[t - 1], weights, weights,
                              pairs, levels, room)  # fmt: skip
            examined += seen
            passes += 1
        elif not filed and not anew and moved:
            seen, flipped = _follow(
                t, t, points, live, before, former, weights, pairs, levels, room
            )
            examined += seen
            flips += flipped
        if anew:
            _pass(t, points, live, weights, pairs, levels, room)
            passes += 1
            examined += live.size
            if filed and (t > 0 or weights.size > 0):
                _file(t, live, clock, weights, levels, files)
        if rule.squares.size > 0:
            levels.losses[t] = loss_of(
                rule.squares, levels.sums[t], levels.counts[t], levels.centers[t]
            )
            if t > 0 and not levels.losses[t] < levels.losses[t - 1]:
                last = t
                final = t - 1
                break
        if rule.shift >= 0.0 and t > 0:
            total = 0.0
            for c in range(k):
                for f in range(fresh.shape[1]):
                    step = levels.centers[t, c, f] - levels.centers[t - 1, c, f]
                    step = step * step
                    total += step * weights[f] if weights.size > 0 else step
            if total <= rule.shift:
                last = t
                final = t
                break
    if plain:
        for t in range(last):
            if _same(levels.centers[t + 1], levels.centers[t]):
                final = t
                break
    return last, final, examined, flips, passes

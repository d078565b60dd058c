"""The levels of a Lloyd run, and how a deletion passes through them.

Level 0 has the seeds for centroids; level ``t`` has the centroids that the sums of level
``t - 1`` give. Every level keeps its labels, and the exact sums and masses of its clusters.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core._copying import copy
from erasable.core._jit import kernel

from ._filing import BINS, FREE, file_level
from ._following import assign, pays_to_follow
from ._lloyd_kernels import loss_of, next_centers, reexamine, shift_cluster
from ._movement import MOST_GROWTH, movement, same_row

__all__ = [
    "Files",
    "Levels",
    "Problem",
    "Rule",
    "descend",
    "file_all",
    "grown",
    "new_files",
    "new_levels",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Problem(NamedTuple):
    """Whom the run is about: see `Population`; `alive` tells which positions are left."""

    X: Floats
    rows: Ints
    mass: Floats
    alive: NDArray[np.bool_]


class Rule(NamedTuple):
    """How centroids follow from sums, and when the run stops.

    Attributes
    ----------
    floor_mass, step, phases
        See `next_centers`; one row of `phases` per level.
    shift : float
        Stop when the squared movement of all centroids is at most this; negative: never.
    squares : ndarray of shape (n_features,), or empty
        Sums of squares; where given, stop as soon as the loss does not fall.
    """

    floor_mass: float
    step: float
    phases: Floats
    shift: float
    squares: Floats


class Levels(NamedTuple):
    """The run itself, in the first five. The first axis is the level.

    Where a level is not filed, `bounds`, `links` and `growth` are what a record can bear, its
    group, and what the metric has grown by since: see `_following`. Where it is, see `_filing`.
    """

    centers: Floats
    sums: Floats
    counts: Ints
    losses: Floats
    labels: NDArray[np.uint16]
    bounds: NDArray[np.float32]
    links: NDArray[np.int32]
    growth: Floats
    tops: Ints


class Files(NamedTuple):
    """Records filed by the movement they can bear: see `_filing`. The first axis is the level."""

    head: NDArray[np.int32]
    lowest: NDArray[np.int16]
    stamps: Ints
    growth: Floats
    snapshots: Floats
    weights: Floats


Table = TypeVar("Table", Levels, Files)


def new_levels(n_levels: int, n: int, k: int, d: int) -> Levels:
    """Return levels with room for `n` positions; nothing is touched before it is used."""
    small = np.uint8 if k <= 256 else np.uint16 if k <= 65_536 else np.uint32
    return Levels(
        centers=np.zeros((n_levels, k, d)),
        sums=np.zeros((n_levels, k, d)),
        counts=np.zeros((n_levels, k), np.int64),
        losses=np.zeros(n_levels),
        labels=np.zeros((n_levels, n), small),
        bounds=np.zeros((n_levels, n), np.float32),
        links=np.zeros((n_levels, n), np.int32),
        growth=np.ones(n_levels),
        tops=np.zeros(n_levels, np.int64),
    )


def grown(before: Table, n_levels: int) -> Table:
    """Return levels or files with room for more levels; what is there is copied."""
    arrays = []
    old: NDArray[Any]
    for old in before:
        new = np.zeros((n_levels, *old.shape[1:]), old.dtype)
        new[: old.shape[0]] = old
        arrays.append(new)
    return type(before)(*arrays)


def new_files(n_levels: int, n: int, k: int, d: int, n_weights: int, pairs: bool) -> Files:
    """Return empty files.

    The number of snapshots is such that they and the heads of the lists stay small against the
    records: at least 3, and at most 16, or 8 where the metric may change and all have to be
    compared with it at every deletion.
    """
    groups = k * k if pairs else k
    slots = max(3, min(8 if n_weights else 16, 4 * n // (groups * BINS), n // (16 * k)))
    return Files(
        head=np.full((n_levels, slots, groups, BINS), -1, np.int32),
        lowest=np.full((n_levels, slots, groups), BINS, np.int16),
        stamps=np.full((n_levels, slots), FREE, np.int64),
        growth=np.ones((n_levels, slots)),
        snapshots=np.zeros((n_levels, slots, k, d)),
        weights=np.zeros((n_levels, slots, n_weights)),
    )


@kernel
def _same(a: Floats, b: Floats) -> bool:
    """Tell whether two centroid tables are equal in every bit that matters."""
    equal = True
    for c in range(a.shape[0]):
        equal = equal and same_row(a[c], b[c])
    return equal


@kernel
def _pass(
    t: int,
    problem: Problem,
    live: Ints,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    tile: Floats,
    scratch: Floats,
) -> None:
    """Assign every live position at level `t`."""
    previous = levels.labels[t][:0]
    if t > 0:
        previous = levels.labels[t - 1]
        copy(levels.sums[t - 1], levels.sums[t])
        copy(levels.counts[t - 1], levels.counts[t])
    assign(
        problem.X, problem.rows, live, problem.mass, levels.centers[t], weights, pairs,
        np.empty(0), 1.0, previous, levels.bounds[t], levels.links[t], levels.labels[t],
        levels.bounds[t], levels.links[t], levels.sums[t], levels.counts[t], tile, scratch,
    )  # fmt: skip
    levels.growth[t] = 1.0


@kernel
def _follow(
    t: int,
    source: int,
    problem: Problem,
    live: Ints,
    before: Floats,
    former: Floats,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    tile: Floats,
    scratch: Floats,
) -> tuple[int, int]:
    """Assign level `t` from what it was, or from the level before it (`source`).

    That was with the centroids `before` and the metric `former`.
    """
    k, d = before.shape
    if source < t:
        copy(levels.sums[source], levels.sums[t])
        copy(levels.counts[source], levels.counts[t])
    limits = np.empty(k * k if pairs else k)
    stretch = movement(
        levels.centers[t], before, weights, former, pairs, limits, np.empty(k), np.empty((2, d))
    )
    if weights.size == 0:
        stretch = 1.0
    levels.growth[t] = levels.growth[source] * stretch
    # From level to level centroids move by far more than in a deletion, and bounds get loose.
    most = 0.5 if source < t else 1.0
    if levels.growth[t] > MOST_GROWTH or not pays_to_follow(
        live, limits, levels.bounds[source], levels.links[source], k, d, most
    ):
        _pass(t, problem, live, weights, pairs, levels, tile, scratch)
        return live.shape[0], 0
    return assign(
        problem.X, problem.rows, live, problem.mass, levels.centers[t], weights, pairs, limits,
        (1.0 - 1e-12) / stretch, levels.labels[source], levels.bounds[source],
        levels.links[source], levels.labels[t], levels.bounds[t], levels.links[t],
        levels.sums[t], levels.counts[t], tile, scratch,
    )  # fmt: skip


@kernel
def _file(t: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: Files) -> None:
    """File every live position of level `t` under the centroids of now."""
    files.stamps[t] = FREE
    files.snapshots[t] = 0.0
    files.stamps[t, 0] = clock
    files.growth[t, 0] = levels.growth[t]
    copy(levels.centers[t], files.snapshots[t, 0])
    copy(weights, files.weights[t, 0])
    levels.tops[t] = file_level(live, levels.bounds[t], levels.links[t], files.head[t],
                                files.lowest[t])  # fmt: skip


@kernel
def file_all(
    built: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: Files
) -> None:
    """File every level that may change.

    The labels of level 0 change with the metric alone, for its centroids are the seeds.
    """
    for t in range(0 if weights.size > 0 else 1, built + 1):
        _file(t, live, clock, weights, levels, files)


@kernel
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
    problem: Problem,
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
    tile: Floats,
    scratch: Floats,
    start: int,
) -> tuple[int, int, int, int, int]:
    """Run Lloyd's algorithm down the levels, reusing those that are built.

    Parameters
    ----------
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
                w = problem.mass[g] if problem.mass.size > 0 else 1.0
                shift_cluster(levels.sums[t], levels.counts[t], problem.X[problem.rows[g]],
                              levels.labels[t, g], -w)  # fmt: skip
        anew = t > built and not cloned and (filed or t == 0)
        if filed and not anew and moved:
            seen, flipped = reexamine(
                problem.X, problem.rows, problem.mass, problem.alive, n_alive, clock,
                levels.centers[t], weights, pairs, levels.labels[t], levels.sums[t],
                levels.counts[t], levels.bounds[t], levels.links[t], files.head[t],
                files.lowest[t], files.stamps[t], files.growth[t], files.snapshots[t],
                files.weights[t], levels.tops[t], picks, tile, scratch,
            )  # fmt: skip
            if seen < 0:
                anew = True
            else:
                examined += seen
                flips += flipped
        if live.size == 0 and (anew or (moved and not filed)):
            live = np.flatnonzero(problem.alive)
        if not filed and not anew and t > built:
            seen, _ = _follow(t, t - 1, problem, live, levels.centers[t - 1], weights, weights,
                              pairs, levels, tile, scratch)  # fmt: skip
            examined += seen
            passes += 1
        elif not filed and not anew and moved:
            seen, flipped = _follow(t, t, problem, live, before, former, weights, pairs, levels,
                                    tile, scratch)  # fmt: skip
            examined += seen
            flips += flipped
        if anew:
            _pass(t, problem, live, weights, pairs, levels, tile, scratch)
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

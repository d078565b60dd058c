"""The levels of a Lloyd run, and how a deletion passes through them.

Level 0 has the seeds for centroids; level ``t`` has the centroids that the sums of level
``t - 1`` give. Every level keeps its labels, and the exact sums and masses of its clusters.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel

from ._filing import BINS, FREE
from ._lloyd_kernels import (
    assign_all,
    file_level,
    loss_of,
    next_centers,
    reexamine,
    shift_cluster,
)

__all__ = [
    "Files",
    "Levels",
    "Problem",
    "Rule",
    "descend",
    "file_all",
    "grown",
    "hide",
    "new_files",
    "new_levels",
]

_NOWHERE = 1e150  # a centroid so far that everything filed under it is at risk

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
    """The run itself. The first axis is the level; `bounds` and `links` serve the files."""

    centers: Floats
    sums: Floats
    counts: Ints
    losses: Floats
    labels: NDArray[np.uint16]
    bounds: NDArray[np.float32]
    links: NDArray[np.int32]
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
def hide(records: Floats, files: Files) -> None:
    """Overwrite snapshots that hold one of `records` itself, as the centroid of a lone record.

    Whatever is filed under them counts as at risk from then on.
    """
    for x in records:
        for t in range(files.stamps.shape[0]):
            for slot in range(files.stamps.shape[1]):
                for center in files.snapshots[t, slot]:
                    same = True
                    for f in range(x.shape[0]):
                        if center[f] != x[f]:
                            same = False
                            break
                    if same:
                        center[:] = _NOWHERE


@kernel
def _same(a: Floats, b: Floats) -> bool:
    """Tell whether two centroid tables are equal in every bit that matters."""
    for c in range(a.shape[0]):
        for f in range(a.shape[1]):
            if a[c, f] != b[c, f]:
                return False
    return True


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
        levels.sums[t] = levels.sums[t - 1]
        levels.counts[t] = levels.counts[t - 1]
    widest = assign_all(
        problem.X, problem.rows, live, problem.mass, levels.centers[t], weights, pairs,
        previous, levels.labels[t], levels.bounds[t], levels.links[t], levels.sums[t],
        levels.counts[t], tile, scratch,
    )  # fmt: skip
    levels.tops[t] = np.int64(np.float32(widest).view(np.int32)) >> 21


@kernel
def _file(t: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: Files) -> None:
    """File every live position of level `t` under the centroids of now."""
    files.stamps[t] = FREE
    files.stamps[t, 0] = clock
    files.growth[t] = 1.0
    files.snapshots[t, 0] = levels.centers[t]
    files.weights[t, 0] = weights
    file_level(live, levels.tops[t], levels.bounds[t], levels.links[t], files.head[t],
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
    levels.sums[t] = levels.sums[t - 1]
    levels.counts[t] = levels.counts[t - 1]
    levels.labels[t] = levels.labels[t - 1]
    levels.bounds[t] = levels.bounds[t - 1]
    levels.links[t] = levels.links[t - 1]
    levels.tops[t] = levels.tops[t - 1]
    files.head[t] = files.head[t - 1]
    files.lowest[t] = files.lowest[t - 1]
    files.stamps[t] = files.stamps[t - 1]
    files.growth[t] = files.growth[t - 1]
    files.snapshots[t] = files.snapshots[t - 1]
    files.weights[t] = files.weights[t - 1]


@kernel
def descend(
    problem: Problem,
    gone: Ints,
    n_alive: int,
    clock: int,
    built: int,
    rule: Rule,
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
    turned : bool
        Whether `weights` are others than when the levels were built.
    filed : bool
        Whether `files` are in use; a first fit leaves them alone.
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
    live = np.empty(0, np.int64)
    examined = 0
    flips = 0
    passes = 0
    last = n_levels - 1
    final = -1
    plain = rule.shift < 0.0 and rule.squares.size == 0
    for t in range(start, n_levels):
        moved = turned
        if t > 0:
            next_centers(levels.sums[t - 1], levels.counts[t - 1], levels.centers[t - 1],
                         rule.floor_mass, rule.step, rule.phases[t], fresh)  # fmt: skip
            if t > built or not _same(fresh, levels.centers[t]):
                moved = True
                levels.centers[t] = fresh
        if t > built and t > 0 and plain and _same(fresh, levels.centers[t - 1]):
            # Nothing moves any more: the levels to come are all the one before.
            last = t - 1
            final = t - 1
            break
        # Level 0 of a metric that never changes is not filed, and cannot be continued.
        cloned = t > built and filed and plain and (t > 1 or weights.size > 0)
        if cloned:
            _continue(t, levels, files)
        anew = t > built and not cloned
        if not anew:
            if not cloned:
                for g in gone:
                    w = problem.mass[g] if problem.mass.size > 0 else 1.0
                    shift_cluster(levels.sums[t], levels.counts[t], problem.X[problem.rows[g]],
                                  levels.labels[t, g], -w)  # fmt: skip
            if moved:
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
        if anew:
            if live.size == 0:
                live = np.flatnonzero(problem.alive)
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

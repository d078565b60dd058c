"""Kernels of one Lloyd run: whole passes, centroids from sums, and what a deletion changes."""

from __future__ import annotations

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints, Ints32

from ._distances import TILE, Points, Room, measure, rank_nearest
from ._filing import file_record, free_slot, lists_of, take_at_risk, tile_bounds
from ._layout import FREE, Files, Levels
from ._movement import movement, new_moves


@kernel
def assign_some(
    points: Points,
    picks: Ints,
    centers: Floats,
    weights: Floats,
    room: Room,
    labels: Ints32,
    squared: Floats,
) -> None:
    """Write the nearest centroid of every pick, ties to the lower index, and its distance."""
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    for start in range(0, picks.shape[0], TILE):
        m = measure(points, picks, start, centers, weights, room)
        rank_nearest(room.distances, m, near, who)
        for r in range(m):
            labels[start + r] = who[0, r]
            squared[start + r] = near[0, r]


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

    Parameters
    ----------
    floor_mass : float
        Clusters lighter than this are averaged with their previous centroid up to it (the
        gamma-balance of Ginart et al., Algorithm 4, with its missing denominator); 0 switches
        it off. An empty cluster keeps its centroid.
    step : float
        Step of the quantisation lattice, 0 for none.
    phase : ndarray of shape (n_features,)
        Phase of the lattice, in steps.
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
def reexamine(
    t: int,
    points: Points,
    alive: Flags,
    n_alive: int,
    clock: int,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    files: Files,
    picks: Ints,
    room: Room,
) -> tuple[int, int]:
    """Bring the labels and sums of level `t` up to date with centroids that moved.

    Returns
    -------
    examined, flips : int
        Records whose distances were computed, and how many changed their cluster. ``examined``
        is -1 when so many are at risk that a whole pass is cheaper; the level is then untouched
        but for records taken out of their files, and must be assigned anew.
    """
    centers, labels = levels.centers[t], levels.labels[t]
    stamps, snapshots, former = files.stamps[t], files.snapshots[t], files.weights[t]
    lists = lists_of(t, levels, files)
    k, d = centers.shape
    moves = new_moves(k, d, pairs)
    n_picks = 0
    for slot in range(stamps.shape[0]):
        if stamps[slot] == FREE:
            continue
        movement(centers, snapshots[slot], weights, former[slot], pairs, moves)
        n_picks = take_at_risk(slot, moves.limits, alive, lists, picks, n_picks)
    if n_picks == 0:
        return 0, 0
    if 2 * n_picks > n_alive:
        return -1, 0
    # A level that began as a copy of the one before it has a snapshot of this deletion already.
    for slot in range(stamps.shape[0]):
        clock = max(clock, stamps[slot] + 1)
    slot = free_slot(t, clock, pairs, moves, alive, lists, files)
    stamps[slot] = clock
    files.growth[t, slot] = 1.0
    copy(centers, snapshots[slot])
    copy(weights, former[slot])
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    here = np.empty(TILE, np.float32)
    flips = 0
    for start in range(0, n_picks, TILE):
        m = measure(points, picks[:n_picks], start, centers, weights, room)
        rank_nearest(room.distances, m, near, who)
        tile_bounds(near, m, d, pairs, here)
        for r in range(m):
            j = picks[start + r]
            a = who[0, r]
            file_record(j, here[r], slot, a * k + who[1, r] if pairs else a, lists)
            was = labels[j]
            if a != was:
                w = points.mass[j] if points.mass.size > 0 else 1.0
                x = points.X[points.rows[j]]
                shift_cluster(levels.sums[t], levels.counts[t], x, was, -w)
                shift_cluster(levels.sums[t], levels.counts[t], x, a, w)
                labels[j] = a
                flips += 1
    return n_picks, flips

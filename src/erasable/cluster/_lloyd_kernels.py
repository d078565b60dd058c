"""Kernels of one Lloyd run: whole passes, centroids from sums, and what a deletion changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._copying import copy
from erasable.core._jit import kernel

from ._distances import TILE, load_tile, rank_nearest, tile_distances
from ._filing import (
    FREE,
    file_record,
    free_slot,
    take_at_risk,
    tile_bounds,
)
from ._movement import movement

__all__ = [
    "assign_some",
    "loss_of",
    "next_centers",
    "reexamine",
    "shift_cluster",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.uint16]


@kernel
def assign_some(
    X: Floats,
    rows: Ints,
    picks: Ints,
    centers: Floats,
    weights: Floats,
    tile: Floats,
    scratch: Floats,
    labels: NDArray[np.int32],
    squared: Floats,
) -> None:
    """Write the nearest centroid of every pick, ties to the lower index, and its distance."""
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    for start in range(0, picks.shape[0], TILE):
        m = min(TILE, picks.shape[0] - start)
        load_tile(X, rows, picks, start, m, tile)
        tile_distances(tile, m, centers, weights, scratch)
        rank_nearest(scratch, m, near, who)
        for r in range(m):
            labels[start + r] = who[0, r]
            squared[start + r] = near[0, r]


@kernel
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


@kernel
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


@kernel
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


@kernel
def reexamine(
    X: Floats,
    rows: Ints,
    mass: Floats,
    alive: NDArray[np.bool_],
    n_alive: int,
    clock: int,
    centers: Floats,
    weights: Floats,
    pairs: bool,
    labels: Labels,
    sums: Floats,
    counts: Ints,
    bounds: NDArray[np.float32],
    following: NDArray[np.int32],
    head: NDArray[np.int32],
    lowest: NDArray[np.int16],
    stamps: Ints,
    growth: Floats,
    snapshots: Floats,
    snapshot_weights: Floats,
    top_bits: int,
    picks: Ints,
    tile: Floats,
    scratch: Floats,
) -> tuple[int, int]:
    """Bring the labels and sums of one level up to date with centroids that moved.

    Returns
    -------
    examined, flips : int
        Records whose distances were computed, and how many changed their cluster. ``examined``
        is -1 when so many are at risk that a whole pass is cheaper; the level is then untouched
        but for records taken out of their files, and must be assigned anew.
    """
    k = centers.shape[0]
    moves = np.empty(k)
    limits = np.empty(k * k if pairs else k)
    turn = np.empty((2, centers.shape[1]))
    n_picks = 0
    for slot in range(stamps.shape[0]):
        if stamps[slot] == FREE:
            continue
        movement(
            centers, snapshots[slot], weights, snapshot_weights[slot], pairs, limits, moves, turn
        )
        n_picks = take_at_risk(
            slot, limits, top_bits, alive, bounds, following, head, lowest, picks, n_picks
        )
    if n_picks == 0:
        return 0, 0
    if 2 * n_picks > n_alive:
        return -1, 0
    # A level that began as a copy of the one before it has a snapshot of this deletion already.
    for slot in range(stamps.shape[0]):
        clock = max(clock, stamps[slot] + 1)
    slot = free_slot(
        clock, stamps, growth, snapshots, snapshot_weights, pairs, limits, moves, turn, top_bits,
        alive, bounds, following, head, lowest,
    )  # fmt: skip
    stamps[slot] = clock
    growth[slot] = 1.0
    copy(centers, snapshots[slot])
    copy(weights, snapshot_weights[slot])
    near = np.empty((3, TILE))
    who = np.empty((2, TILE), np.int64)
    here = np.empty(TILE, np.float32)
    flips = 0
    for start in range(0, n_picks, TILE):
        m = min(TILE, n_picks - start)
        load_tile(X, rows, picks, start, m, tile)
        tile_distances(tile, m, centers, weights, scratch)
        rank_nearest(scratch, m, near, who)
        tile_bounds(near, m, X.shape[1], pairs, here)
        for r in range(m):
            j = picks[start + r]
            a = who[0, r]
            group = a * k + who[1, r] if pairs else a
            file_record(j, here[r], slot, group, top_bits, bounds, following, head, lowest)
            was = labels[j]
            if a != was:
                w = mass[j] if mass.size > 0 else 1.0
                x = X[rows[j]]
                shift_cluster(sums, counts, x, was, -w)
                shift_cluster(sums, counts, x, a, w)
                labels[j] = a
                flips += 1
    return n_picks, flips

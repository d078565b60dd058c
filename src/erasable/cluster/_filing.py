"""Records filed by the movement of centroids they can bear.

At every level (Lloyd iteration) a record is filed once, under a *snapshot* of that level's
centroids, with a `bound`: as long as the centroids' net movement since the snapshot stays below
it, the record's nearest centroid cannot have changed. A deletion moves the centroids a little;
the records whose bounds are reached are taken out, examined, and filed again under a snapshot of
now.

A record with nearest centroid ``a``, second ``b`` and third ``c`` is at risk only if

    m2 <= move(a) + move(b) + rho (d1 + d2)     or     m3 <= move(a) + move(any) + rho (d1 + d3)

with ``m2 = d2 - d1``, ``m3 = d3 - d1`` (less the rounding of distances) and ``rho`` half the spread
of the relative change of the metric's weights. It is filed in the group of the pair (a, b) with
``bound = min(m2, m3 / 2)``, shrunk for records far from everything, and the group is searched up
to ``max(move(a) + move(b), (move(a) + max move) / 2) + rho * cap``.

All of this is an accelerator. It depends on the history of deletions, decides only *whom to
look at*, and never enters the state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel

__all__ = [
    "BINS",
    "FREE",
    "file_record",
    "free_slot",
    "movement",
    "take_at_risk",
    "tile_bounds",
]

BINS = 96
"""Bins of a group: 24 octaves of bounds, four bins an octave; the lowest takes the rest."""

FREE = -1
"""Stamp of a snapshot slot that holds no snapshot."""

_SHARE = 0.35
_LARGEST = 3e38
_SMALLEST = 2e-38

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Keys32 = NDArray[np.float32]
Links = NDArray[np.int32]


@kernel
def tile_bounds(
    near: Floats, m: int, n_features: int, pairs: bool, cap: float, bounds: Floats
) -> None:
    """Write the movement that every record of a tile can bear.

    Parameters
    ----------
    near : ndarray of shape (3, >= m)
        The three smallest squared distances of every record.
    m : int
        Records in the tile.
    n_features : int
        Terms of a distance; its rounding is charged to the margins.
    pairs : bool
        Whether groups are pairs of clusters, or own clusters alone.
    cap : float
        Sum of distances up to which a change of the metric is charged in full; infinity where
        the metric never changes.
    bounds : ndarray of shape (>= m,)
        Receives the bounds.
    """
    slack = 8.0 * (n_features + 4) * 2.0**-53
    less = 1.0 - slack
    more = 1.0 + slack
    near1 = near[0]
    near2 = near[1]
    near3 = near[2]
    for r in range(m):
        d1 = np.sqrt(near1[r])
        d2 = np.sqrt(near2[r])
        d3 = np.sqrt(near3[r])
        second = d2 * less - d1 * more
        third = d3 * less - d1 * more
        second = second * (cap / (d1 + d2)) if d1 + d2 > cap and second > 0.0 else second
        third = third * (cap / (d1 + d3)) if d1 + d3 > cap and third > 0.0 else third
        other = _SHARE * third
        bounds[r] = other if pairs and other < second else second


@kernel
def _bin_of(bound: float, top_bits: int) -> int:
    """Return the bin of a bound: its exponent and two leading bits, below the level's top."""
    if bound <= 0.0:
        return 0
    bits = int(np.float32(bound).view(np.int32)) >> 21
    place = BINS - 1 + bits - top_bits
    return min(max(place, 0), BINS - 1)


@kernel
def file_record(
    j: int,
    bound: float,
    slot: int,
    group: int,
    top_bits: int,
    bounds: Keys32,
    following: Links,
    head: NDArray[np.int32],
    lowest: NDArray[np.int16],
) -> None:
    """File record `j` in a group of a slot; the bound is rounded down to float32.

    Outside the range where float32 rounds relatively, down means to its end, and below it to 0.
    """
    small = np.float32(min(bound, _LARGEST) * (1.0 - 2.0**-22))
    if 0.0 < small < _SMALLEST:
        small = np.float32(0.0)
    bounds[j] = small
    place = _bin_of(float(small), top_bits)
    following[j] = head[slot, group, place]
    head[slot, group, place] = j
    if place < lowest[slot, group]:
        lowest[slot, group] = place


@kernel
def movement(
    now: Floats,
    then: Floats,
    weights_now: Floats,
    weights_then: Floats,
    pairs: bool,
    cap: float,
    limits: Floats,
    moves: Floats,
) -> tuple[float, float]:
    """Write, for every group, the bound up to which its records are at risk.

    Parameters
    ----------
    now, then : ndarray of shape (k, n_features)
        Centroids now and in the snapshot.
    weights_now, weights_then : ndarray of shape (n_features,) or empty
        The metric now and in the snapshot.
    pairs : bool
        Whether groups are pairs (own, nearest other), or own centroids alone.
    cap : float
        See `tile_bounds`.
    limits : ndarray of shape (n_groups,)
        Receives the limits; 0 everywhere means nothing moved at all.
    moves : ndarray of shape (k,)
        Receives how far each centroid moved, in the snapshot's metric.

    Returns
    -------
    stretch, rho : float
        The largest factor by which the metric grew, and half the spread of that growth.
    """
    k, d = now.shape
    weighted = weights_now.size > 0
    largest = 0.0
    second = 0.0
    for c in range(k):
        a = now[c]
        b = then[c]
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for g in range(d // 4):
            f = 4 * g
            t0 = a[f] - b[f]
            t1 = a[f + 1] - b[f + 1]
            t2 = a[f + 2] - b[f + 2]
            t3 = a[f + 3] - b[f + 3]
            if weighted:
                s0 += t0 * t0 * weights_then[f]
                s1 += t1 * t1 * weights_then[f + 1]
                s2 += t2 * t2 * weights_then[f + 2]
                s3 += t3 * t3 * weights_then[f + 3]
            else:
                s0 += t0 * t0
                s1 += t1 * t1
                s2 += t2 * t2
                s3 += t3 * t3
        for f in range(d // 4 * 4, d):
            t0 = a[f] - b[f]
            s0 += t0 * t0 * (weights_then[f] if weighted else 1.0)
        moves[c] = np.sqrt(s0 + s1 + s2 + s3) * (1.0 + 1e-9)
        if moves[c] > largest:
            second = largest
            largest = moves[c]
        elif moves[c] > second:
            second = moves[c]
    stretch = 1.0
    rho = 0.0
    if weighted:
        low = np.inf
        high = 0.0
        for f in range(d):
            ratio = weights_now[f] / weights_then[f]
            low = min(low, ratio)
            high = max(high, ratio)
        low = np.sqrt(low)
        high = np.sqrt(high)
        stretch = high * (1.0 + 1e-12)
        rho = 0.0 if high == low else (high - low) / (high + low) * (1.0 + 1e-9) + 1e-15
    extra = 0.0 if rho == 0.0 else rho * (cap + largest)
    for a in range(k):
        other = second if moves[a] == largest else largest
        if pairs:
            for b in range(k):
                limit = max(moves[a] + moves[b], _SHARE * (moves[a] + other))
                limits[a * k + b] = limit * (1.0 + 1e-9) + extra
        else:
            limits[a] = (moves[a] + other) * (1.0 + 1e-9) + extra
    return stretch, rho


@kernel
def take_at_risk(
    slot: int,
    limits: Floats,
    top_bits: int,
    alive: NDArray[np.bool_],
    bounds: Keys32,
    following: Links,
    head: NDArray[np.int32],
    lowest: NDArray[np.int16],
    out: Ints,
    n_out: int,
) -> int:
    """Take the records of a slot that `limits` reach; return how many `out` holds then.

    Records that were deleted since are dropped on the way.
    """
    for group in range(limits.shape[0]):
        limit = limits[group]
        first = int(lowest[slot, group])
        if limit <= 0.0 or first >= BINS:
            continue
        last = _bin_of(limit, top_bits)
        if first > last:
            continue
        still = BINS
        for place in range(first, last + 1):
            j = head[slot, group, place]
            kept = np.int32(-1)
            while j >= 0:
                after = following[j]
                if alive[j]:
                    if bounds[j] <= limit:
                        out[n_out] = j
                        n_out += 1
                    else:
                        following[j] = kept
                        kept = j
                j = after
            head[slot, group, place] = kept
            if kept >= 0 and still == BINS:
                still = place
        if still == BINS:
            still = last + 1
            while still < BINS and head[slot, group, still] < 0:
                still += 1
        lowest[slot, group] = still
    return n_out


@kernel
def _merge(
    old: int,
    new: int,
    limits: Floats,
    divisor: float,
    top_bits: int,
    alive: NDArray[np.bool_],
    bounds: Keys32,
    following: Links,
    head: NDArray[np.int32],
    lowest: NDArray[np.int16],
) -> None:
    """File the records of slot `old` under slot `new`, each bound less the movement between."""
    for group in range(limits.shape[0]):
        for place in range(int(lowest[old, group]), BINS):
            j = head[old, group, place]
            while j >= 0:
                after = following[j]
                if alive[j]:
                    left = (float(bounds[j]) - limits[group]) / divisor
                    file_record(j, left, new, group, top_bits, bounds, following, head, lowest)
                j = after
            head[old, group, place] = -1
        lowest[old, group] = BINS


@kernel
def free_slot(
    clock: int,
    stamps: Ints,
    centers: Floats,
    weights: Floats,
    pairs: bool,
    cap: float,
    limits: Floats,
    moves: Floats,
    top_bits: int,
    alive: NDArray[np.bool_],
    bounds: Keys32,
    following: Links,
    head: NDArray[np.int32],
    lowest: NDArray[np.int16],
) -> int:
    """Return a slot to file under, merging two snapshots of near ages when none is free.

    Slot 0 holds the snapshot of training and is never merged: its records are the ones that
    could bear the most. Among the others the one goes whose neighbours are nearest to each other
    against their age, so that the ages left are spread geometrically. Records go to a younger
    snapshot only: their labels were right when it was taken. `clock` is above every stamp, and
    no two stamps are equal.
    """
    n_slots = stamps.shape[0]
    for slot in range(1, n_slots):
        if stamps[slot] == FREE:
            return slot
    chosen = -1
    heir = -1
    least = np.inf
    for slot in range(1, n_slots):
        after = -1
        before = 0
        for other in range(1, n_slots):
            if stamps[other] > stamps[slot] and (after < 0 or stamps[other] < stamps[after]):
                after = other
            if stamps[before] < stamps[other] < stamps[slot]:
                before = other
        if after < 0:
            continue
        ratio = (stamps[after] - stamps[before]) / (clock - stamps[before] + 1.0)
        if ratio < least:
            least = ratio
            chosen = slot
            heir = after
    stretch, rho = movement(
        centers[heir], centers[chosen], weights[heir], weights[chosen], pairs, cap, limits, moves
    )
    # A later limit L of the heir is at most stretch (1 + 2 rho) L + max(moves) / cap L of ours.
    largest = 0.0
    for c in range(moves.shape[0]):
        largest = max(largest, moves[c])
    divisor = 1.0
    if weights.shape[1] > 0:
        divisor = stretch * (1.0 + 4.0 * rho) + largest / cap + 1e-9
    _merge(chosen, heir, limits, divisor, top_bits, alive, bounds, following, head, lowest)
    stamps[chosen] = FREE
    return chosen

"""Records filed by the movement of centroids they can bear.

At every level (Lloyd iteration) a record is filed once, under a *snapshot* of that level's
centroids, with a `bound`: as long as the centroids' net movement since the snapshot stays below
it, the record's nearest centroid cannot have changed. A deletion moves the centroids a little;
the records whose bounds are reached are taken out, examined, and filed again under a snapshot of
now.

A record with nearest centroid ``a``, second ``b`` and third ``c`` is at risk only if

    d2 - d1 <= move(a) + move(b)     or     d3 - d1 <= move(a) + move(any)

(less the rounding of distances). It is filed in the group of the pair (a, b) with a bound, the
smaller of ``d2 - d1`` and a share of ``d3 - d1``, and the group is searched up to the larger of
``move(a) + move(b)`` and the same share of ``move(a) + max move``.

Movements, those of a metric that changes included, are measured in `_movement`.

All of this is an accelerator. It depends on the history of deletions, decides only *whom to
look at*, and never enters the state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import subroutine
from erasable.core._prefetching import prefetch_row
from erasable.core.arrays import Flags, Floats, Ints, Ints32

from ._distances import Points
from ._layout import BINS, FREE, Levels, RecordFiles
from ._movement import MOST_GROWTH, SHARE, Moves, movement

_LARGEST = 3e38
_SMALLEST = 2e-38

Keys32 = NDArray[np.float32]


class Lists(NamedTuple):
    """The lists in which the records of one level are filed."""

    top_bits: int  # leading bits of the level's largest bound
    bounds: Keys32  # (n_positions,); the movement that each record can bear
    # (n_positions,); the record that comes after each in its list; -1 after the last
    following: Ints32
    head: Ints32  # (n_slots, n_groups, BINS); the first record of each list, or -1
    lowest: NDArray[np.int16]  # (n_slots, n_groups); the first bin of each group that has records


@subroutine
def lists_of(t: int, levels: Levels, files: RecordFiles) -> Lists:
    """Return the lists of level `t`."""
    return Lists(levels.tops[t], levels.bounds[t], levels.links[t], files.head[t], files.lowest[t])


@subroutine
def rounded_down(bound: float) -> np.float32:
    """Return a float32 that is not larger.

    Outside the range where float32 rounds relatively, down means to its end, and below it to 0.
    """
    less = (bound if bound < _LARGEST else _LARGEST) * (1.0 - 2.0**-22)
    return np.float32(0.0 if abs(less) < _SMALLEST else less)


@subroutine
def tile_bounds(near: Floats, m: int, n_features: int, pairs: bool, bounds: Keys32) -> None:
    """Write the movement that every record of a tile can bear, rounded down.

    `near` is as in `rank_nearest`; `pairs` tells whether groups are pairs of clusters.
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
        other = SHARE * third
        bounds[r] = rounded_down(other if pairs and other < second else second)


@subroutine
def _bin_of(bound: float, top_bits: int) -> int:
    """Return the bin of a bound: its exponent and two leading bits, below the level's top."""
    if bound <= 0.0:
        return 0
    bits = int(np.float32(bound).view(np.int32)) >> 21
    place = BINS - 1 + bits - top_bits
    return min(max(place, 0), BINS - 1)


@subroutine
def file_level(t: int, live: Ints, levels: Levels, files: RecordFiles) -> None:
    """File every live position of level `t` under slot 0; its links hold the groups until then."""
    # Floats above 0 are in the order of their bits. Of dead records, bounds may be too large.
    widest = np.int32(0)
    for bits in levels.bounds[t].view(np.int32):
        widest = max(widest, bits)
    levels.tops[t] = int(widest) >> 21
    lists = lists_of(t, levels, files)
    lists.head[:] = -1
    lists.lowest[:] = BINS
    for j in live:
        file_record(j, float(lists.bounds[j]), 0, int(lists.following[j]), lists)


@subroutine
def file_record(j: int, bound: float, slot: int, group: int, lists: Lists) -> None:
    """File record `j` in a group of a slot; the bound is rounded down to float32."""
    small = rounded_down(bound)
    lists.bounds[j] = small
    place = _bin_of(float(small), lists.top_bits)
    lists.following[j] = lists.head[slot, group, place]
    lists.head[slot, group, place] = j
    if place < lists.lowest[slot, group]:
        lists.lowest[slot, group] = place


@subroutine
def take_at_risk(
    slot: int,
    limits: Floats,
    points: Points,
    alive: Flags,
    lists: Lists,
    out: Ints,
    n_out: int,
) -> int:
    """Take the records of a slot that `limits` reach; return how many `out` holds then.

    Records that were deleted since are dropped on the way. The others will be read soon.
    """
    bounds, following, head, lowest = lists.bounds, lists.following, lists.head, lists.lowest
    for group in range(limits.shape[0]):
        limit = limits[group]
        first = int(lowest[slot, group])
        if limit <= 0.0 or first >= BINS:
            continue
        last = _bin_of(limit, lists.top_bits)
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
                        prefetch_row(points.X, points.rows[j])
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


@subroutine
def _merge(old: int, new: int, limits: Floats, divisor: float, alive: Flags, lists: Lists) -> None:
    """File the records of slot `old` under slot `new`, each bound less the movement between."""
    bounds, following, head, lowest = lists.bounds, lists.following, lists.head, lists.lowest
    for group in range(limits.shape[0]):
        for place in range(int(lowest[old, group]), BINS):
            j = head[old, group, place]
            while j >= 0:
                after = following[j]
                if alive[j]:
                    left = float(bounds[j]) - limits[group]
                    left = left / divisor if left > 0.0 else 0.0
                    file_record(j, left, new, group, lists)
                j = after
            head[old, group, place] = -1
        lowest[old, group] = BINS


@subroutine
def free_slot(
    t: int,
    clock: int,
    pairs: bool,
    moves: Moves,
    alive: Flags,
    lists: Lists,
    files: RecordFiles,
) -> int:
    """Return a slot to file under, merging two snapshots of near ages when none is free.

    Slot 0 holds the snapshot of training and is never merged: its records are the ones that
    could bear the most. Among the others the one goes whose neighbours are nearest to each other
    against their age, so that the ages left are spread geometrically. Records go to a younger
    snapshot only: their labels were right when it was taken. `clock` is above every stamp, and
    no two stamps are equal.
    """
    stamps, growth, weights = files.stamps[t], files.growth[t], files.weights[t]
    centers = files.snapshots[t]
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
    stretch = movement(centers[heir], centers[chosen], weights[heir], weights[chosen], pairs, moves)
    divisor = 1.0
    if weights.shape[1] > 0:
        divisor = stretch
        if growth[chosen] * stretch > MOST_GROWTH:
            divisor = np.inf  # bounds of 0
        else:
            growth[heir] = max(growth[heir], growth[chosen] * stretch)
    _merge(chosen, heir, moves.limits, divisor, alive, lists)
    stamps[chosen] = FREE
    return chosen

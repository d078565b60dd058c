"""Levels that are filed, and how a deletion or an addition passes through them.

What `_levels` does in whole passes is done here for the records at risk alone: see `_filing`. It
takes half of what there is to compile, and is compiled when a run is filed for the first time.
"""

from __future__ import annotations

import numpy as np

from erasable.core._copying import copy
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Flags, Floats, Ints

from ._distances import TILE, DistanceScratch, Points, measure, rank_nearest
from ._filing import file_level, file_record, free_slot, lists_of, take_at_risk, tile_bounds
from ._layout import BINS, FREE, Levels, RecordFiles, Rule
from ._levels import assign, positions_of, put_in, start_level, take_out
from ._lloyd import lloyd, same, shift_cluster
from ._movement import movement, new_moves, same_row

_NOWHERE = 1e150  # a centroid so far that everything filed under it is at risk


@subroutine
def _youngest(t: int, files: RecordFiles) -> int:
    """Return the slot whose snapshot was taken last."""
    stamps = files.stamps[t]
    youngest = 0
    for slot in range(stamps.shape[0]):
        if stamps[slot] > stamps[youngest]:
            youngest = slot
    return youngest


@subroutine
def reexamine(
    t: int,
    moved: bool,
    points: Points,
    alive: Flags,
    come: Ints,
    n_alive: int,
    clock: int,
    weights: Floats,
    pairs: bool,
    levels: Levels,
    files: RecordFiles,
    picks: Ints,
    scratch: DistanceScratch,
) -> tuple[int, int]:
    """Bring the labels and sums of level `t` up to date with its centroids, if they have `moved`.

    If not, only the positions `come` are examined, which have no label yet. Return how many records
    were examined, and how many changed their cluster. The first is -1 where a whole pass is
    cheaper: the level must then be assigned anew, and nothing of it has changed but that records
    were taken out of their files.
    """
    centers, labels = levels.centers[t], levels.labels[t]
    stamps, snapshots, former = files.stamps[t], files.snapshots[t], files.weights[t]
    lists = lists_of(t, levels, files)
    k, d = centers.shape
    moves = new_moves(k, d, pairs)
    n_picks = come.shape[0]
    picks[:n_picks] = come
    if moved:
        for slot in range(stamps.shape[0]):
            if stamps[slot] == FREE:
                continue
            movement(centers, snapshots[slot], weights, former[slot], pairs, moves)
            n_picks = take_at_risk(slot, moves.limits, points, alive, lists, picks, n_picks)
    if n_picks == 0:
        return 0, 0
    if 2 * n_picks > n_alive:
        return -1, 0
    # Under the youngest snapshot their labels are right as long as they are under later ones.
    slot = _youngest(t, files)
    if moved or not (same(centers, snapshots[slot]) and same_row(weights, former[slot])):
        # A level that began as a copy of the one before it has a snapshot of this change already.
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
        m = measure(points, picks[:n_picks], start, centers, weights, scratch)
        rank_nearest(scratch.distances, m, near, who)
        tile_bounds(near, m, d, pairs, here)
        for r in range(m):
            j = picks[start + r]
            a = who[0, r]
            file_record(j, here[r], slot, a * k + who[1, r] if pairs else a, lists)
            was = labels[j]
            new = start + r < come.shape[0]
            if new or a != was:
                w = points.mass[j] if points.mass.size > 0 else 1.0
                x = points.X[points.rows[j]]
                if not new:
                    shift_cluster(levels.sums[t], levels.counts[t], x, was, -w)
                    flips += 1
                shift_cluster(levels.sums[t], levels.counts[t], x, a, w)
                labels[j] = a
    return n_picks, flips


@subroutine
def _file(
    t: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: RecordFiles
) -> None:
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
    built: int, live: Ints, clock: int, weights: Floats, levels: Levels, files: RecordFiles
) -> None:
    """File every level that may change.

    The labels of level 0 change with the metric alone, for its centroids are the seeds.
    """
    for t in range(0 if weights.size > 0 else 1, built + 1):
        _file(t, live, clock, weights, levels, files)


@kernel
def renumber_files(
    places: Ints, alive: Flags, built: int, before: Levels, levels: Levels, files: RecordFiles
) -> None:
    """Link the lists of all filed levels again, after positions have changed; drop dead records.

    `places` has the new place of each former position, `alive` tells which of these are left. The
    links of `levels` are overwritten.
    """
    for t in range(files.stamps.shape[0]):
        if files.stamps[t, 0] == FREE:
            continue
        links, following, head = before.links[t], levels.links[t], files.head[t]
        if t > built:  # of a run that was longer
            head[:] = -1
            files.lowest[t] = BINS
            continue
        for slot in range(head.shape[0]):
            for group in range(head.shape[1]):
                for place in range(head.shape[2]):
                    j = head[slot, group, place]
                    kept = np.int32(-1)
                    while j >= 0:
                        if alive[j]:
                            new = np.int32(places[j])
                            following[new] = kept
                            kept = new
                        j = links[j]
                    head[slot, group, place] = kept


@subroutine
def _continue(t: int, levels: Levels, files: RecordFiles) -> None:
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
    n_alive: int,
    clock: int,
    pairs: bool,
    files: RecordFiles,
    picks: Ints,
    scratch: DistanceScratch,
) -> tuple[int, int, int]:
    """Examine the records at risk in level `t`, or all; see `lloyd`."""
    # Level 0 of a metric that never changes is not filed, and cannot be continued.
    plain = rule.shift < 0.0 and rule.squares.size == 0
    cloned = new and plain and (t > 1 or weights.size > 0)
    if cloned:
        _continue(t, levels, files)
    arrived = come
    if new:
        arrived = come[:0]  # they are in the level before
    else:
        take_out(t, points, gone, levels)
        if t == 0 and weights.size == 0:  # it is not filed
            put_in(t, points, come, levels.centers[t], weights, pairs, levels, scratch)
            arrived = come[:0]
    anew = new and not cloned
    examined, flips = 0, 0
    if (moved or arrived.size > 0) and not anew:
        examined, flips = reexamine(
            t, moved, points, alive, arrived, n_alive, clock, weights, pairs, levels, files,
            picks, scratch,
        )  # fmt: skip
        anew = examined < 0
    if not anew:
        return examined, flips, 0
    own = positions_of(alive, live)
    start_level(t, levels)
    previous = levels.labels[t - 1] if t > 0 else levels.labels[t][:0]
    assign(points, own, weights, pairs, np.empty(0), 1.0, previous, t, t, levels, scratch)
    levels.growth[t] = 1.0
    if t > 0 or weights.size > 0:
        _file(t, own, clock, weights, levels, files)
    return own.size, 0, 1


_run_down = subroutine(lloyd(_assign_level))


@kernel
def descend_filed(
    points: Points,
    alive: Flags,
    gone: Ints,
    come: Ints,
    n_alive: int,
    clock: int,
    built: int,
    rule: Rule,
    weights: Floats,
    turned: bool,
    pairs: bool,
    levels: Levels,
    files: RecordFiles,
    picks: Ints,
    scratch: DistanceScratch,
    start: int,
) -> tuple[int, int, int, int, int]:
    """Run Lloyd's algorithm (`lloyd`); in the levels that are built, examine the records at risk.

    See `descend`. `clock` is the number of this change; `picks` is scratch space for all positions.
    """
    live = np.empty(alive.shape[0] + 1, np.int64)
    live[-1] = -1
    return _run_down(
        start, built, turned, rule, weights, levels,
        points, alive, live, gone, come, n_alive, clock, pairs, files, picks, scratch,
    )  # fmt: skip


@subroutine
def _key_of(row: Floats, scratch: Floats) -> int:
    """Return an integer that is the same for equal rows, and rarely for others."""
    for f in range(row.shape[0]):
        scratch[f] = row[f] + 0.0  # one zero
    bits = scratch.view(np.int64)
    key = 0
    for f in range(row.shape[0]):
        key += bits[f] * (2 * f + 1)
    return key


@kernel
def hide(records: Floats, stamps: Ints, snapshots: Floats) -> None:
    """Overwrite snapshots that hold one of `records` itself, as the centroid of a lone record.

    Records filed under such a snapshot count as at risk from then on. The first axis is the level.
    """
    scratch = np.empty(records.shape[1])
    keys = np.zeros(records.shape[0], np.int64)
    order = np.zeros(records.shape[0], np.int64)
    lone = records.shape[0] == 1
    if not lone:
        for i in range(records.shape[0]):
            keys[i] = _key_of(records[i], scratch)
        order = np.argsort(keys)
        keys = keys[order]
    for t in range(stamps.shape[0]):
        for slot in range(stamps.shape[1]):
            if stamps[t, slot] == FREE:
                continue
            for center in snapshots[t, slot]:
                if lone:
                    found = same_row(center, records[0])
                else:
                    key = _key_of(center, scratch)
                    i = int(np.searchsorted(keys, key))
                    found = False
                    while i < keys.shape[0] and keys[i] == key and not found:
                        found = same_row(center, records[order[i]])
                        i += 1
                if found:
                    center[:] = _NOWHERE

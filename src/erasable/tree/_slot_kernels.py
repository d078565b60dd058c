"""The slots of a tree's nodes and its rows: allocation, partition, release.

The model does not depend on which slots nodes get; slots that become free are blanked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import inlined
from erasable.tree._layout import (
    ALL_VALUES,
    BUSY,
    CACHE,
    CAPACITY,
    CIRCLE,
    CODE,
    COUNT,
    DIRTY,
    FEATURE,
    FREE,
    FREE_BUSY,
    GAP_SIDE,
    GAPS_LEFT,
    LEFT,
    NEXT,
    NO_DEPTH,
    NO_GAPS,
    NONE,
    ROW_BITS,
    START,
    UPTO,
    USED,
    WANTED,
    GrowingTree,
    TreeRecords,
    TreeScratch,
)

_LOW = np.uint64(0xFFFFFFFF)
_ROW = (1 << ROW_BITS) - 1
_FEW = 16
"""Of how many records one at least must be in a node that reads columns."""


@inlined
def by_column(table: TreeRecords, m: int) -> bool:
    """Tell whether a node of `m` records reads a column faster where it lies side by side."""
    n_rows = table.by_column.shape[0]
    return bool(n_rows > 1 and _FEW * m > n_rows)


@inlined
def weigh(table: TreeRecords, entry: Any) -> Any:
    """Return what an entry of `GrowingTree.rows` weighs: its times in the bag, by its weight."""
    times = np.int64(entry) >> ROW_BITS
    if table.units.size:
        return times * table.units[np.int64(entry) & _ROW]
    return times


@inlined
def goes_left(growing: GrowingTree, table: TreeRecords, node: int, row: Any) -> bool:
    """Tell to which side of a node's split a row goes."""
    code = np.int64(table.packed[row, growing.nodes[node, FEATURE]] & _LOW)
    moved = growing.nodes[node, GAP_SIDE] & GAPS_LEFT
    return bool((code + moved) & CIRCLE <= growing.nodes[node, CODE] + moved)


@inlined
def room_for(growing: GrowingTree, node: int) -> bool:
    """Tell whether there are slots for whatever may grow below a node that has been cleared."""
    counters = growing.counters
    free = growing.nodes.shape[0] - counters[USED] + 2 * counters[FREE]
    return bool(free >= 2 * growing.nodes[node, COUNT])


@inlined
def take_kept(growing: GrowingTree, node: int) -> None:
    """Give a large node a place for the counts of its candidates, if there is one left."""
    counters = growing.counters
    growing.nodes[node, CACHE] = -1
    if growing.nodes[node, COUNT] <= counters[UPTO]:
        return
    if counters[FREE_BUSY]:
        counters[FREE_BUSY] -= 1
        growing.nodes[node, CACHE] = growing.free_kept[counters[FREE_BUSY]]
    elif counters[BUSY] < growing.features.shape[0]:
        growing.nodes[node, CACHE] = counters[BUSY]
        counters[BUSY] += 1
    else:
        counters[WANTED] += 1


@inlined
def drop_kept(growing: GrowingTree, node: int) -> None:
    """Give back the place for a node's counts, if it has one."""
    slot = growing.nodes[node, CACHE]
    if slot < 0:
        return
    growing.features[slot] = 0
    growing.found[slot] = 0
    growing.codes[slot] = 0
    growing.counts[slot] = 0
    growing.lefts[slot] = 0
    growing.gaps[slot] = 0
    growing.free_kept[growing.counters[FREE_BUSY]] = slot
    growing.counters[FREE_BUSY] += 1
    growing.nodes[node, CACHE] = -1


@inlined
def take_pair(growing: GrowingTree) -> Any:
    counters = growing.counters
    if counters[FREE]:
        counters[FREE] -= 1
        return growing.free[counters[FREE]]
    counters[USED] += 2
    return counters[USED] - 2


@inlined
def clear(growing: GrowingTree, work: TreeScratch, node: int) -> None:
    """Make a leaf of a node, and free everything below it; the node's own counts stay."""
    waiting = 0
    if growing.nodes[node, FEATURE] >= 0:
        work.stack[0], waiting = growing.nodes[node, LEFT], 1
    while waiting:
        waiting -= 1
        pair = work.stack[waiting]
        for child in range(pair, pair + 2):
            drop_kept(growing, child)
            if growing.nodes[child, FEATURE] >= 0:
                work.stack[waiting] = growing.nodes[child, LEFT]
                waiting += 1
            growing.nodes[child] = 0
            growing.stats[child] = 0
            if growing.gains.size:
                growing.gains[child] = -np.inf
        growing.free[growing.counters[FREE]] = pair
        growing.counters[FREE] += 1
    growing.nodes[node, : LEFT + 1] = -1
    growing.nodes[node, GAP_SIDE] = NO_GAPS
    growing.nodes[node, DIRTY] = 1


@inlined
def part(
    growing: GrowingTree,
    table: TreeRecords,
    work: TreeScratch,
    node: int,
    feature: int,
    code: int,
    side: int,
) -> int:
    """Put the rows that go to the left before those that go to the right; count the former.

    Both stay in their order, so that reading them is reading forwards. The node gets the feature,
    the side of gaps, and the codes of the largest value on the left and of the smallest on the
    right.
    """
    start, capacity = growing.nodes[node, START], growing.nodes[node, CAPACITY]
    rows = growing.rows
    wide = by_column(table, capacity)
    packed = table.by_column[:, feature] if wide else table.packed[:, feature]
    to_left, to_right = 0, 0
    highest: Any = -1
    lowest: Any = NO_DEPTH
    moved = side & GAPS_LEFT  # by which the codes are moved, see there
    for i in range(start, start + capacity):
        entry = rows[i]
        if np.int64(entry) == NONE:
            continue
        c = (np.int64(packed[np.int64(entry) & _ROW] & _LOW) + moved) & CIRCLE
        if c <= code + moved:
            rows[start + to_left] = entry
            to_left += 1
            highest = max(highest, c)
        else:
            work.side[to_right] = entry
            to_right += 1
            lowest = min(lowest, c)
    growing.nodes[node, FEATURE], growing.nodes[node, GAP_SIDE] = feature, side
    growing.nodes[node, CODE] = highest - moved if code < ALL_VALUES else code
    growing.nodes[node, NEXT] = lowest - moved
    for i in range(to_right):
        rows[start + to_left + i] = work.side[i]
    for i in range(start + to_left + to_right, start + capacity):
        rows[i] = NONE
    return to_left

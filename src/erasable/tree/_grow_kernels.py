"""Growing a tree below a node, and clearing away what was there.

The law it keeps: a subtree is a function of the records of its node, of its path and of the rules.
Which slots its nodes get is none of the model's business. Slots that become free are blanked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import borrowing, inlined
from erasable.tree._decide_kernels import decide, gather
from erasable.tree._hash_kernels import LEFT_SIDE, RIGHT_SIDE, child_key
from erasable.tree._layout import (
    BUSY,
    CACHE,
    CAPACITY,
    CODE,
    COUNT,
    DIRTY,
    FEATURE,
    FREE,
    FREE_BUSY,
    LEFT,
    NEXT,
    NO_DEPTH,
    NONE,
    ROW_BITS,
    SQUARES,
    START,
    UPTO,
    USED,
    WANTED,
    Plant,
    Rules,
    Table,
    Work,
)

__all__ = ["clear", "grow", "part", "room_for", "take_kept", "take_pair"]

_LOW = np.uint64(0xFFFFFFFF)
_ROW = (1 << ROW_BITS) - 1


@inlined
def room_for(plant: Plant, node: int) -> bool:
    """Tell whether there are slots for whatever may grow below a node that has been cleared."""
    counters = plant.counters
    free = plant.nodes.shape[0] - counters[USED] + 2 * counters[FREE]
    return bool(free >= 2 * plant.nodes[node, COUNT])


@inlined
def take_kept(plant: Plant, node: int) -> None:
    """Give a large node a place for the counts of its candidates, if there is one left."""
    counters = plant.counters
    plant.nodes[node, CACHE] = -1
    if plant.nodes[node, COUNT] <= counters[UPTO]:
        return
    if counters[FREE_BUSY]:
        counters[FREE_BUSY] -= 1
        plant.nodes[node, CACHE] = plant.free_kept[counters[FREE_BUSY]]
    elif counters[BUSY] < plant.features.shape[0]:
        plant.nodes[node, CACHE] = counters[BUSY]
        counters[BUSY] += 1
    else:
        counters[WANTED] += 1


@inlined
def _drop_kept(plant: Plant, node: int) -> None:
    slot = plant.nodes[node, CACHE]
    if slot < 0:
        return
    plant.features[slot] = 0
    plant.found[slot] = 0
    plant.codes[slot] = 0
    plant.counts[slot] = 0
    plant.lefts[slot] = 0
    plant.free_kept[plant.counters[FREE_BUSY]] = slot
    plant.counters[FREE_BUSY] += 1
    plant.nodes[node, CACHE] = -1


@inlined
def take_pair(plant: Plant) -> Any:
    counters = plant.counters
    if counters[FREE]:
        counters[FREE] -= 1
        return plant.free[counters[FREE]]
    counters[USED] += 2
    return counters[USED] - 2


@borrowing
def clear(plant: Plant, work: Work, node: int) -> None:
    """Make a leaf of a node, and free everything below it."""
    _drop_kept(plant, node)
    waiting = 0
    if plant.nodes[node, FEATURE] >= 0:
        work.stack[0, 0], waiting = plant.nodes[node, LEFT], 1
    while waiting:
        waiting -= 1
        pair = work.stack[waiting, 0]
        for child in range(pair, pair + 2):
            _drop_kept(plant, child)
            if plant.nodes[child, FEATURE] >= 0:
                work.stack[waiting, 0] = plant.nodes[child, LEFT]
                waiting += 1
            plant.nodes[child] = 0
            plant.stats[child] = 0
            if plant.gains.size:
                plant.gains[child] = -np.inf
        plant.free[plant.counters[FREE]] = pair
        plant.counters[FREE] += 1
    plant.nodes[node, : LEFT + 1] = -1
    plant.nodes[node, DIRTY] = 1


@inlined
def part(plant: Plant, table: Table, work: Work, node: int, feature: int, code: int) -> int:
    """Put the rows that go to the left before those that go to the right; count the former.

    Both stay in their order, so that reading them is reading forwards. The node gets the feature,
    and the codes of the largest value on the left and of the smallest on the right.
    """
    start, capacity = plant.nodes[node, START], plant.nodes[node, CAPACITY]
    packed, rows = table.packed[:, feature], plant.rows
    to_left, to_right = 0, 0
    highest: Any = -1
    lowest: Any = NO_DEPTH
    for i in range(start, start + capacity):
        entry = rows[i]
        if np.int64(entry) == NONE:
            continue
        c = np.int64(packed[np.int64(entry) & _ROW] & _LOW)
        if c <= code:
            rows[start + to_left] = entry
            to_left += 1
            highest = max(highest, c)
        else:
            work.side[to_right] = entry
            to_right += 1
            lowest = min(lowest, c)
    plant.nodes[node, FEATURE], plant.nodes[node, CODE] = feature, highest
    plant.nodes[node, NEXT] = lowest
    for i in range(to_right):
        rows[start + to_left + i] = work.side[i]
    for i in range(start + to_left + to_right, start + capacity):
        rows[i] = NONE
    return to_left


@borrowing
def grow(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    node: int,
    depth: int,
    key: np.uint64,
    whole: float,
    constants: np.uint64,
) -> int:
    """Grow the tree below a node that is clear, from the rows in its range.

    There must be slots for two nodes a record.

    Returns
    -------
    int
        How many records were looked at, once for every node they are in.
    """
    nodes, stats = plant.nodes, plant.stats
    work.stack[0, 0], work.stack[0, 1] = node, depth
    work.keys[0], work.constants[0] = key, constants
    waiting, looked = 1, 0
    while waiting:
        waiting -= 1
        node, depth, key = work.stack[waiting, 0], work.stack[waiting, 1], work.keys[waiting]
        constants = work.constants[waiting]
        m = gather(plant, table, work, node)
        looked += m
        nodes[node, COUNT], nodes[node, FEATURE], nodes[node, CODE] = m, -1, -1
        nodes[node, LEFT], nodes[node, DIRTY] = -1, 1
        stats[node] = 0
        for i in range(m):
            if rules.criterion == SQUARES:
                stats[node, 0] += work.weights[i]
                stats[node, 1] += work.weights[i] * work.y[i]
            else:
                stats[node, work.y[i]] += work.weights[i]
        take_kept(plant, node)
        feature, code, constants = decide(
            plant, table, rules, work, node, depth, key, whole, m, False, constants
        )
        if feature < 0:
            _drop_kept(plant, node)
            continue
        to_left = part(plant, table, work, node, feature, code)
        pair = take_pair(plant)
        nodes[node, LEFT] = pair
        nodes[pair, START], nodes[pair, CAPACITY] = nodes[node, START], to_left
        nodes[pair + 1, START] = nodes[node, START] + to_left
        nodes[pair + 1, CAPACITY] = m - to_left
        for side in range(2):
            work.stack[waiting, 0], work.stack[waiting, 1] = pair + side, depth + 1
            work.keys[waiting] = child_key(key, RIGHT_SIDE if side else LEFT_SIDE)
            work.constants[waiting] = constants
            waiting += 1
    return looked

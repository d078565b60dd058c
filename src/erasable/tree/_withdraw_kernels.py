"""Taking records out of a tree: every node on their way decides again, and few decide otherwise.

The law it keeps: a node's decision is a function of its records, and where all the decisions above
it stand, so do its records but for those that go. Where a decision changes, all below is grown
again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.tree._decide_kernels import decide, gather, survey_again
from erasable.tree._grow_kernels import clear, grow, room_for, take_kept
from erasable.tree._hash_kernels import LEFT_SIDE, RIGHT_SIDE, child_key
from erasable.tree._layout import (
    CACHE,
    CAPACITY,
    CODE,
    COUNT,
    DIRTY,
    FEATURE,
    LEFT,
    NEXT,
    NO_DEPTH,
    NONE,
    ROW_BITS,
    SQUARES,
    START,
    Ints,
    Plant,
    Rules,
    Table,
    Words,
    Work,
)

__all__ = ["sweep", "take_rows_out", "withdraw"]

_LOW = np.uint64(0xFFFFFFFF)
_UNKNOWN = np.uint64(0)
_ROW = (1 << ROW_BITS) - 1


@inlined
def _goes_left(plant: Plant, table: Table, node: int, row: Any) -> bool:
    word = table.packed[row, plant.nodes[node, FEATURE]]
    return bool(np.int64(word & _LOW) <= plant.nodes[node, CODE])


@borrowing
def take_rows_out(
    plant: Plant, table: Table, gone: NDArray[np.uint32], live: NDArray[np.bool_], every: bool
) -> None:
    """Overwrite rows that are gone; `every` row of the tree is looked at, or a leaf for each."""
    nodes, rows = plant.nodes, plant.rows
    if every:
        for i in range(rows.size):
            if np.int64(rows[i]) != NONE and not live[np.int64(rows[i]) & _ROW]:
                rows[i] = NONE
        return
    for g in range(gone.size):
        row, node = np.int64(gone[g]) & _ROW, 0
        while nodes[node, FEATURE] >= 0:
            left = nodes[node, LEFT]
            node = left if _goes_left(plant, table, node, row) else left + 1
        start = nodes[node, START]
        for i in range(start, start + nodes[node, CAPACITY]):
            if rows[i] == gone[g]:
                rows[i] = NONE
                break


@inlined
def _take_from_kept(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    node: int,
    key: np.uint64,
    gone: NDArray[np.uint32],
    first: int,
    after: int,
) -> int:
    """Bring the counts of a node's candidates up to date; return how many records were read."""
    slot, m = plant.nodes[node, CACHE], -1
    for place in range(rules.max_features):
        found, code = plant.found[slot, place, 0], plant.codes[slot, place]
        count, left = plant.counts[slot, place], plant.lefts[slot, place]
        packed = table.packed[:, plant.features[slot, place]]
        lost = False
        for g in range(first, after):
            row, weight = np.int64(gone[g]) & _ROW, np.int64(gone[g]) >> ROW_BITS
            c, y = np.int64(packed[row] & _LOW), table.y[row]
            for j in range(found - 1, -1, -1):
                if code[j] < c:
                    break
                count[j, 1] -= 1
                if rules.criterion == SQUARES:
                    left[j, 0] -= weight
                    left[j, 1] -= weight * y
                else:
                    left[j, y] -= weight
                if code[j] == c:
                    count[j, 0] -= 1
                    lost |= count[j, 0] == 0
        if lost:
            if m < 0:
                m = gather(plant, table, work, node)
            survey_again(plant, table, rules, work, slot, place, key, m)
    return m


@inlined
def _find_next(
    plant: Plant, table: Table, node: int, gone: NDArray[np.uint32], first: int, after: int
) -> None:
    """Find the smallest value on the right again, where records go that had it."""
    nodes, packed = plant.nodes, table.packed[:, plant.nodes[node, FEATURE]]
    known, concerned = nodes[node, NEXT], False
    for g in range(first, after):
        concerned |= np.int64(packed[np.int64(gone[g]) & _ROW] & _LOW) == known
    if not concerned:
        return
    right = nodes[node, LEFT] + 1
    start, lowest = nodes[right, START], np.int64(NO_DEPTH)
    for i in range(start, start + nodes[right, CAPACITY]):
        entry = np.int64(plant.rows[i])
        if entry != NONE:
            c = np.int64(packed[entry & _ROW] & _LOW)
            if c == known:
                return
            lowest = min(lowest, c)
    nodes[node, NEXT] = lowest


@inlined
def _split_gone(
    plant: Plant,
    table: Table,
    work: Work,
    node: int,
    gone: NDArray[np.uint32],
    first: int,
    after: int,
) -> int:
    """Put those first that go to the left; return where the others begin."""
    middle, to_right = first, 0
    for g in range(first, after):
        if _goes_left(plant, table, node, np.int64(gone[g]) & _ROW):
            gone[middle] = gone[g]
            middle += 1
        else:
            work.side[to_right] = gone[g]
            to_right += 1
    for i in range(to_right):
        gone[middle + i] = work.side[i]
    return middle


@borrowing
def _grow_again(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    node: int,
    depth: int,
    key: np.uint64,
    whole: float,
    constants: np.uint64,
    pending: Ints,
    pending_keys: Words,
    told: Ints,
) -> None:
    """Grow what is below a node again; where there is no room for it, say that it is to be done."""
    clear(plant, work, node)
    told[1] += 1
    told[2] += plant.nodes[node, COUNT]
    if room_for(plant, node):
        grow(plant, table, rules, work, node, depth, key, whole, constants)
        return
    pending[told[0], 0], pending[told[0], 1], pending_keys[told[0]] = node, depth, key
    told[0] += 1


@borrowing
def withdraw(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    root_key: np.uint64,
    whole: float,
    gone: NDArray[np.uint32],
    pending: Ints,
    pending_keys: Words,
    told: Ints,
) -> None:
    """Decide again in every node that rows have left.

    Parameters
    ----------
    plant, table, rules, work
        See `erasable.tree._layout`.
    root_key : uint64
        Key of the tree.
    whole : float
        Weight of all records that are left.
    gone : ndarray of uint32
        Rows and weights of the records that go, as in `Plant.rows`, which they have left; put in
        another order. Their values and targets are still in `table`.
    pending, pending_keys : ndarray of shape (n, 2), int64, and (n,), uint64
        Overwritten with nodes, depths and keys where the tree is still to be grown.
    told : ndarray of shape (3,), int64
        Added to: how many of these there are; how many nodes decided otherwise; their records.
    """
    nodes, stats, calls = plant.nodes, plant.stats, work.calls
    calls[0, 0], calls[0, 1], calls[0, 2], calls[0, 3] = 0, 0, 0, gone.size
    work.call_keys[0], work.call_constants[0] = root_key, _UNKNOWN
    waiting = 1
    while waiting:
        waiting -= 1
        node, depth = calls[waiting, 0], calls[waiting, 1]
        first, after, key = calls[waiting, 2], calls[waiting, 3], work.call_keys[waiting]
        constants = work.call_constants[waiting]
        nodes[node, COUNT] -= after - first
        nodes[node, DIRTY] = 1
        for g in range(first, after):
            row, weight = np.int64(gone[g]) & _ROW, np.int64(gone[g]) >> ROW_BITS
            if rules.criterion == SQUARES:
                stats[node, 0] -= weight
                stats[node, 1] -= weight * table.y[row]
            else:
                stats[node, table.y[row]] -= weight
        kept, m = nodes[node, CACHE] >= 0, -1
        if kept:
            m = _take_from_kept(plant, table, rules, work, node, key, gone, first, after)
        elif nodes[node, FEATURE] >= 0:
            take_kept(plant, node)
        feature, code, constants = decide(
            plant, table, rules, work, node, depth, key, whole, m, kept, constants
        )
        if feature != nodes[node, FEATURE] or code != nodes[node, CODE]:
            _grow_again(
                plant, table, rules, work, node, depth, key, whole, constants, pending,
                pending_keys, told,
            )  # fmt: skip
        elif feature >= 0:
            _find_next(plant, table, node, gone, first, after)
            middle = _split_gone(plant, table, work, node, gone, first, after)
            for side in range(2):
                begin, end = (middle, after) if side else (first, middle)
                if begin < end:
                    calls[waiting, 0] = nodes[node, LEFT] + side
                    calls[waiting, 1], calls[waiting, 2], calls[waiting, 3] = depth + 1, begin, end
                    work.call_keys[waiting] = child_key(key, RIGHT_SIDE if side else LEFT_SIDE)
                    work.call_constants[waiting] = constants
                    waiting += 1


@borrowing
def sweep(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    root_key: np.uint64,
    whole: float,
    pending: Ints,
    pending_keys: Words,
    told: Ints,
) -> None:
    """Grow leaves that gained too little by a split while the tree weighed more than `whole`.

    Parameters are those of `withdraw`.
    """
    nodes, calls = plant.nodes, work.calls
    calls[0, 0], calls[0, 1], work.call_keys[0] = 0, 0, root_key
    waiting = 1
    while waiting:
        waiting -= 1
        node, depth, key = calls[waiting, 0], calls[waiting, 1], work.call_keys[waiting]
        if nodes[node, FEATURE] < 0:
            if plant.gains[node] / whole >= rules.min_decrease:
                _grow_again(
                    plant, table, rules, work, node, depth, key, whole, _UNKNOWN, pending,
                    pending_keys, told,
                )  # fmt: skip
            continue
        for side in range(2):
            calls[waiting, 0], calls[waiting, 1] = nodes[node, LEFT] + side, depth + 1
            work.call_keys[waiting] = child_key(key, RIGHT_SIDE if side else LEFT_SIDE)
            waiting += 1

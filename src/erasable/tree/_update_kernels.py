"""Growing a tree, and having records leave or come: nodes decide, few otherwise than before.

The law it keeps: a subtree is a function of the records of its node, of its path and of the rules.
A node's decision is a function of its records, and where all the decisions above it stand, so do
its records but for those that go or come. Where a decision changes, all below is grown again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Ints, Words
from erasable.tree._arrival_kernels import lower_next, put_into_kept
from erasable.tree._decide_kernels import decide, gather
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
    GrowingTree,
    Rules,
    Table,
    Work,
)
from erasable.tree._slot_kernels import (
    clear,
    drop_kept,
    goes_left,
    part,
    room_for,
    take_kept,
    take_pair,
    weigh,
)

_LOW = np.uint64(0xFFFFFFFF)
_UNKNOWN = np.uint64(0)
_ROW = (1 << ROW_BITS) - 1


@borrowing
def take_rows_out(
    plant: GrowingTree, table: Table, gone: NDArray[np.uint32], live: NDArray[np.bool_], every: bool
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
            node = left if goes_left(plant, table, node, row) else left + 1
        start = nodes[node, START]
        for i in range(start, start + nodes[node, CAPACITY]):
            if rows[i] == gone[g]:
                rows[i] = NONE
                break


@inlined
def _take_from_kept(
    plant: GrowingTree,
    table: Table,
    rules: Rules,
    node: int,
    gone: NDArray[np.uint32],
    first: int,
    after: int,
) -> None:
    """Bring the counts of a node's candidates up to date; of a feature that lost one, say so."""
    slot = plant.nodes[node, CACHE]
    for place in range(rules.max_features):
        found, code = plant.found[slot, place, 0], plant.codes[slot, place]
        count, left = plant.counts[slot, place], plant.lefts[slot, place]
        packed = table.packed[:, plant.features[slot, place]]
        lost = False
        for g in range(first, after):
            row, weight = np.int64(gone[g]) & _ROW, weigh(table, gone[g])
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
            plant.found[slot, place, 0] = -1


@inlined
def _find_next(
    plant: GrowingTree, table: Table, node: int, gone: NDArray[np.uint32], first: int, after: int
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
def _divide(
    plant: GrowingTree,
    table: Table,
    work: Work,
    node: int,
    some: NDArray[np.uint32],
    first: int,
    after: int,
) -> int:
    """Put those rows first that go to the left; return where the others begin."""
    middle, to_right = first, 0
    for g in range(first, after):
        if goes_left(plant, table, node, np.int64(some[g]) & _ROW):
            some[middle] = some[g]
            middle += 1
        else:
            work.side[to_right] = some[g]
            to_right += 1
    for i in range(to_right):
        some[middle + i] = work.side[i]
    return middle


@inlined
def _wait(
    work: Work,
    waiting: int,
    plant: GrowingTree,
    node: int,
    depth: int,
    key: np.uint64,
    constants: np.uint64,
    side: int,
    first: int,
    after: int,
) -> None:
    """Have a child of a node wait for its turn."""
    calls = work.calls
    calls[waiting, 0], calls[waiting, 1] = plant.nodes[node, LEFT] + side, depth + 1
    calls[waiting, 2], calls[waiting, 3] = first, after
    work.call_keys[waiting] = child_key(key, RIGHT_SIDE if side else LEFT_SIDE)
    work.call_constants[waiting] = constants


@borrowing
def update_tree(
    plant: GrowingTree,
    table: Table,
    rules: Rules,
    work: Work,
    waiting: int,
    whole: float,
    some: NDArray[np.uint32],
    sign: int,
    pending: Ints,
    pending_keys: Words,
    told: Ints,
) -> None:
    """Have nodes decide, and those below them.

    Parameters
    ----------
    plant, table, rules, work
        See `erasable.tree._layout`. Who is to decide stands in ``work.calls``, a node in each of
        its first `waiting` lines: its slot; its depth; and from where to where those of `some`
        stand that leave it or come to it. None do (0, 0) where a node that is clear is to be grown
        from the rows in its range, and there are slots for two nodes a record; (-1, -1) where a
        leaf is only asked, so that its gain is known. Keys and constant features of the nodes are
        in ``work.call_keys`` and ``work.call_constants``.
    whole : float
        Weight of all records that there are now.
    some : ndarray of uint32
        Rows and weights of the records that go, as in `GrowingTree.rows`, which they have left, or
        of those that come, which are there already; put in another order. Their values and
        targets are in `table`.
    sign : int
        -1 if these go, 1 if they come.
    pending, pending_keys : ndarray of shape (n, 2), int64, and (n,), uint64
        Overwritten with nodes, depths and keys where there is no room for what is to grow.
    told : ndarray of shape (4,), int64
        Added to: how many of these there are; how many nodes decided otherwise; their records;
        how many leaves that were only asked should not be any.
    """
    nodes, stats, calls = plant.nodes, plant.stats, work.calls
    while waiting:
        waiting -= 1
        node, depth = calls[waiting, 0], calls[waiting, 1]
        first, after, key = calls[waiting, 2], calls[waiting, 3], work.call_keys[waiting]
        constants = work.call_constants[waiting]
        moving, kept, m = first < after, False, -1
        nodes[node, DIRTY] = 1
        if moving:
            nodes[node, COUNT] += sign * (after - first)
            for g in range(first, after):
                row, weight = np.int64(some[g]) & _ROW, sign * weigh(table, some[g])
                if rules.criterion == SQUARES:
                    stats[node, 0] += weight
                    stats[node, 1] += weight * table.y[row]
                else:
                    stats[node, table.y[row]] += weight
            kept = nodes[node, CACHE] >= 0
            if kept and sign < 0:
                _take_from_kept(plant, table, rules, node, some, first, after)
            elif kept:
                put_into_kept(plant, table, rules, work, node, key, some, first, after)
            elif nodes[node, FEATURE] >= 0:
                take_kept(plant, node)
        elif first == 0:
            m = gather(plant, table, work, node)
            nodes[node, COUNT] = m
            nodes[node, : LEFT + 1] = -1
            stats[node] = 0
            for i in range(m):
                if rules.criterion == SQUARES:
                    stats[node, 0] += work.weights[i]
                    stats[node, 1] += work.weights[i] * work.y[i]
                else:
                    stats[node, work.y[i]] += work.weights[i]
            take_kept(plant, node)
        feature, code, constants = decide(
            plant, table, rules, work, node, depth, key, whole, m, kept, constants
        )
        if first < 0:
            told[3] += feature >= 0
            continue
        if moving and feature == nodes[node, FEATURE] and code == nodes[node, CODE]:
            if feature >= 0:
                if sign < 0:
                    _find_next(plant, table, node, some, first, after)
                else:
                    lower_next(plant, table, node, some, first, after)
                middle = _divide(plant, table, work, node, some, first, after)
                for side in range(2):
                    begin, end = (middle, after) if side else (first, middle)
                    if begin < end:
                        _wait(work, waiting, plant, node, depth, key, constants, side, begin, end)
                        waiting += 1
            continue
        if moving:
            clear(plant, work, node)
            told[1] += 1
            told[2] += nodes[node, COUNT]
        if feature < 0:
            drop_kept(plant, node)
            continue
        if moving and not room_for(plant, node):
            drop_kept(plant, node)
            pending[told[0], 0], pending[told[0], 1], pending_keys[told[0]] = node, depth, key
            told[0] += 1
            continue
        to_left = part(plant, table, work, node, feature, code)
        pair, count = take_pair(plant), nodes[node, COUNT]
        nodes[node, LEFT] = pair
        nodes[pair, START], nodes[pair, CAPACITY] = nodes[node, START], to_left
        nodes[pair + 1, START] = nodes[node, START] + to_left
        nodes[pair + 1, CAPACITY] = count - to_left
        for side in range(2):
            _wait(work, waiting, plant, node, depth, key, constants, side, 0, 0)
            waiting += 1


@borrowing
def leaves_that_gain(
    plant: GrowingTree,
    work: Work,
    root_key: np.uint64,
    least: float,
    whole: float,
    found: Ints,
    keys: Words,
) -> int:
    """Find leaves that would gain at least some share of the `whole` by a split; return how many.

    What they would gain was too little when they decided, but the tree has got lighter.

    Their slots and depths are written to `found`, of shape (n_slots, 2), and their keys to `keys`.
    """
    nodes, calls = plant.nodes, work.calls
    calls[0, 0], calls[0, 1], work.call_keys[0] = 0, 0, root_key
    waiting, n = 1, 0
    while waiting:
        waiting -= 1
        node, depth, key = calls[waiting, 0], calls[waiting, 1], work.call_keys[waiting]
        if nodes[node, FEATURE] < 0:
            if plant.gains[node] / whole >= least:
                found[n, 0], found[n, 1], keys[n] = node, depth, key
                n += 1
            continue
        for side in range(2):
            _wait(work, waiting, plant, node, depth, key, _UNKNOWN, side, 0, 0)
            waiting += 1
    return n

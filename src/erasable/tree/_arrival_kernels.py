"""Rows that come to a tree: their places, and what they change in the counts that nodes keep.

The law it keeps: the rows of a node lie side by side, and where they lie is none of the model's
business.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Ints32
from erasable.tree._codes import Codes, place_of
from erasable.tree._decide_kernels import line_up
from erasable.tree._hash_kernels import mix32, mix64
from erasable.tree._layout import (
    CACHE,
    CAPACITY,
    CODE,
    FEATURE,
    LEFT,
    NEXT,
    NONE,
    ROW_BITS,
    SQUARES,
    START,
    USED,
    GrowingTree,
    Rules,
    Table,
    Work,
)
from erasable.tree._slot_kernels import goes_left, weigh

_NONE = np.uint32(NONE)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ROW = (1 << ROW_BITS) - 1
_SPARE = 16
"""Of so many places one at least is free, beside one more, where rows are laid out again."""


@inlined
def _count_free(plant: GrowingTree, node: int) -> Any:
    start, free = plant.nodes[node, START], 0
    for i in range(start, start + plant.nodes[node, CAPACITY]):
        free += plant.rows[i] == _NONE
    return free


@inlined
def _lay_out(plant: GrowingTree, work: Work, top: Any, wanting: Any, free: Any) -> None:
    """Lay the rows below a node out again: every leaf gets free places according to its size.

    The leaf `wanting` gets one more, in which a row is to be.
    """
    nodes, rows, order, side = plant.nodes, plant.rows, work.calls, work.side
    n = plant.nodes[top, CAPACITY] - free + 1
    free -= 1
    work.stack[0] = top
    waiting, listed, taken = 1, 0, 0
    # Nodes in an order in which parents come first; of leaves the number of rows is noted.
    while waiting:
        waiting -= 1
        node = work.stack[waiting]
        order[listed >> 2, listed & 3] = node
        listed += 1
        if nodes[node, FEATURE] >= 0:
            work.stack[waiting], work.stack[waiting + 1] = nodes[node, LEFT] + 1, nodes[node, LEFT]
            waiting += 2
            continue
        first = taken
        for i in range(nodes[node, START], nodes[node, START] + nodes[node, CAPACITY]):
            if rows[i] != _NONE:
                side[taken] = rows[i]
                taken += 1
        nodes[node, CAPACITY] = taken - first
    for i in range(nodes[top, START], nodes[top, START] + n + free):
        rows[i] = _NONE
    begin, before, taken = nodes[top, START], 0, 0
    for k in range(listed):
        node = order[k >> 2, k & 3]
        if nodes[node, FEATURE] >= 0:
            continue
        own = nodes[node, CAPACITY]
        after = before + own + (1 if node == wanting else 0)
        start = begin + before + free * before // n
        nodes[node, START] = start
        nodes[node, CAPACITY] = begin + after + free * after // n - start
        for i in range(own):
            rows[start + i] = side[taken + i]
        taken += own
        before = after
    for k in range(listed - 1, -1, -1):
        node = order[k >> 2, k & 3]
        if nodes[node, FEATURE] >= 0:
            left = nodes[node, LEFT]
            nodes[node, START] = nodes[left, START]
            nodes[node, CAPACITY] = (
                nodes[left + 1, START] + nodes[left + 1, CAPACITY] - nodes[left, START]
            )


@borrowing
def put_rows_in(
    plant: GrowingTree, table: Table, work: Work, come: NDArray[np.uint32], first: int
) -> int:
    """Put the rows `come`, from index `first` on, in the leaves to which the present splits lead.

    Return the index of the row for which the tree has no room; the number of rows if it has for
    all.
    """
    nodes, rows = plant.nodes, plant.rows
    for g in range(first, come.size):
        row = np.int64(come[g]) & _ROW
        node: Any = 0
        place: Any = -1
        depth = 0
        while nodes[node, FEATURE] >= 0:
            work.stack[depth] = node
            depth += 1
            left = nodes[node, LEFT]
            node = left if goes_left(plant, table, node, row) else left + 1
        leaf = node
        for i in range(nodes[leaf, START], nodes[leaf, START] + nodes[leaf, CAPACITY]):
            if rows[i] == _NONE:
                place = i
                break
        if place < 0:
            # The smallest subtree that has some room.
            best: Any = -1
            free: Any = 0
            for k in range(depth - 1, -1, -1):
                best = work.stack[k]
                free = _count_free(plant, best)
                if free > nodes[best, CAPACITY] // _SPARE:
                    break
                best = -1
            if best < 0:
                return g
            _lay_out(plant, work, best, leaf, free)
            for i in range(nodes[leaf, START], nodes[leaf, START] + nodes[leaf, CAPACITY]):
                if rows[i] == _NONE:
                    place = i
                    break
        rows[place] = come[g]
    return come.size


@inlined
def put_into_kept(
    plant: GrowingTree,
    table: Table,
    rules: Rules,
    work: Work,
    node: int,
    key: np.uint64,
    come: NDArray[np.uint32],
    first: int,
    after: int,
) -> None:
    """Bring the counts of a node's candidates up to date; say where others may be drawn.

    A value that was not drawn has a draw behind the last, if as many were drawn as are wanted; if
    fewer were, all were drawn that there were.
    """
    slot, q = plant.nodes[node, CACHE], rules.max_features
    if q < table.names.size:
        # Where all of the first were constant, another stands in the place of the first of them.
        line_up(table, work, key, q)
        if plant.features[slot, 0] != work.order[0]:
            plant.features[slot, 0], plant.found[slot, 0, 0] = work.order[0], -1
    for place in range(q):
        f, found = plant.features[slot, place], plant.found[slot, place, 0]
        code, full = plant.codes[slot, place], found == rules.sample
        count, left = plant.counts[slot, place], plant.lefts[slot, place]
        last = np.int64(plant.found[slot, place, 1])
        last_draw = np.uint64(plant.found[slot, place, 2]) & _LOW
        packed, race = table.packed[:, f], mix64(key ^ table.names[f]) & _LOW
        drawn = found <= 0
        for g in range(first, after):
            row, weight = np.int64(come[g]) & _ROW, weigh(table, come[g])
            c, y, known = np.int64(packed[row] & _LOW), table.y[row], False
            for j in range(found - 1, -1, -1):
                if code[j] < c:
                    break
                count[j, 1] += 1
                if rules.criterion == SQUARES:
                    left[j, 0] += weight
                    left[j, 1] += weight * y
                else:
                    left[j, y] += weight
                if code[j] == c:
                    count[j, 0] += 1
                    known = True
            draw = mix32((packed[row] >> _32) ^ race)
            sooner = draw < last_draw or (draw == last_draw and c < last)
            drawn |= not known and (not full or sooner)
        if drawn:
            plant.found[slot, place, 0] = -1


@inlined
def lower_next(
    plant: GrowingTree, table: Table, node: int, come: NDArray[np.uint32], first: int, after: int
) -> None:
    """Know the smallest value on the right, where records come."""
    nodes, packed = plant.nodes, table.packed[:, plant.nodes[node, FEATURE]]
    for g in range(first, after):
        c = np.int64(packed[np.int64(come[g]) & _ROW] & _LOW)
        if nodes[node, CODE] < c < nodes[node, NEXT]:
            nodes[node, NEXT] = c


@inlined
def _recode_kept(
    plant: GrowingTree, codes: Codes, other: Ints32, columns: NDArray[np.bool_], slot: int
) -> None:
    for place in range(plant.features.shape[1]):
        f, last = np.int64(plant.features[slot, place]), plant.found[slot, place, 1]
        if not columns[f]:
            continue
        for j in range(plant.found[slot, place, 0]):
            code = np.int64(plant.codes[slot, place, j])
            new = other[place_of(codes, f, code)]
            if code == last:
                plant.found[slot, place, 1] = new
            plant.codes[slot, place, j] = new


@borrowing
def recode_tree(
    plant: GrowingTree, codes: Codes, other: Ints32, columns: NDArray[np.bool_]
) -> None:
    """Write the codes that values have now into a tree; see `erasable.tree._codes.spread`."""
    nodes = plant.nodes
    for node in range(plant.counters[USED]):
        if nodes[node, CAPACITY] == 0:  # it is free
            continue
        f = np.int64(nodes[node, FEATURE])
        if f >= 0 and columns[f]:
            nodes[node, CODE] = other[place_of(codes, f, np.int64(nodes[node, CODE]))]
            nodes[node, NEXT] = other[place_of(codes, f, np.int64(nodes[node, NEXT]))]
        if nodes[node, CACHE] >= 0:
            _recode_kept(plant, codes, other, columns, nodes[node, CACHE])

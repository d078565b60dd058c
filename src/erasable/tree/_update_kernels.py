"""Growth of trees, deletion and addition of records.

A subtree is a function of the records of its node, of its path and of the rules. As long as the
decisions above a node stand, its records change only by those that go or come. Where a decision
changes, the subtree is grown again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, inlined
from erasable.core.arrays import Ints, Ints32, Words
from erasable.tree._codes import ColumnCodes, place_of
from erasable.tree._decide_kernels import decide, gather, line_up
from erasable.tree._hash_kernels import LEFT_SIDE, RIGHT_SIDE, child_key, mix32, mix64
from erasable.tree._layout import (
    ALL_VALUES,
    CACHE,
    CAPACITY,
    CODE,
    COUNT,
    DIRTY,
    FEATURE,
    GAP,
    GAP_SIDE,
    GAPS_RIGHT,
    LEFT,
    NEXT,
    NO_DEPTH,
    NO_GAPS,
    NONE,
    ROW_BITS,
    SQUARES,
    START,
    USED,
    GrowingTree,
    TreeRecords,
    TreeRules,
    TreeScratch,
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

_NONE = np.uint32(NONE)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ROW = (1 << ROW_BITS) - 1
_CODE = (1 << 32) - 1
_SPARE = 16
"""Of so many places one at least is free, beside one more, where rows are laid out again."""


@inlined
def _count_free(growing: GrowingTree, node: int) -> Any:
    start, free = growing.nodes[node, START], 0
    for i in range(start, start + growing.nodes[node, CAPACITY]):
        free += growing.rows[i] == _NONE
    return free


@inlined
def _lay_out(growing: GrowingTree, work: TreeScratch, top: Any, wanting: Any, free: Any) -> None:
    """Lay the rows below a node out again: every leaf gets free places according to its size.

    The leaf `wanting` gets one more, in which a row is to be.
    """
    nodes, rows, order, side = growing.nodes, growing.rows, work.calls, work.side
    n = growing.nodes[top, CAPACITY] - free + 1
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
    growing: GrowingTree,
    table: TreeRecords,
    work: TreeScratch,
    come: NDArray[np.uint32],
    first: int,
) -> int:
    """Put the rows `come`, from index `first` on, in the leaves to which the present splits lead.

    Return the index of the row for which the tree has no room; the number of rows if it has for
    all.
    """
    nodes, rows = growing.nodes, growing.rows
    for g in range(first, come.size):
        row = np.int64(come[g]) & _ROW
        node: Any = 0
        place: Any = -1
        depth = 0
        while nodes[node, FEATURE] >= 0:
            work.stack[depth] = node
            depth += 1
            left = nodes[node, LEFT]
            node = left if goes_left(growing, table, node, row) else left + 1
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
                free = _count_free(growing, best)
                if free > nodes[best, CAPACITY] // _SPARE:
                    break
                best = -1
            if best < 0:
                return g
            _lay_out(growing, work, best, leaf, free)
            for i in range(nodes[leaf, START], nodes[leaf, START] + nodes[leaf, CAPACITY]):
                if rows[i] == _NONE:
                    place = i
                    break
        rows[place] = come[g]
    return come.size


@inlined
def _count_gaps(
    table: TreeRecords,
    packed: Words,
    some: NDArray[np.uint32],
    first: int,
    after: int,
    sign: int,
    rules: TreeRules,
    gaps: Ints,
) -> None:
    """Count those of some records that have no value, which come or go."""
    for g in range(first, after):
        row = np.int64(some[g]) & _ROW
        if np.int64(packed[row] & _LOW) != GAP:
            continue
        weight = sign * weigh(table, some[g])
        if rules.criterion == SQUARES:
            gaps[0] += weight
            gaps[1] += weight * table.y[row]
        else:
            gaps[table.y[row]] += weight
        gaps[gaps.size - 1] += sign


@inlined
def put_into_kept(
    growing: GrowingTree,
    table: TreeRecords,
    rules: TreeRules,
    work: TreeScratch,
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
    slot, q = growing.nodes[node, CACHE], rules.max_features
    if q < table.names.size:
        # Where all of the first were constant, another stands in the place of the first of them.
        line_up(table, work, key, q)
        if growing.features[slot, 0] != work.order[0]:
            growing.features[slot, 0], growing.found[slot, 0, 0] = work.order[0], -1
    for place in range(q):
        f, found = growing.features[slot, place], growing.found[slot, place, 0]
        code, full = growing.codes[slot, place], found == rules.sample
        count, left = growing.counts[slot, place], growing.lefts[slot, place]
        last = np.int64(growing.found[slot, place, 1])
        last_draw = np.uint64(growing.found[slot, place, 2]) & _LOW
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
            drawn |= not known and c != GAP and (not full or sooner)
        if table.n_gaps[f]:
            _count_gaps(table, packed, come, first, after, 1, rules, growing.gaps[slot, place])
        if drawn:
            growing.found[slot, place, 0] = -1


@inlined
def lower_next(
    growing: GrowingTree,
    table: TreeRecords,
    node: int,
    come: NDArray[np.uint32],
    first: int,
    after: int,
) -> None:
    """Know the smallest value on the right, where records come."""
    nodes, packed = growing.nodes, table.packed[:, growing.nodes[node, FEATURE]]
    for g in range(first, after):
        c = np.int64(packed[np.int64(come[g]) & _ROW] & _LOW)
        if nodes[node, CODE] < c < nodes[node, NEXT]:
            nodes[node, NEXT] = c


@inlined
def _recode_kept(
    growing: GrowingTree, codes: ColumnCodes, other: Ints32, columns: NDArray[np.bool_], slot: int
) -> None:
    for place in range(growing.features.shape[1]):
        f, last = np.int64(growing.features[slot, place]), growing.found[slot, place, 1]
        if not columns[f]:
            continue
        for j in range(growing.found[slot, place, 0]):
            code = np.int64(growing.codes[slot, place, j])
            new = other[place_of(codes, f, code)]
            if code == last:
                growing.found[slot, place, 1] = new
            growing.codes[slot, place, j] = new


@borrowing
def recode_tree(
    growing: GrowingTree, codes: ColumnCodes, other: Ints32, columns: NDArray[np.bool_]
) -> None:
    """Write the codes that values have now into a tree; see `erasable.tree._codes.spread`."""
    nodes = growing.nodes
    for node in range(growing.counters[USED]):
        if nodes[node, CAPACITY] == 0:  # it is free
            continue
        f = np.int64(nodes[node, FEATURE])
        if f >= 0 and columns[f] and nodes[node, CODE] != ALL_VALUES:
            nodes[node, CODE] = other[place_of(codes, f, np.int64(nodes[node, CODE]))]
            nodes[node, NEXT] = other[place_of(codes, f, np.int64(nodes[node, NEXT]))]
        if nodes[node, CACHE] >= 0:
            _recode_kept(growing, codes, other, columns, nodes[node, CACHE])


_UNKNOWN = np.uint64(0)


@borrowing
def take_rows_out(
    growing: GrowingTree,
    table: TreeRecords,
    gone: NDArray[np.uint32],
    live: NDArray[np.bool_],
    every: bool,
) -> None:
    """Overwrite rows that are gone; `every` row of the tree is looked at, or a leaf for each."""
    nodes, rows = growing.nodes, growing.rows
    if every:
        for i in range(rows.size):
            if np.int64(rows[i]) != NONE and not live[np.int64(rows[i]) & _ROW]:
                rows[i] = NONE
        return
    for g in range(gone.size):
        row, node = np.int64(gone[g]) & _ROW, 0
        while nodes[node, FEATURE] >= 0:
            left = nodes[node, LEFT]
            node = left if goes_left(growing, table, node, row) else left + 1
        start = nodes[node, START]
        for i in range(start, start + nodes[node, CAPACITY]):
            if rows[i] == gone[g]:
                rows[i] = NONE
                break


@inlined
def _take_from_kept(
    growing: GrowingTree,
    table: TreeRecords,
    rules: TreeRules,
    node: int,
    gone: NDArray[np.uint32],
    first: int,
    after: int,
) -> None:
    """Bring the counts of a node's candidates up to date; of a feature that lost one, say so."""
    slot = growing.nodes[node, CACHE]
    for place in range(rules.max_features):
        found, code = growing.found[slot, place, 0], growing.codes[slot, place]
        count, left = growing.counts[slot, place], growing.lefts[slot, place]
        packed = table.packed[:, growing.features[slot, place]]
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
        if table.n_gaps[growing.features[slot, place]]:
            _count_gaps(table, packed, gone, first, after, -1, rules, growing.gaps[slot, place])
        if lost:
            growing.found[slot, place, 0] = -1


@inlined
def _find_next(
    growing: GrowingTree,
    table: TreeRecords,
    node: int,
    gone: NDArray[np.uint32],
    first: int,
    after: int,
) -> None:
    """Find the smallest value on the right again, where records go that had it."""
    nodes, packed = growing.nodes, table.packed[:, growing.nodes[node, FEATURE]]
    known, concerned = nodes[node, NEXT], False
    for g in range(first, after):
        concerned |= np.int64(packed[np.int64(gone[g]) & _ROW] & _LOW) == known
    if not concerned:
        return
    right = nodes[node, LEFT] + 1
    start, lowest = nodes[right, START], np.int64(NO_DEPTH)
    for i in range(start, start + nodes[right, CAPACITY]):
        entry = np.int64(growing.rows[i])
        if entry != NONE:
            c = np.int64(packed[entry & _ROW] & _LOW)
            if c == known:
                return
            lowest = min(lowest, c)
    nodes[node, NEXT] = lowest


@inlined
def _divide(
    growing: GrowingTree,
    table: TreeRecords,
    work: TreeScratch,
    node: int,
    some: NDArray[np.uint32],
    first: int,
    after: int,
) -> int:
    """Put those rows first that go to the left; return where the others begin."""
    middle, to_right = first, 0
    for g in range(first, after):
        if goes_left(growing, table, node, np.int64(some[g]) & _ROW):
            some[middle] = some[g]
            middle += 1
        else:
            work.side[to_right] = some[g]
            to_right += 1
    for i in range(to_right):
        some[middle + i] = work.side[i]
    return middle


@inlined
def _part_alike(before: Any, side: Any) -> bool:
    """Tell whether records are where they were, as the side of gaps is another.

    Where there are no gaps any more, none is on the wrong side; the first that came is on the
    right, behind all values.
    """
    if side == before:
        return True
    return bool(side == NO_GAPS or (before == NO_GAPS and side == GAPS_RIGHT))


@inlined
def _wait(
    work: TreeScratch,
    waiting: int,
    growing: GrowingTree,
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
    calls[waiting, 0], calls[waiting, 1] = growing.nodes[node, LEFT] + side, depth + 1
    calls[waiting, 2], calls[waiting, 3] = first, after
    work.call_keys[waiting] = child_key(key, RIGHT_SIDE if side else LEFT_SIDE)
    work.call_constants[waiting] = constants


@borrowing
def update_tree(
    growing: GrowingTree,
    table: TreeRecords,
    rules: TreeRules,
    work: TreeScratch,
    waiting: int,
    whole: float,
    some: NDArray[np.uint32],
    sign: int,
    pending: Ints,
    pending_keys: Words,
    report: Ints,
) -> None:
    """Have nodes decide, and those below them.

    Each of the first `waiting` lines of ``work.calls`` is a node: its slot; its depth; the range of
    those of `some` that leave it or come to it. The range is (0, 0) where a blank node is to be
    grown from the rows in its own range, with slots for two nodes a record; (-1, -1) where a leaf
    is only evaluated, for its gain. Keys and constant features of the nodes are in
    ``work.call_keys`` and ``work.call_constants``.

    `whole` is the weight of all records of now. `some` has rows and weights as
    `GrowingTree.rows`: of records that go (`sign` -1), which are no longer there, or that come
    (`sign` 1), which are there already; it is put in another order. Their values and targets are
    in `table`. `pending`, of shape (n, 2), and `pending_keys` are overwritten with nodes, depths
    and keys where there is no memory for what is to grow. Added to `report`, of shape (4,), are:
    their number; the nodes that decided otherwise; the records of these; the leaves that were only
    evaluated and should be split.
    """
    nodes, stats, calls = growing.nodes, growing.stats, work.calls
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
                _take_from_kept(growing, table, rules, node, some, first, after)
            elif kept:
                put_into_kept(growing, table, rules, work, node, key, some, first, after)
            elif nodes[node, FEATURE] >= 0:
                take_kept(growing, node)
        elif first == 0:
            m = gather(growing, table, work, node)
            nodes[node, COUNT] = m
            nodes[node, : LEFT + 1] = -1
            nodes[node, GAP_SIDE] = NO_GAPS
            stats[node] = 0
            for i in range(m):
                if rules.criterion == SQUARES:
                    stats[node, 0] += work.weights[i]
                    stats[node, 1] += work.weights[i] * work.y[i]
                else:
                    stats[node, work.y[i]] += work.weights[i]
            take_kept(growing, node)
        feature, choice, constants = decide(
            growing, table, rules, work, node, depth, key, whole, m, kept, constants
        )
        if first < 0:
            report[3] += feature >= 0
            continue
        code, side = (choice & _CODE, choice >> 32) if feature >= 0 else (choice, NO_GAPS)
        same = moving and feature == nodes[node, FEATURE] and code == nodes[node, CODE]
        if same and _part_alike(nodes[node, GAP_SIDE], side):
            if feature >= 0:
                if sign < 0:
                    _find_next(growing, table, node, some, first, after)
                else:
                    lower_next(growing, table, node, some, first, after)
                middle = _divide(growing, table, work, node, some, first, after)
                nodes[node, GAP_SIDE] = side  # only now: those that go are where gaps went before
                for child in range(2):
                    begin, end = (middle, after) if child else (first, middle)
                    if begin < end:
                        _wait(
                            work, waiting, growing, node, depth, key, constants, child, begin, end
                        )
                        waiting += 1
            continue
        if moving:
            clear(growing, work, node)
            report[1] += 1
            report[2] += nodes[node, COUNT]
        if feature < 0:
            drop_kept(growing, node)
            continue
        if moving and not room_for(growing, node):
            drop_kept(growing, node)
            pending[report[0], 0], pending[report[0], 1], pending_keys[report[0]] = node, depth, key
            report[0] += 1
            continue
        to_left = part(growing, table, work, node, feature, code, side)
        pair, count = take_pair(growing), nodes[node, COUNT]
        nodes[node, LEFT] = pair
        nodes[pair, START], nodes[pair, CAPACITY] = nodes[node, START], to_left
        nodes[pair + 1, START] = nodes[node, START] + to_left
        nodes[pair + 1, CAPACITY] = count - to_left
        for child in range(2):
            _wait(work, waiting, growing, node, depth, key, constants, child, 0, 0)
            waiting += 1


@borrowing
def leaves_that_gain(
    growing: GrowingTree,
    work: TreeScratch,
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
    nodes, calls = growing.nodes, work.calls
    calls[0, 0], calls[0, 1], work.call_keys[0] = 0, 0, root_key
    waiting, n = 1, 0
    while waiting:
        waiting -= 1
        node, depth, key = calls[waiting, 0], calls[waiting, 1], work.call_keys[waiting]
        if nodes[node, FEATURE] < 0:
            if growing.gains[node] / whole >= least:
                found[n, 0], found[n, 1], keys[n] = node, depth, key
                n += 1
            continue
        for side in range(2):
            _wait(work, waiting, growing, node, depth, key, _UNKNOWN, side, 0, 0)
            waiting += 1
    return n

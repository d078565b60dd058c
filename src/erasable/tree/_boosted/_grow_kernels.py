"""Growth of a tree from pairs of whole numbers.

A tree is a function of the set of (codes, pair) of its records, of the edges and of the tree's key.
Sums by code are whole numbers: those of the larger child are the parent's less the smaller one's,
exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.tree._boosted._decide_kernels import decide_node, goes_left, survey, value_of
from erasable.tree._boosted._layout import (
    BEST,
    DEPTH,
    EDGE,
    FIRST,
    GAP,
    GAPS_LEFT,
    N_CANDIDATES,
    N_CODES,
    Bins,
    BoostingRules,
    BoostingScratch,
    TreeArrays,
    Whole,
)
from erasable.tree._hash_kernels import LEFT_SIDE, RIGHT_SIDE, child_key
from erasable.tree._layout import FEATURE, LEFT

_TOGETHER = 16
"""Features whose sums are in the cache together."""
_1, _9 = np.uint64(1), np.uint64(9)
_MOST_RAW = np.int64(2**30)


@subroutine
def _add_up(bins: Bins, pairs: Ints, rows: Ints32, start: Whole, end: Whole, totals: Ints) -> None:
    """Sum the pairs of some rows by code."""
    d = np.uint64(bins.sizes.size)
    codes, sums = bins.codes.reshape(bins.codes.size), totals.reshape(totals.size)
    sums[:] = 0
    for first in range(0, bins.sizes.size, _TOGETHER):
        begin = np.uint64(first)
        width = min(d - begin, np.uint64(_TOGETHER))
        part = sums[first * 2 * N_CODES : (first + _TOGETHER) * 2 * N_CODES]
        for k in range(start, end):
            r = rows[k]
            g, c = pairs[r, 0], pairs[r, 1]
            at = np.uint64(r) * d + begin
            for f in range(width):
                word = np.uint64(f)
                place = (word << _9) | (np.uint64(codes[at + word]) << _1)
                part[place] += g
                part[place | _1] += c


@subroutine
def _subtract(totals: Ints, part: Ints) -> None:
    flat, other = totals.reshape(totals.size), part.reshape(part.size)
    for i in range(flat.size):
        flat[i] -= other[i]


@subroutine
def _part(
    bins: Bins, work: BoostingScratch, tree: TreeArrays, node: Whole, start: Whole, end: Whole
) -> Any:
    """Put the rows of a node that go left before the others; return where those begin."""
    nodes, rows, right, codes = tree.nodes, work.rows, work.right, bins.codes
    f, edge = nodes[node, FEATURE], nodes[node, EDGE]
    side = np.empty(N_CODES, np.uint8)
    for code in range(N_CODES - 1):
        side[code] = goes_left(code, edge, bins.categorical[f])
    side[GAP] = nodes[node, GAPS_LEFT] == 1
    middle: Any = start
    others: Any = 0
    for k in range(start, end):
        r = rows[k]
        left = np.int64(side[codes[r, f]])
        rows[middle] = r
        right[others] = r
        middle += left
        others += 1 - left
    for k in range(others):
        rows[middle + k] = right[k]
    return middle


@subroutine
def _child_ranges(
    bins: Bins,
    work: BoostingScratch,
    tree: TreeArrays,
    node: Whole,
    slot: Whole,
    to: Whole,
    left: bool,
) -> None:
    """Set which edges a child may try, in slot `to`; those of its parent are in `slot`."""
    work.low[to] = work.low[slot]
    work.high[to] = work.high[slot]
    f, edge = tree.nodes[node, FEATURE], tree.nodes[node, EDGE]
    if edge >= work.high[slot, f]:  # gaps on one side, values on the other
        if not left:
            work.high[to, f] = work.low[to, f]
    elif bins.categorical[f]:
        if left:
            work.high[to, f] = work.low[to, f]
    elif left:
        work.high[to, f] = edge
    else:
        work.low[to, f] = edge + 1


@subroutine
def _end(
    tree: TreeArrays,
    node: Whole,
    rules: BoostingRules,
    work: BoostingScratch,
    start: Whole,
    end: Whole,
    raws: Ints32,
) -> None:
    """Make a node a leaf, and add its value to the predictions of its rows."""
    tree.nodes[node, FEATURE] = tree.nodes[node, LEFT] = -1
    value = value_of(tree.sums[node, 0], tree.sums[node, 1], tree.keys[node], rules)
    tree.values[node] = value
    if value:
        for k in range(start, end):
            add_to(raws, work.rows[k], value)


@subroutine
def add_to(raws: Ints32, row: int, value: int) -> None:
    """Add a leaf's value to a prediction, within bounds."""
    raws[row] = min(max(np.int64(raws[row]) + value, -_MOST_RAW), _MOST_RAW)


@subroutine
def _wait(
    bins: Bins, rules: BoostingRules, table: Floats, work: BoostingScratch,
    tree: TreeArrays, raws: Ints32, place: Whole, node: Whole, start: Whole, end: Whole,
    slot: Whole, used: int,
) -> int:  # fmt: skip
    """Have a node decide, and wait at a place of the queue if it has a split; return the end.

    A node that has none becomes a leaf.
    """
    nodes = tree.nodes
    nodes[node, FIRST], nodes[node, N_CANDIDATES], nodes[node, BEST] = used, 0, -1
    nodes[node, FEATURE] = nodes[node, LEFT] = -1
    nodes[node, EDGE] = nodes[node, GAPS_LEFT] = 0
    tree.scores[node] = 0.0
    if slot >= 0:
        used = survey(bins, work, slot, tree, node, used, table)
        decide_node(tree, node, rules)
    if nodes[node, BEST] < 0:
        _end(tree, node, rules, work, start, end, raws)
    else:
        queue = work.waiting[place]
        queue[0], queue[1], queue[2], queue[3] = node, start, end, slot
    return used


@subroutine
def first_of(tree: TreeArrays, queue: Ints, n: int, rules: BoostingRules) -> int:
    """Return the place in a queue of the node that is split next."""
    best = n - 1
    if rules.max_leaves:
        for k in range(n - 1):
            node, other = queue[k, 0], queue[best, 0]
            score, held = tree.scores[node], tree.scores[other]
            if score > held or (score == held and tree.keys[node] > tree.keys[other]):
                best = k
    return best


@kernel
def grow(
    bins: Bins, pairs: Ints, rules: BoostingRules, table: Floats, work: BoostingScratch,
    tree: TreeArrays, raws: Ints32, report: Ints,
) -> None:  # fmt: skip
    """Grow a tree of the rows in `work.rows`; its key is in ``tree.keys[0]``.

    What the leaves add goes to `raws`; `report` is how many nodes and candidates there are.
    """
    nodes, sums, queue, rows = tree.nodes, tree.sums, work.waiting, work.rows
    n_nodes, used, n_leaves, least = 1, 0, 1, 2 * rules.min_leaf
    n_free = work.sums.shape[0]
    free: Any = np.arange(n_free)[::-1].copy()
    sums[0] = 0
    for k in range(rows.size):
        sums[0, 0] += pairs[rows[k], 0]
        sums[0, 1] += pairs[rows[k], 1]
    nodes[0, DEPTH] = 0
    slot = np.int64(-1)
    if rules.max_depth > 0 and rows.size >= least:
        n_free -= 1
        slot = free[n_free]
        work.low[slot] = 0
        work.high[slot] = bins.sizes
        _add_up(bins, pairs, rows, 0, rows.size, work.sums[slot])
        for f in range(bins.sizes.size):
            work.gaps[f] = work.sums[slot, f, GAP, 1] != 0
    used = _wait(bins, rules, table, work, tree, raws, 0, 0, 0, rows.size, slot, used)
    waiting = 1 if nodes[0, BEST] >= 0 else 0
    while waiting and (rules.max_leaves == 0 or n_leaves < rules.max_leaves):
        place = first_of(tree, queue, waiting, rules)
        node, start, end = queue[place, 0], queue[place, 1], queue[place, 2]
        slot = queue[place, 3]
        waiting -= 1
        queue[place] = queue[waiting]
        best = nodes[node, BEST]
        nodes[node, FEATURE], nodes[node, EDGE] = tree.tried[best, 0], tree.tried[best, 1]
        middle = _part(bins, work, tree, node, start, end)
        left, right = n_nodes, n_nodes + 1
        n_nodes, n_leaves = n_nodes + 2, n_leaves + 1
        nodes[node, LEFT] = left
        depth = nodes[node, DEPTH] + 1
        nodes[left, DEPTH] = nodes[right, DEPTH] = depth
        tree.keys[left] = child_key(tree.keys[node], LEFT_SIDE)
        tree.keys[right] = child_key(tree.keys[node], RIGHT_SIDE)
        for k in range(2):
            sums[left, k] = tree.lefts[best, k]
            if nodes[node, GAPS_LEFT]:
                sums[left, k] += work.sums[slot, nodes[node, FEATURE], GAP, k]
            sums[right, k] = sums[node, k] - sums[left, k]
        n_left, n_right = middle - start, end - middle
        left_tries = depth < rules.max_depth and n_left >= least
        right_tries = depth < rules.max_depth and n_right >= least
        if rules.max_leaves and n_leaves == rules.max_leaves:
            # Nobody is split any more. What would be best there does not count.
            left_tries = right_tries = False
        left_slot, right_slot = np.int64(-1), np.int64(-1)
        if left_tries or right_tries:
            n_free -= 1
            other = free[n_free]
            lighter = n_left <= n_right
            if lighter:
                _add_up(bins, pairs, rows, start, middle, work.sums[other])
                left_slot, right_slot = other, slot
            else:
                _add_up(bins, pairs, rows, middle, end, work.sums[other])
                left_slot, right_slot = slot, other
            _subtract(work.sums[slot], work.sums[other])
            _child_ranges(bins, work, tree, node, slot, other, lighter)
            _child_ranges(bins, work, tree, node, slot, slot, not lighter)
        else:
            free[n_free] = slot
            n_free += 1
        tried = right_slot if right_tries else np.int64(-1)
        used = _wait(
            bins, rules, table, work, tree, raws, waiting, right, middle, end, tried, used
        )  # fmt: skip
        if nodes[right, BEST] >= 0:
            waiting += 1
        elif right_slot >= 0:
            free[n_free] = right_slot
            n_free += 1
        tried = left_slot if left_tries else np.int64(-1)
        used = _wait(
            bins, rules, table, work, tree, raws, waiting, left, start, middle, tried, used
        )  # fmt: skip
        if nodes[left, BEST] >= 0:
            waiting += 1
        elif left_slot >= 0:
            free[n_free] = left_slot
            n_free += 1
    for k in range(waiting):
        _end(tree, queue[k, 0], rules, work, queue[k, 1], queue[k, 2], raws)
    report[0], report[1] = n_nodes, used

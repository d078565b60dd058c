"""A tree as plain arrays: its nodes in pre-order, the left subtree first.

Two trees that split alike are equal arrays, wherever their nodes lie in memory. `features` has a
number for every node, -1 for a leaf; `thresholds` one for every split and `leaves` a line for every
leaf, in the same order. Records with values up to the threshold go left; it lies in the middle
between two values of the node's records, or is `ANY_VALUE` where only gaps go to the right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.tree._codes import ColumnCodes, place_of
from erasable.tree._decide_kernels import gather
from erasable.tree._layout import (
    ALL_VALUES,
    ANY_VALUE,
    CACHE,
    CAPACITY,
    CODE,
    COUNT,
    DIRTY,
    FEATURE,
    GAP,
    GAP_SIDE,
    GAPS_LEFT,
    LEFT,
    NEXT,
    NO_GAPS,
    SQUARES,
    START,
    GrowingTree,
    TreeRecords,
    TreeRules,
    TreeScratch,
)
from erasable.tree._score_kernels import gain_of, score_of
from erasable.tree._slot_kernels import part, take_pair

_LOW = np.uint64(0xFFFFFFFF)


@subroutine
def _threshold(nodes: Ints32, known: ColumnCodes, node: int) -> float:
    """Return the middle between the values next to a split; the lower one if there is none."""
    f = np.int64(nodes[node, FEATURE])
    if nodes[node, CODE] == ALL_VALUES:
        return ANY_VALUE
    low = known.values[place_of(known, f, np.int64(nodes[node, CODE]))]
    high = known.values[place_of(known, f, np.int64(nodes[node, NEXT]))]
    middle = low / 2.0 + high / 2.0
    return float(middle if low <= middle < high else low)


@kernel
def find_thresholds(nodes: Ints32, known: ColumnCodes, slots: Ints, out: Floats) -> None:
    """Write the thresholds of splits; `known` has the values that codes stand for."""
    for i in range(slots.size):
        out[i] = _threshold(nodes, known, slots[i])


@kernel
def list_nodes(
    nodes: Ints32,
    stats: Ints,
    regression: bool,
    limit: int,
    root: int,
    features: Ints32,
    splits: Ints,
    ends: Ints,
) -> int:
    """Write the features of a subtree, and the slots of its splits and of its leaves, in pre-order.

    Nodes whose records weigh at most `limit` count as leaves; with -1, only leaves do. Return the
    number of splits; there is one leaf more.
    """
    stack = np.empty(features.size + 1, dtype=np.int64)
    stack[0], waiting, n, n_splits = root, 1, 0, 0
    while waiting:
        waiting -= 1
        node = stack[waiting]
        f = nodes[node, FEATURE]
        if f >= 0 and limit >= 0:
            weight = stats[node, 0]
            if not regression:
                for s in range(1, stats.shape[1]):
                    weight += stats[node, s]
            if weight <= limit:
                f = np.int32(-1)
        features[n] = f
        if f < 0:
            ends[n - n_splits] = node
        else:
            splits[n_splits] = node
            n_splits += 1
            stack[waiting], stack[waiting + 1] = nodes[node, LEFT] + 1, nodes[node, LEFT]
            waiting += 2
        n += 1
    return n_splits


@kernel
def index(features: Ints32, rights: Ints32, places: Ints32) -> None:
    """Find for every node its right child (the left one is the next), and where its number is.

    `places` is that of its threshold or leaf, in `thresholds` or `leaves`.
    """
    open_ = np.empty(features.size + 1, dtype=np.int64)
    waiting, splits, ends = 0, 0, 0
    for i in range(features.size):
        if features[i] >= 0:
            places[i] = splits
            splits += 1
            open_[waiting] = i
            waiting += 1
        else:
            places[i] = ends
            ends += 1
            rights[i] = -1
            if waiting:
                waiting -= 1
                rights[open_[waiting]] = i + 1


@subroutine
def _have_gaps(table: TreeRecords, work: TreeScratch, m: int, f: int) -> bool:
    """Tell whether any of the `m` records in `work` has a gap in a feature."""
    if table.n_gaps[f]:
        for k in range(m):
            if np.int64(table.packed[work.rows[k], f] & _LOW) == GAP:
                return True
    return False


@kernel
def restore(
    growing: GrowingTree,
    table: TreeRecords,
    rules: TreeRules,
    work: TreeScratch,
    known: ColumnCodes,
    features: Ints32,
    thresholds: Floats,
    codes: Ints32,
    gap_sides: NDArray[np.uint8],
    leaves: Ints,
) -> bool:
    """Lay a tree out again over its rows; false if it is not a tree of these.

    `codes` are those of the largest values that the thresholds let pass. `gap_sides` are empty
    where there are none.
    """
    nodes, stats = growing.nodes, growing.stats
    work.stack[0], waiting, splits, ends = 0, 1, 0, 0
    for i in range(features.size):
        if waiting == 0:
            return False
        waiting -= 1
        node = work.stack[waiting]
        m = gather(growing, table, work, node)
        for k in range(m):
            if rules.criterion == SQUARES:
                stats[node, 0] += work.weights[k]
                stats[node, 1] += work.weights[k] * work.y[k]
            else:
                stats[node, work.y[k]] += work.weights[k]
        nodes[node, COUNT], nodes[node, CACHE], nodes[node, DIRTY] = m, -1, 1
        f = features[i]
        nodes[node, : LEFT + 1] = -1
        nodes[node, GAP_SIDE] = NO_GAPS
        if f < 0:
            if ends == leaves.shape[0] or not np.array_equal(stats[node], leaves[ends]):
                return False
            ends += 1
            continue
        if f >= table.names.size or splits == codes.size:
            return False
        side: Any = np.int64(gap_sides[splits]) if gap_sides.size else NO_GAPS
        if _have_gaps(table, work, m, f) != (side != NO_GAPS):
            return False
        to_left = part(growing, table, work, node, f, codes[splits], side)
        if to_left == 0 or to_left == m:
            return False
        only_gaps = nodes[node, CODE] < 0 or nodes[node, NEXT] > ALL_VALUES
        if only_gaps and nodes[node, CODE] != ALL_VALUES:
            return False
        if _threshold(nodes, known, node) != thresholds[splits]:
            return False
        pair = take_pair(growing)
        nodes[node, LEFT] = pair
        splits += 1
        nodes[pair, START], nodes[pair, CAPACITY] = nodes[node, START], to_left
        nodes[pair + 1, START] = nodes[node, START] + to_left
        nodes[pair + 1, CAPACITY] = m - to_left
        work.stack[waiting], work.stack[waiting + 1] = pair + 1, pair
        waiting += 2
    return waiting == 0 and splits == codes.size and ends == leaves.shape[0]


NAN_LEFT, EQUAL_LEFT = np.uint8(1), np.uint8(2)
"""Flags of a split: NaN goes left; only values that equal the threshold go left."""


@kernel
def descend(
    X: Floats, features: Ints32, thresholds: Floats, flags: NDArray[np.uint8], rights: Ints32,
    places: Ints32, out: Ints,
) -> None:  # fmt: skip
    """Find the leaf of every row. There is a flag for each split, or none at all."""
    plain = flags.size == 0
    for i in range(X.shape[0]):
        node = 0
        while features[node] >= 0:
            x, place = X[i, features[node]], places[node]
            left = x <= thresholds[place]
            if not plain:
                if x != x:
                    left = (flags[place] & NAN_LEFT) != 0
                elif flags[place] & EQUAL_LEFT:
                    left = x == thresholds[place]
            node = node + 1 if left else rights[node]
        out[i] = places[node]


@kernel
def find_flags(
    features: Ints32, weights: Ints, gap_sides: NDArray[np.uint8], flags: NDArray[np.uint8]
) -> None:
    """Write the flags of a tree's splits, of which gaps go where those of its records went.

    Where none of them had one, they go to the child whose records weigh more, and to the right one
    of two that weigh the same. `weights` are those of the leaves.
    """
    totals = np.empty(weights.size + 1, dtype=np.int64)
    waiting, ends, splits = 0, weights.size, flags.size
    for i in range(features.size - 1, -1, -1):
        if features[i] < 0:
            ends -= 1
            totals[waiting] = weights[ends]
            waiting += 1
        else:
            splits -= 1
            side = np.int64(gap_sides[splits]) if gap_sides.size else NO_GAPS
            left, right = totals[waiting - 1], totals[waiting - 2]
            goes_left = side == GAPS_LEFT or (side == NO_GAPS and left > right)
            flags[splits] = NAN_LEFT if goes_left else np.uint8(0)
            totals[waiting - 2] = left + right
            waiting -= 1


@kernel
def importances(
    features: Ints32, leaves: Ints, rules: TreeRules, class_weight: Floats, out: Floats
) -> None:
    """Add up, for every feature, what its splits gain."""
    totals = np.empty((leaves.shape[0] + 1, leaves.shape[1]), dtype=np.int64)
    left = np.empty(leaves.shape[1], dtype=np.int64)
    waiting, ends = 0, leaves.shape[0]
    for i in range(features.size - 1, -1, -1):
        if features[i] < 0:
            ends -= 1
            for s in range(left.size):
                totals[waiting, s] = leaves[ends, s]
            waiting += 1
        else:
            total = totals[waiting - 2]
            for s in range(left.size):
                left[s] = totals[waiting - 1, s]
                total[s] += left[s]
            score = score_of(left, total, rules, class_weight)
            out[features[i]] += gain_of(score, total, rules, class_weight)
            waiting -= 1

"""A tree as plain arrays: its nodes in pre-order, the left subtree first.

Two trees that split alike are equal arrays, wherever their nodes lie in memory. `features` has a
number for every node, -1 for a leaf; `thresholds` one for every split and `leaves` a line for every
leaf, in the same order. Records with values up to the threshold go left; it lies in the middle
between two values of the node's records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.tree._codes import ColumnCodes, place_of
from erasable.tree._decide_kernels import gather
from erasable.tree._layout import (
    CACHE,
    CAPACITY,
    CODE,
    COUNT,
    DIRTY,
    FEATURE,
    LEFT,
    NEXT,
    SQUARES,
    START,
    GrowingTree,
    TreeRecords,
    TreeRules,
    TreeScratch,
)
from erasable.tree._score_kernels import gain_of, score_of
from erasable.tree._slot_kernels import part, take_pair


@subroutine
def _threshold(growing: GrowingTree, known: ColumnCodes, node: int) -> float:
    """Return the middle between the values next to a split; the lower one if there is none."""
    f = np.int64(growing.nodes[node, FEATURE])
    low = known.values[place_of(known, f, np.int64(growing.nodes[node, CODE]))]
    high = known.values[place_of(known, f, np.int64(growing.nodes[node, NEXT]))]
    middle = low / 2.0 + high / 2.0
    return float(middle if low <= middle < high else low)


@kernel
def flatten(
    growing: GrowingTree,
    known: ColumnCodes,
    node: int,
    features: Ints32,
    thresholds: Floats,
    leaves: Ints,
) -> tuple[int, int, int]:
    """Write a subtree to arrays that are long enough; return how much of each was needed.

    `known` has the values that codes stand for.
    """
    nodes = growing.nodes
    stack = np.empty(growing.nodes.shape[0] + 1, dtype=np.int64)
    stack[0], waiting, n, splits, ends = node, 1, 0, 0, 0
    while waiting:
        waiting -= 1
        node = stack[waiting]
        f = nodes[node, FEATURE]
        features[n] = f
        n += 1
        if f < 0:
            # Not as an array: what numba would say of a wrong length takes seconds to compile.
            for s in range(leaves.shape[1]):
                leaves[ends, s] = growing.stats[node, s]
            ends += 1
        else:
            thresholds[splits] = _threshold(growing, known, node)
            splits += 1
            stack[waiting], stack[waiting + 1] = nodes[node, LEFT] + 1, nodes[node, LEFT]
            waiting += 2
    return n, splits, ends


@kernel
def outline(
    growing: GrowingTree,
    known: ColumnCodes,
    regression: bool,
    limit: int,
    features: Ints32,
    thresholds: Floats,
    units: Ints,
    changed: NDArray[np.bool_],
) -> tuple[int, int, int]:
    """Find the subtrees that are hashed one by one, and what is above them.

    A subtree is one if it is a leaf, or its records weigh at most `limit`. In `features` it is a
    -1; `units` are the slots where they begin, and `changed` says which of them are dirty.
    """
    nodes = growing.nodes
    stack = np.empty(growing.nodes.shape[0] + 1, dtype=np.int64)
    stack[0], waiting, n, splits, ends = 0, 1, 0, 0, 0
    while waiting:
        waiting -= 1
        node = stack[waiting]
        weight = growing.stats[node, 0] if regression else growing.stats[node].sum()
        f = nodes[node, FEATURE]
        if f < 0 or weight <= limit:
            features[n] = -1
            units[ends], changed[ends] = node, nodes[node, DIRTY] > 0
            ends += 1
        else:
            features[n] = f
            thresholds[splits] = _threshold(growing, known, node)
            splits += 1
            stack[waiting], stack[waiting + 1] = nodes[node, LEFT] + 1, nodes[node, LEFT]
            waiting += 2
        n += 1
    return n, splits, ends


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
def weigh_subtrees(features: Ints32, leaves: Ints, regression: bool, weights: Ints) -> None:
    """Find the weight of every node's records."""
    open_ = np.empty(features.size + 1, dtype=np.int64)
    waiting, ends = 0, leaves.shape[0]
    for i in range(features.size - 1, -1, -1):
        if features[i] < 0:
            ends -= 1
            weights[i] = leaves[ends, 0] if regression else leaves[ends].sum()
        else:
            waiting -= 2
            weights[i] = open_[waiting] + open_[waiting + 1]
        open_[waiting] = weights[i]
        waiting += 1


@kernel
def outline_flat(
    features: Ints32, leaves: Ints, regression: bool, limit: int, top: Ints32, starts: Ints
) -> tuple[int, int]:
    """Do as `outline` does; line k of `starts` says where unit k, or node k of the top, begins.

    Lines are (node, split, leaf); those of nodes above the units have a minus before the node
    plus one. After the last comes the end of all.
    """
    weights = np.empty(features.size, dtype=np.int64)
    weigh_subtrees(features, leaves, regression, weights)
    n, i, splits, ends, units = 0, 0, 0, 0, 0
    while i < features.size:
        starts[n, 0], starts[n, 1], starts[n, 2] = i, splits, ends
        if features[i] >= 0 and weights[i] > limit:
            starts[n, 0] = -1 - i
            top[n] = features[i]
            i, splits = i + 1, splits + 1
        else:
            top[n] = -1
            units += 1
            unfinished = 1
            while unfinished:
                if features[i] >= 0:
                    unfinished += 1
                    splits += 1
                else:
                    unfinished -= 1
                    ends += 1
                i += 1
        n += 1
    starts[n, 0], starts[n, 1], starts[n, 2] = i, splits, ends
    return n, units


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
    leaves: Ints,
) -> bool:
    """Lay a tree out again over its rows; false if it is not a tree of these.

    `codes` are those of the largest values that the thresholds let pass.
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
        if f < 0:
            if ends == leaves.shape[0] or not np.array_equal(stats[node], leaves[ends]):
                return False
            ends += 1
            continue
        if f >= table.names.size or splits == codes.size:
            return False
        to_left = part(growing, table, work, node, f, codes[splits])
        if to_left == 0 or to_left == m:
            return False
        if _threshold(growing, known, node) != thresholds[splits]:
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


@kernel
def descend(
    X: Floats, features: Ints32, thresholds: Floats, rights: Ints32, places: Ints32, out: Ints
) -> None:
    """Find the leaf of every row."""
    for i in range(X.shape[0]):
        node = 0
        while features[node] >= 0:
            if X[i, features[node]] <= thresholds[places[node]]:
                node += 1
            else:
                node = rights[node]
        out[i] = places[node]


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

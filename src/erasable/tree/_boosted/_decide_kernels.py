"""Decisions of nodes: their candidates, the gains of these, and the values of leaves.

A decision is a function of the set of the node's records: the edges it tries depend on its path and
the hashes of edges, gains are computed from whole sums by a fixed sequence of IEEE operations, and
the draw for a candidate or a leaf is a hash of it.
"""

from __future__ import annotations

import numpy as np

from erasable.core._function_kernels import expose
from erasable.core._jit import inlined, kernel, subroutine
from erasable.core._tape_kernels import exponential, log
from erasable.core.arrays import Floats, Words
from erasable.tree._boosted._layout import (
    ALL_VALUES,
    BEST,
    COUNT_BITS,
    COUNT_MASK,
    FIRST,
    GAP,
    GAPS_LEFT,
    N_CANDIDATES,
    Bins,
    BoostingRules,
    BoostingScratch,
    TreeArrays,
    Whole,
)
from erasable.tree._hash_kernels import mix64

N_FACTORS = 4096
_PLACES = np.uint64(N_FACTORS - 1)
_FOR_VALUE = np.uint64(0xA0761D6478BD642F)
_FOR_ORDER = np.uint64(0xE7037ED1A0B428DB)
_11, _20 = np.uint64(11), np.uint64(20)


@kernel
def factors_of(noise: float) -> Floats:
    """Return ``E ** -noise`` at the quantiles of an exponential distribution, made without libm."""
    powers = np.empty(N_FACTORS)
    for i in range(N_FACTORS):
        # -log of the middle of the i-th of N_FACTORS parts of (0, 1).
        words = np.uint64(2 * i + 1) << np.uint64(51)
        powers[i] = -noise * log(exponential(words))
    expose(powers, np.empty(N_FACTORS, np.int64))
    return powers


@inlined
def goes_left(code: Whole, edge: Whole, categorical: bool) -> bool:
    """Tell on which side of an edge a code that is no gap is; a gap is on the right."""
    if categorical and edge != ALL_VALUES:
        return bool(code == edge)
    return bool(code <= edge)


@inlined
def gain(
    left_g: Whole, left_c: Whole, g: Whole, c: Whole, rules: BoostingRules, parent: float
) -> float:
    """Return what a split gains; -1 if it gains nothing, or is not allowed.

    `parent` is what the node itself comes to.
    """
    n, left_n, least = c & COUNT_MASK, left_c & COUNT_MASK, rules.min_leaf
    h, left_h = c >> COUNT_BITS, left_c >> COUNT_BITS
    if left_n < least or n - left_n < least or left_h <= 0 or h - left_h <= 0:
        return -1.0
    one, other = np.float64(left_g), np.float64(g - left_g)
    one_h, other_h = np.float64(left_h) + rules.l2, np.float64(h - left_h) + rules.l2
    # One division for both sides: it takes longer than all else.
    gained = (one * one * other_h + other * other * one_h) / (one_h * other_h) - parent
    return gained if gained > 0.0 else -1.0


@subroutine
def decide(tree: TreeArrays, node: Whole, rules: BoostingRules) -> tuple[int, int, float]:
    """Return the best of a node's candidates, or -1, whether gaps go left, and its score."""
    g, c = tree.sums[node, 0], tree.sums[node, 1]
    first = tree.nodes[node, FIRST]
    whole = np.float64(g)
    parent = whole * whole / (np.float64(c >> COUNT_BITS) + rules.l2)
    best, found, gaps_left = 0.0, -1, 0
    gap_g, gap_c, gap_feature = np.int64(0), np.int64(0), np.int64(-1)
    for j in range(first, first + tree.nodes[node, N_CANDIDATES]):
        left_g, left_c = tree.lefts[j, 0], tree.lefts[j, 1]
        gained, left = gain(left_g, left_c, g, c, rules, parent), 0
        if tree.tried[j, 1] == ALL_VALUES:  # it comes first of those of its feature
            gap_g, gap_c, gap_feature = g - left_g, c - left_c, np.int64(tree.tried[j, 0])
        elif gap_feature == tree.tried[j, 0] and (gap_c & COUNT_MASK) > 0:
            other = gain(left_g + gap_g, left_c + gap_c, g, c, rules, parent)
            if other > gained:
                gained, left = other, 1
        score = (gained + rules.offset) * tree.factors[j]
        if gained > 0.0 and score > best:
            best, found, gaps_left = score, j, left
            if gap_feature != tree.tried[j, 0] or (gap_c & COUNT_MASK) == 0:
                # None of the node's records has a gap there.
                gaps_left = 1 if 2 * (left_c & COUNT_MASK) >= (c & COUNT_MASK) else 0
    return found, gaps_left, best


@inlined
def value_of(g: Whole, c: Whole, key: np.uint64, rules: BoostingRules) -> int:
    """Return a leaf's value in units, rounded up or down by a draw."""
    h = np.float64(c >> COUNT_BITS) + rules.l2
    if h <= 0.0:
        return 0
    exact = -np.float64(g) * rules.step / h
    exact = min(max(exact, -np.float64(rules.most)), np.float64(rules.most))
    draw = np.float64(mix64(key ^ _FOR_VALUE) >> _11) * 2.0**-53
    return int(np.floor(exact + draw))


@inlined
def _order(hashed: np.uint64, key: np.uint64) -> np.uint64:
    return mix64(hashed ^ key)


@subroutine
def _limit(hashes: Words, n: int, lowest: Words) -> np.uint64:
    """Return the largest of the lowest hashes, as many as `lowest` has room for."""
    size, held = lowest.size, 0
    for i in range(n):
        word = hashes[i]
        if held == size and word >= lowest[held - 1]:
            continue
        place = held if held < size else size - 1
        while place > 0 and lowest[place - 1] > word:
            lowest[place] = lowest[place - 1]
            place -= 1
        lowest[place] = word
        held = held + 1 if held < size else held
    return np.uint64(lowest[held - 1])


@subroutine
def survey(
    bins: Bins,
    work: BoostingScratch,
    slot: Whole,
    tree: TreeArrays,
    node: Whole,
    used: int,
    table: Floats,
) -> int:
    """Write a node's candidates and their sums behind those that are there; return the end."""
    totals = work.sums[slot]
    g, c, key = tree.sums[node, 0], tree.sums[node, 1], tree.keys[node]
    tree.nodes[node, FIRST] = used
    order = mix64(key ^ _FOR_ORDER)
    for f in range(bins.sizes.size):
        own = totals[f]
        if work.gaps[f]:  # where none of the node's records has one, it gains nothing
            tree.tried[used, 0], tree.tried[used, 1] = f, ALL_VALUES
            tree.lefts[used, 0], tree.lefts[used, 1] = g - own[GAP, 0], c - own[GAP, 1]
            word = _order(bins.hashes[f, bins.hashes.shape[1] - 1], order)
            tree.factors[used] = table[(word >> _20) & _PLACES]
            used += 1
        low, high = work.low[slot, f], work.high[slot, f]
        if low >= high:
            continue
        for e in range(low, high):
            work.hashes[e - low] = _order(bins.hashes[f, e], order)
        limit = ~np.uint64(0)
        if high - low > work.lowest.size:
            limit = _limit(work.hashes, high - low, work.lowest)
        left_g, left_c = np.int64(0), np.int64(0)
        categorical = bins.categorical[f]
        for e in range(low, high):
            if categorical:
                left_g, left_c = own[e, 0], own[e, 1]
            else:
                left_g += own[e, 0]
                left_c += own[e, 1]
            word = work.hashes[e - low]
            if word <= limit:
                tree.tried[used, 0], tree.tried[used, 1] = f, e
                tree.lefts[used, 0], tree.lefts[used, 1] = left_g, left_c
                tree.factors[used] = table[(word >> _20) & _PLACES]
                used += 1
    tree.nodes[node, N_CANDIDATES] = used - tree.nodes[node, FIRST]
    return used


@subroutine
def decide_node(tree: TreeArrays, node: Whole, rules: BoostingRules) -> bool:
    """Have a node decide; tell whether it decides as before."""
    best, gaps_left, tree.scores[node] = decide(tree, node, rules)
    nodes = tree.nodes
    same = nodes[node, BEST] == best and (best < 0 or nodes[node, GAPS_LEFT] == gaps_left)
    nodes[node, BEST], nodes[node, GAPS_LEFT] = best, gaps_left
    return bool(same)

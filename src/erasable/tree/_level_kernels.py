"""Draws of values, and counts at these, of blocks of records in the nodes of a level.

They equal what `erasable.tree._decide_kernels` draws and counts of all records of a node together:
a draw is the set of distinct values with the lowest priorities, of equal ones the lower values, so
that the draws of two sets of records join; counts add up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from erasable.core._jit import borrowing, inlined, kernel
from erasable.core.arrays import Floats, Ints, Matrix, Words
from erasable.tree._hash_kernels import LEFT_SIDE, RIGHT_SIDE, child_key, mix32, mix64
from erasable.tree._layout import GAPS_LEFT, SQUARES, NodeCandidates, TreeRules
from erasable.tree._score_kernels import pick

_LOW = np.uint64(0xFFFFFFFF)
NO_HASH = np.uint64(0xFFFFFFFFFFFFFFFF)
"""In the place of the hash of a missing value; those of values have 32 bits."""


class Top(NamedTuple):
    """The upper parts of trees."""

    roots: Ints  # (n_trees,)
    features: Ints  # (n_nodes,); -1 where there is no split
    values: Floats  # (n_nodes,); records whose value is at most this go to the left
    gap_sides: Ints  # (n_nodes,); where records without a value go
    # lefts, rights: (n_nodes,)
    lefts: Ints
    rights: Ints
    slots: Ints  # (n_nodes,); number of an open node; -1 of others


class Drawn(NamedTuple):
    """Values that were drawn, for each open node and each of its features."""

    found: Ints  # (n_open, n_looked); how many
    priorities: Words  # (n_open, n_looked, sample); ascending
    values: Floats  # (n_open, n_looked, sample)
    extremes: Ints  # (n_open, 2); least and largest target
    n_gaps: Ints  # (n_open, n_looked); how many records have no value


class LevelCounts(NamedTuple):
    """Records counted between the values drawn, which stand in their order."""

    # (n_open, n_looked, sample + 1); how many have at most a value, and more than the one before
    counts: Ints
    stats: Ints  # (n_open, n_looked, sample + 1, n_stats); their stats
    owns: Ints  # (n_open, n_looked, sample + 1); how many have just that value
    # (n_open, n_looked, sample + 1); least of the others' values; infinity where there are none
    lows: Floats
    n_lows: Ints  # (n_open, n_looked, sample + 1); how many have that one
    # (n_open, n_looked, n_stats + 1); stats of the records without a value, and how many there are
    gaps: Ints


@kernel
def find_races(key: np.uint64, names: Words, races: Words) -> None:
    """Draw for every feature; see `_decide_kernels`."""
    for f in range(names.size):
        races[f] = mix64(key ^ names[f])


@kernel
def find_children(key: np.uint64, keys: Words) -> None:
    """Write the keys of the left and the right child of a node."""
    keys[0], keys[1] = child_key(key, LEFT_SIDE), child_key(key, RIGHT_SIDE)


@kernel
def locate(matrix: Matrix, rows: Ints, weights: Ints, top: Top, tree: int, slots: Ints) -> None:
    """Find in which open node of a tree each row is; -1 where in none, or its weight is 0."""
    for i in range(rows.size):
        slots[i] = -1
        if weights[i] == 0:
            continue
        node = top.roots[tree]
        while top.features[node] >= 0:
            x = np.float64(matrix[rows[i], top.features[node]])
            left = x <= top.values[node] or (np.isnan(x) and top.gap_sides[node] == GAPS_LEFT)
            node = top.lefts[node] if left else top.rights[node]
        slots[i] = top.slots[node]


@inlined
def _put(priorities: Words, values: Floats, found: int, priority: np.uint64, value: float) -> int:
    """Put a value among those drawn, of which the last may fall out."""
    place = found
    while place > 0 and (
        priorities[place - 1] > priority
        or (priorities[place - 1] == priority and values[place - 1] > value)
    ):
        place -= 1
    if place > 0 and priorities[place - 1] == priority and values[place - 1] == value:
        return found
    if place == priorities.size:
        return found
    if found < priorities.size:
        found += 1
    for j in range(found - 1, place, -1):
        priorities[j], values[j] = priorities[j - 1], values[j - 1]
    priorities[place], values[place] = priority, value
    return found


@kernel
def draw(
    matrix: Matrix,
    rows: Ints,
    y: Ints,
    hashes: Words,
    slots: Ints,
    features: Ints,
    races: Words,
    out: Drawn,
) -> None:
    """Draw values of the features of open nodes, and add them to `out`.

    `rows`, `y` and `slots` are rows of the matrix, their targets and their open nodes. `hashes` has
    shape (n_features, n_rows); `features` (-1 for none) and `races` have shape (n_open, n_looked).
    """
    sample = out.priorities.shape[2]
    for i in range(rows.size):
        o = slots[i]
        if o < 0:
            continue
        out.extremes[o, 0] = min(out.extremes[o, 0], y[i])
        out.extremes[o, 1] = max(out.extremes[o, 1], y[i])
        for k in range(features.shape[1]):
            f = features[o, k]
            if f < 0:
                continue
            if hashes[f, i] == NO_HASH:
                out.n_gaps[o, k] += 1
                continue
            priority = mix32(hashes[f, i] ^ (races[o, k] & _LOW))
            found = out.found[o, k]
            if found < sample or priority <= out.priorities[o, k, found - 1]:
                value = np.float64(matrix[rows[i], f])
                out.found[o, k] = _put(
                    out.priorities[o, k], out.values[o, k], found, priority, value
                )


@kernel
def join_draws(one: Drawn, other: Drawn) -> None:
    """Add what was drawn in other records."""
    for o in range(one.found.shape[0]):
        one.extremes[o, 0] = min(one.extremes[o, 0], other.extremes[o, 0])
        one.extremes[o, 1] = max(one.extremes[o, 1], other.extremes[o, 1])
        for k in range(one.found.shape[1]):
            one.n_gaps[o, k] += other.n_gaps[o, k]
            for j in range(other.found[o, k]):
                one.found[o, k] = _put(
                    one.priorities[o, k], one.values[o, k], one.found[o, k],
                    other.priorities[o, k, j], other.values[o, k, j],
                )  # fmt: skip


@inlined
def _n_below(values: Floats, found: int, x: float) -> Any:
    low, high = 0, found
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def count(
    matrix: Matrix,
    rows: Ints,
    y: Ints,
    weights: Ints,
    slots: Ints,
    features: Ints,
    found: Ints,
    values: Floats,
    squares: bool,
    out: LevelCounts,
) -> None:
    """Count records between the values drawn, which ascend, and add them to `out`; see `draw`."""
    for i in range(rows.size):
        o = slots[i]
        if o < 0:
            continue
        weight = weights[i]
        for k in range(features.shape[1]):
            f = features[o, k]
            if f < 0:
                continue
            x = np.float64(matrix[rows[i], f])
            if np.isnan(x):
                gaps = out.gaps[o, k]
                gaps[gaps.size - 1] += 1
                if squares:
                    gaps[0] += weight
                    gaps[1] += weight * y[i]
                else:
                    gaps[y[i]] += weight
                continue
            j = _n_below(values[o, k], found[o, k], x)
            out.counts[o, k, j] += 1
            if squares:
                out.stats[o, k, j, 0] += weight
                out.stats[o, k, j, 1] += weight * y[i]
            else:
                out.stats[o, k, j, y[i]] += weight
            if j < found[o, k] and values[o, k, j] == x:
                out.owns[o, k, j] += 1
            elif x < out.lows[o, k, j]:
                out.lows[o, k, j], out.n_lows[o, k, j] = x, 1
            elif x == out.lows[o, k, j]:
                out.n_lows[o, k, j] += 1


@borrowing
def choose(
    features: Ints,
    found: Ints,
    lasts: Ints,
    candidates: NodeCandidates,
    total: Ints,
    n: int,
    ranks: Ints,
    rules: TreeRules,
    class_weight: Floats,
    sums: Ints,
    out: Ints,
) -> float:
    """Find the best split of a node; write the places of its feature and value, -1 for none.

    None of `features` is constant. `lasts` are the places of the values drawn last; the codes of
    `candidates` are places. `sums`, of shape (n_stats,), is overwritten. The side of gaps is
    written behind the places. Return the score.
    """
    best: Any = (np.int64(-1), np.int64(-1), -np.inf)
    for k in range(features.size):
        gaps = candidates.gaps[k]
        own = NodeCandidates(candidates.codes[k], candidates.counts[k], candidates.lefts[k], gaps)
        best = pick(
            features[k], ranks, found[k], lasts[k], own, gaps[gaps.size - 1], total, n, rules,
            class_weight, sums, best,
        )  # fmt: skip
    out[0], out[1], out[2] = -1, best[1] & np.int64(_LOW), best[1] >> 32
    for k in range(features.size):
        if features[k] == best[0]:
            out[0] = k
    return float(best[2])


def is_regression(rules: TreeRules) -> bool:
    """Tell whether stats are a weight and a sum."""
    return rules.criterion == SQUARES

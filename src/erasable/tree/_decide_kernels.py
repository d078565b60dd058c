"""The decision whether and how to split a node, which `fit` and `delete` share.

The law it keeps: the decision is a function of the node's records, of its path, and of the rules.
Where counts are kept, they are those that a survey of the records would come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import inlined
from erasable.tree._hash_kernels import mix64
from erasable.tree._layout import (
    CACHE,
    CAPACITY,
    COUNT,
    NONE,
    NOTHING,
    ROW_BITS,
    SMALL,
    SQUARES,
    START,
    Candidates,
    GrowingTree,
    Rules,
    Split,
    Table,
    Work,
)
from erasable.tree._score_kernels import gain_of, is_pure, pick
from erasable.tree._slot_kernels import by_column, weigh
from erasable.tree._survey_kernels import survey

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_ROW = (1 << ROW_BITS) - 1


@inlined
def gather(plant: GrowingTree, table: Table, work: Work, node: int) -> int:
    """Fetch the records of a node into `work`; return how many there are."""
    start = plant.nodes[node, START]
    wide, d = by_column(table, plant.nodes[node, CAPACITY]), table.names.size
    targets = table.by_column[:, d] if wide else table.packed[:, d]
    m = 0
    for i in range(start, start + plant.nodes[node, CAPACITY]):
        entry = np.int64(plant.rows[i])
        if entry != NONE:
            row = entry & _ROW
            work.rows[m], work.weights[m] = row, weigh(table, entry)
            work.y[m] = np.int64(targets[row])
            m += 1
    return m


@inlined
def _all_equal(work: Work, m: int) -> bool:
    differing = 0
    for i in range(1, m):
        differing += work.y[i] != work.y[0]
    return differing == 0


@inlined
def _bit(f: int) -> np.uint64:
    return _ONE << np.uint64(f) if f < 64 else _ZERO


@inlined
def line_up(table: Table, work: Work, key: np.uint64, wanted: int) -> None:
    """Draw for every feature, and put those first that a node is to look at first."""
    races, order, d = work.races, work.order, table.names.size
    for f in range(d):
        races[f] = mix64(key ^ table.names[f])
    if wanted == d:
        for f in range(d):
            order[f] = f
        return
    found = 0
    for f in range(d):
        if found == wanted and races[f] >= races[order[found - 1]]:
            continue
        place = found if found < wanted else found - 1
        found = min(found + 1, wanted)
        while place > 0 and races[order[place - 1]] > races[f]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = f


@inlined
def _next_in_line(work: Work, before: int) -> int:
    """Return the feature whose draw comes after that of another; -1 if there is none."""
    after = -1
    for f in range(work.races.size):
        later = work.races[f] > work.races[before]
        if later and (after < 0 or work.races[f] < work.races[after]):
            after = f
    return after


@inlined
def _candidates(plant: GrowingTree, work: Work, slot: int, place: int) -> Candidates:
    """Return where to put what is found of a feature: with the node, if it keeps its counts."""
    if slot < 0:
        return Candidates(work.code, work.tally, work.left)
    return Candidates(plant.codes[slot, place], plant.counts[slot, place], plant.lefts[slot, place])


@inlined
def _search(
    plant: GrowingTree,
    table: Table,
    rules: Rules,
    work: Work,
    node: int,
    key: np.uint64,
    m: int,
    kept: bool,
    constants: np.uint64,
) -> tuple[int, np.uint64, Split]:
    """Find the best split, and which features are constant.

    As in scikit-learn, features beyond `max_features` are looked at only where all before them
    are constant, until one is not. Of a feature whose counts are kept, they are taken as they
    are, unless one of the values drawn is lost.
    """
    slot, q = plant.nodes[node, CACHE], rules.max_features
    best: Split = (np.int64(-1), np.int64(-1), -np.inf)
    varied, lined, looked, f = False, False, 0, -1
    while looked < table.names.size and (looked < q or not varied):
        if kept and looked == q:
            kept, looked = False, 0  # all are constant, and only a new search finds others
        if not kept and not lined:
            line_up(table, work, key, q)
            lined = True
        # The first of features that are all constant is so for ever: its place is free.
        place = looked if looked < q else 0
        found: Any = -1
        last: Any = -1
        if kept:
            f = plant.features[slot, place]
            found, last = plant.found[slot, place, 0], plant.found[slot, place, 1]
        else:
            f = work.order[looked] if looked < q else _next_in_line(work, f)
            if f < 64 and constants >> np.uint64(f) & _ONE:
                found = 0
                if slot >= 0:
                    plant.features[slot, place], plant.found[slot, place, 0] = f, 0
        if kept and found < 0 and f < 64 and constants >> np.uint64(f) & _ONE:
            found = plant.found[slot, place, 0] = 0
        looked += 1
        if found == 0:
            continue
        candidates = _candidates(plant, work, slot, place)
        if found < 0:
            if m < 0:
                m = gather(plant, table, work, node)
            race = mix64(key ^ table.names[f]) & _LOW
            wide = by_column(table, m)
            packed = table.by_column[:, f] if wide else table.packed[:, f]
            found, last = survey(packed, table.n_values[f], m, race, rules, work, candidates)
            if slot >= 0:
                plant.features[slot, place] = f
                plant.found[slot, place, 0], plant.found[slot, place, 1] = found, last
                # Few records are not drawn from: then any value that comes may be drawn.
                plant.found[slot, place, 2] = work.drawn[found - 1] >> _32 if m > SMALL else -1
        if found < 2:
            constants |= _bit(f)
            continue
        varied = True
        best = pick(
            f, table.ranks, found, last, candidates, plant.stats[node], plant.nodes[node, COUNT],
            rules, table.class_weight, best,
        )  # fmt: skip
    return m, constants, best


@inlined
def decide(
    plant: GrowingTree,
    table: Table,
    rules: Rules,
    work: Work,
    node: int,
    depth: int,
    key: np.uint64,
    whole: float,
    m: int,
    kept: bool,
    constants: np.uint64,
) -> tuple[Any, Any, np.uint64]:
    """Decide on a node whose stats and number of records are up to date.

    `whole` is the weight of all records of the tree; `m` records have been gathered, -1 if none
    yet. `kept` tells whether the node's slot has its counts, but for features that have -1 values
    drawn; else they are counted, and kept if there is a slot. Return the feature and the code, -1
    and -1 for a leaf, and the bits of the features that are now known to be constant.
    """
    n, total = plant.nodes[node, COUNT], plant.stats[node]
    gains = plant.gains
    if gains.size:
        gains[node] = -np.inf
    if n < max(rules.min_split, 2) or n < 2 * rules.min_leaf or depth >= rules.max_depth:
        return -1, -1, constants
    regression = rules.criterion == SQUARES
    if not regression and is_pure(total):
        return -1, -1, constants
    if regression and not kept:
        if m < 0:
            m = gather(plant, table, work, node)
        if _all_equal(work, m):
            return -1, -1, constants
    m, constants, best = _search(plant, table, rules, work, node, key, m, kept, constants)
    if regression and kept and best[0] >= 0 and best[2] <= NOTHING * np.float64(total[0]):
        # No split gains anything: either all targets are equal, or all means are.
        if m < 0:
            m = gather(plant, table, work, node)
        if _all_equal(work, m):
            return -1, -1, constants
    feature, code, score = best
    if feature >= 0 and gains.size:
        gain = gain_of(score, total, rules, table.class_weight)
        if gain / whole < rules.min_decrease:
            gains[node] = gain
            return -1, -1, constants
    return feature, code, constants

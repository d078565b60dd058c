"""Whether a node is split, and how: the one decision, of which `fit` and `delete` make use.

The law it keeps: the decision is a function of the node's records, of its path, and of the rules.
Where counts are kept, they are those that a survey of the records would come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core._jit import kernel
from erasable.tree._hash_kernels import mix64
from erasable.tree._layout import (
    CACHE,
    CAPACITY,
    COUNT,
    NONE,
    ROW_BITS,
    SQUARES,
    START,
    Ints,
    Plant,
    Rules,
    Split,
    Table,
    Work,
)
from erasable.tree._score_kernels import gain_of, is_pure, pick
from erasable.tree._survey_kernels import survey

__all__ = ["decide", "gather", "survey_again"]

_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_ROW = (1 << ROW_BITS) - 1


@kernel
def gather(plant: Plant, table: Table, work: Work, node: int) -> int:
    """Fetch the records of a node into `work`; return how many there are."""
    start = plant.nodes[node, START]
    m = 0
    for i in range(start, start + plant.nodes[node, CAPACITY]):
        entry = np.int64(plant.rows[i])
        if entry != NONE:
            row = entry & _ROW
            work.rows[m], work.weights[m], work.y[m] = row, entry >> ROW_BITS, table.y[row]
            m += 1
    return m


@kernel
def _all_equal(work: Work, m: int) -> bool:
    differing = 0
    for i in range(1, m):
        differing += work.y[i] != work.y[0]
    return differing == 0


@kernel
def _bit(f: int) -> np.uint64:
    return _ONE << np.uint64(f) if f < 64 else _ZERO


@kernel
def _line_up(table: Table, work: Work, key: np.uint64, wanted: int) -> None:
    """Draw for every feature, and put those first that are to be looked at first."""
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


@kernel
def _next_in_line(work: Work, before: int) -> int:
    """Return the feature whose draw comes after that of another; -1 if there is none."""
    after = -1
    for f in range(work.races.size):
        later = work.races[f] > work.races[before]
        if later and (after < 0 or work.races[f] < work.races[after]):
            after = f
    return after


@kernel
def _look(
    plant: Plant, table: Table, rules: Rules, work: Work, slot: int, place: int, f: int, m: int
) -> tuple[Any, Any]:
    """Survey a feature, and keep what was found if there is a place for it."""
    key = work.races[f] & _LOW
    if slot < 0:
        return survey(
            table.packed[f], table.n_values[f], m, key, rules, work, work.code, work.tally,
            work.left,
        )  # fmt: skip
    found, last = survey(
        table.packed[f], table.n_values[f], m, key, rules, work,
        plant.codes[slot, place], plant.counts[slot, place], plant.lefts[slot, place],
    )  # fmt: skip
    plant.features[slot, place] = f
    plant.found[slot, place, 0], plant.found[slot, place, 1] = found, last
    return found, last


@kernel
def survey_again(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    slot: int,
    place: int,
    key: np.uint64,
    m: int,
) -> None:
    """Survey one feature of a node whose counts are kept; its records have been gathered."""
    f = plant.features[slot, place]
    work.races[f] = mix64(key ^ table.names[f])
    _look(plant, table, rules, work, slot, place, f, m)


@kernel
def _search(
    plant: Plant,
    table: Table,
    rules: Rules,
    work: Work,
    slot: int,
    key: np.uint64,
    m: int,
    total: Ints,
    constants: np.uint64,
) -> tuple[np.uint64, Split]:
    """Find the best split of the records that have been gathered, and which features are constant.

    As in scikit-learn, features beyond `max_features` are looked at only where all before them
    are constant, until one is not.
    """
    best: Split = (np.int64(-1), np.int64(-1), -np.inf)
    _line_up(table, work, key, rules.max_features)
    varied = False
    for place in range(rules.max_features):
        f = work.order[place]
        if f < 64 and constants >> np.uint64(f) & _ONE:
            if slot >= 0:
                plant.found[slot, place, 0] = 0
            continue
        found, last = _look(plant, table, rules, work, slot, place, f, m)
        varied |= found > 1
        if found < 2:
            constants |= _bit(f)
        code, count, left = work.code, work.tally, work.left
        if slot >= 0:
            code, count, left = (
                plant.codes[slot, place], plant.counts[slot, place], plant.lefts[slot, place]
            )  # fmt: skip
        best = pick(
            f, table.ranks, found, last, code, count, left, total, m, rules, table.class_weight,
            best,
        )  # fmt: skip
    f = work.order[rules.max_features - 1]
    while not varied and rules.max_features < table.names.size:
        f = _next_in_line(work, f)
        if f < 0:
            break
        if f < 64 and constants >> np.uint64(f) & _ONE:
            continue
        # The first of the constant ones is constant for ever: its place is free.
        found, last = _look(plant, table, rules, work, slot, 0, f, m)
        varied = found > 1
        if not varied:
            constants |= _bit(f)
        code, count, left = work.code, work.tally, work.left
        if slot >= 0:
            code, count, left = plant.codes[slot, 0], plant.counts[slot, 0], plant.lefts[slot, 0]
        best = pick(
            f, table.ranks, found, last, code, count, left, total, m, rules, table.class_weight,
            best,
        )  # fmt: skip
    return constants, best


@kernel
def _search_kept(
    plant: Plant, table: Table, rules: Rules, slot: int, total: Ints, n: int
) -> tuple[bool, Split]:
    """Find the best split from counts that are kept; false if all the features are constant."""
    best: Split = (np.int64(-1), np.int64(-1), -np.inf)
    varied = False
    for place in range(rules.max_features):
        found, last = plant.found[slot, place, 0], plant.found[slot, place, 1]
        varied |= found > 1
        best = pick(
            plant.features[slot, place], table.ranks, found, last, plant.codes[slot, place],
            plant.counts[slot, place], plant.lefts[slot, place], total, n, rules,
            table.class_weight, best,
        )  # fmt: skip
    return varied, best


@kernel
def decide(
    plant: Plant,
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
    """Decide on a node whose stats and number of records are what they are to be.

    Parameters
    ----------
    plant, table, rules, work
        See `erasable.tree._layout`.
    node, depth, key
        Slot of the node, its depth, and the key of its path.
    whole : float
        Weight of all records of the tree.
    m : int
        How many records have been gathered; -1 if that is still to be done.
    kept : bool
        Whether the counts of the node's slot are there; else they are counted, and kept if there
        is a slot.
    constants : uint64
        Bits for features that are known to be constant.

    Returns
    -------
    feature, code : int
        -1 and -1 for a leaf.
    constants : uint64
        What is known now.
    """
    n, total, slot = plant.nodes[node, COUNT], plant.stats[node], plant.nodes[node, CACHE]
    gains = plant.gains
    if gains.size:
        gains[node] = -np.inf
    if n < max(rules.min_split, 2) or n < 2 * rules.min_leaf or depth >= rules.max_depth:
        return -1, -1, constants
    regression = rules.criterion == SQUARES
    if not regression and is_pure(total):
        return -1, -1, constants
    best: Split = (np.int64(-1), np.int64(-1), -np.inf)
    varied = False
    if kept:
        varied, best = _search_kept(plant, table, rules, slot, total, n)
    if not varied:
        if m < 0:
            m = gather(plant, table, work, node)
        if regression and _all_equal(work, m):
            return -1, -1, constants
        constants, best = _search(plant, table, rules, work, slot, key, m, total, constants)
    elif regression and best[0] >= 0 and best[2] == 0.0:
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

"""Passes of records through existing trees: predictions, and deletion.

If the deletion of records changes no split, the tree left is the one that grows from the others; if
it changes one, the tree has to be grown again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Ints, Ints32
from erasable.ensemble._boosting._decide_kernels import decide_node, goes_left, value_of
from erasable.ensemble._boosting._grow_kernels import add_to, first_of
from erasable.ensemble._boosting._layout import (
    BEST,
    EDGE,
    FEATURE,
    FIRST,
    GAP,
    GAPS_LEFT,
    LEFT,
    N_CANDIDATES,
    Bins,
    BoostingRules,
    TreeArrays,
    Whole,
)
from erasable.ensemble._boosting._loss_kernels import Given, LossTables, find_pairs, sum_losses

SAME, VALUES, SPLITS = range(3)
"""What a deletion changes of a tree: nothing, values of leaves, or splits."""


@subroutine
def _next(bins: Bins, tree: TreeArrays, row: int, node: int) -> int:
    """Return the child that a row goes to."""
    f = tree.nodes[node, FEATURE]
    code = np.int64(bins.codes[row, f])
    if code == GAP:
        left = tree.nodes[node, GAPS_LEFT] == 1
    else:
        left = goes_left(code, tree.nodes[node, EDGE], bins.categorical[f])
    return int(tree.nodes[node, LEFT] + (0 if left else 1))


@subroutine
def _grows_alike(tree: TreeArrays, rules: BoostingRules) -> bool:
    """Tell whether the nodes that are split are those that would be split by their scores."""
    nodes = tree.nodes
    queue, waiting, n_leaves, n_split = np.empty((nodes.shape[0] + 1, 1), np.int64), 0, 1, 0
    if nodes[0, BEST] >= 0:
        queue[0, 0], waiting = 0, 1
    while waiting and n_leaves < rules.max_leaves:
        place = first_of(tree, queue, waiting, rules)
        node = queue[place, 0]
        waiting -= 1
        queue[place, 0] = queue[waiting, 0]
        left = nodes[node, LEFT]
        if left < 0:
            return False
        n_leaves, n_split = n_leaves + 1, n_split + 1
        if n_leaves == rules.max_leaves and left != nodes.shape[0] - 2:
            return False  # the children of the node that was split last have not been evaluated
        for child in range(left, left + 2):
            if nodes[child, BEST] >= 0:
                queue[waiting, 0] = child
                waiting += 1
    return bool(n_split == (nodes.shape[0] - 1) // 2)


@subroutine
def _add_values(bins: Bins, tree: TreeArrays, rows: Ints32, raws: Ints32) -> None:
    for k in range(rows.size):
        node = 0
        while tree.nodes[node, LEFT] >= 0:
            node = _next(bins, tree, rows[k], node)
        add_to(raws, rows[k], tree.values[node])


@kernel
def add_values(bins: Bins, tree: TreeArrays, rows: Ints32, raws: Ints32) -> None:
    """Add what a tree says to the predictions of rows."""
    _add_values(bins, tree, rows, raws)


@subroutine
def _take_out(
    bins: Bins, tree: TreeArrays, rules: BoostingRules, rows: Ints32, pairs: Ints, raws: Ints32,
    touched: NDArray[np.bool_],
) -> int:  # fmt: skip
    """Subtract rows from the sums on their ways; return what that changes of the tree.

    Line r of `pairs` is that of row r. What the tree said of the rows is added to `raws`. Splits
    that are no longer the best stay as they are: such a tree has to be grown again.
    Values of leaves are set.
    """
    nodes, sums, lefts, tried = tree.nodes, tree.sums, tree.lefts, tree.tried
    touched[: nodes.shape[0]] = False
    for k in range(rows.size):
        row, node = rows[k], 0
        g, c = pairs[row, 0], pairs[row, 1]
        codes = bins.codes[row]
        while True:
            touched[node] = True
            sums[node, 0] -= g
            sums[node, 1] -= c
            first = nodes[node, FIRST]
            for j in range(first, first + nodes[node, N_CANDIDATES]):
                f = tried[j, 0]
                code = np.int64(codes[f])
                if code != GAP and goes_left(code, np.int64(tried[j, 1]), bins.categorical[f]):
                    lefts[j, 0] -= g
                    lefts[j, 1] -= c
            if nodes[node, LEFT] < 0:
                break
            node = _next(bins, tree, row, node)
        add_to(raws, row, tree.values[node])
    found = SAME
    for node in range(nodes.shape[0]):
        if not touched[node]:
            continue
        same = decide_node(tree, node, rules)
        if nodes[node, LEFT] >= 0:
            if not same:
                return SPLITS
            continue
        if nodes[node, BEST] >= 0 and rules.max_leaves == 0:
            return SPLITS
        value = value_of(sums[node, 0], sums[node, 1], tree.keys[node], rules)
        if value != tree.values[node]:
            tree.values[node] = value
            found = VALUES
    if rules.max_leaves and not _grows_alike(tree, rules):
        return SPLITS
    return found


@subroutine
def _tree(all_: TreeArrays, ends: Ints, i: Whole) -> TreeArrays:
    """Return one of several trees that lie end to end."""
    a, b, c, d = ends[i, 0], ends[i + 1, 0], ends[i, 1], ends[i + 1, 1]
    return TreeArrays(
        all_.nodes[a:b],
        all_.keys[a:b],
        all_.sums[a:b],
        all_.scores[a:b],
        all_.values[a:b],
        all_.tried[c:d],
        all_.lefts[c:d],
        all_.factors[c:d],
    )


@kernel
def take_rows_out(
    bins: Bins, trees: TreeArrays, ends: Ints, rules: BoostingRules, tables: LossTables,
    given: Given, raws: Ints32, learned: Ints32, held_out: Ints32, lost: Ints, changes: Ints,
) -> int:  # fmt: skip
    """Take rows out of trees round by round; return the first round that changes, or their number.

    Rows count within `bins`, `given` and `raws`, which begins with the output. `changes` is what
    happens to each tree of that round: `SAME`, `VALUES` or `SPLITS`. ``lost[t]`` is the loss of the
    rows held out before round t, as long as nothing changes.
    """
    n_outputs = raws.shape[0]
    n_rounds = (ends.shape[0] - 1) // n_outputs
    pairs = np.empty((n_outputs, raws.shape[1], 2), dtype=np.int64)
    most = 0
    for i in range(ends.shape[0] - 1):
        most = max(most, ends[i + 1, 0] - ends[i, 0])
    touched = np.empty(most, dtype=np.bool_)
    changes[:] = SAME
    for t in range(n_rounds):
        if held_out.size:
            lost[t] = sum_losses(tables, given, raws, held_out)
        if learned.size:
            find_pairs(tables, given, raws, learned, t, pairs)
        same = True
        for k in range(n_outputs):
            tree = _tree(trees, ends, t * n_outputs + k)
            if held_out.size:
                _add_values(bins, tree, held_out, raws[k])
            if learned.size:
                changes[k] = _take_out(bins, tree, rules, learned, pairs[k], raws[k], touched)
                same = same and changes[k] == SAME
        if not same:
            return t
    if held_out.size:
        lost[n_rounds] = sum_losses(tables, given, raws, held_out)
    return int(n_rounds)

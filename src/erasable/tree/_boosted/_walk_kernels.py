"""Passes of records through existing trees: predictions, and records that leave or come.

If they change no split, the tree is the one that grows from the records that are there now; if they
change one, the tree has to be grown again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Ints, Ints32
from erasable.tree._boosted._decide_kernels import decide_node, goes_left, value_of
from erasable.tree._boosted._grow_kernels import add_to, first_of
from erasable.tree._boosted._layout import (
    ALL_VALUES,
    BEST,
    COUNT_MASK,
    DEPTH,
    EDGE,
    FIRST,
    GAP,
    GAPS_LEFT,
    N_CANDIDATES,
    Bins,
    BoostingRules,
    TreeArrays,
    Whole,
)
from erasable.tree._boosted._loss_kernels import Given, LossTables, find_pairs, sum_losses
from erasable.tree._layout import FEATURE, LEFT

SAME, VALUES, SPLITS = range(3)
"""What records that leave or come change of a tree: nothing, values of leaves, or splits."""
OFTEN = 4
"""Predictions are kept before every so many rounds."""


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
def _move(
    bins: Bins, tree: TreeArrays, rules: BoostingRules, rows: Ints32, n_gone: int, pairs: Ints,
    raws: Ints32, touched: NDArray[np.bool_],
) -> int:  # fmt: skip
    """Add the pairs of rows to the sums on their ways; return what that changes of the tree.

    Line r of `pairs` is that of row r; the first `n_gone` leave, and have it with the other sign.
    What the tree said of the rows is added to `raws`. Splits that are no longer the best stay as
    they are: such a tree has to be grown again. Values of leaves are set.
    """
    nodes, sums, lefts, tried = tree.nodes, tree.sums, tree.lefts, tree.tried
    touched[: nodes.shape[0]] = False
    least, untried = 2 * rules.min_leaf, False
    for k in range(rows.size):
        row, node = rows[k], 0
        g, c = pairs[row, 0], pairs[row, 1]
        codes = bins.codes[row]
        n_gaps = 0
        while True:
            touched[node] = True
            few = (sums[node, 1] & COUNT_MASK) < least
            sums[node, 0] += g
            sums[node, 1] += c
            first, n_tried = nodes[node, FIRST], nodes[node, N_CANDIDATES]
            if n_tried == 0 and few and nodes[node, DEPTH] < rules.max_depth:
                untried |= (sums[node, 1] & COUNT_MASK) >= least
            for j in range(first, first + n_tried):
                f = tried[j, 0]
                code = np.int64(codes[f])
                if code == GAP:
                    n_gaps += node == 0 and tried[j, 1] == ALL_VALUES
                elif goes_left(code, np.int64(tried[j, 1]), bins.categorical[f]):
                    lefts[j, 0] += g
                    lefts[j, 1] += c
            if node == 0 and n_tried and row >= n_gone:
                # Where no record had a gap, no node tries to divide them from values.
                for f in range(codes.size):
                    n_gaps -= codes[f] == GAP
                untried |= n_gaps < 0
            if nodes[node, LEFT] < 0:
                break
            node = _next(bins, tree, row, node)
        add_to(raws, row, tree.values[node])
    if untried:
        return SPLITS
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
def move_rows(
    bins: Bins, trees: TreeArrays, ends: Ints, rules: BoostingRules, tables: LossTables,
    given: Given, raws: Ints32, n_gone: int, learned: Ints32, lost: Ints32, found: Ints32,
    seen: Ints32, losses: Ints, changes: Ints,
) -> int:  # fmt: skip
    """Follow rows that leave trees or come; return the first round that changes, or their number.

    Rows count within `bins`, `given` and `raws`, which begins with the output; the first `n_gone`
    leave. Trees learn from `learned`; of the rows held out, `lost` leave and `found` come. As long
    as nothing changes, ``losses[t]`` is what these add to the loss before round t, and ``seen[i]``
    is `raws` before round ``i * OFTEN``, shape (n_seen, n_outputs, n_rows). `changes` is what
    happens to each tree of the round that changes: `SAME`, `VALUES` or `SPLITS`.
    """
    n_outputs = raws.shape[0]
    n_rounds = (ends.shape[0] - 1) // n_outputs
    pairs = np.empty((n_outputs, raws.shape[1], 2), dtype=np.int64)
    most = 0
    for i in range(ends.shape[0] - 1):
        most = max(most, ends[i + 1, 0] - ends[i, 0])
    touched = np.empty(most, dtype=np.bool_)
    changes[:] = SAME
    for t in range(n_rounds + 1):
        if t % OFTEN == 0 and t // OFTEN < seen.shape[0]:
            seen[t // OFTEN] = raws
        if lost.size or found.size:
            losses[t] = sum_losses(tables, given, raws, found)
            losses[t] -= sum_losses(tables, given, raws, lost)
        if t == n_rounds:
            break
        if learned.size:
            find_pairs(tables, given, raws, learned, t, pairs)
            for i in range(learned.size):
                if learned[i] < n_gone:
                    pairs[:, learned[i]] *= -1
        same = True
        for k in range(n_outputs):
            tree = _tree(trees, ends, t * n_outputs + k)
            _add_values(bins, tree, lost, raws[k])
            _add_values(bins, tree, found, raws[k])
            if learned.size:
                changes[k] = _move(
                    bins, tree, rules, learned, n_gone, pairs[k], raws[k], touched
                )  # fmt: skip
                same = same and changes[k] == SAME
        if not same:
            return t
    return int(n_rounds)

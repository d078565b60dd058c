"""Kernels of the index: made, searched, and forgetting.

The records lie in blocks, one for each leaf of a complete binary tree, whose nodes know the box
that their records fill: node i has the children 2i + 1 and 2i + 2, and the last nodes are the
leaves. Boxes are exact: when a record goes, those that it had a side of shrink, so that nothing of
it is left. Without boxes, all blocks are searched.
"""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Matrix

from ._distance_kernels import EUCLIDEAN, block_distances, box_distance, insert

Tree = tuple[Floats, Ints, Floats, Floats]
"""Blocks, ranks of the records in them, and the sides of the boxes of the nodes."""

_DEPTH = 64  # levels that a tree cannot have


@subroutine
def _select(values: Floats, items: Ints, first: int, last: int, place: int) -> None:
    """Sort ``values[first:last]``, and `items` with them, so far that `place` is in its place."""
    low, high = first, last - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                items[i], items[j] = items[j], items[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            return


@kernel
def split(matrix: Matrix, rows: Ints, items: Ints, starts: Ints, values: Floats) -> None:
    """Arrange items (places in `rows`) so that those of a leaf lie together.

    `starts`, of shape (n_leaves + 1,), receives where the leaves begin; every node is cut in
    halves along the widest of its features. `values` is scratch space.
    """
    n_leaves = starts.size - 1
    d = matrix.shape[1]
    low, high = np.zeros(d), np.zeros(d)
    starts[0], starts[n_leaves] = 0, items.size
    width = n_leaves
    while width > 1:
        for leaf in range(0, n_leaves, width):
            first, last = starts[leaf], starts[leaf + width]
            middle = (first + last) // 2
            starts[leaf + width // 2] = middle
            if last - first < 2:
                continue
            low[:], high[:] = np.inf, -np.inf
            for i in range(first, last):
                x = matrix[rows[items[i]]]
                for f in range(d):
                    v = np.float64(x[f])
                    low[f] = v if v < low[f] else low[f]
                    high[f] = v if v > high[f] else high[f]
            widest = 0
            for f in range(1, d):
                if high[f] - low[f] > high[widest] - low[widest]:
                    widest = f
            for i in range(first, last):
                values[i] = np.float64(matrix[rows[items[i]], widest])
            _select(values, items, first, last, middle)
        width //= 2


@subroutine
def _fit_leaf(block: Floats, lower: Floats, upper: Floats) -> None:
    """Give a leaf the box of the records in its block."""
    for f in range(block.shape[0]):
        low, high = np.inf, -np.inf
        for r in range(block.shape[1]):
            v = block[f, r]
            if v < np.inf:
                low = v if v < low else low
                high = v if v > high else high
        lower[f], upper[f] = low, high


@subroutine
def _fit_node(node: int, lower: Floats, upper: Floats) -> bool:
    """Give a node the box of its children; return whether it has changed."""
    changed = False
    left, right = 2 * node + 1, 2 * node + 2
    for f in range(lower.shape[1]):
        low = min(lower[left, f], lower[right, f])
        high = max(upper[left, f], upper[right, f])
        changed |= low != lower[node, f] or high != upper[node, f]
        lower[node, f], upper[node, f] = low, high
    return changed


@kernel
def fill_blocks(
    matrix: Matrix, rows: Ints, items: Ints, starts: Ints, tree: Tree, slots: Ints
) -> None:
    """Write the records into their blocks, and tell for each row in which slot it is."""
    blocks, ranks, lower, upper = tree
    n_blocks, d, width = blocks.shape
    for b in range(n_blocks):
        for i in range(starts[b], starts[b + 1]):
            r = i - starts[b]
            x = matrix[rows[items[i]]]
            for f in range(d):
                blocks[b, f, r] = np.float64(x[f])
            ranks[b, r] = items[i]
            slots[rows[items[i]]] = b * width + r
    if lower.shape[0]:
        for b in range(n_blocks):
            _fit_leaf(blocks[b], lower[n_blocks - 1 + b], upper[n_blocks - 1 + b])
        for node in range(n_blocks - 2, -1, -1):
            _fit_node(node, lower, upper)


@kernel
def forget(rows: Ints, tree: Tree, slots: Ints) -> None:
    """Overwrite records, and the sides of boxes that they made."""
    blocks, ranks, lower, upper = tree
    n_blocks, _, width = blocks.shape
    for row in rows:
        slot = slots[row]
        slots[row] = -1
        b, r = slot // width, slot % width
        blocks[b, :, r] = np.inf
        ranks[b, r] = -1
        if lower.shape[0] == 0:
            continue
        node = n_blocks - 1 + b
        _fit_leaf(blocks[b], lower[node], upper[node])
        while node > 0:
            node = (node - 1) // 2
            if not _fit_node(node, lower, upper):
                break


@subroutine
def _scan_block(
    block: Floats,
    own: Ints,
    query: Floats,
    inverse: Floats,
    metric: int,
    scratch: Floats,
    distances: Floats,
    ranks: Ints,
) -> None:
    """Let a block's records in among the nearest of a query."""
    worst = distances[distances.size - 1]
    if block_distances(block, query, inverse, metric, worst, scratch) > 0:
        for r in range(scratch.size):
            if scratch[r] <= worst:
                insert(scratch[r], own[r], distances, ranks)


@kernel
def scan(
    queries: Floats, tree: Tree, inverse: Floats, metric: int, distances: Floats, ranks: Ints
) -> None:
    """Find the nearest records of each query among all; see `search`."""
    blocks, owners, _, _ = tree
    scratch = np.zeros(blocks.shape[2])
    for b in range(blocks.shape[0]):
        for q in range(queries.shape[0]):
            _scan_block(
                blocks[b], owners[b], queries[q], inverse, metric, scratch, distances[q], ranks[q]
            )


@kernel
def search(
    queries: Floats, tree: Tree, inverse: Floats, metric: int, distances: Floats, ranks: Ints
) -> None:
    """Find the nearest records of each query, going down the nearer child first.

    `distances` and `ranks` are full of the largest float and the largest integer; they receive the
    nearest, in order. See `block_distances` for `inverse` and `metric`.
    """
    blocks, owners, lower, upper = tree
    n_leaves = blocks.shape[0]
    scratch = np.zeros(blocks.shape[2])
    nodes = np.zeros(_DEPTH, np.int64)
    bounds = np.zeros(_DEPTH)
    last = distances.shape[1] - 1
    for q in range(queries.shape[0]):
        query = queries[q]
        nodes[0], bounds[0], waiting = 0, 0.0, 1
        while waiting:
            waiting -= 1
            node = nodes[waiting]
            # A record as far as the last of the nearest may still come before it.
            if bounds[waiting] > distances[q, last]:
                continue
            if node >= n_leaves - 1:
                b = node - (n_leaves - 1)
                _scan_block(
                    blocks[b], owners[b], query, inverse, metric, scratch, distances[q], ranks[q]
                )
                continue
            left, right = 2 * node + 1, 2 * node + 2
            to_left = box_distance(lower[left], upper[left], query, inverse, metric)
            to_right = box_distance(lower[right], upper[right], query, inverse, metric)
            if to_left <= to_right:
                nodes[waiting], bounds[waiting] = right, to_right
                nodes[waiting + 1], bounds[waiting + 1] = left, to_left
            else:
                nodes[waiting], bounds[waiting] = left, to_left
                nodes[waiting + 1], bounds[waiting + 1] = right, to_right
            waiting += 2


@subroutine
def blocks_within(query: Floats, tree: Tree, inverse: Floats, limit: float, found: Ints) -> int:
    """List the blocks whose records can lie within a squared distance; return their number."""
    blocks, _, lower, upper = tree
    n_leaves = int(blocks.shape[0])
    if lower.shape[0] == 0:  # there is no tree
        for b in range(n_leaves):
            found[b] = b
        return n_leaves
    nodes = np.zeros(_DEPTH, np.int64)
    waiting, m = 1, 0
    while waiting:
        waiting -= 1
        node = nodes[waiting]
        if box_distance(lower[node], upper[node], query, inverse, EUCLIDEAN) > limit:
            continue
        if node < n_leaves - 1:
            nodes[waiting], nodes[waiting + 1] = 2 * node + 2, 2 * node + 1
            waiting += 2
        else:
            found[m] = node - (n_leaves - 1)
            m += 1
    return m


@kernel
def within(
    queries: Floats, tree: Tree, inverse: Floats, limit: float, counts: Ints, ranks: Ints
) -> int:
    """List the records within a squared distance of queries, while there is room for all of them.

    `ranks` receives those of the first query, then those of the second, and so on, and `counts`
    how many there are for each. Return the number of queries that are answered.
    """
    blocks, owners, _, _ = tree
    scratch, reached = np.zeros(blocks.shape[2]), np.zeros(blocks.shape[0], np.int64)
    m = 0
    for q in range(queries.shape[0]):
        if m + owners.size > ranks.size:
            return q
        before = m
        for i in range(blocks_within(queries[q], tree, inverse, limit, reached)):
            b = reached[i]
            if block_distances(blocks[b], queries[q], inverse, EUCLIDEAN, limit, scratch) > 0:
                for r in range(scratch.size):
                    if scratch[r] <= limit:
                        ranks[m] = owners[b, r]
                        m += 1
        counts[q] = m - before
    return len(queries)

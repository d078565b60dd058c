"""Kernels of kernel regression and density: sums of targets, weighed by the distance to a query.

A sum is over the records within reach in the order of their ranks, one after the other, so that it
is the same however the index was made. Weights are a fixed formula of one distance.
"""

from __future__ import annotations

import numpy as np

from erasable.core._function_kernels import cos_turns, expose
from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints

from ._distance_kernels import EUCLIDEAN, block_distances
from ._index_kernels import Tree, blocks_within

GAUSSIAN, EPANECHNIKOV, BIWEIGHT, TRICUBE, LINEAR, TOPHAT, EXPONENTIAL, COSINE = range(8)
OUTSIDE = -1.0


@subroutine
def _gather(
    query: Floats,
    tree: Tree,
    inverse: Floats,
    limit: float,
    reached: Ints,
    scratch: Floats,
    by_rank: Floats,
) -> None:
    """Write the squared distances of the records within reach to their ranks."""
    blocks, owners = tree[0], tree[1]
    for i in range(blocks_within(query, tree, inverse, limit, reached)):
        b = reached[i]
        if block_distances(blocks[b], query, inverse, EUCLIDEAN, limit, scratch) > 0:
            for r in range(scratch.size):
                if scratch[r] <= limit:
                    by_rank[owners[b, r]] = scratch[r]


@subroutine
def _weights(squares: Floats, nearest: float, bandwidth: float, shape: int, bits: Ints) -> None:
    """Replace squared distances by weights."""
    square = bandwidth * bandwidth
    if shape == GAUSSIAN:
        for i in range(squares.size):
            squares[i] = (nearest - squares[i]) / (2.0 * square)
        expose(squares, bits)
        return
    if shape == EXPONENTIAL:
        for i in range(squares.size):
            squares[i] = (np.sqrt(nearest) - np.sqrt(squares[i])) / bandwidth
        expose(squares, bits)
        return
    for i in range(squares.size):
        u2 = squares[i] / square
        u2 = u2 if u2 < 1.0 else 1.0
        if shape == EPANECHNIKOV:
            squares[i] = 1.0 - u2
        elif shape == BIWEIGHT:
            squares[i] = (1.0 - u2) * (1.0 - u2)
        elif shape == TRICUBE:
            rest = 1.0 - u2 * np.sqrt(u2)
            squares[i] = rest * rest * rest
        elif shape == LINEAR:
            squares[i] = 1.0 - np.sqrt(u2)
        elif shape == COSINE:
            squares[i] = cos_turns(0.25 * np.sqrt(u2))
        else:
            squares[i] = 1.0


@subroutine
def _take(by_rank: Floats, ranks: Ints, values: Floats) -> int:
    """Move what is within reach to the front, with its ranks; return how much that is."""
    m = 0
    for rank in range(by_rank.size):
        ranks[m], values[m] = rank, by_rank[rank]
        m += by_rank[rank] != OUTSIDE
        by_rank[rank] = OUTSIDE
    return m


@subroutine
def _sum(weights: Floats, ranks: Ints, targets: Floats, out: Floats) -> float:
    """Write the weighed sums of targets; return the sum of weights."""
    total = 0.0
    for i in range(weights.size):
        total += weights[i]
    for t in range(targets.shape[1]):
        own = 0.0
        for i in range(weights.size):
            own += weights[i] * targets[ranks[i], t]
        out[t] = own
    return total


@kernel
def weigh(
    queries: Floats,
    tree: Tree,
    inverse: Floats,
    targets: Floats,
    nearest: Floats,
    limits: Floats,
    bandwidth: float,
    shape: int,
    out: Floats,
    total: Floats,
) -> None:
    """Write the weighed sums of the targets within reach to `out`, the sums of weights to `total`.

    `targets` are by rank. `nearest` and `limits` are squared distances: at which the weight is 1
    where the kernel has no end, and of the farthest record that may have any.
    """
    n = targets.shape[0]
    scratch, by_rank = np.zeros(tree[0].shape[2]), np.full(n, OUTSIDE)
    ranks, values, bits = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64)
    reached = np.zeros(tree[0].shape[0], np.int64)
    for q in range(queries.shape[0]):
        _gather(queries[q], tree, inverse, limits[q], reached, scratch, by_rank)
        m = _take(by_rank, ranks, values)
        _weights(values[:m], nearest[q], bandwidth, shape, bits[:m])
        total[q] = _sum(values[:m], ranks, targets, out[q])


@kernel
def gather(queries: Floats, tree: Tree, inverse: Floats, limits: Floats, squares: Floats) -> None:
    """Write the squared distances of records within reach of each query to their ranks.

    `squares`, of shape (n_queries, n_records), has `OUTSIDE` everywhere.
    """
    scratch, reached = np.zeros(tree[0].shape[2]), np.zeros(tree[0].shape[0], np.int64)
    for q in range(queries.shape[0]):
        _gather(queries[q], tree, inverse, limits[q], reached, scratch, squares[q])


@kernel
def weigh_gathered(
    squares: Floats,
    targets: Floats,
    nearest: Floats,
    bandwidth: float,
    shape: int,
    out: Floats,
    total: Floats,
) -> None:
    """Do as `weigh` does with what `gather` has written, which is overwritten."""
    n = targets.shape[0]
    ranks, values, bits = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64)
    for q in range(squares.shape[0]):
        m = _take(squares[q], ranks, values)
        _weights(values[:m], nearest[q], bandwidth, shape, bits[:m])
        total[q] = _sum(values[:m], ranks, targets, out[q])

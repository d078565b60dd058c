"""Kernel regression on stored records: distances where blocks are, sums here, in their order."""

from __future__ import annotations

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerRow
from erasable.neighbors._index import Index
from erasable.neighbors._stored import StoredMemory

from . import _weigh_kernels as kernels

_DISTANCES = 2**23  # at once

Found = tuple[Ints, Floats]
"""Ranks of records, and their squared distances of every query."""


def weigh_stored(
    memory: StoredMemory,
    queries: Floats,
    inverse: Floats,
    targets: Floats,
    nearest: Floats,
    limits: Floats,
    bandwidth: float,
    shape: int,
    n_jobs: int | None,
) -> tuple[Floats, Floats]:
    """Return means and sums of weights, as `_weigh_kernels.weigh` writes them.

    All blocks are read for each part of the queries.
    """
    order, live = memory.order, np.flatnonzero(memory.live)
    ranks = np.zeros(memory.live.size, dtype=np.int64)
    ranks[order] = np.arange(order.size)
    per_row = PerRow(ranks)
    out, total = np.zeros((len(queries), targets.shape[1])), np.zeros(len(queries))
    step = max(1, _DISTANCES // max(order.size, 1))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        wanted = _Squares(per_row, queries[part], inverse, limits[part])
        own, found = run(wanted, memory.matrix, live, n_jobs=n_jobs)
        squares = np.empty_like(found)
        squares[:, own] = found
        kernels.weigh_gathered(
            squares, targets, nearest[part], bandwidth, shape, out[part], total[part]
        )
    return out, total


class _Squares(Pass[Found]):
    """Find the squared distances of records within reach of queries."""

    def __init__(self, ranks: PerRow, queries: Floats, inverse: Floats, limits: Floats) -> None:
        self._ranks, self._queries, self._inverse, self._limits = ranks, queries, inverse, limits

    def of_block(self, block: Block) -> Found:
        rows = block.positions
        squares = np.full((len(self._queries), rows.size), kernels.OUTSIDE)
        if rows.size:
            tree = Index(block.matrix, rows, None).tree
            kernels.gather(self._queries, tree, self._inverse, self._limits, squares)
        return self._ranks.of(block)[rows], squares

    def merge(self, one: Found, other: Found) -> Found:
        return np.concatenate([one[0], other[0]]), np.hstack([one[1], other[1]])

"""Sums of targets over the records within reach of a query, weighed by a kernel of the distance.

The law kept here: a sum is over the records in the order of the hashes of their ids, so that it is
a function of the records and the query alone, in memory and of stored records.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import erasable.neighbors._weigh_kernels as kernels
from erasable.core._function_kernels import LIMIT
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerRow
from erasable.core.threads import over_rows

from ._index import FARTHEST, TREE_FEATURES, Index
from ._memory import Memory
from ._stored import StoredMemory
from ._targets import StoredNumbers

_LEAF_SIZE = 64
_QUERIES = 64  # for a thread at a time; each of them looks at all records
_DISTANCES = 2**23  # at once

Found = tuple[Ints, Floats]
"""Ranks of records, and their squared distances of every query."""


class Weighing(NamedTuple):
    """Records with targets that are numbers, weighed by a kernel of their distance to queries."""

    memory: Memory
    inverse: Floats | None  # what differences in a feature are multiplied by
    shape: int
    bandwidth: float
    n_jobs: int | None

    @property
    def _leaf_size(self) -> int | None:
        return None if self.memory.matrix.shape[1] > TREE_FEATURES else _LEAF_SIZE

    def nearest(self, queries: Floats, k: int = 1) -> tuple[Floats, Ints]:
        """Return squared distances and rows of the k nearest records; see `Index.nearest`."""
        return self.memory.nearest(queries, k, self._leaf_size, self.inverse, n_jobs=self.n_jobs)

    def sums(
        self, queries: Floats, nearest: Floats, limits: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return weighed sums of targets, shape (n_queries, n_outputs), and sums of weights.

        `nearest` and `limits` are squared distances; see `_weigh_kernels.weigh`. By default the
        limits follow from the kernel.
        """
        memory, targets = self.memory, self.memory.targets
        assert isinstance(targets, StoredNumbers)
        if limits is None:
            limits = self._reach(nearest)
        out, total = np.zeros((len(queries), targets.values.shape[1])), np.zeros(len(queries))
        inverse = np.zeros(0) if self.inverse is None else self.inverse
        if isinstance(memory, StoredMemory):
            self._sum_stored(memory, queries, inverse, targets.values, nearest, limits, out, total)
            return out, total
        index = memory.index(self._leaf_size)
        tree, by_rank = index.tree, targets.values[index.order]

        def weigh(rows: slice) -> None:
            kernels.weigh(
                queries[rows], tree, inverse, by_rank, nearest[rows], limits[rows], self.bandwidth,
                self.shape, out[rows], total[rows],
            )  # fmt: skip

        for _ in over_rows(weigh, nearest.size, self.n_jobs, _QUERIES):
            pass
        return out, total

    def _reach(self, nearest: Floats) -> Floats:
        """Return the squared distance of the farthest record that may have any weight."""
        with np.errstate(over="ignore"):
            if self.shape == kernels.GAUSSIAN:
                limits = nearest + 2.0 * LIMIT * self.bandwidth * self.bandwidth
            elif self.shape == kernels.EXPONENTIAL:
                limits = (np.sqrt(nearest) + LIMIT * self.bandwidth) ** 2
            else:
                limits = np.full(nearest.size, self.bandwidth * self.bandwidth)
        return np.minimum(limits, FARTHEST)

    def _sum_stored(
        self,
        memory: StoredMemory,
        queries: Floats,
        inverse: Floats,
        targets: Floats,
        nearest: Floats,
        limits: Floats,
        out: Floats,
        total: Floats,
    ) -> None:
        """Fill `out` and `total`; every part of the queries reads all blocks."""
        counted = memory.targets.counted
        order, live = counted(memory.order), counted(np.flatnonzero(memory.live))
        ranks = np.zeros(memory.live.size, dtype=np.int64)
        ranks[order] = np.arange(order.size)
        per_row, by_rank = PerRow(ranks), targets[order]
        step = max(1, _DISTANCES // max(order.size, 1))
        for start in range(0, len(queries), step):
            part = slice(start, start + step)
            wanted = _Squares(per_row, queries[part], inverse, limits[part])
            own, found = run(wanted, memory.matrix, live, n_jobs=self.n_jobs)
            squares = np.empty_like(found)
            squares[:, own] = found
            kernels.weigh_gathered(
                squares, by_rank, nearest[part], self.bandwidth, self.shape, out[part], total[part]
            )


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

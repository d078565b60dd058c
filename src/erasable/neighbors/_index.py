"""An index of records, to find the nearest ones: a tree with tombstones, or plain blocks.

It is an accelerator. What it finds is a function of the records and the query, bit for bit,
independent of how it was made and of what it has forgotten since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import erasable.neighbors._index_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.threads import in_threads, over_rows

_LANES = 8
_PLAIN = 64  # records in a block that belongs to no tree
_CACHED = 2**15  # values of queries that stay in cache while the blocks go by
_ASKED = 2**8  # queries for a thread at a time
TREE_FEATURES = 15
"""With more features, few boxes are far from a query, and blocks are searched without a tree."""
FARTHEST, NOBODY = float(np.finfo(np.float64).max), int(np.iinfo(np.int64).max)
"""Distance and rank where there is no record."""


class Index:
    """Records of a matrix in blocks, from which some can be taken out.

    `order` lists the rows that are records, in the order in which records at the same distance are
    named; `leaf_size` of None makes no tree.
    """

    def __init__(self, matrix: Any, order: Ints, leaf_size: int | None) -> None:
        self.order, self.n_dead = order, 0  # records that were taken out
        n, d = order.size, matrix.shape[1]
        items = np.arange(n)
        if leaf_size is None:
            n_blocks, n_nodes, width = -(-n // _PLAIN), 0, _PLAIN
            starts = np.minimum(np.arange(n_blocks + 1) * width, n)
        else:
            n_blocks = 1 << max(0, -(-n // leaf_size) - 1).bit_length()
            n_nodes, width = 2 * n_blocks - 1, -(-n // n_blocks)
            width = -(-width // _LANES) * _LANES
            starts = np.zeros(n_blocks + 1, dtype=np.int64)
            kernels.split(matrix, order, items, starts, np.zeros(n))
        lower, upper = np.zeros((2, n_nodes, d))
        blocks, ranks = np.full((n_blocks, d, width), np.inf), np.full((n_blocks, width), -1)
        self.tree: kernels.Tree = blocks, ranks, lower, upper
        self._slots = np.full(matrix.shape[0], -1)
        kernels.fill_blocks(matrix, order, items, starts, self.tree, self._slots)

    def remove(self, rows: Ints) -> None:
        """Take records out, and overwrite what is known of them; others are left."""
        rows = rows[self._slots[rows] >= 0]
        kernels.forget(rows, self.tree, self._slots)
        self.n_dead += rows.size

    def nearest(
        self,
        queries: Floats,
        k: int,
        inverse: Floats | None = None,
        metric: int = 0,
        n_jobs: int | None = None,
    ) -> tuple[Floats, Ints]:
        """Return distances (Euclidean ones squared) and rows of the nearest records of each query.

        `queries` are C-contiguous; differences are multiplied by `inverse`. Records are sorted by
        distance, then by order; rows are -1 where too few records are at a finite distance.
        """
        distances = np.full((queries.shape[0], k), FARTHEST)
        ranks = np.full((queries.shape[0], k), NOBODY)
        scales = np.zeros(0) if inverse is None else inverse
        find = kernels.search if self.tree[2].size else kernels.scan
        portion = max(_LANES, _CACHED // max(1, queries.shape[1]))

        def answer(start: int) -> None:
            some = slice(start, start + portion)
            find(queries[some], self.tree, scales, metric, distances[some], ranks[some])

        for _ in in_threads(answer, range(0, queries.shape[0], portion), n_jobs):
            pass
        found = ranks != NOBODY
        rows = np.where(found, self.order[np.where(found, ranks, 0)], -1)
        return distances, rows

    def within(
        self,
        queries: Floats,
        limit: float,
        inverse: Floats | None = None,
        n_jobs: int | None = None,
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield, for some queries at a time, numbers and rows of the records within a distance.

        `limit` is finite, the square of a Euclidean distance; see `nearest` for the others.
        """
        scales = np.zeros(0) if inverse is None else inverse

        def answer(some: slice) -> tuple[Ints, Ints]:
            asked, found = queries[some], [self.order[:0]]
            counts = np.zeros(len(asked), dtype=np.int64)
            room = np.empty(2 * self.tree[1].size, dtype=np.int64)
            first = 0
            while first < len(asked):
                rest = counts[first:]
                n = kernels.within(asked[first:], self.tree, scales, limit, rest, room)
                found.append(self.order[room[: rest[:n].sum()]])
                first += n
            return counts, np.concatenate(found)

        return over_rows(answer, len(queries), n_jobs, _ASKED)

"""Records of a lazy model that are stored elsewhere and read block by block.

The law kept here: what is found is what `Memory` finds of the same records. A distance is a formula
of one record and of the query, so that it is the same in whichever block the record lies; blocks
answer with their nearest, by distance and then by the place in the order of the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.passes import Block, Pass, run, storage
from erasable.core.row_arrays import PerLiveRow, PerRow

from ._index import FARTHEST, NOBODY, Index
from ._memory import Memory, leaf_size_for
from ._near import Lists
from ._row_hash import RowHash, sum_of_hashes
from ._targets import LARGEST, refuse_beyond

_FEW = 64  # queries, for which no tree is made of a block that is read for them alone

Found = tuple[Floats, Ints]
"""Distances and ranks of the nearest records of every query."""


class StoredMemory(Memory):
    """Live records of a stored matrix."""

    @classmethod
    def refuse_large(cls, matrix: Any, rows: Ints, n_jobs: int | None = None) -> None:
        """See `Memory`; where there are gaps, raise."""
        refuse_beyond(run(_Beyond(), matrix, rows, n_jobs=n_jobs))

    def _hash_of_all(self) -> RowHash:
        rows = np.flatnonzero(self.live)
        return run(_SetHash(self.ids[rows], self.targets.bytes_of(rows)), self.matrix, rows)

    def values(self, rows: Ints) -> Floats:
        """Read rows in this order, block by block, so that no others are kept meanwhile."""
        by_row = np.argsort(rows)
        values = np.empty((rows.size, self.matrix.shape[1]))
        for block in storage(self.matrix).blocks(rows[by_row]):
            places = by_row[block.rank : block.rank + block.size]
            values[places] = block.matrix[block.positions]
        return values

    def nearest(
        self,
        queries: Floats,
        k: int,
        leaf_size: int | None,
        inverse: Floats | None = None,
        metric: int = 0,
        n_jobs: int | None = None,
    ) -> tuple[Floats, Ints]:
        """Find the nearest records of every query, in one reading; see `Memory.nearest`."""
        order = self.targets.counted(self.order)
        ranks = np.empty(self.live.size, dtype=np.int64)
        ranks[order] = np.arange(order.size)
        leaves = leaf_size if len(queries) > _FEW else None
        wanted = _Nearest(ranks, queries, k, leaves, inverse, metric)
        rows = self.targets.counted(np.flatnonzero(self.live))
        distances, found = run(wanted, self.matrix, rows, n_jobs=n_jobs)
        there = found != NOBODY
        return distances, np.where(there, order[np.where(there, found, 0)], -1)

    def _within(
        self, queries: Floats, limit: float, inverse: Floats | None, n_jobs: int | None
    ) -> Iterator[Lists]:
        """Find the rows within a distance of every query, in one reading."""
        wanted = _Within(queries, limit, inverse)
        asked, rows = run(wanted, self.matrix, np.flatnonzero(self.live), n_jobs=n_jobs)
        yield np.bincount(asked, minlength=len(queries)), rows[np.argsort(asked, kind="stable")]


class _SetHash(Pass[RowHash]):
    """Hash the set of the records, which have these ids and targets."""

    def __init__(self, ids: NDArray[Any], targets: list[bytes]) -> None:
        held = np.empty(len(targets), dtype=object)
        held[:] = targets
        self._ids, self._targets = PerLiveRow(ids), PerLiveRow(held)

    def of_block(self, block: Block) -> RowHash:
        values = np.ascontiguousarray(block.matrix[block.positions], dtype="<f8")
        return sum_of_hashes(values, self._targets.of(block).tolist(), self._ids.of(block))

    def merge(self, one: RowHash, other: RowHash) -> RowHash:
        return one + other


class _Nearest(Pass[Found]):
    """Find the nearest records of queries; `ranks`, by row, order records at the same distance."""

    def __init__(
        self,
        ranks: Ints,
        queries: Floats,
        k: int,
        leaf_size: int | None,
        inverse: Floats | None,
        metric: int,
    ) -> None:
        self._ranks, self._queries, self._k = PerRow(ranks), queries, k
        self._leaf_size, self._inverse, self._metric = leaf_size, inverse, metric

    def of_block(self, block: Block) -> Found:
        own, rows = self._ranks.of(block), block.positions
        if rows.size == 0:
            shape = len(self._queries), self._k
            return np.full(shape, FARTHEST), np.full(shape, NOBODY)
        index = Index(block.matrix, rows[np.argsort(own[rows])], self._leaf_size)
        distances, found = index.nearest(self._queries, self._k, self._inverse, self._metric, 1)
        return distances, np.where(found < 0, NOBODY, own[found])

    def merge(self, one: Found, other: Found) -> Found:
        distances, ranks = (np.hstack(both) for both in zip(one, other, strict=True))
        first = np.lexsort((ranks, distances), axis=1)[:, : self._k]
        return np.take_along_axis(distances, first, 1), np.take_along_axis(ranks, first, 1)


class _Within(Pass[tuple[Ints, Ints]]):
    """Find the records within a distance of queries: numbers of queries, and rows."""

    def __init__(self, queries: Floats, limit: float, inverse: Floats | None) -> None:
        self._queries, self._limit, self._inverse = queries, limit, inverse

    def of_block(self, block: Block) -> tuple[Ints, Ints]:
        if not block.size:
            return block.rows[:0], block.rows[:0]
        index = Index(block.matrix, block.positions, leaf_size_for(self._queries))
        found = list(index.within(self._queries, self._limit, self._inverse, 1))
        counts, rows = (np.concatenate(each) for each in zip(*found, strict=True))
        return np.repeat(np.arange(counts.size), counts), block.first + rows

    def merge(self, one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


class _Beyond(Pass[Flags]):
    """Tell which columns hold numbers that are too large."""

    def of_block(self, block: Block) -> Flags:
        values = block.matrix[block.positions]
        low, high = values.min(axis=0, initial=0.0), values.max(axis=0, initial=0.0)
        beyond: Flags = np.maximum(high, -low).astype(np.float64) > LARGEST
        return beyond

    def merge(self, one: Flags, other: Flags) -> Flags:
        return one | other

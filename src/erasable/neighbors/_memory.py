"""Records of a lazy model: their order, their hash, and an index that finds them.

The order is that of the hashes of ids under fixed public keys: a function of the records, which
neither rows nor deletions change, and which does not show how they came. The hash of the set and
the index are made on first use, and follow deletions from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.digest import state_root
from erasable.core.ids import as_id_array
from erasable.core.passes import storage
from erasable.core.tape import Tape

from ._index import TREE_FEATURES, Index
from ._near import Lists, Near
from ._row_hash import RowHash, sum_of_hashes
from ._targets import LARGEST, StoredTargets, refuse_beyond

_LEAF_SIZE = 64
_FEW = 64
"""Queries for which a tree is not worth the time that it takes to make."""

# Fixed and public: the fractional parts of the square roots of 5 and 7.
_KEYS = Tape(0x3C6EF372FE94F82B), Tape(0xA54FF53A5F1D36F1)


def leaf_size_for(queries: Floats) -> int | None:
    """Return the size of the leaves of a tree, or None where blocks are searched without one."""
    n, d = queries.shape
    return None if n <= _FEW or d > TREE_FEATURES else _LEAF_SIZE


class Memory:
    """Live records, by row, with their hash and index, made on first use.

    `live` is shared with the model's hold on its records, and changed by a deletion before this is.
    """

    _near: Near | None = None  # also where older files have none

    def __init__(self, matrix: Any, ids: NDArray[Any], live: Flags, targets: StoredTargets) -> None:
        self.matrix, self.ids, self.live, self.targets = matrix, ids, live, targets
        self._order: Ints | None = None
        self._hash: RowHash | None = None
        self._index: Index | None = None
        self._leaf_size: int | None = None

    @property
    def order(self) -> Ints:
        """Rows of the live records, in their order."""
        if self._order is None:
            rows = np.flatnonzero(self.live)
            first, second = (tape.record_keys(self.ids[rows]) for tape in _KEYS)
            self._order = rows[np.lexsort((second, first))]
        elif self._order.size > np.count_nonzero(self.live):
            self._order = self._order[self.live[self._order]]
        return self._order

    @classmethod
    def refuse_large(cls, matrix: Any, rows: Ints, n_jobs: int | None = None) -> None:
        """Raise MagnitudeError where rows hold numbers beyond `LARGEST`."""
        flat = matrix.ravel()
        with np.errstate(over="ignore"):
            # One pass instead of two: no square is larger than their sum.
            if flat @ flat <= LARGEST * LARGEST:
                return
        if max(float(matrix.max()), -float(matrix.min())) > LARGEST:
            refuse_beyond((np.abs(matrix[rows]) > LARGEST).any(axis=0))

    def hash(self) -> RowHash:
        """Hash the set of the live records."""
        if self._hash is None:
            self._hash = self._hash_of_all()
        return self._hash

    def _hash_of_all(self) -> RowHash:
        return self._hash_of(np.flatnonzero(self.live))

    def _hash_of(self, rows: Ints) -> RowHash:
        values = np.ascontiguousarray(self.matrix[rows], dtype="<f8")
        return sum_of_hashes(values, self.targets.bytes_of(rows), self.ids[rows])

    def index(self, leaf_size: int | None) -> Index:
        """Return an index of the live records that count, with leaves of this size."""
        if self._index is None or self._leaf_size != leaf_size:
            self._index = Index(self.matrix, self.targets.counted(self.order), leaf_size)
            self._leaf_size = leaf_size
        return self._index

    def near(self, limit: float, inverse: Floats | None, n_jobs: int | None) -> Near:
        """Return the lists of near records, which follow from now on; see `Near`."""
        if self._near is None or not self._near.is_of(limit, inverse):
            self._near = None  # before there are others
            made = Near(self.live.size, limit, inverse)
            rows = np.flatnonzero(self.live)
            found = (
                each
                for _, values in self.questions()
                for each in self._within(values, limit, inverse, n_jobs)
            )
            made.add(rows, found, self.live.size)
            self._near = made
        return self._near

    def _within(
        self, queries: Floats, limit: float, inverse: Floats | None, n_jobs: int | None
    ) -> Iterator[Lists]:
        """Find the rows within a distance of every query; see `Index.within`."""
        index = Index(self.matrix, np.flatnonzero(self.live), leaf_size_for(queries))
        return index.within(queries, limit, inverse, n_jobs)

    def take_arrays(self, matrix: Any, ids: NDArray[Any], live: Flags) -> None:
        """Refer to other arrays, in which the records are where they were."""
        self.matrix, self.ids, self.live = matrix, ids, live

    def add(self, y: NDArray[Any], rows: Ints) -> bool:
        """Take rows in, which are live from now on, unless there is no class that one has."""
        if not self.targets.add(y, rows):
            return False
        if self._hash is not None:
            self._hash = self._hash + self._hash_of(rows)
        self._order = self._index = None
        if self._near is not None:
            queries = np.ascontiguousarray(self.matrix[rows], dtype=np.float64)
            found = self._within(queries, self._near.limit, self._near.inverse, None)
            self._near.add(rows, found, self.live.size)
        return True

    def questions(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield all live records, as rows and as queries, in one part or several."""
        for block in storage(self.matrix).blocks(np.flatnonzero(self.live)):
            if block.size:
                values = np.ascontiguousarray(block.matrix[block.positions], dtype=np.float64)
                yield block.first + block.positions, values

    def nearest(
        self,
        queries: Floats,
        k: int,
        leaf_size: int | None,
        inverse: Floats | None = None,
        metric: int = 0,
        n_jobs: int | None = None,
    ) -> tuple[Floats, Ints]:
        """Find the nearest records of every query; see `Index` and `Index.nearest`."""
        return self.index(leaf_size).nearest(queries, k, inverse, metric, n_jobs)

    def remove(self, rows: Ints) -> None:
        """Forget rows, which are not live any more and can still be read."""
        if self._hash is not None:
            self._hash = self._hash - self._hash_of(rows)
        self.targets.remove(rows)
        if self._near is not None:
            self._near.remove(rows)
        if self._index is not None:
            self._index.remove(rows)
            if 2 * self._index.n_dead > self._index.order.size:
                self._index = None  # the next one is made of what is left

    def moved(self, matrix: Any, ids: NDArray[Any], live: Flags, rows: Ints) -> Memory:
        """Return the memory of the same records where they lie in another place, in this order."""
        made = Memory(matrix, ids, live, self.targets.take(rows))
        made._hash = self._hash
        if self._near is not None:
            made._near = self._near.moved(rows)
        if self._order is not None:
            place = np.zeros(self.live.size, dtype=np.int64)
            place[rows] = np.arange(rows.size)
            made._order = place[self.order]
        return made

    def state(self) -> dict[str, Any]:
        """Return the records, in their order."""
        order = self.order
        ids = self.ids[order]
        return {
            "X": self.values(order),
            # Where an id that needed a wider type is gone, those that are left may not.
            "ids": ids if ids.dtype == np.int64 else as_id_array(ids.tolist()),
            **self.targets.state(order),
        }

    def values(self, rows: Ints) -> Floats:
        """Copy the values of rows, each of them once, in this order."""
        return np.ascontiguousarray(self.matrix[rows], dtype=np.float64)

    def digest_state(self) -> dict[str, Any]:
        """Return what stands for the records in a digest."""
        return {"records": self.hash().copy(), **self.targets.summary()}

    def places(self) -> Ints:
        """Return for each row its place among the live ones; what is not live has none."""
        return np.cumsum(self.live) - 1

    def equals(self, other: Memory) -> bool:
        """Tell whether another one holds the same records."""
        return state_root(self.digest_state()) == state_root(other.digest_state())

    @classmethod
    def from_state(cls, state: dict[str, Any], targets: StoredTargets) -> Memory:
        """Bring back what `state` returned: rows are places."""
        return cls(state["X"], state["ids"], np.ones(state["X"].shape[0], dtype=np.bool_), targets)

"""The tree of divide-and-conquer k-means over records that stay where they are.

The law kept here: nodes are those of `_tree.GriddedTree`, to the bit. The records of a leaf are in
memory while it is learned, here or on a worker, and are read again when one of them leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from erasable.core._stored_parts import drop_copies
from erasable.core.arrays import Ints
from erasable.core.grid import Grid
from erasable.core.passes import Remote
from erasable.core.threads import in_threads

from ._nodes import Node, StoredLeaf
from ._run import Report
from ._tree import Tree, node_place

if TYPE_CHECKING:
    from ._divide import DivideAndConquerKMeans

_AT_ONCE = 2**25
"""So many values are read for several leaves together: a quarter of a gigabyte."""
_SENT = 2**16
"""So many values of several leaves go to a worker together: a round trip takes milliseconds."""


class StoredTree(Tree):
    """A tree of which the records are not kept; see `Tree`."""

    _grid: Grid

    def _read(self, model: DivideAndConquerKMeans, names: list[str] | None, warn: bool) -> None:
        held = model._attached()
        live = None if held.n_live == held.records.n_rows else held.live_rows()
        self._grid = Grid.fit(
            held.records.matrix, live, names=names, warn=warn, n_jobs=model.n_jobs
        )

    @property
    def grid(self) -> Grid:
        """See `Tree`."""
        return self._grid

    def _take_off(self, model: DivideAndConquerKMeans, rows: Ints) -> bool:
        held = model._attached()
        change = self._grid.remove(held.records.matrix, rows, held.live_rows)
        return bool(change.values.any())

    def _learn_leaves(self, model: DivideAndConquerKMeans, own: dict[int, Ints]) -> list[Node]:
        matrix = model._attached().records.matrix
        shares = _together(own, max(1, _AT_ONCE // matrix.shape[1]))
        leaves: list[Node] = []
        if isinstance(matrix, Remote):
            most = max(1, _SENT // matrix.shape[1])
            calls = (
                partial(_call_all, list(itertools.islice(tasks, len(some))))
                for share in shares
                for tasks in [self._tasks(model, share)]
                for some in _together(share, most)
            )
            leaves.extend(itertools.chain.from_iterable(matrix.call(calls)))
        else:
            for share in shares:
                leaves.extend(in_threads(_call, self._tasks(model, share), model.n_jobs))
        drop_copies(model)
        return leaves

    def _tasks(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> Iterator[Callable[[], StoredLeaf]]:
        """Read the records of some leaves; say for each what is to be learned."""
        height, keys = int(model._at_fit("height")), model._record_keys()
        rows = np.sort(np.concatenate(list(own.values())))
        values = model._attached().records.matrix[rows]
        for i, mine in own.items():
            X = self._grid.apply(values, np.searchsorted(rows, mine))
            leaf = StoredLeaf(*node_place(model, height, i))
            yield partial(leaf.learned, X, keys[mine], self._quantum)

    def _remove_from_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[Report]:
        live = model._attached().live
        left = {i: np.flatnonzero((self._leaf_of == i) & live) for i in own}
        for i, leaf in zip(left, self._learn_leaves(model, left), strict=True):
            self.levels[0][i] = leaf
        return [Report("refit", rows.size, 0, 1, 0) for rows in left.values()]


def _call(task: Callable[[], StoredLeaf]) -> StoredLeaf:
    return task()


def _call_all(tasks: list[Callable[[], StoredLeaf]]) -> list[StoredLeaf]:
    return [task() for task in tasks]


def _together(own: dict[int, Ints], most: int) -> Iterator[dict[int, Ints]]:
    """Put leaves together whose records are read or sent at once: up to so many, or one leaf."""
    share: dict[int, Ints] = {}
    n = 0
    for i, rows in own.items():
        if share and n + rows.size > most:
            yield share
            share, n = {}, 0
        share[i] = rows
        n += rows.size
    if share:
        yield share

"""The tree of divide-and-conquer k-means: which leaf a record has, and what follows at its nodes.

The law kept here: a record's leaf depends on its group, or its id, and on the number of leaves
alone. So a record that leaves or comes concerns its leaf, and the nodes on the way to the root.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from erasable.core.arrays import Ints
from erasable.core.attachment import Attachment
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidInputError
from erasable.core.grid import Grid
from erasable.core.row_arrays import padded
from erasable.core.tape import Stream
from erasable.core.threads import in_threads

from ._nodes import Leaf, Merge, Node, default_width, strongest
from ._run import Report
from ._seeding import quantum_for
from ._table import GriddedTable

if TYPE_CHECKING:
    from ._divide import DivideAndConquerKMeans

MOST_LEAVES = 2**20


class Tree(ABC):
    """The accelerator: the grid of the records, the leaf of every row, and the nodes.

    Attributes
    ----------
    width : int
        Children of a node.
    levels : list of list of Node
        Leaves first.
    """

    def __init__(
        self, model: DivideAndConquerKMeans, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held = model._attached()
        self.width = _width_for(model, held.n_live)
        self._weighted = bool(model._at_fit("weight_by_mass"))
        self._read(model, names, warn)
        self._quantum = quantum_for(self.grid.top)
        height, rows = int(model._at_fit("height")), held.live_rows()
        n_leaves = self.width**height
        self._leaf_of = np.full(held.records.n_rows, -1, np.int64)
        self._leaf_of[rows] = self._leaves_for(model, rows, n_leaves)
        # Sixteen bits are sorted by their digits, ten times as fast.
        narrow = np.uint16 if n_leaves <= 2**16 else np.int64
        order = rows[np.argsort(self._leaf_of[rows].astype(narrow), kind="stable")]
        ends = np.searchsorted(self._leaf_of[order], np.arange(n_leaves + 1)).tolist()
        own = {i: order[ends[i] : ends[i + 1]] for i in range(n_leaves)}
        self.levels: list[list[Node]] = [self._learn_leaves(model, own)]
        for depth in range(height - 1, -1, -1):
            below = self.levels[-1]
            self.levels.append([])
            for i in range(self.width**depth):
                node = Merge(*node_place(model, depth, i))
                node.fit(self._children(below, i), self._weighted)
                self.levels[-1].append(node)

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The grid of the records."""

    @abstractmethod
    def _read(self, model: DivideAndConquerKMeans, names: list[str] | None, warn: bool) -> None:
        """Put the records on the grid; see `CentroidModel._new_accelerator`."""

    @abstractmethod
    def _learn_leaves(self, model: DivideAndConquerKMeans, own: dict[int, Ints]) -> list[Node]:
        """Learn all leaves, each from its own rows."""

    @abstractmethod
    def _take_off(self, model: DivideAndConquerKMeans, rows: Ints) -> bool:
        """Take rows off the grid; return whether gridded values of other rows changed."""

    @abstractmethod
    def _remove_from_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[Report]:
        """Delete rows from their leaves."""

    @property
    def root(self) -> Node:
        """The node whose centroids are the model."""
        return self.levels[-1][0]

    def nodes(self) -> list[Node]:
        """All nodes, leaves first."""
        return [node for level in self.levels for node in level]

    def remove(self, model: DivideAndConquerKMeans, rows: Ints) -> Outcome:
        """Delete rows from their leaves, and learn the nodes above these anew."""
        if self._take_off(model, rows) or not self._stands(model):
            self.__init__(model)  # type: ignore[misc]
            return Outcome("refit", model._attached().n_live, {"leaves": len(self.levels[0])})
        own = self._by_leaf(rows)
        outcome = self._follow(own, self._remove_from_leaves(model, own))
        self._leaf_of[rows] = -1
        return outcome

    def _stands(self, model: DivideAndConquerKMeans) -> bool:
        """Tell whether leaves that no row left or came to are what they were."""
        same_width = self.width == _width_for(model, model._attached().n_live)
        return same_width and self._quantum == quantum_for(self.grid.top)

    def _leaves_for(self, model: DivideAndConquerKMeans, rows: Ints, n_leaves: int) -> Ints:
        """Return the leaf of each row: a hash of its group, or of its record."""
        owners = model._attached().records.groups
        keys = model._record_keys()[rows]
        own = keys if owners is None else model._tape.record_keys(owners[rows])
        chance = model._tape.uniform(own, Stream.LEAF, 0)
        leaves: Ints = (chance * n_leaves).astype(np.int64)
        return leaves

    def _by_leaf(self, rows: Ints) -> dict[int, Ints]:
        """Sort rows by their leaves; no others are named."""
        leaves = self._leaf_of[rows]
        return {i: rows[leaves == i] for i in np.unique(leaves).tolist()}

    def _follow(self, own: dict[int, Ints], reports: list[Report]) -> Outcome:
        """Learn the nodes above leaves that have changed anew."""
        stale, merged = np.array(list(own)), 0
        for below, level in zip(self.levels[:-1], self.levels[1:], strict=True):
            stale = np.unique(stale // self.width)
            for i in stale.tolist():
                node = level[i]
                assert isinstance(node, Merge)
                merged += node.fit(self._children(below, i), self._weighted)
        counts = {"leaves": len(reports), "centroids_merged": merged}
        examined = sum(report.examined for report in reports)
        action = strongest([report.action for report in reports])
        # A leaf that is learned again is not the model.
        return Outcome("resumed" if action == "refit" else action, examined, counts)

    def _children(self, below: list[Node], i: int) -> list[Node]:
        """Return the children of node `i`, of the level below it."""
        return below[i * self.width : (i + 1) * self.width]


class GriddedTree(Tree):
    """A tree over records in memory, whose leaves delete and add as `KMeans` does.

    Attributes
    ----------
    table : GriddedTable
    """

    def _read(self, model: DivideAndConquerKMeans, names: list[str] | None, warn: bool) -> None:
        held, keys = model._attached(), model._record_keys()
        self.table = GriddedTable(held, keys, names, warn, model.n_jobs)

    @property
    def grid(self) -> Grid:
        """See `Tree`."""
        return self.table.grid

    def _learn_leaves(self, model: DivideAndConquerKMeans, own: dict[int, Ints]) -> list[Node]:
        height = int(model._at_fit("height"))

        def learn(i: int) -> Node:
            leaf = Leaf(*node_place(model, height, i))
            leaf.fit(self.table.X, self.table.keys, own[i], self._quantum)
            return leaf

        return list(in_threads(learn, own, model.n_jobs))

    def _take_off(self, model: DivideAndConquerKMeans, rows: Ints) -> bool:
        return self.table.remove(rows)

    def _remove_from_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[Report]:
        reports = [self._leaf(i).remove(rows) for i, rows in own.items()]
        self.table.wipe(np.concatenate(list(own.values())))
        return reports

    def take_arrays(self, held: Attachment) -> None:
        """See `erasable.core.growing.Growing._take_arrays`."""
        self.table.take_arrays(held)
        self._leaf_of = padded(self._leaf_of, self.table.keys.size, fill=-1)
        for i in range(len(self.levels[0])):
            self._leaf(i).show(self.table.X, self.table.keys)

    def add(self, model: DivideAndConquerKMeans, rows: Ints) -> Outcome | None:
        """Take rows in at their leaves, and learn the nodes above these anew; None: learn again."""
        if not self.table.add(rows, model._tape) or not self._stands(model):
            return None
        model._info.keys = self.table.keys
        self._leaf_of[rows] = self._leaves_for(model, rows, len(self.levels[0]))
        own = self._by_leaf(rows)
        return self._follow(own, [self._leaf(i).add(rows) for i, rows in own.items()])

    def _leaf(self, i: int) -> Leaf:
        leaf = self.levels[0][i]
        assert isinstance(leaf, Leaf)
        return leaf


def node_place(model: DivideAndConquerKMeans, depth: int, i: int) -> tuple[str, Any, int, int]:
    """Return the name and the tape of a node, and the numbers of its clusters and iterations."""
    name = "root" if depth == 0 else f"{depth}/{i}"
    n_clusters, max_iter = model._at_fit("n_clusters"), model._at_fit("max_iter")
    return name, model._tape.child("node", depth, i), n_clusters, max_iter


def _width_for(model: DivideAndConquerKMeans, n: int) -> int:
    width, height = model._at_fit("width"), int(model._at_fit("height"))
    if width is None:
        # A perfect tree of this height with about n**0.3 leaves.
        leaves = default_width(n).bit_length() - 1
        width = 2 ** max(1 if leaves else 0, -(-leaves // height))
    if width**height > MOST_LEAVES:
        raise InvalidInputError(
            f"width={width} and height={height} make {width**height} leaves; "
            f"expected at most {MOST_LEAVES}; choose a smaller width or height"
        )
    return int(width)

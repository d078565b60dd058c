"""The tree of divide-and-conquer k-means: leaves, and the nodes that cluster their centroids.

The leaf of a record depends on its group, or its id, and on the number of leaves alone. So a
record that leaves or comes concerns its leaf, and the nodes on the way to the root.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from erasable.core._stored_parts import drop_copies
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.attachment import Attachment
from erasable.core.deletion import Action, Outcome
from erasable.core.digest import LeafHash, flatten, leaf_hash
from erasable.core.errors import InvalidInputError
from erasable.core.grid import Grid
from erasable.core.passes import Remote
from erasable.core.row_arrays import padded
from erasable.core.tables import Table
from erasable.core.tape import Stream, Tape
from erasable.core.threads import in_threads

from ._distances import Points
from ._run import LloydRun, RunReport
from ._seeding import Seeding, quantum_for
from ._table import GriddedTable

if TYPE_CHECKING:
    from ._divide import DivideAndConquerKMeans


class ClusterNode:
    """The base of leaves and merging nodes: a run over records or centroids, if there are any."""

    def __init__(self, name: str, tape: Tape, n_clusters: int, max_iter: int) -> None:
        self.name = name
        self.tape = tape
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.run: LloydRun | None = None
        self._hashes: dict[str, LeafHash] | None = None

    def _new_run(self, points: Points, quantum: float) -> LloydRun:
        k = min(self.n_clusters, points.rows.shape[0])
        seeding = Seeding(k, self.tape.seed, quantum)
        return LloydRun(points, k, self.max_iter, seeding).fit()

    @property
    def is_empty(self) -> bool:
        """Whether it has no centroids."""
        return self.run is None

    @property
    def origin(self) -> Floats | float:
        """Origin that is added to the run's centroids."""
        return 0.0

    @property
    def centers(self) -> Floats:
        """Centroids that the parent clusters, relative to the origin of the records' grid."""
        if self.run is None:
            return np.empty((0, 0))
        return self.run.centers + self.origin

    @property
    def mass(self) -> Floats:
        """Mass of every centroid."""
        if self.run is None:
            return np.empty(0)
        mass: Floats = self.run.levels.counts[self.run.final].astype(np.float64)
        return mass

    def changed(self) -> None:
        """Forget the hashes of the state before."""
        self._hashes = None

    def state(self) -> dict[str, Any]:
        """Return what the node is; empty for a node without records."""
        return {} if self.run is None else self.run.state()

    def hashed_state(self) -> dict[str, Any]:
        """Return the state with a hash for each component, made once for every change."""
        if self._hashes is None:
            state = {"nodes": {self.name: self.state()}}
            self._hashes = {
                name: leaf_hash(name, value)
                for name, value in flatten(state)
                if isinstance(value, np.ndarray)
            }
        prefix = f"nodes.{self.name}."
        found: dict[str, Any] = {}
        for name, value in self._hashes.items():
            part, leaf = name.removeprefix(prefix).split(".")
            found.setdefault(part, {})[leaf] = value
        return found


class Leaf(ClusterNode):
    """A leaf: k-means over its own records, which deletes and adds as `KMeans` does."""

    def fit(self, X: Any, keys: Words, rows: Ints, quantum: float) -> None:
        """Learn from rows of the gridded records; none leave nothing to hand up."""
        self._X, self._keys, self._quantum = X, keys, quantum
        points = Points(X, keys, rows)
        self.run = self._new_run(points, quantum) if rows.size else None
        self.changed()

    def remove(self, rows: Ints) -> RunReport:
        """Delete rows, which can still be read."""
        assert self.run is not None
        self.changed()
        gone = self.run.positions(rows)
        left = self.run.n_alive - rows.size
        if left < self.run.n_clusters:
            self._fit_again(np.setdiff1d(self._rows(), rows))
            return RunReport("refit", left, 0, 1, 0)
        return self.run.remove(gone)

    def show(self, X: Any, keys: Words) -> None:
        """Know where the gridded records are now."""
        self._X, self._keys = X, keys
        if self.run is not None:
            self.run.show(X, keys)

    def add(self, rows: Ints) -> RunReport:
        """Take rows in."""
        if self.run is None or self.run.n_clusters < self.n_clusters:
            every = np.union1d(self._rows(), rows)
            self._fit_again(every)
            return RunReport("refit", int(every.size), 0, 1, 0)
        self.changed()
        return self.run.exchange(rows[:0], rows)

    def _rows(self) -> Ints:
        if self.run is None:
            return np.empty(0, np.int64)
        rows: Ints = self.run.points.rows[self.run.live()]
        return rows

    def _fit_again(self, rows: Ints) -> None:
        self.fit(self._X, self._keys, rows, self._quantum)


class StoredLeaf(ClusterNode):
    """A leaf whose records are not kept: what a `Leaf` of the same records is, learned anew."""

    def __init__(self, name: str, tape: Tape, n_clusters: int, max_iter: int) -> None:
        super().__init__(name, tape, n_clusters, max_iter)
        self._centers, self._mass = np.empty((0, 0)), np.empty(0)
        self._state: dict[str, Any] = {}

    def learned(self, X: Floats, keys: Words, quantum: float) -> StoredLeaf:
        """Learn from gridded records with these keys, and return itself."""
        leaf = Leaf(self.name, self.tape, self.n_clusters, self.max_iter)
        leaf.fit(X, keys, np.arange(keys.size), quantum)
        self._centers, self._mass = leaf.centers, leaf.mass
        self._state = {
            part: {name: value.copy() for name, value in values.items()}
            for part, values in leaf.state().items()
        }
        return self

    @property
    def is_empty(self) -> bool:
        """See `ClusterNode`."""
        return not self._state

    @property
    def centers(self) -> Floats:
        """See `ClusterNode`."""
        return self._centers

    @property
    def mass(self) -> Floats:
        """See `ClusterNode`."""
        return self._mass

    def state(self) -> dict[str, Any]:
        """See `ClusterNode`."""
        return self._state


class Merge(ClusterNode):
    """A node over others: k-means over the centroids they hand up, learned anew each time."""

    grid: Grid | None = None

    def fit(self, children: list[ClusterNode], weighted: bool) -> int:
        """Learn from the children's centroids; return how many there were."""
        there = [(i, child) for i, child in enumerate(children) if not child.is_empty]
        self.changed()
        if not there:
            self.run = self.grid = None  # a grid has values of the records that left
            return 0
        matrix = np.concatenate([child.centers for _, child in there])
        # Weighted, a centroid without records counts for nothing; it is a seed if all others are.
        mass = np.concatenate([child.mass for _, child in there]) if weighted else np.empty(0)
        keys = np.concatenate([i * self.n_clusters + np.arange(len(c.mass)) for i, c in there])
        self.grid = Grid.fit(matrix, warn=False)
        points = Points(
            self.grid.apply(matrix),
            self.tape.record_keys(keys),
            np.arange(keys.size),
            mass,
        )
        self.run = self._new_run(points, quantum_for(self.grid.top))
        return int(keys.size)

    @property
    def origin(self) -> Floats | float:
        """Origin of the grid of the children's centroids."""
        return 0.0 if self.grid is None else self.grid.origin


def default_width(n: int) -> int:
    """Return ``n ** 0.3`` rounded to the nearest power of two, ties up, by integers alone.

    The rule is that of Ginart et al., appendix D.1.2.
    """
    width = 1
    # The nearest power is above `width` when n**0.3 >= 1.5 width, that is n**3 >= (1.5 width)**10.
    while n**3 * 2**10 >= (3 * width) ** 10:
        width *= 2
    return width


def strongest(actions: list[Action]) -> Action:
    """Return the action that says the most was done."""
    order: list[Action] = ["none", "updated", "resumed", "refit"]
    return max(actions, key=order.index)


MOST_LEAVES = 2**20


class ClusterTree(ABC):
    """The accelerator: the grid of the records, the leaf of every row, and the nodes."""

    def __init__(
        self, model: DivideAndConquerKMeans, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held = model._attached()
        self.width = _width_for(model, held.n_live)  # children of a node
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
        self.levels: list[list[ClusterNode]] = [self._learn_leaves(model, own)]  # leaves first
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
    def _learn_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[ClusterNode]:
        """Learn all leaves, each from its own rows."""

    @abstractmethod
    def _take_off(self, model: DivideAndConquerKMeans, rows: Ints) -> bool:
        """Take rows off the grid; return whether gridded values of other rows changed."""

    @abstractmethod
    def _remove_from_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[RunReport]:
        """Delete rows from their leaves."""

    @property
    def root(self) -> ClusterNode:
        """The node whose centroids are the model."""
        return self.levels[-1][0]

    def nodes(self) -> list[ClusterNode]:
        """All nodes, leaves first."""
        return [node for level in self.levels for node in level]

    def remove(self, model: DivideAndConquerKMeans, rows: Ints) -> Outcome:
        """Delete rows from their leaves, and learn the nodes above these anew."""
        if self._take_off(model, rows) or not self._stands(model):
            self.__init__(model)  # type: ignore[misc]
            return Outcome("refit", model._attached().n_live, {"leaves": len(self.levels[0])})
        own = self._by_leaf(rows)
        outcome = self._relearn_nodes(own, self._remove_from_leaves(model, own))
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

    def _relearn_nodes(self, own: dict[int, Ints], reports: list[RunReport]) -> Outcome:
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

    def _children(self, below: list[ClusterNode], i: int) -> list[ClusterNode]:
        """Return the children of node `i`, of the level below it."""
        return below[i * self.width : (i + 1) * self.width]


class GriddedTree(ClusterTree):
    """A tree over records in memory, whose leaves delete and add as `KMeans` does."""

    def _read(self, model: DivideAndConquerKMeans, names: list[str] | None, warn: bool) -> None:
        held, keys = model._attached(), model._record_keys()
        self.table = GriddedTable(held, keys, names, warn, model.n_jobs)

    @property
    def grid(self) -> Grid:
        """See `ClusterTree`."""
        return self.table.grid

    def _learn_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[ClusterNode]:
        height = int(model._at_fit("height"))

        def learn(i: int) -> ClusterNode:
            leaf = Leaf(*node_place(model, height, i))
            leaf.fit(self.table.X, self.table.keys, own[i], self._quantum)
            return leaf

        return list(in_threads(learn, own, model.n_jobs))

    def _take_off(self, model: DivideAndConquerKMeans, rows: Ints) -> bool:
        return self.table.remove(rows)

    def _remove_from_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[RunReport]:
        reports = [self._leaf(i).remove(rows) for i, rows in own.items()]
        self.table.wipe(np.concatenate(list(own.values())))
        return reports

    def take_arrays(self, held: Attachment) -> None:
        """See `erasable.core.estimator.Erasable._take_arrays`."""
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
        return self._relearn_nodes(own, [self._leaf(i).add(rows) for i, rows in own.items()])

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


_AT_ONCE = 2**25
"""So many values are read for several leaves together: a quarter of a gigabyte."""
_SENT = 2**16
"""So many values of several leaves go to a worker together: a round trip takes milliseconds."""


class StoredTree(ClusterTree):
    """A tree of which the records are not kept; see `ClusterTree`."""

    _grid: Grid

    def _read(self, model: DivideAndConquerKMeans, names: list[str] | None, warn: bool) -> None:
        held = model._attached()
        live = None if held.n_live == held.records.n_rows else held.live_rows()
        self._grid = Grid.fit(
            held.records.matrix, live, names=names, warn=warn, n_jobs=model.n_jobs
        )

    @property
    def grid(self) -> Grid:
        """See `ClusterTree`."""
        return self._grid

    def _take_off(self, model: DivideAndConquerKMeans, rows: Ints) -> bool:
        held = model._attached()
        change = self._grid.subtract(Table.of(held), rows)
        return bool(change.values.any())

    def _learn_leaves(
        self, model: DivideAndConquerKMeans, own: dict[int, Ints]
    ) -> list[ClusterNode]:
        matrix = model._attached().records.matrix
        shares = _together(own, max(1, _AT_ONCE // matrix.shape[1]))
        leaves: list[ClusterNode] = []
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
    ) -> list[RunReport]:
        live = model._attached().live
        left = {i: np.flatnonzero((self._leaf_of == i) & live) for i in own}
        for i, leaf in zip(left, self._learn_leaves(model, left), strict=True):
            self.levels[0][i] = leaf
        return [RunReport("refit", rows.size, 0, 1, 0) for rows in left.values()]


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

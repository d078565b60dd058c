"""The tree of divide-and-conquer k-means: leaves, and the nodes that cluster their centroids.

The leaf of a record depends on its group, or its id, and on the number of leaves alone. So a
record that leaves or comes concerns its leaf, and the nodes on the way to the root.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from erasable.core._stored_parts import drop_copies
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.deletion import Action, Outcome
from erasable.core.digest import LeafHash, flatten, leaf_hash
from erasable.core.errors import InvalidInputError
from erasable.core.grid import Grid
from erasable.core.row_arrays import padded
from erasable.core.tables import Table
from erasable.core.tape import Stream, Tape
from erasable.core.threads import in_threads

from ._centroids import CentroidModel
from ._distances import Points
from ._run import LloydRun, RunReport
from ._seeding import Seeding, quantum_for
from ._table import GriddedTable, RecordGrid, chosen_rows


class NodeResult(NamedTuple):
    """What a node hands up, and its state; by default of a node without records."""

    centers: Floats = np.empty((0, 0))
    mass: Floats = np.empty(0)
    state: dict[str, Any] = {}  # noqa: RUF012


class ClusterNode:
    """The base of leaves and merging nodes: a run over records or centroids, or its result."""

    def __init__(self, name: str, tape: Tape, n_clusters: int, max_iter: int) -> None:
        self.name = name
        self.tape = tape
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.run: LloydRun | None = None
        self.result = NodeResult()  # without a run
        self._hashes: dict[str, LeafHash] | None = None

    def _new_run(self, points: Points, quantum: float) -> LloydRun:
        k = min(self.n_clusters, points.rows.shape[0])
        return LloydRun(points, self.max_iter, Seeding(k, self.tape.seed, quantum)).fit()

    @property
    def is_empty(self) -> bool:
        """Whether it has no centroids."""
        return not self.state()

    @property
    def origin(self) -> Floats | float:
        """Origin that is added to the run's centroids."""
        return 0.0

    @property
    def centers(self) -> Floats:
        """Centroids that the parent clusters, relative to the origin of the records' grid."""
        return self.result.centers if self.run is None else self.run.centers + self.origin

    @property
    def mass(self) -> Floats:
        """Mass of every centroid."""
        if self.run is None:
            return self.result.mass
        mass: Floats = self.run.levels.counts[self.run.final].astype(np.float64)
        return mass

    def state(self) -> dict[str, Any]:
        """Return what the node is; empty for a node without records."""
        return self.result.state if self.run is None else self.run.state()

    def changed(self) -> None:
        """Forget the hashes of the state before."""
        self._hashes = None

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

    def learned(self, X: Floats, keys: Words, quantum: float) -> Leaf:
        """Learn from gridded records that are not kept, and return itself."""
        self.fit(X, keys, np.arange(keys.size), quantum)
        if self.run is not None:
            self.result = NodeResult(
                self.centers.copy(),
                self.mass.copy(),
                {
                    part: {name: value.copy() for name, value in values.items()}
                    for part, values in self.state().items()
                },
            )
            self.run = None
        del self._X, self._keys
        return self

    def remove(self, rows: Ints) -> RunReport:
        """Delete rows, which can still be read."""
        assert self.run is not None
        left = self.run.n_alive - rows.size
        if left < self.run.n_clusters:
            return self._fit_again(np.setdiff1d(self._rows(), rows))
        self.changed()
        return self.run.remove(rows)

    def show(self, X: Any, keys: Words) -> None:
        """Know where the gridded records are now."""
        self._X, self._keys = X, keys
        if self.run is not None:
            self.run.show(X, keys)

    def add(self, rows: Ints) -> RunReport:
        """Take rows in."""
        if self.run is None or self.run.n_clusters < self.n_clusters:
            return self._fit_again(np.union1d(self._rows(), rows))
        self.changed()
        return self.run.exchange(rows[:0], rows)

    def _rows(self) -> Ints:
        if self.run is None:
            return np.empty(0, np.int64)
        rows: Ints = self.run.points.rows[self.run.live()]
        return rows

    def _fit_again(self, rows: Ints) -> RunReport:
        self.fit(self._X, self._keys, rows, self._quantum)
        return RunReport("refit", int(rows.size), 0, 1, 0)


class Merge(ClusterNode):
    """A node over others: k-means over their centroids, learned again each time."""

    grid: Grid | None = None

    def fit(self, children: Sequence[ClusterNode], weighted: bool) -> int:
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


class ClusterTree:
    """The accelerator: the grid of the records, the leaf of every row, and the nodes.

    Leaves over records in memory delete and add as `KMeans` does. Over stored records they keep
    their results alone, and are learned anew.
    """

    table: RecordGrid

    def __init__(
        self, model: CentroidModel, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held, n_jobs = model._attached(), model.n_jobs
        self.width = _width_for(model, held.n_live)  # children of a node
        self._weighted = bool(model._at_fit("weight_by_mass"))
        if model._is_stored():
            matrix, live = held.records.matrix, chosen_rows(held)
            self.table = RecordGrid(held, model._record_keys())
            self.table.grid = Grid.fit(matrix, live, names=names, warn=warn, n_jobs=n_jobs)
        else:
            self.table = GriddedTable(held, model._record_keys(), names, warn, n_jobs)
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
        self.leaves: list[Leaf] = list(self._learn_leaves(model, own))
        self.merges: list[list[Merge]] = []  # by depth, the lowest first
        for depth in range(height - 1, -1, -1):
            level = [Merge(*node_place(model, depth, i)) for i in range(self.width**depth)]
            for i, node in enumerate(level):
                node.fit(self._children(i), self._weighted)
            self.merges.append(level)

    @property
    def grid(self) -> Grid:
        """The grid of the records."""
        return self.table.grid

    @property
    def root(self) -> ClusterNode:
        """The node whose centroids are the model."""
        return self.merges[-1][0]

    def nodes(self) -> list[ClusterNode]:
        """All nodes, leaves first."""
        return [*self.leaves, *itertools.chain.from_iterable(self.merges)]

    def update(self, model: CentroidModel, delta: Delta) -> Outcome | None:
        """Update the leaves, and learn the nodes above them again; None: learn everything again."""
        held, leaving, arriving = model._attached(), delta.leaving, delta.arriving
        if leaving.size:
            left = (lambda: np.setdiff1d(held.live_rows(), arriving)) if arriving.size else None
            if self.table.remove(leaving, left).values.any():
                return None
        if arriving.size:
            self.table.keys[leaving] = 0  # who comes may have the same
            if not self.table.add(arriving, model._tape):
                return None
            model._info.keys = self.table.keys
        if not self._stands(model):
            return None
        changed, come = self._by_leaf(leaving), {}
        self._leaf_of[leaving] = -1
        if arriving.size:
            self._leaf_of[arriving] = self._leaves_for(model, arriving, len(self.leaves))
            come = self._by_leaf(arriving)
        if self.table.in_memory:
            reports = [self.leaves[i].remove(rows) for i, rows in changed.items()]
            self.table.wipe(leaving)
            reports += [self.leaves[i].add(rows) for i, rows in come.items()]
        else:
            own = {i: np.flatnonzero((self._leaf_of == i) & held.live) for i in {**changed, **come}}
            for i, leaf in zip(own, self._learn_leaves(model, own), strict=True):
                self.leaves[i] = leaf
            reports = [RunReport("refit", rows.size, 0, 1, 0) for rows in own.values()]
        return self._relearn_nodes(sorted({**changed, **come}), reports)

    def _stands(self, model: CentroidModel) -> bool:
        """Tell whether leaves that no row left or came to are what they were."""
        same_width = self.width == _width_for(model, model._attached().n_live)
        return same_width and self._quantum == quantum_for(self.grid.top)

    def _leaves_for(self, model: CentroidModel, rows: Ints, n_leaves: int) -> Ints:
        """Return the leaf of each row: a hash of its group, or of its record."""
        chance = model._tape.uniform(model._owner_keys(rows), Stream.LEAF, 0)
        leaves: Ints = (chance * n_leaves).astype(np.int64)
        return leaves

    def _by_leaf(self, rows: Ints) -> dict[int, Ints]:
        """Sort rows by their leaves; no others are named."""
        leaves = self._leaf_of[rows]
        return {i: rows[leaves == i] for i in np.unique(leaves).tolist()}

    def _relearn_nodes(self, leaves: list[int], reports: list[RunReport]) -> Outcome:
        """Learn the nodes above leaves that have changed anew."""
        stale, merged = np.array(leaves), 0
        for depth, level in enumerate(self.merges):
            stale = np.unique(stale // self.width)
            for i in stale.tolist():
                merged += level[i].fit(self._children(i, depth), self._weighted)
        counts = {"leaves": len(leaves), "centroids_merged": merged}
        examined = sum(report.examined for report in reports)
        action = strongest([report.action for report in reports])
        # A leaf that is learned again is not the model.
        return Outcome("resumed" if action == "refit" else action, examined, counts)

    def _children(self, i: int, depth: int = -1) -> Sequence[ClusterNode]:
        """Return the children of node `i` of `merges[depth]`, by default of the level to come."""
        levels: list[Sequence[ClusterNode]] = [self.leaves, *self.merges]
        below = levels[depth]
        return below[i * self.width : (i + 1) * self.width]

    def take_arrays(self, held: Attachment) -> None:
        """Refer to the arrays of the records, which may be others."""
        self.table.take_arrays(held)
        self._leaf_of = padded(self._leaf_of, self.table.keys.size, fill=-1)
        if isinstance(self.table, GriddedTable):
            for leaf in self.leaves:
                leaf.show(self.table.X, self.table.keys)

    def _learn_leaves(self, model: CentroidModel, own: dict[int, Ints]) -> list[Leaf]:
        """Learn leaves, each from its own rows; stored ones are read for some leaves together."""
        table, height = self.table, int(model._at_fit("height"))
        if isinstance(table, GriddedTable):
            X, keys = table.X, table.keys

            def learn(i: int) -> Leaf:
                leaf = Leaf(*node_place(model, height, i))
                leaf.fit(X, keys, own[i], self._quantum)
                return leaf

            return list(in_threads(learn, own, model.n_jobs))
        records = Table.of(model._attached(), n_jobs=model.n_jobs)
        shares = _together(own, max(1, _AT_ONCE // records.n_features))
        found = records.call(self._calls(model, share) for share in shares)
        leaves = list(itertools.chain.from_iterable(found))
        drop_copies(model)
        return leaves

    def _calls(
        self, model: CentroidModel, own: dict[int, Ints]
    ) -> Iterator[Callable[[], list[Leaf]]]:
        """Read the records of some leaves; yield functions that learn them, small ones together."""
        height, keys = int(model._at_fit("height")), model._record_keys()
        rows = np.sort(np.concatenate(list(own.values())))
        values = model._attached().records.matrix[rows]
        for some in _together(own, max(1, _SENT // values.shape[1])):
            leaves = []
            for i, mine in some.items():
                X = self.grid.apply(values, np.searchsorted(rows, mine))
                leaf = Leaf(*node_place(model, height, i))
                leaves.append(partial(leaf.learned, X, keys[mine], self._quantum))
            yield partial(_call_all, leaves)


def node_place(model: CentroidModel, depth: int, i: int) -> tuple[str, Any, int, int]:
    """Return the name and the tape of a node, and the numbers of its clusters and iterations."""
    name = "root" if depth == 0 else f"{depth}/{i}"
    n_clusters, max_iter = model._at_fit("n_clusters"), model._at_fit("max_iter")
    return name, model._tape.child("node", depth, i), n_clusters, max_iter


def _width_for(model: CentroidModel, n: int) -> int:
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


def _call_all(tasks: Sequence[Callable[[], Leaf]]) -> list[Leaf]:
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

"""Nodes of divide-and-conquer k-means: which records each has, and what it hands up.

Every node is a pure function of its own records and of its place in the tree, so a node can be
computed anywhere, and a deletion concerns only the nodes on the way from its leaf to the root.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Floats, Ints, Words
from erasable.core.deletion import Action
from erasable.core.digest import LeafHash, flatten, leaf_hash
from erasable.core.grid import Grid
from erasable.core.tape import Tape

from ._distances import Points
from ._run import LloydRun, Report
from ._seeding import Seeding, quantum_for


class Node:
    """What leaves and merging nodes have in common.

    Attributes
    ----------
    centers : ndarray of shape (at most n_clusters, n_features)
        What the node hands up, relative to the origin of the records' grid.
    mass : ndarray of shape (len(centers),)
        Records, or mass of records, in each cluster.
    """

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
        """Whether it has nothing to hand up."""
        return self.run is None

    @property
    def origin(self) -> Floats | float:
        """What to add to the run's centroids."""
        return 0.0

    @property
    def centers(self) -> Floats:
        """Centroids that the node hands up."""
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


class Leaf(Node):
    """A leaf: k-means over its own records, which deletes and adds as `KMeans` does."""

    def fit(self, X: Any, keys: Words, rows: Ints, quantum: float) -> None:
        """Learn from rows of the gridded records; none leave nothing to hand up."""
        self._X, self._keys, self._quantum = X, keys, quantum
        points = Points(X, keys, rows)
        self.run = self._new_run(points, quantum) if rows.size else None
        self.changed()

    def remove(self, rows: Ints) -> Report:
        """Delete rows, which can still be read."""
        assert self.run is not None
        self.changed()
        gone = self.run.positions(rows)
        left = self.run.n_alive - rows.size
        if left < self.run.n_clusters:
            self._fit_again(np.setdiff1d(self._rows(), rows))
            return Report("refit", left, 0, 1, 0)
        return self.run.remove(gone)

    def show(self, X: Any, keys: Words) -> None:
        """Know where the gridded records are now."""
        self._X, self._keys = X, keys
        if self.run is not None:
            self.run.show(X, keys)

    def add(self, rows: Ints) -> Report:
        """Take rows in."""
        if self.run is None or self.run.n_clusters < self.n_clusters:
            every = np.union1d(self._rows(), rows)
            self._fit_again(every)
            return Report("refit", int(every.size), 0, 1, 0)
        self.changed()
        return self.run.exchange(rows[:0], rows)

    def _rows(self) -> Ints:
        if self.run is None:
            return np.empty(0, np.int64)
        rows: Ints = self.run.points.rows[self.run.live()]
        return rows

    def _fit_again(self, rows: Ints) -> None:
        self.fit(self._X, self._keys, rows, self._quantum)


class StoredLeaf(Node):
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
        """See `Node`."""
        return not self._state

    @property
    def centers(self) -> Floats:
        """See `Node`."""
        return self._centers

    @property
    def mass(self) -> Floats:
        """See `Node`."""
        return self._mass

    def state(self) -> dict[str, Any]:
        """See `Node`."""
        return self._state


class Merge(Node):
    """A node over others: k-means over the centroids they hand up, learned anew each time."""

    grid: Grid | None = None

    def fit(self, children: list[Node], weighted: bool) -> int:
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

"""Divide-and-conquer k-means (Ginart et al. 2019), whose leaves delete as KMeans does."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from erasable.core._schema import DictOf, Fields, Integer, Sizes, refuse
from erasable.core._schema_arrays import Array
from erasable.core._schema_models import grid, refuse_many
from erasable.core.arrays import Ints
from erasable.core.attachment import Attachment
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidInputError
from erasable.core.grid import Grid
from erasable.core.row_arrays import padded
from erasable.core.tape import Stream
from erasable.core.threads import N_JOBS, in_threads

from ._centroids import SEED_CONSTRAINT, CentroidModel
from ._run import Report
from ._schema import FARTHEST, NodeSchema
from ._seeding import quantum_for
from ._table import GriddedTable
from ._tree import Leaf, Merge, Node, default_width, strongest

_MOST_LEAVES = 2**20


class DivideAndConquerKMeans(CentroidModel):
    """k-means of k-means: a deletion concerns one leaf of a tree, and the way to its root.

    The algorithm of Ginart et al. [1]_, Algorithm 2. A record's leaf is a hash of its group, or
    of its id; every node clusters what it has into `n_clusters` centroids and hands them up. A
    leaf deletes as `KMeans` does; the nodes above it, which are small, are learned anew.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at every node.
    width : int or None, default=None
        Children of a node. None takes the rule of appendix D.1.2: ``n**(0.3 / height)`` rounded
        to a power of two, so that there are about ``n**0.3`` leaves. It depends on the number of
        records: when a deletion changes it, the model is learned again.
    height : int, default=1
        Levels of nodes below the root.
    weight_by_mass : bool, default=False
        Whether a centroid counts, at the next node, for as many points as it has records; one
        without any counts for none, and becomes a centroid only where too few others differ.
    max_iter : int, default=10
        Lloyd iterations, at every node.
    n_jobs : int or None, default=None
        Threads that fit and predict; None is one, and -1 are all cores. The model is the same with
        any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the tape. None draws one from the system, kept as ``seed_``.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centroids of the root.
    n_leaves_ : int
        Leaves of the tree.
    n_iter_ : int
        Iterations of the root.
    labels_, inertia_, ids_, seed_, n_features_in_
        See `KMeans`.

    References
    ----------
    .. [1] Ginart, Guan, Valiant and Zou, "Making AI forget you: data deletion in machine
       learning", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.cluster import DivideAndConquerKMeans
    >>> X = np.random.default_rng(0).random((500, 3))
    >>> model = DivideAndConquerKMeans(n_clusters=2, random_state=0).fit(X)
    >>> deletion = model.delete([4, 7])
    >>> keep = np.delete(np.arange(500), [4, 7])
    >>> fresh = DivideAndConquerKMeans(n_clusters=2, random_state=0).fit(X[keep], ids=keep)
    >>> model.digest() == fresh.digest()
    True
    """

    algorithm_version: ClassVar[int] = 1
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "width": [None, Interval(Integral, 1, None, closed="left")],
        "height": [Interval(Integral, 1, None, closed="left")],
        "weight_by_mass": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
        "random_state": SEED_CONSTRAINT,
    }

    _nodes: dict[str, Any]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        width: int | None = None,
        height: int = 1,
        weight_by_mass: bool = False,
        max_iter: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.width = width
        self.height = height
        self.weight_by_mass = weight_by_mass
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learns_from(self) -> set[str]:
        return super()._learns_from() | {"groups"}

    def _new_accelerator(self, names: list[str] | None = None, warn: bool = False) -> _Tree:
        return _Tree(self, names, warn)

    def _can_add(self) -> bool:
        return True

    def _publish(self) -> None:
        tree: _Tree = self._accelerator
        self._grid = tree.table.grid
        self._centers = tree.root.centers
        self._inertia = None
        self._width = tree.width

    def _schema(self) -> Fields:
        refuse_many(int(self._info.n_records or 0))
        height, max_iter = int(self._at_fit("height")), int(self._at_fit("max_iter"))

        def make_a_tree(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            names, width = value["nodes"].keys(), value["width"]
            wanted, depth = {"root"}, 0
            while depth < height and len(wanted) <= len(names):
                depth += 1
                wanted |= {f"{depth}/{i}" for i in range(min(width**depth, len(names)))}
            if wanted != names or not value["nodes"]["root"]:
                refuse("nodes", f"{len(names)} nodes", f"all of a tree {width} wide, {height} high")
            if sizes["n_centers"] != value["nodes"]["root"]["path"]["centers"].shape[1]:
                refuse("centers", value["centers"], "the centroids of the root")
            most = max(len(node["path"]["counts"][0]) for node in value["nodes"].values() if node)
            if most > self._at_fit("n_clusters"):
                refuse("nodes", f"{most} clusters", "at most n_clusters")

        centers = Array("float64", ("n_centers", "n_features"), least=-FARTHEST, most=FARTHEST)
        parts = {
            "grid": grid("n_features"),
            "centers": centers,
            "width": Integer(1, _MOST_LEAVES),
            "nodes": DictOf(NodeSchema(max_iter)),
        }
        return Fields(parts, relations=(make_a_tree,))

    def _state(self) -> dict[str, Any]:
        if self._accelerator is None:
            return {"grid": self._grid.state(), "centers": self._centers, **self._restored}
        nodes = {node.name: node.state() for node in self._accelerator.nodes()}
        return self._with_nodes(nodes)

    def _digest_state(self) -> dict[str, Any]:
        if self._accelerator is None:
            return self._state()
        return self._with_nodes(
            {node.name: node.hashed_state() for node in self._accelerator.nodes()}
        )

    def _with_nodes(self, nodes: dict[str, Any]) -> dict[str, Any]:
        return {
            "grid": self._grid.state(),
            "centers": self._centers,
            "width": self._width,
            "nodes": nodes,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._grid = Grid.from_state(state["grid"])
        self._centers = state["centers"]
        self._width = int(state["width"])
        self._inertia = None
        self._restored = {"width": self._width, "nodes": state["nodes"]}

    @property
    def n_leaves_(self) -> int:
        """Leaves of the tree."""
        self._check_fitted()
        return int(self._width ** self._at_fit("height"))

    @property
    def n_iter_(self) -> int:
        """Iterations of the root until its centroids stood still, or all of them."""
        self._check_fitted()
        if self._accelerator is None:
            path = self._restored["nodes"]["root"]["path"]["centers"]
        else:
            path = self._accelerator.root.state()["path"]["centers"]
        return min(int(path.shape[0]), int(self._at_fit("max_iter")))


class _Tree:
    """The accelerator: the gridded records, the leaf of every row, and the nodes."""

    def __init__(
        self, model: DivideAndConquerKMeans, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held = model._attached()
        self.width = _width_for(model, held.n_live)
        self.weighted = bool(model._at_fit("weight_by_mass"))
        height = int(model._at_fit("height"))
        n_clusters, max_iter = model._at_fit("n_clusters"), model._at_fit("max_iter")
        n_leaves = self.width**height
        keys = model._record_keys()
        self.table = GriddedTable(held, keys, names, warn, model.n_jobs)
        self._quantum = quantum_for(self.table.grid.top)
        rows = self.table.rows
        self._leaf_of = np.full(held.records.n_rows, -1, np.int64)
        self._leaf_of[rows] = self._leaves_for(model, rows, n_leaves)
        # Sixteen bits are sorted by their digits, ten times as fast.
        narrow = np.uint16 if n_leaves <= 2**16 else np.int64
        order = rows[np.argsort(self._leaf_of[rows].astype(narrow), kind="stable")]
        ends = np.searchsorted(self._leaf_of[order], np.arange(n_leaves + 1))
        self.levels: list[list[Node]] = []

        def leaf(i: int) -> Node:
            tape = model._tape.child("node", height, i)
            made = Leaf(f"{height}/{i}", tape, n_clusters, max_iter)
            made.fit(self.table.X, keys, order[ends[i] : ends[i + 1]], self._quantum)
            return made

        self.levels.append(list(in_threads(leaf, range(n_leaves), model.n_jobs)))
        for depth in range(height - 1, -1, -1):
            self.levels.append([])
            for i in range(self.width**depth):
                name = "root" if depth == 0 else f"{depth}/{i}"
                node = Merge(name, model._tape.child("node", depth, i), n_clusters, max_iter)
                node.fit(self._children(i), self.weighted)
                self.levels[-1].append(node)

    @property
    def root(self) -> Node:
        """The node whose centroids are the model."""
        return self.levels[-1][0]

    def nodes(self) -> list[Node]:
        """All nodes, leaves first."""
        return [node for level in self.levels for node in level]

    def _children(self, i: int) -> list[Node]:
        """Children of node `i` of the level being built, or of the one above the last built."""
        return self.levels[-2][i * self.width : (i + 1) * self.width]

    def remove(self, model: DivideAndConquerKMeans, rows: Ints) -> Outcome:
        """Delete rows from their leaves, and learn the nodes above these anew."""
        held = model._attached()
        regrid = self.table.remove(rows)
        same = self.width == _width_for(model, held.n_live)
        if regrid or not same or self._quantum != quantum_for(self.table.grid.top):
            self.table.keys[rows] = 0
            self.__init__(model)  # type: ignore[misc]
            return Outcome("refit", held.n_live, {"leaves": len(self.levels[0])})
        touched = np.unique(self._leaf_of[rows])
        reports = []
        for i in touched.tolist():
            leaf = self.levels[0][i]
            assert isinstance(leaf, Leaf)
            reports.append(leaf.remove(rows[self._leaf_of[rows] == i]))
        merged = self._merge(touched)
        self.table.wipe(rows)
        self._leaf_of[rows] = -1
        return _told(reports, merged)

    def take_arrays(self, held: Attachment) -> None:
        """See `erasable.core.growing.Growing._take_arrays`."""
        self.table.take_arrays(held)
        self._leaf_of = padded(self._leaf_of, self.table.keys.size, fill=-1)
        for leaf in self.levels[0]:
            assert isinstance(leaf, Leaf)
            leaf.show(self.table.X, self.table.keys)

    def add(self, model: DivideAndConquerKMeans, rows: Ints) -> Outcome | None:
        """Take rows in at their leaves, and learn the nodes above these anew; None: learn again."""
        if not self.table.add(rows, model._tape):
            return None
        same = self.width == _width_for(model, model._attached().n_live)
        if not same or self._quantum != quantum_for(self.table.grid.top):
            return None
        model._info.keys = self.table.keys
        self._leaf_of[rows] = self._leaves_for(model, rows, len(self.levels[0]))
        touched = np.unique(self._leaf_of[rows])
        reports = []
        for i in touched.tolist():
            leaf = self.levels[0][i]
            assert isinstance(leaf, Leaf)
            reports.append(leaf.add(rows[self._leaf_of[rows] == i]))
        return _told(reports, self._merge(touched))

    def _leaves_for(self, model: DivideAndConquerKMeans, rows: Ints, n_leaves: int) -> Ints:
        """Return the leaf of each row: a hash of its group, or of its record."""
        owners = model._attached().records.groups
        keys = self.table.keys[rows]
        own = keys if owners is None else model._tape.record_keys(owners[rows])
        chance = model._tape.uniform(own, Stream.LEAF, 0)
        leaves: Ints = (chance * n_leaves).astype(np.int64)
        return leaves

    def _merge(self, touched: Ints) -> int:
        """Learn the nodes above leaves anew; return how many centroids they were given."""
        merged = 0
        stale = touched
        for below, level in zip(self.levels[:-1], self.levels[1:], strict=True):
            stale = np.unique(stale // self.width)
            for i in stale.tolist():
                node = level[i]
                assert isinstance(node, Merge)
                children = below[i * self.width : (i + 1) * self.width]
                merged += node.fit(children, self.weighted)
        return merged


def _told(reports: list[Report], merged: int) -> Outcome:
    counts = {"leaves": len(reports), "centroids_merged": merged}
    examined = sum(report.examined for report in reports)
    action = strongest([report.action for report in reports])
    # A leaf that is learned again is not the model.
    return Outcome("resumed" if action == "refit" else action, examined, counts)


def _width_for(model: DivideAndConquerKMeans, n: int) -> int:
    width, height = model._at_fit("width"), int(model._at_fit("height"))
    if width is None:
        # A perfect tree of this height with about n**0.3 leaves.
        leaves = default_width(n).bit_length() - 1
        width = 2 ** max(1 if leaves else 0, -(-leaves // height))
    if width**height > _MOST_LEAVES:
        raise InvalidInputError(
            f"width={width} and height={height} make {width**height} leaves; "
            f"expected at most {_MOST_LEAVES}; choose a smaller width or height"
        )
    return int(width)

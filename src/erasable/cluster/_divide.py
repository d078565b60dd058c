"""Divide-and-conquer k-means (Ginart et al. 2019), whose leaves delete as KMeans does."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from erasable.core._schema import Array, DictOf, Fields, Integer, Sizes, grid, refuse, refuse_many
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.grid import Grid

from ._centroids import CentroidModel
from ._run import FARTHEST, NodeSchema
from ._tree import MOST_LEAVES, ClusterNode, ClusterTree


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

    Notes
    -----
    Records that stay in files or on a cluster are read leaf by leaf; their leaves keep no files of
    records, and a deletion learns the leaf of the record again. With a fit, as many leaves as have
    2**25 values, or one, are in memory at once, and all files are read for each such share. On a
    cluster workers learn the leaves, small ones together.

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
        **CentroidModel._parameter_constraints,
        "width": [None, Interval(Integral, 1, None, closed="left")],
        "height": [Interval(Integral, 1, None, closed="left")],
        "weight_by_mass": ["boolean"],
    }

    _restored: dict[str, Any] | None  # nodes of a file or a pickle, until the tree is made

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

    def _new_accelerator(self, names: list[str] | None = None, warn: bool = False) -> ClusterTree:
        return ClusterTree(self, names, warn)

    def _update(self, delta: Delta) -> Outcome | None:
        tree: ClusterTree = self._accelerator
        if delta.moved:
            tree.take_arrays(self._attached())
        outcome = tree.update(self, delta)
        if outcome is not None:
            self._publish()
            return outcome
        self._learn()
        leaves = len(self._accelerator.leaves)
        return Outcome("refit", self._attached().n_live, {"leaves": leaves})

    def _publish(self) -> None:
        tree: ClusterTree = self._accelerator
        self._grid = tree.grid
        self._centers = tree.root.centers
        self._inertia = None
        self._width = tree.width
        self._restored = None

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
            "width": Integer(1, MOST_LEAVES),
            "nodes": DictOf(NodeSchema(max_iter)),
        }
        return Fields(parts, relations=(make_a_tree,))

    def _state(self, state_of: Callable[[ClusterNode], Any] = ClusterNode.state) -> dict[str, Any]:
        nodes = self._restored
        if nodes is None:
            nodes = {node.name: state_of(node) for node in self._accelerator.nodes()}
        grid = self._grid.state()
        return {"grid": grid, "centers": self._centers, "width": self._width, "nodes": nodes}

    def _digest_state(self) -> dict[str, Any]:
        return self._state(ClusterNode.hashed_state)

    def _restore(self, state: dict[str, Any]) -> None:
        self._grid = Grid.from_state(state["grid"])
        self._centers = state["centers"]
        self._width = int(state["width"])
        self._inertia = None
        self._restored = state["nodes"]

    @property
    def n_leaves_(self) -> int:
        """Leaves of the tree."""
        self._check_fitted()
        return int(self._width ** self._at_fit("height"))

    @property
    def n_iter_(self) -> int:
        """Iterations of the root until its centroids stood still, or all of them."""
        self._check_fitted()
        nodes = self._restored
        root = self._accelerator.root.state() if nodes is None else nodes["root"]
        path = root["path"]["centers"]
        return min(int(path.shape[0]), int(self._at_fit("max_iter")))

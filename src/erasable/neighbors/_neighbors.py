"""Base of classification and regression by nearest neighbours: the neighbours and their weights.

A neighbour is found by its distance, and among several at the same distance by a hash of its id:
never by its row, or by how often records were deleted.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.threads import N_JOBS

from ._distance_kernels import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from ._index import TREE_FEATURES
from ._lazy import Lazy, refuse_far

_METRICS = {"euclidean": EUCLIDEAN, "manhattan": MANHATTAN, "chebyshev": CHEBYSHEV}
_POWERS = {1.0: MANHATTAN, 2.0: EUCLIDEAN, np.inf: CHEBYSHEV}


class Neighbors(Lazy):
    """Base of the models that ask the nearest records."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"})],
        "algorithm": [StrOptions({"auto", "kd_tree", "brute"})],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 1, None, closed="both")],
        "metric": [StrOptions({"minkowski", *_METRICS})],
        "n_jobs": N_JOBS,
    }
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)
    _reads_blocks: ClassVar[bool] = True

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: str = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 128,
        p: float = 2,
        metric: str = "minkowski",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.n_jobs = n_jobs

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.metric == "minkowski" and self.p not in _POWERS:
            raise InvalidParameterError(
                f"p={shorten(self.p)}; expected 1, 2 or inf, whose distances are the same to the "
                "last bit on every machine; pass one of these"
            )

    def _minimum_records(self) -> int:
        return int(self._at_fit("n_neighbors"))

    def _minimum_parameter(self) -> str:
        return "n_neighbors"

    # -- who is near ---------------------------------------------------------------------------

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest records.

        Parameters
        ----------
        X : array-like or frame of shape (n_queries, n_features), default=None
            None: for every record of the model, in the order of ``ids_``, its neighbours without
            itself.
        n_neighbors : int, default=None
            How many; by default the model's parameter.
        return_distance : bool, default=True
            Whether to return distances, too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors), float64
            Ascending, in the units of `X`.
        places : ndarray of shape (n_queries, n_neighbors), int64
            Places in ``ids_``: ``model.ids_[places]`` are ids. A deletion shifts them.

        Raises
        ------
        InvalidInputError
            `n_neighbors` is no positive integer, or the model has fewer records.
        MagnitudeError
            Fewer records are at a distance that is a finite number.
        """
        distances, rows = self._nearest(X, n_neighbors)
        places = self._memory.places()[rows]
        return (distances, places) if return_distance else places

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> Any:
        """Return the graph of the nearest records.

        Parameters
        ----------
        X, n_neighbors
            See `kneighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            What an edge is: 1, or the distance.

        Returns
        -------
        csr_array of shape (n_queries, n_records), float64
            Columns are in the order of ``ids_``.

        Raises
        ------
        InvalidInputError
            `mode` is something else; or see `kneighbors`.
        """
        if mode not in ("connectivity", "distance"):
            raise InvalidInputError(
                f"mode={shorten(mode)}; expected 'connectivity' or 'distance'; pass one of these"
            )
        distances, places = self.kneighbors(X, n_neighbors)
        n_queries, k = places.shape
        values = distances if mode == "distance" else np.ones(places.shape)
        starts = np.arange(0, n_queries * k + 1, k)
        return csr_array(
            (values.ravel(), places.ravel(), starts), shape=(n_queries, self.n_samples_fit_)
        )

    def _nearest(self, X: Any, n_neighbors: int | None = None) -> tuple[Floats, Ints]:
        """Return the distances and the rows of the nearest records of each query."""
        memory, metric = self._memory, self._distance()
        queries = None if X is None else self._read_queries(X)
        k = self._count(n_neighbors, memory.live, queries is None)

        def answered(values: Floats, n_wanted: int) -> tuple[Floats, Ints]:
            return memory.nearest(
                values, n_wanted, self._leaf_size(), self._inverse, metric, self.n_jobs
            )

        if queries is not None:
            distances, rows = answered(queries, k)
        else:
            parts = [_without(own, *answered(values, k + 1)) for own, values in memory.questions()]
            distances, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
        refuse_far((rows < 0).any(axis=1))
        return np.sqrt(distances) if metric == EUCLIDEAN else distances, rows

    def _count(self, n_neighbors: int | None, live: Flags, among: bool) -> int:
        """Return how many neighbours are to be found, if there are as many."""
        k = self._at_fit("n_neighbors") if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InvalidInputError(
                f"n_neighbors={shorten(k)}; expected an integer of 1 or more; pass one"
            )
        n = int(np.count_nonzero(live)) - int(among)
        if k > n:
            others = " beside each" if among else ""
            raise InvalidInputError(
                f"n_neighbors = {k}, and the model has n_samples_fit = {n} records{others}; "
                "Expected n_neighbors <= n_samples_fit; ask for fewer"
            )
        return int(k)

    def _leaf_size(self) -> int | None:
        algorithm = self._at_fit("algorithm")
        if algorithm == "auto":
            algorithm = "brute" if self.n_features_in_ > TREE_FEATURES else "kd_tree"
        return None if algorithm == "brute" else int(self._at_fit("leaf_size"))

    @property
    def effective_metric_(self) -> str:
        """The distance that is computed, by its name."""
        self._check_fitted()
        return next(name for name, each in _METRICS.items() if each == self._distance())

    @property
    def effective_metric_params_(self) -> dict[str, Any]:
        """Parameters of that distance, of which there are none."""
        self._check_fitted()
        return {}

    def _distance(self) -> int:
        metric = self._at_fit("metric")
        return _POWERS[self._at_fit("p")] if metric == "minkowski" else _METRICS[metric]

    def _weights(self, distances: Floats) -> Floats:
        """Return the weights of the neighbours; the nearest counts 1.

        Inverse distances are divided by that of the nearest, which cannot overflow. Neighbours at
        distance 0 count alone.
        """
        if self._at_fit("weights") == "uniform":
            return np.ones(distances.shape)
        nearest = distances[:, :1]
        with np.errstate(invalid="ignore"):
            weights: Floats = np.where(nearest > 0.0, nearest / distances, distances == 0.0)
        return weights


def _without(own: Ints, distances: Floats, rows: Ints) -> tuple[Floats, Ints]:
    """Drop each record from its own neighbours; the last where it is not among them."""
    drop = rows == own[:, None]
    drop[~drop.any(axis=1), -1] = True
    shape = rows.shape[0], rows.shape[1] - 1
    return distances[~drop].reshape(shape), rows[~drop].reshape(shape)

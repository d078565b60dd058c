"""The base of models made of centroids: they predict, measure distances, and score."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval

from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.errors import ArtifactError
from erasable.core.estimator import Erasable
from erasable.core.grid import Grid
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS, over_rows

from ._distances import Points, distances_to, new_scratch
from ._lloyd import assign_some
from ._stored import find_nearest

_BEYOND = 8
"""Octaves beyond the records at which a query is far; before, rounding leaves 40 bits or more."""

_TINY = 2.0**-900  # differences below it may have suffered from underflow


def far_from(gridded: Floats, top: Ints) -> Ints:
    """Return which rows lie beyond 256 times the range of the records in some column.

    `gridded` is relative to the grid's origin; the records lie within ``2**top`` of it.
    """
    limit = np.ldexp(1.0, top + _BEYOND)
    if gridded.shape[0] == 0:
        return np.empty(0, np.int64)
    if ((gridded.max(axis=0) <= limit) & (gridded.min(axis=0) >= -limit)).all():
        return np.empty(0, np.int64)
    return np.flatnonzero((np.abs(gridded) > limit).any(axis=1))


def nearest_to_far(X: Floats, origin: Floats, centers: Floats, weights: Floats) -> Ints:
    """Return the nearest centroid of every far query, exactly; ties go to the lower index.

    `centers` are relative to `origin`, `X` is not; `weights` is empty for the Euclidean metric.
    """
    first = np.sort(np.unique(centers, axis=0, return_index=True)[1])
    centers = centers[first]
    metric = weights if weights.size else np.ones(X.shape[1])
    # Powers of two are taken out, so that no product overflows.
    apart, scale = _scaled(X - origin, axis=1)
    lead = _product(centers - centers[0], metric)
    offsets = _shrunk((centers + centers[0])[None], scale[:, None, None]) * lead
    gain = 2.0 * apart @ lead.T - offsets.sum(axis=2)
    size = 2.0 * np.abs(apart) @ np.abs(lead).T + np.abs(offsets).sum(axis=2)
    error = (X.shape[1] + 16) * 2.0**-50 * size + _TINY
    best = gain.argmax(axis=1)
    least = (gain - error)[np.arange(best.size), best]
    rivals = gain + error >= least[:, None]
    for row in np.flatnonzero(rivals.sum(axis=1) > 1).tolist():
        found = np.flatnonzero(rivals[row])
        best[row] = found[_nearest_exactly(X[row], origin, centers[found], metric)]
    nearest: Ints = first[best]
    return nearest


def far_distances(X: Floats, origin: Floats, centers: Floats, weights: Floats) -> Floats:
    """Return the distances of far queries to all centroids, finite wherever they can be."""
    roots = np.sqrt(weights) if weights.size else np.ones(X.shape[1])
    apart, scale = _scaled(X - origin, axis=1)
    out = np.empty((X.shape[0], centers.shape[0]))
    for c, center in enumerate(centers):
        terms, again = _scaled((apart - _shrunk(center[None], scale[:, None])) * roots, axis=1)
        with np.errstate(over="ignore"):
            out[:, c] = np.ldexp(np.sqrt((terms * terms).sum(axis=1)), scale + again)
    return out


def _scaled(table: Floats, axis: int) -> tuple[Floats, Ints]:
    """Scale along an axis to magnitudes below 1; return the exponents that were taken out."""
    exponents = np.frexp(np.abs(table).max(axis=axis, keepdims=True))[1].astype(np.int64)
    return _shrunk(table, exponents), np.ravel(exponents)


def _shrunk(table: Floats, exponents: Ints) -> Floats:
    """Divide by ``2**exponents``, which itself need not be a float."""
    half = exponents // 2
    shrunk: Floats = np.ldexp(np.ldexp(table, -half), half - exponents)
    return shrunk


def _product(a: Floats, b: Floats) -> Floats:
    """Multiply, and scale the result to magnitudes of at most 1."""
    (x, i), (y, j) = np.frexp(a), np.frexp(b)
    exponents = i.astype(np.int64) + j
    largest = exponents.max(where=x * y != 0.0, initial=-5000)
    product: Floats = np.ldexp(x * y, np.maximum(exponents - largest, -2000))
    return product


def _nearest_exactly(x: Floats, origin: Floats, centers: Floats, metric: Floats) -> int:
    """Return the nearest of a few centroids, by rational numbers."""
    at = [Fraction(a) - Fraction(b) for a, b in zip(x.tolist(), origin.tolist(), strict=True)]
    table = [[Fraction(value) for value in center] for center in centers.tolist()]
    features = list(zip(map(Fraction, metric.tolist()), table[0], at, strict=True))
    gains = [
        sum(
            (w * (c - a) * (2 * y - c - a) for (w, a, y), c in zip(features, center, strict=True)),
            start=Fraction(0),
        )
        for center in table
    ]
    return gains.index(max(gains))


_NO_FLOATS = np.empty(0)


class CentroidModel(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    Erasable,
):
    """Base of the k-means estimators.

    A subclass sets, in `_fit_rows` and `_restore`, ``_grid`` and ``_centers``: the centroids of
    the model relative to the grid's origin, shape (n_clusters, n_features). New data are put on
    the grid before they are compared, so ``labels_`` equals ``predict`` of the training data.

    Where the model stands behind an affine step of a pipeline, ``_map`` is that step's
    ``(shift, scale)``: the model then learns from the unscaled records in the metric with weights
    ``1 / scale**2``, which is the Euclidean metric of the scaled ones.
    """

    _refit_from: ClassVar[tuple[int, float]] = (100, 0.15)
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)
    _reads_blocks: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
        "random_state": [
            None,
            Interval(Integral, 0, 2**64 - 1, closed="both"),
            np.random.RandomState,
            np.random.Generator,
        ],
    }

    n_clusters: int
    max_iter: int
    n_jobs: int | None
    _grid: Grid
    _centers: Floats
    _inertia: float | None = None

    @abstractmethod
    def _new_accelerator(self, names: list[str] | None = None, warn: bool = False) -> Any:
        """Learn from the records that are held, into an accelerator with ``take_arrays(held)``.

        `names` are those of the columns, and `warn` is whether to warn of what the grid loses.
        """

    @abstractmethod
    def _publish(self) -> None:
        """Show what the accelerator holds."""

    def _minimum_records(self) -> int:
        return int(self._at_fit("n_clusters"))

    def _minimum_parameter(self) -> str:
        return "n_clusters"

    def _is_stored(self) -> bool:
        """Tell whether the records are elsewhere: then nothing is kept for each of them."""
        return Table.of(self._attached()).is_stored

    def _in_memory(self) -> bool:
        """Tell whether the accelerator keeps the records on the grid, with what it learned."""
        return self._accelerator is not None and self._accelerator.table.in_memory

    def _learn(self, names: list[str] | None = None, warn: bool = False) -> None:
        self._accelerator = self._new_accelerator(names, warn)
        self._publish()

    def _fit_rows(self) -> None:
        names = getattr(self, "feature_names_in_", None)
        self._learn(None if names is None else list(names), warn=True)

    def _reattach(self) -> None:
        before, digest = self._state(), self.digest()
        self._learn()
        self._info.digest = None
        if self.digest() != digest:
            self._accelerator = None
            self._restore(before)
            self._info.digest = digest
            raise ArtifactError(
                "the records have the right ids but other values than the model was fitted on; "
                "expected the records of the model; load them unchanged"
            )

    def _metric(self) -> Floats:
        """Weights of the metric in the space of the records; empty for the Euclidean one."""
        if self._map is None:
            return _NO_FLOATS
        # The bound keeps weights finite behind scales below 1e-150.
        return 1.0 / np.maximum(self._map.scale * self._map.scale, 2.0**-1000)

    def _read_rows(self, X: Any) -> NDArray[Any]:
        """Read rows into the space of the records: those that come mapped are mapped back."""
        matrix: NDArray[Any] = self._read_matrix(X)
        return np.ascontiguousarray(self._unmapped(matrix)) if self._comes_mapped(X) else matrix

    def _distances(self, X: NDArray[Any]) -> Floats:
        """Distances of queries, in the space of the records, to every centroid."""

        def measure(rows: slice) -> Floats:
            gridded = self._grid.apply(X[rows])
            points, (k, d) = Points.queries(gridded), self._centers.shape
            out = np.empty((gridded.shape[0], k))
            distances_to(points, points.rows, self._centers, self._metric(), new_scratch(d, k), out)
            out = np.sqrt(out)
            far = far_from(gridded, self._grid.top)
            if far.size:
                out[far] = far_distances(*self._far_problem(X[rows][far]))
            return out

        return np.concatenate(list(over_rows(measure, X.shape[0], self.n_jobs)))

    def _find(self, X: NDArray[Any]) -> tuple[Ints32, Floats]:
        """Labels and squared distances of queries, in the space of the records."""
        labels, squared = np.empty(X.shape[0], np.int32), np.empty(X.shape[0])

        def find(rows: slice) -> None:
            gridded = self._grid.apply(X[rows])
            self._assign(gridded, labels[rows], squared[rows])
            far = far_from(gridded, self._grid.top)
            if far.size:
                labels[rows][far] = nearest_to_far(*self._far_problem(X[rows][far]))

        for _ in over_rows(find, X.shape[0], self.n_jobs):
            pass
        return labels, squared

    def _far_problem(self, X: NDArray[Any]) -> tuple[Floats, Floats, Floats, Floats]:
        return X.astype(np.float64), self._grid.origin, self._centers, self._metric()

    def _assign(self, gridded: Floats, labels: Ints32, squared: Floats) -> None:
        """Write labels and squared distances of gridded rows that are not far from the records."""
        points, (k, d) = Points.queries(gridded), self._centers.shape
        scratch = new_scratch(d, k)
        assign_some(points, points.rows, self._centers, self._metric(), scratch, labels, squared)

    def _assign_records(self) -> tuple[Ints32, Floats]:
        held = self._attached()
        return find_nearest(self._grid, self._centers, self._metric(), held, self._n_jobs)

    @property
    def cluster_centers_(self) -> Floats:
        """Centroids, shape (n_clusters, n_features)."""
        self._check_fitted()
        centers: Floats = self._mapped(self._centers + self._grid.origin)
        return centers

    @property
    def labels_(self) -> Ints32:
        """Cluster of every record, shape (n_records,), in the order of ``ids_``."""
        return self._assign_records()[0]

    @property
    def inertia_(self) -> float:
        """Sum of the squared distances of the records to their centroids, correctly rounded."""
        self._attached()
        if self._inertia is None:
            self._inertia = math.fsum(self._assign_records()[1])
        return self._inertia

    @property
    def _n_features_out(self) -> int:
        return int(self._centers.shape[0])

    def predict(self, X: Any) -> Ints32:
        """Return the nearest centroid of every row of `X`, ties to the lower index.

        Beyond 256 times the range of the records the comparison is exact, however far.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples,), int32
        """
        return self._find(self._read_rows(X))[0]

    def transform(self, X: Any) -> Floats:
        """Return the distances of every row of `X` to every centroid.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Euclidean distances, in the units of `X`.
        """
        return self._distances(self._read_rows(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the sum of the squared distances of `X` to the nearest centroids.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Finite numbers.
        y : ignored

        Returns
        -------
        float
        """
        return -math.fsum(self._find(self._read_rows(X))[1])

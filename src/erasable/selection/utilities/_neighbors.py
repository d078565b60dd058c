"""Nearest neighbours of records: found among all pairs, or by a transformer of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import kneighbors_graph

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection._memory import check_memory

_SAME_AS = {
    "euclidean": ("euclidean", "l2", "minkowski"),
    "sqeuclidean": ("sqeuclidean",),
    "cosine": ("cosine",),
}
_BYTES = 40.0  # of a pair: as it is found, by target, and by record
_ROUNDING = 1e-3  # of the largest distance, in which float32 may tell a record from itself


@dataclass(frozen=True)
class Neighbors:
    """A search for the nearest records of each target, itself included."""

    metric: str  # "euclidean", "sqeuclidean" or "cosine"
    # the target's own record counted; None where a transformer does not say
    n_neighbors: int | None
    transformer: Any  # an object with fit_transform; None: all pairs are compared

    def check_memory(self, n: int) -> None:
        """Refuse distances that would not fit into memory, as far as their size is known."""
        if self.n_neighbors is not None:
            check_memory(
                _BYTES * n * min(n, self.n_neighbors),
                f"the {self.n_neighbors:,} nearest of each of {n:,} records",
                "pass a smaller n_neighbors",
            )

    def has_all(self, n: int) -> bool:
        """Tell whether all of n records are among the nearest."""
        return self.n_neighbors is not None and self.n_neighbors >= n

    def distances(self, X: NDArray[Any]) -> Any:
        """Return distances from each target to its nearest records, as rows of a sparse matrix."""
        if self.transformer is None:
            return kneighbors_graph(
                X, self.n_neighbors, mode="distance", metric=self.metric, include_self=True
            )
        found = clone(self.transformer, safe=False).fit_transform(X)
        return _with_self_distances(found, len(X), type(self.transformer).__name__)


def _with_self_distances(found: Any, n: int, name: str) -> Any:
    """Check the distances of a transformer, and add those of records to themselves: 0."""
    if not scipy.sparse.issparse(found) or found.shape != (n, n):
        got = f"shape {found.shape}" if hasattr(found, "shape") else shorten(found)
        raise InvalidInputError(
            f"{name} returned {got} for {n} records; expected distances in a sparse matrix of "
            f"shape ({n}, {n}); pass a transformer like KNeighborsTransformer"
        )
    graph = found.tocsr().copy()
    targets = np.repeat(np.arange(n), np.diff(graph.indptr))
    own = graph.indices == targets
    largest = float(np.max(graph.data, initial=0.0))
    lowest = float(np.min(graph.data, initial=0.0))
    of_own = float(np.max(graph.data[own], initial=0.0))
    if not -_ROUNDING * largest <= lowest or not of_own <= _ROUNDING * largest < np.inf:
        raise InvalidInputError(
            f"{name} returned distances below 0, NaN, infinite, or from a record to itself; "
            "expected distances, not similarities or connections; pass mode='distance'"
        )
    np.maximum(graph.data, 0, out=graph.data)
    graph.data[own] = 0.0
    absent = np.setdiff1d(np.arange(n), targets[own])
    if not len(absent):
        return graph
    # Not by a sum, in which distances of 0 would be lost.
    values = np.concatenate([graph.data, np.zeros(len(absent), dtype=graph.dtype)])
    places = (np.concatenate([targets, absent]), np.concatenate([graph.indices, absent]))
    return scipy.sparse.coo_array((values, places), shape=(n, n)).tocsr()


def read_neighbors(n_neighbors: Any, transformer: Any, metric: str) -> Neighbors | None:
    """Return the search for nearest records; None where all pairs are kept."""
    if n_neighbors is None and transformer is None:
        return None
    name = f"n_neighbors={shorten(n_neighbors)}"
    is_integer = isinstance(n_neighbors, int | np.integer) and not isinstance(n_neighbors, bool)
    if n_neighbors is not None and not (is_integer and n_neighbors >= 1):
        raise InvalidParameterError(
            f"{name}; expected an integer of 1 or more, or None for all; pass 64"
        )
    if metric == "precomputed":
        name = name if n_neighbors is not None else f"neighbors={shorten(transformer)}"
        raise InvalidParameterError(
            f"{name} with metric='precomputed'; expected None, because "
            "similarities are taken as they are; pass a sparse matrix of the nearest alone"
        )
    if transformer is None:
        return Neighbors(metric, int(n_neighbors), None)
    name = f"neighbors={shorten(transformer)}"
    if n_neighbors is not None:
        raise InvalidParameterError(
            f"n_neighbors={n_neighbors} and {name}; expected one of them; pass how many to the "
            "transformer"
        )
    if isinstance(transformer, type) or not callable(getattr(transformer, "fit_transform", None)):
        raise InvalidParameterError(
            f"{name}; expected a transformer with fit_transform(X); pass KNeighborsTransformer(63) "
            "of sklearn.neighbors, or PyNNDescentTransformer(63) of pynndescent"
        )
    other = getattr(transformer, "metric", metric)
    p = getattr(transformer, "p", 2) if other == "minkowski" else 2
    if isinstance(other, str) and (other not in _SAME_AS[metric] or p != 2):
        raise InvalidParameterError(
            f"metric={metric!r} and {name} of metric={other!r}{'' if p == 2 else f', p={p:g}'}; "
            f"expected the same; pass metric={metric!r} to the transformer"
        )
    many = getattr(transformer, "n_neighbors", None)
    n = int(many) if isinstance(many, int | np.integer) else None
    return Neighbors(metric, None if n is None else n + 1, transformer)

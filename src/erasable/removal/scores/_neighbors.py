"""The score `NeighborRatio`: a ratio of nearest-neighbour densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_integer
from erasable.removal._sets import Sets
from erasable.removal.scores._score import Ranking, Score, by_score

ALGORITHMS = ("auto", "brute", "kd_tree", "ball_tree")


class NeighborRatio(Score):
    """Log ratio of the densities around a record, by its k-th nearest neighbours: ``knn-ratio``.

    The paper's ``exp(-d1**2 / s**2) / exp(-d2**2 / s**2)``, with d1 and d2 the distances to the
    k-th nearest other record of forget and to the k-th nearest of retain; its logarithm, which does
    not underflow and ranks alike. The unit s changes no order; here it is the root of the mean
    squared distance between neighbours in the forget set.

    Parameters
    ----------
    k : int, default=10
        Fewer where a set has fewer.
    algorithm : {"auto", "brute", "kd_tree", "ball_tree"}, default="auto"
        Of scikit-learn's index.

    Notes
    -----
    scikit-learn takes a tree up to 15 columns and compares blocks above, in bounded memory.

    Examples
    --------
    >>> sets = Sets(np.array([[0.0], [1.0], [2.0]]), np.array([[3.0], [4.0]]))
    >>> NeighborRatio(k=1).rank(sets, 0).order
    array([0, 1, 2])
    """

    def __init__(self, k: int = 10, *, algorithm: str = "auto") -> None:
        self.k = k
        self.algorithm = algorithm

    def rank(self, sets: Sets, seed: int) -> Ranking:
        """Score the forget set."""
        if not is_integer(type(self.k)) or self.k < 1:
            raise InvalidParameterError(
                f"k={shorten(self.k)}; expected an integer of 1 or more; pass one"
            )
        if not isinstance(self.algorithm, str) or self.algorithm not in ALGORITHMS:
            raise InvalidParameterError(
                f"algorithm={shorten(self.algorithm)}; expected one of {', '.join(ALGORITHMS)}; "
                "pass one"
            )
        if sets.forget.shape[0] < 2:
            raise InvalidInputError(
                "forget has 1 record, which has no neighbour; expected 2 or more; pass more"
            )
        forget, retain = _shifted(sets, sets.forget), _shifted(sets, sets.retain)
        own, other = self._squares(forget, None), self._squares(retain, forget)
        return by_score(_ratio(own, other), reference=self._outside, learns_from_forget=True)

    def _outside(self, sets: Sets, rows: Any, seed: int) -> Floats:
        queries = _shifted(sets, rows)
        both = (_shifted(sets, X) for X in (sets.forget, sets.retain))
        return _ratio(*(self._squares(records, queries) for records in both))

    def _squares(self, records: Any, queries: Any) -> Floats:
        own = queries is None
        k = min(int(self.k), records.shape[0] - own)
        index = NearestNeighbors(n_neighbors=k, algorithm=self.algorithm).fit(records)
        found: Floats = index.kneighbors(queries)[0][:, -1].astype(np.float64) ** 2
        return found


def _shifted(sets: Sets, rows: Any) -> Any:
    """Subtract the origin: scikit-learn's products of far rows lose the distance between them."""
    return rows - sets.grid.origin if sets.grid.origin.any() else rows


def _ratio(own: Floats, other: Floats) -> Floats:
    unit = float(own.mean())
    return (other - own) / (unit if unit > 0 else 1.0)

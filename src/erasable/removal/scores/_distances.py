"""Scores by moments: distances to the retain mean, and margins to the forget mean.

Means and covariances are exact, and a row's score is a function of them and of the row alone. Any
order of the rows and any sharding gives the same scores, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._covariance import check_shrinkage, metric_of
from erasable.removal._sets import Sets, distances_to, products_with
from erasable.removal.scores._score import RowScore

_ROUNDED = 2.0**-32  # of cosines that differ by less, 20 bits of 52 are left
_ALIKE = (
    "all records have nearly one direction, and their cosines differ by little more than rounding; "
    "subtract what they have in common, or choose another score"
)
METRICS = ("euclidean", "cosine", "mahalanobis")


class MeanDistance(RowScore):
    """Distance to the mean of the retain set: ``mu2-distance``, ``cos-mu2``, ``maha-mu2``.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "mahalanobis"}, default="euclidean"
        Euclidean distances are squared. The covariance of Mahalanobis' is that of the retain set.
        Columns that vary in neither set are left out of it, as of `Frontier`; those that vary in
        forget alone are refused, because distances in them would be infinite.
    shrinkage : "auto" or float, default="auto"
        How far correlations are shrunk to 0: from 0 to 1, or by oracle approximating shrinkage.

    References
    ----------
    Allouah, Guerraoui and Koyejo, Distributional Machine Unlearning via Selective Data Removal,
    ICLR 2026, B.2.1.

    Examples
    --------
    >>> import numpy as np
    >>> sets = Sets(np.array([[0.0], [3.0]]), np.array([[1.0], [3.0]]))
    >>> MeanDistance().rank(sets, 0).scores
    array([4., 1.])
    """

    by_passes = True

    def __init__(self, metric: str = "euclidean", *, shrinkage: Any = "auto") -> None:
        self.metric = metric
        self.shrinkage = shrinkage

    def score_rows(self, sets: Sets, rows: Any) -> Floats:
        _check(self)
        centre = sets.retain_moments.mean()
        if self.metric == "euclidean":
            return distances_to(centre, rows)
        if self.metric == "cosine":
            return 1.0 - _cosine(sets, centre, rows, "retain")
        metric = metric_of(sets, sets.retain, self.shrinkage, "retain")
        return np.sqrt(metric.distances(sets, rows, [centre])[0])


class MeanMargin(RowScore):
    """Distance to the retain mean less that to the forget mean: ``lr-cos``, ``lr-maha``.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "mahalanobis"}, default="mahalanobis"
        As printed, distances are not squared. Both are in the covariance of the retain set.
    shrinkage : "auto" or float, default="auto"
        As for `MeanDistance`.

    Examples
    --------
    >>> import numpy as np
    >>> sets = Sets(np.array([[0.0], [4.0]]), np.array([[1.0], [3.0], [5.0]]))
    >>> MeanMargin("euclidean").rank(sets, 0).scores
    array([ 1., -1.])
    """

    by_passes = True
    learns_from_forget = True

    def __init__(self, metric: str = "mahalanobis", *, shrinkage: Any = "auto") -> None:
        self.metric = metric
        self.shrinkage = shrinkage

    def score_rows(self, sets: Sets, rows: Any) -> Floats:
        _check(self)
        own, other = sets.forget_moments.mean(), sets.retain_moments.mean()
        if self.metric == "cosine":
            return _cosine(sets, own, rows, "forget") - _cosine(sets, other, rows, "retain")
        if self.metric == "euclidean":
            far, near = distances_to(other, rows), distances_to(own, rows)
        else:
            metric = metric_of(sets, sets.retain, self.shrinkage, "retain")
            far, near = metric.distances(sets, rows, [other, own])
        return np.sqrt(far) - np.sqrt(near)


class Norm(RowScore):
    """Euclidean norm of the features: ``norm``; of TF-IDF it needs one that is not normalised.

    Examples
    --------
    >>> import numpy as np
    >>> Norm().rank(Sets(np.array([[0.0, 1.0], [3.0, 4.0]]), np.zeros((1, 2))), 0).scores
    array([1., 5.])
    """

    by_passes = True
    needs_retain = False
    contrasts = False

    def score_rows(self, sets: Sets, rows: Any) -> Floats:
        return np.sqrt(distances_to(np.zeros(sets.n_features), rows))


class Coreset(RowScore):
    """The records nearest to the forget mean first, by Euclidean distance: ``coreset``.

    Examples
    --------
    >>> import numpy as np
    >>> Coreset().rank(Sets(np.array([[0.0], [2.0], [7.0]]), np.zeros((1, 1))), 0).order
    array([1, 0, 2])
    """

    by_passes = True
    needs_retain = False
    contrasts = False

    def score_rows(self, sets: Sets, rows: Any) -> Floats:
        return -np.sqrt(distances_to(sets.forget_moments.mean(), rows))


def _check(score: Any) -> None:
    if not isinstance(score.metric, str) or score.metric not in METRICS:
        raise InvalidParameterError(
            f"metric={shorten(score.metric)}; expected one of {', '.join(METRICS)}; pass one"
        )
    check_shrinkage(score.shrinkage)


def _cosine(sets: Sets, centre: Floats, rows: Any, name: str) -> Floats:
    size = float(np.sqrt(np.dot(centre, centre)))
    if size == 0.0:
        raise InvalidInputError(
            f"the mean of {name} is all zero, and has no direction; expected one that is not for a "
            "cosine; choose another score"
        )
    norms = np.sqrt(distances_to(np.zeros(centre.size), rows))
    zero = int((norms == 0.0).sum())
    if zero:
        raise InvalidInputError(
            f"{zero} of {len(norms)} records of forget are all zero, and have no direction; "
            "expected none for a cosine; drop them, or choose another score"
        )
    found: Floats = products_with(centre, rows) / (norms * size)
    if 0.0 < np.ptp(found) < _ROUNDED:
        sets.note(_ALIKE, np.arange(sets.n_features))
    return found

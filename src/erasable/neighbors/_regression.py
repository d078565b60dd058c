"""Regression by the nearest neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from erasable.core.arrays import Floats

from ._neighbors import Neighbors
from ._targets import StoredNumbers


class KNeighborsRegressor(RegressorMixin, Neighbors):
    """Predict the mean of the nearest records, any of which can be deleted.

    Nothing is learned that a record could be left in: the model is its records. A deletion
    overwrites one of them, and costs microseconds.

    Parameters that are not listed here are those of `KNeighborsClassifier`.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours; a model needs as many records.
    weights : {"uniform", "distance"}, default="uniform"
        Whether they count alike, or as the inverse of the distance; where there are records at no
        distance, they alone count.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of records.
    effective_metric_ : str
        The distance that is computed.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        From `fit` and `delete`: fewer records than `n_neighbors`.
    MagnitudeError
        From `fit`: values or targets beyond ``2**500``.

    See Also
    --------
    KNeighborsClassifier : For classes, with notes that hold here, too.
    erasable.kernel.NadarayaWatson : A mean of all records within reach.

    Notes
    -----
    **The saved file holds every record**, with its id and target: this is what the model is. It is
    to be protected as the data are.

    Examples
    --------
    >>> from erasable.neighbors import KNeighborsRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [9.0]], [0.0, 1.0, 4.0, 81.0]
    >>> model = KNeighborsRegressor(n_neighbors=2).fit(X, y)
    >>> model.predict([[1.6]])
    array([2.5])
    >>> model.delete([2]).action
    'updated'
    >>> model.predict([[1.6]])
    array([0.5])
    >>> model.digest() == KNeighborsRegressor(2).fit([X[3], X[0], X[1]], [81.0, 0.0, 1.0],
    ...                                              ids=[3, 0, 1]).digest()
    True
    """

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features), or None
            None: the records themselves, without asking each for its own target.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), float64
        """
        distances, rows = self._nearest(X)
        weights = self._weights(distances)
        targets = self._memory.targets
        assert isinstance(targets, StoredNumbers)
        sums, total = np.zeros((rows.shape[0], targets.values.shape[1])), np.zeros(rows.shape[0])
        for j in range(rows.shape[1]):  # the nearest first
            sums += weights[:, j, None] * targets.values[rows[:, j]]
            total += weights[:, j]
        sums /= total[:, None]
        return sums[:, 0] if targets.flat else sums

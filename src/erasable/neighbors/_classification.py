"""Classification by the nearest neighbours."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import Tags

from erasable.core.arrays import Floats
from erasable.core.records import Records

from ._neighbors import Neighbors
from ._targets import StoredLabels


class KNeighborsClassifier(ClassifierMixin, Neighbors):
    """Classify by a vote of the nearest records, any of which can be deleted.

    Nothing is learned that a record could be left in: the model is its records. A deletion
    overwrites one of them, and the class that it was the last of, and costs microseconds.

    Parameters
    ----------
    n_neighbors : int, default=5
        Number of neighbours that vote; a model needs as many records.
    weights : {"uniform", "distance"}, default="uniform"
        Whether all votes count alike, or as the inverse of the distance; records at no distance
        outvote all others.
    algorithm : {"auto", "kd_tree", "brute"}, default="auto"
        How the nearest are found, which is a matter of speed alone. "auto" takes a tree up to 15
        features.
    leaf_size : int, default=128
        HeldRecords in a leaf of the tree, at most; a matter of speed, too.
    p : {1, 2, inf}, default=2
        Power of the metric "minkowski".
    metric : {"minkowski", "euclidean", "manhattan", "chebyshev"}, default="minkowski"
        The distance.
    n_jobs : int or None, default=None
        Threads that look for neighbours; None is one, and -1 are all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of these
        Labels of the records there are, sorted; a list where there are several targets.
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
        From `fit`: values beyond ``2**500``.

    See Also
    --------
    KNeighborsRegressor : For numbers.

    Notes
    -----
    Of several records at the same distance, those come first whose ids have the smaller hash; of
    several classes with as many votes wins the first in `classes_`. Distances are computed by one
    fixed formula, so that nothing but the records and the row decides, to the last bit.

    Sparse data are refused: an encoder in a pipeline needs ``sparse_output=False``. Queries are
    answered in one thread; there is no `n_jobs`.

    **The saved file holds every record**, with its id and target: this is what the model is. It is
    to be protected as the data are. Exporting it does not leave the records behind.

    Examples
    --------
    >>> from erasable.neighbors import KNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [9.0]], ["low", "low", "high", "high"]
    >>> model = KNeighborsClassifier(n_neighbors=1).fit(X, y, ids=["a", "b", "c", "d"])
    >>> model.predict([[1.8]])
    array(['high'], dtype=object)
    >>> model.delete(["c"]).action
    'updated'
    >>> model.predict([[1.8]])
    array(['low'], dtype=object)
    >>> distances, places = model.kneighbors([[1.8]])
    >>> model.ids_[places]
    array([['b']], dtype=object)
    """

    def _read_records(self, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any) -> Records:
        records = super()._read_records(X, y, sample_weight, ids, groups)
        if records is not X and records.y is not None and records.y.shape[1:] == (1,):
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected; pass y.ravel()",
                DataConversionWarning,
                stacklevel=4,
            )
        return records

    _kind_of_targets = StoredLabels

    @property
    def _labels(self) -> StoredLabels:
        labels = self._memory.targets
        assert isinstance(labels, StoredLabels)
        return labels

    @property
    def classes_(self) -> Any:
        """Labels of the classes, sorted; a list of such where there are several targets."""
        labels = self._labels
        found = [each.labels.copy() for each in labels.outputs]
        return found[0] if labels.flat else found

    @property
    def outputs_2d_(self) -> bool:
        """Whether there are several targets, or one in a table."""
        return not self._labels.flat

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the most votes, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features), or None
            None: the records themselves, none of which votes for itself.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Labels, of the type of `classes_`.
        """
        labels = self._labels
        predicted = [
            each.labels[votes.argmax(axis=1)]
            for each, votes in zip(labels.outputs, self._votes(X)[0], strict=True)
        ]
        return predicted[0] if labels.flat else np.column_stack(predicted)

    def predict_proba(self, X: Any) -> Any:
        """Return the share of the votes of every class, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features), or None
            None: the records themselves, none of which votes for itself.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64, or list of these
            A column for each of `classes_`.
        """
        found, total = self._votes(X)
        shares = [votes / total[:, None] for votes in found]
        return shares[0] if self._labels.flat else shares

    def _votes(self, X: Any) -> tuple[list[Floats], Floats]:
        """Add up the votes of the neighbours, the nearest first: for each output, and in all."""
        distances, rows = self._nearest(X)
        weights = self._weights(distances)
        queries, total = np.arange(rows.shape[0]), np.zeros(rows.shape[0])
        found = [np.zeros((rows.shape[0], each.labels.size)) for each in self._labels.outputs]
        for j in range(rows.shape[1]):
            total += weights[:, j]
            for each, votes in zip(self._labels.outputs, found, strict=True):
                votes[queries, each.codes[rows[:, j]]] += weights[:, j]
        return found, total

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

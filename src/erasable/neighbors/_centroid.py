"""Nearest centroid: exact moments of every class, from which all else follows."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core._class_sums import ByClass, log_shares
from erasable.core._schema import Fields, classes
from erasable.core.arrays import Floats, Ints
from erasable.core.class_moments import ClassMoments
from erasable.core.classes import Classes
from erasable.core.errors import InvalidInputError, InvalidParameterError, TooFewRecordsError
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS


class NearestCentroid(ByClass):
    """Classify by the nearest of the classes' means, and forget exactly.

    Use it as a baseline, or where there are few records of each class: it has no parameter that
    must be tuned. A deletion costs O(n_features) a record: its values are subtracted from sums
    that are exact. Centroids and predictions are computed from the sums on access.

    Parameters
    ----------
    shrink_threshold : float, default=None
        By how much the standardized differences between the centroids and the mean of all records
        are moved towards 0, so that features that tell classes apart by less count no more.
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default="uniform"
        Probability of each of the sorted classes: the same for each, the classes' shares of the
        records, or these. Where they differ, distances are divided by
        `within_class_std_dev_`, and the more probable class is preferred. With an array, a
        deletion that takes the last record of a class is refused.
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    centroids_ : ndarray of shape (n_classes, n_features), float64
        Mean of each class, shrunk with `shrink_threshold`.
    class_prior_ : ndarray of shape (n_classes,), float64
        Probability of each class.
    within_class_std_dev_ : ndarray of shape (n_features,), float64
        Standard deviation of each feature within the classes; 0 where every class has one record.
    deviations_ : ndarray of shape (n_classes, n_features), float64
        Standardized differences between the centroids and the mean of all records; 0 where a
        feature does not vary.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidParameterError, InvalidInputError
        From `fit`, for priors that are not probabilities of these classes.
    TooFewRecordsError
        From `fit` and `delete`, if there would be less than two classes.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    Notes
    -----
    The method is that of Tibshirani et al. [1]_. Columns are rounded once to 26 bits below their
    largest magnitude (`erasable.core.grid`), so centroids agree with scikit-learn's to about 1e-8
    of that magnitude. There is no ``metric="manhattan"``. A row that is as near to two centroids
    gets the first label.

    Behind an affine step of a pipeline it learns from the records as they are, and says what it
    would have learned from mapped ones.

    References
    ----------
    .. [1] Tibshirani, Hastie, Narasimhan and Chu, "Diagnosis of multiple cancer types by shrunken
       centroids of gene expression", PNAS 99 (2002), 6567-6572.

    Examples
    --------
    >>> from erasable.neighbors import NearestCentroid
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [9.0, 9.0]]
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> model = NearestCentroid().fit(X, y, ids=["ann", "ben", "cem", "dan", "eva", "fay"])
    >>> model.delete(["fay"]).action
    'updated'
    >>> model.centroids_
    array([[ 1.5       ,  1.        ],
           [-2.        , -1.33333333]])
    >>> model.predict([[-0.8, -1.0], [1.2, 1.0]])
    array(['low', 'high'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "shrink_threshold": [Interval(Real, 0, None, closed="neither"), None],
        "priors": [StrOptions({"uniform", "empirical"}), "array-like"],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True
    _takes_map = True
    _counted: ClassMoments

    def __init__(
        self,
        *,
        shrink_threshold: float | None = None,
        priors: Any = "uniform",
        n_jobs: int | None = None,
    ) -> None:
        self.shrink_threshold = shrink_threshold
        self.priors = priors
        self.n_jobs = n_jobs

    # -- learning and deleting -----------------------------------------------------------------

    def _fit_rows(self) -> None:
        held = self._attached()
        assert held.records.y is not None
        found = Classes.fit(held.records.y, held.live_rows())
        self._refuse_few(found.labels.size, f"the {held.n_live} records have")
        self._read_priors(found.labels.size)
        self._learn(found)

    def _count(self, table: Table) -> ClassMoments:
        return ClassMoments.fit(table)

    def _check_deletion(self, rows: Ints) -> None:
        left = self._accelerator.left(rows)
        self._refuse_few(left, f"deleting {rows.size} records would leave")
        if left < self._labels.size and not isinstance(self._at_fit("priors"), str):
            raise TooFewRecordsError(
                f"deleting {rows.size} records would leave {left} of {self._labels.size} classes, "
                "and priors= holds a probability for each; expected a record of each class"
            )

    def _refuse_few(self, n_classes: int, intro: str) -> None:
        if n_classes < 2:
            raise TooFewRecordsError(
                f"{intro} {n_classes} class; {type(self).__name__} needs at least 2 classes (the "
                "number of classes has to be greater than one)"
            )

    # -- keeping -------------------------------------------------------------------------------

    def _schema(self) -> Fields:
        return Fields({"classes": classes()}).joined(ClassMoments.schema)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._refuse_few(self._labels.size, "the file has")
        self._read_priors(self._labels.size)
        self._counted = ClassMoments.from_state(state, self._counts)

    # -- what follows --------------------------------------------------------------------------

    def _read_priors(self, n_classes: int) -> Floats | None:
        """Return priors that were given as numbers; check them."""
        given = self._at_fit("priors")
        if isinstance(given, str):
            return None
        priors = np.asarray(given, dtype=np.float64)
        if not (np.all(priors >= 0) and np.isclose(priors.sum(), 1.0)):
            raise InvalidParameterError(
                f"priors= holds {priors.size} numbers that are not probabilities; expected "
                "numbers of 0 or more that add up to 1 (priors must be non-negative)"
            )
        if priors.shape != (n_classes,):
            raise InvalidInputError(
                f"priors= has the shape {priors.shape}, and there are {n_classes} classes; "
                "expected a probability for each"
            )
        return priors

    @property
    def class_prior_(self) -> Floats:
        """Probability of each class."""
        self._check_fitted()
        priors = self._read_priors(self._labels.size)
        if priors is not None:
            return priors
        if self._at_fit("priors") == "uniform":
            return np.full(self._labels.size, 1.0 / self._labels.size)
        shares: Floats = self._counts / self._counts.sum()
        return shares

    @property
    def within_class_std_dev_(self) -> Floats:
        """Standard deviation of each feature within the classes."""
        self._check_fitted()
        freedom = int(self._counts.sum()) - self._labels.size
        spread = np.zeros(self.n_features_in_)
        for count, variance in zip(
            self._counts.tolist(), self._counted.variances(self._counts), strict=True
        ):
            spread += count * variance
        deviation = np.sqrt(spread / freedom) if freedom else spread
        return deviation if self._map is None else deviation / self._map.scale

    def _means(self) -> tuple[Floats, Floats]:
        """Return the mean of each class, and of all records, behind the map."""
        means, mean = self._counted.means(self._counts), self._counted.total().mean()
        return self._mapped(means), self._mapped(mean)

    def _widths(self) -> Floats:
        """Return what differences between centroids and the mean are divided by."""
        within = self.within_class_std_dev_
        shares = np.sqrt(1.0 / self._counts - 1.0 / self._counts.sum())
        widths: Floats = shares[:, np.newaxis] * (within + np.median(within))
        return widths

    @property
    def deviations_(self) -> Floats:
        """Standardized differences between the centroids and the mean of all records."""
        self._check_fitted()
        means, mean = self._means()
        widths = self._widths()
        deviations = np.zeros(means.shape)
        np.divide(means - mean, widths, out=deviations, where=widths > 0)
        threshold = self._at_fit("shrink_threshold")
        if threshold is None:
            return deviations
        shrunk: Floats = np.sign(deviations) * np.maximum(np.abs(deviations) - threshold, 0.0)
        return shrunk

    @property
    def centroids_(self) -> Floats:
        """Mean of each class, shrunk with `shrink_threshold`."""
        self._check_fitted()
        means, mean = self._means()
        if self._at_fit("shrink_threshold") is None:
            return means
        return mean + self._widths() * self.deviations_

    def _scores(self, X: Any, *, standardized: bool) -> Floats:
        """Return how near every row is to every class; the largest score is the nearest."""
        matrix = self._read_matrix(X)
        matrix = matrix if self._comes_mapped(X) else self._mapped(matrix)
        centroids, within = self.centroids_, self.within_class_std_dev_
        unit = np.where(standardized & (within > 0), within, 1.0)
        out = np.empty((matrix.shape[0], centroids.shape[0]))
        for c in range(centroids.shape[0]):
            away = (matrix - centroids[c]) / unit
            away *= away
            out[:, c] = -away.sum(axis=1)
        if standardized:
            with np.errstate(divide="ignore"):
                out += 2.0 * np.log(self.class_prior_)
        return out

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        prior = self.class_prior_
        best = self._scores(X, standardized=not np.isclose(prior, 1.0 / prior.size).all())
        predicted: NDArray[Any] = self._labels[best.argmax(axis=1)]
        return predicted

    def decision_function(self, X: Any) -> Floats:
        """Return the discriminant scores of every row, with standardized distances.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes), float64
            With two classes, the score of the second without that of the first.
        """
        scores = self._scores(X, standardized=True)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`.
        """
        return log_shares(self._scores(X, standardized=True))

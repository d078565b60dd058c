"""Linear support vector machines that delete records exactly: the optimum, on a lattice."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core._schema import Fields
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import Attachment
from erasable.core.errors import InvalidParameterError
from erasable.core.params import decode_params
from erasable.core.threads import N_JOBS
from erasable.linear_model._lattice_model import LatticeClassifier, LatticeModel
from erasable.linear_model._logistic_published import Equations
from erasable.linear_model._saved_state import lattice_schema, logistic_schema
from erasable.svm._work import ClassWork, NumberWork, SupportWork

_POSITIVE = [Interval(Real, 0, None, closed="neither")]


class LinearSVC(LatticeClassifier):
    """Linear support vector classification, from which records can be deleted exactly.

    The objective is that of scikit-learn's `LinearSVC` with its default loss, the squared hinge:
    ``(||w||**2 + b**2) / 2 + C sum_i s_i max(0, 1 - y_i f(x_i))**2``, with
    ``f(x) = w x + intercept_scaling * b`` and ``y_i`` 1 or -1. Of three classes or more, each has
    such an optimum against all others. The optimum is a function of the records alone. What is
    published is the nearest point of a lattice, about 4e-9 in the score of the largest values:
    every rounding error is accounted for. So ``delete`` equals a refit bit for bit.

    Only records with a loss, ``y f(x) < 1``, count for the optimum, which solves linear equations
    of sums over them. A deletion subtracts a record from the sums, and looks at the few others
    that are so near to 1 that they may begin or cease to have a loss: O(n_features^2), and a
    comparison for each record.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty; positive.
    fit_intercept : bool, default=True
        Whether there is a constant in the scores.
    intercept_scaling : float, default=1.0
        The constant is penalised like a coefficient of a column of this value; a large value makes
        the penalty small.
    class_weight : dict, "balanced" or None, default=None
        Factors of the records' weights, by class. "balanced" makes the classes weigh the same. A
        class that is not in the dict has 1. With three classes or more, the model of a class
        gives the records of all other classes the factor 1, as in scikit-learn.
    classes : array-like of shape (n_classes,), default=None
        Labels of all classes. By default those of the records: when the last record of a class is
        deleted, the class is gone.
    n_jobs : int or None, default=None
        Threads that fit and predict; None is one, and -1 are all cores. The model is the same with
        any number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        One row for two classes: the score of the second.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        What the scores are where all features are 0.
    n_iter_ : int
        Always 1: the optimum does not depend on how many steps led to it.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        Records of fewer than two classes (with a weight).
    MagnitudeError
        Values beyond ``2**480``, or weights beyond it or, but for 0, below ``2**-480``.
    InvalidDataError
        More than 4096 features.

    See Also
    --------
    LinearSVR : The same for numbers.
    erasable.linear_model.LogisticRegression : With probabilities.

    Notes
    -----
    The lattice of a coefficient is ``2**-(28 + top)``, where ``2**top`` bounds the magnitude of
    its column, or the span of one with an offset (`erasable.core.grid`). In the units of its column
    a coefficient's penalty is at least ``2**-60`` and at most ``2**200`` of the weight of all
    records together, which matters for a `C` of a billion times a billion. Behind a scaler of a
    pipeline the model learns from the records as they are, with penalties scaled instead.

    With a `C` of 1e16 or more, sums of 100 bits may not tell which point is the nearest. Then one
    is published that is computed from the remaining records alone, in the order of a hash of their
    ids: a refit still gives it bit for bit, but its coefficients need not be the smallest of all
    that separate the records.

    Neither the hinge itself nor an L1 penalty is offered [1]_: their optima lie at kinks, where
    sums over records do not determine them.

    References
    ----------
    .. [1] Fan, Chang, Hsieh, Wang and Lin, "LIBLINEAR: A library for large linear classification",
       Journal of Machine Learning Research 9, 2008.

    Examples
    --------
    >>> from erasable.svm import LinearSVC
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], ["no", "no", "yes", "yes", "no"]
    >>> model = LinearSVC().fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype=object)
    >>> fresh = LinearSVC().fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": _POSITIVE,
        "fit_intercept": ["boolean"],
        "intercept_scaling": _POSITIVE,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "classes": ["array-like", None],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        classes: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.classes = classes
        self.n_jobs = n_jobs

    def _new_work(self, held: Attachment, start: Any = None) -> ClassWork:
        return ClassWork(held, self._settings, start)

    def _check_settings(self) -> None:
        super()._check_settings()
        _check_scaling(self._settings)

    def _schema(self) -> Fields:
        settings = self._settings = decode_params(self._info.params)
        self._check_settings()
        return logistic_schema(self.n_features_in_, settings)

    @property
    def n_iter_(self) -> int:
        """Always 1."""
        self._check_fitted()
        return 1


class LinearSVR(RegressorMixin, LatticeModel):
    """Linear support vector regression, from which records can be deleted exactly.

    The objective is that of scikit-learn's `LinearSVR` with
    ``loss="squared_epsilon_insensitive"``:
    ``(||w||**2 + b**2) / 2 + C sum_i s_i max(0, |y_i - f(x_i)| - epsilon)**2``, with
    ``f(x) = w x + intercept_scaling * b``. The optimum is found, followed and published like that
    of `LinearSVC`.

    Parameters
    ----------
    epsilon : float, default=0.0
        Errors up to this cost nothing; 0 or more. With 0 every record counts, as in a ridge
        regression.
    C : float, default=1.0
        Inverse of the strength of the penalty; positive.
    fit_intercept : bool, default=True
        Whether predictions have a constant.
    intercept_scaling : float, default=1.0
        The constant is penalised like a coefficient of a column of this value; a large value makes
        the penalty small.
    n_jobs : int or None, default=None
        Threads that fit and predict; None is one, and -1 are all cores. The model is the same with
        any number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : ndarray of shape (1,)
        What is predicted where all features are 0.
    n_iter_ : int
        Always 1: the optimum does not depend on how many steps led to it.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        No record has a weight.
    MagnitudeError
        Values beyond ``2**480``.
    InvalidDataError
        More than 4096 features.

    See Also
    --------
    LinearSVC : The same for classes.
    erasable.linear_model.Ridge : Without `epsilon`, and with an intercept that is not penalised.

    Notes
    -----
    ``y - epsilon`` and ``y + epsilon`` are rounded to floats. The lattice is that of `LinearSVC`,
    times a power of two that no target exceeds. scikit-learn's default loss, which is not squared,
    is not offered [1]_: its optimum lies at kinks, where sums over records do not determine it.

    References
    ----------
    .. [1] Ho and Lin, "Large-scale linear support vector regression", Journal of Machine Learning
       Research 13, 2012.

    Examples
    --------
    >>> from erasable.svm import LinearSVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [1.0, 3.0, 5.0, 7.0, -50.0]
    >>> model = LinearSVR(C=1000.0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[0.5], [2.5]]).round(2)
    array([2., 6.])
    >>> fresh = LinearSVR(C=1000.0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "C": _POSITIVE,
        "fit_intercept": ["boolean"],
        "intercept_scaling": _POSITIVE,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        C: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.n_jobs = n_jobs

    def _new_work(self, held: Attachment, start: Any = None) -> NumberWork:
        return NumberWork(held, self._settings, start)

    def _is_enough(self, work: SupportWork) -> bool:
        return bool(work.used.any())

    def _check_settings(self) -> None:
        super()._check_settings()
        _check_scaling(self._settings)
        if not np.isfinite(self._settings["epsilon"]):
            raise InvalidParameterError("epsilon is infinite; expected a finite number")

    def _check_work(self, work: SupportWork) -> None:
        self._refuse_weightless(np.empty(0, dtype=np.int64))

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)

    # -- keeping -------------------------------------------------------------------------------

    def _schema(self) -> Fields:
        settings = self._settings = decode_params(self._info.params)
        self._check_settings()
        return lattice_schema(self.n_features_in_, settings)

    def _state(self) -> dict[str, Any]:
        found = self._published()
        columns = {"origin": found.origin, "top": found.top}
        return {"columns": columns, "coefficients": found.values}

    def _as_published(self, state: dict[str, Any]) -> Equations:
        return Equations(state["coefficients"], **state["columns"])

    # -- what it is ----------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        """Coefficients."""
        slopes: Floats = self._equations()[0][0]
        return slopes.copy()

    @property
    def intercept_(self) -> Floats:
        """What is predicted where all features are 0."""
        return self._equations()[1].copy()

    @property
    def n_iter_(self) -> int:
        """Always 1."""
        self._check_fitted()
        return 1

    def predict(self, X: Any) -> Floats:
        """Return the prediction for every row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores: Floats = self._of_scores(X, lambda scores: scores)
        return scores


def _check_scaling(settings: dict[str, Any]) -> None:
    if not np.isfinite(settings["intercept_scaling"]):
        raise InvalidParameterError("intercept_scaling is infinite; expected a finite number")

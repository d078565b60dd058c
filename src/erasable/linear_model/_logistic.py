"""Logistic regression that deletes records exactly: the optimum itself, rounded to a lattice."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core._schema import Fields
from erasable.core.arrays import Floats
from erasable.core.attachment import Attachment
from erasable.core.params import decode_params
from erasable.core.threads import N_JOBS
from erasable.linear_model._lattice_model import LatticeClassifier
from erasable.linear_model._logistic_published import (
    log_probabilities,
    probabilities,
)
from erasable.linear_model._logistic_work import LogisticWork
from erasable.linear_model._saved_state import logistic_schema


class LogisticRegression(LatticeClassifier):
    """Logistic regression with an L2 penalty, from which records can be deleted exactly.

    The objective is scikit-learn's: the sum of the records' log losses plus
    ``||coef_||**2 / (2 C)``, with an intercept that is not penalised; for three classes or more
    the loss is the softmax's. Its optimum is a function of the records alone. What is published
    is the point of a lattice that is nearest to it, about 1e-6 in the logit of the largest values,
    and it is published only when it is certain: every rounding error is accounted for. So it does
    not matter where training started, or on which machine, and ``delete`` equals a refit bit for
    bit. What is nearer to the middle between two points than 2**-60 of their distance goes to the
    even one.

    A deletion or an addition takes a Newton step from the records concerned, in O(n_features^2);
    a class that is new asks for a fit. Coefficients are polished when a prediction, a digest or
    ``coef_`` asks for them: mostly in one or two passes over the records.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of the penalty; positive.
    fit_intercept : bool, default=True
        Whether there is a constant in the logits.
    class_weight : dict, "balanced" or None, default=None
        Factors of the records' weights, by class. "balanced" makes the classes weigh the same,
        and changes with every deletion. A class that is not in the dict has 1.
    classes : array-like of shape (n_classes,), default=None
        Labels of all classes. By default those of the records: when the last record of a class is
        deleted, the class is gone.
    n_jobs : int or None, default=None
        Threads that fit, polish and predict; None is one, and -1 are all cores. The model is the
        same with any number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        One row for two classes: the logit of the second. With more they sum to 0.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        What the logits are where all features are 0.
    n_iter_ : ndarray of shape (1,)
        Always 1: the optimum does not depend on how many steps led to it.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        Records of fewer than two classes (with a weight).
    MagnitudeError
        Values beyond ``2**480``, or weights beyond it or, but for 0, below ``2**-480``.

    Notes
    -----
    The lattice of a coefficient is ``2**-(20 + top)``, where ``2**top`` bounds the magnitude of
    its column, or the span of one with an offset (`erasable.core.grid`).

    Two limits keep the optimum within reach of arithmetic of 100 bits, so that every fit and every
    deletion has a model; ordinary data are far from both. In the units of its column a
    coefficient's penalty is at least ``2**-60`` of the weight of all records together (``2**-40``
    where there are more than about 1,500 coefficients), which matters for a `C` of a billion times
    a billion, or columns that differ by a billionth of their values. And a record that has a weight
    has at least ``2**-60`` (``2**-30``) of the total. A penalty is at most ``2**200`` of it. In all
    else the objective is what it is in real numbers, with penalties ``1 / C`` and products of a
    sample's and a class's weight that are rounded to floats.

    A class without records of positive weight, because ``classes`` names it and there are none or
    they have the weight 0, has the probability 0: its coefficients are 0 and its intercept is -inf,
    to which the optimum tends.

    Behind a scaler of a pipeline the model learns from the records as they are, with penalties
    scaled instead [1]_.

    References
    ----------
    .. [1] The certificate follows F. Bach, "Self-concordant analysis for logistic regression",
       Electronic Journal of Statistics 4, 2010; see `erasable.linear_model._certificate`.

    Examples
    --------
    >>> from erasable.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], ["no", "no", "yes", "yes", "no"]
    >>> model = LogisticRegression().fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype=object)
    >>> fresh = LogisticRegression().fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "classes": ["array-like", None],
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        classes: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.classes = classes
        self.n_jobs = n_jobs

    # -- learning and keeping ------------------------------------------------------------------

    def _new_work(self, held: Attachment, start: Any = None) -> LogisticWork:
        return LogisticWork(held, self._settings, start)

    def _schema(self) -> Fields:
        settings = self._settings = decode_params(self._info.params)
        self._check_settings()
        return logistic_schema(self.n_features_in_, settings)

    @property
    def n_iter_(self) -> NDArray[np.int32]:
        """Always 1."""
        self._check_fitted()
        return np.ones(1, dtype=np.int32)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, for every row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            A column for each of `classes_`; rows add up to 1.
        """
        return self._of_scores(X, probabilities)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            A column for each of `classes_`; -inf for a class without weight.
        """
        return self._of_scores(X, log_probabilities)

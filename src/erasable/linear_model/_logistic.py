"""Logistic regression that deletes records exactly: the optimum itself, rounded to a lattice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core._changing import not_its_records
from erasable.core._schema import Fields
from erasable.core.arrays import Floats, Ints
from erasable.core.changes import Delta
from erasable.core.classes import check_classes
from erasable.core.deletion import Outcome
from erasable.core.errors import ErasableError, InvalidParameterError, TooFewRecordsError
from erasable.core.params import decode_params
from erasable.core.threads import N_JOBS, over_rows
from erasable.core.weighted import Weighted
from erasable.linear_model._logistic_classes import WEIGHTS
from erasable.linear_model._logistic_published import (
    PublishedModel,
    log_probabilities,
    most_probable,
    probabilities,
)
from erasable.linear_model._logistic_work import LogisticWork
from erasable.linear_model._saved_state import logistic_schema


class LogisticRegression(ClassifierMixin, Weighted):
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
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)
    _takes_map: ClassVar[bool] = True
    _reads_blocks: ClassVar[bool] = True
    _follows_table: ClassVar[bool] = True
    _as_if_dense: ClassVar[bool] = True
    _settings: dict[str, Any]
    _shown: _Shown

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

    # -- learning and forgetting ---------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._settings = decode_params(self._info.params)
        self._check_settings()
        work = LogisticWork(self._attached(), self._settings)
        _refuse_few(work.training.n_used, "the records have", "fit on records of more classes")
        self._check_class_weight(work)
        work.open(self.n_jobs)
        work.columns.warn(work.table())
        self._accelerator = work
        self._shown = _Shown()
        self._published()

    def _check_settings(self) -> None:
        if not np.isfinite(self._settings["C"]):
            raise InvalidParameterError(
                "C is infinite; expected a finite number, without which there may be no optimum; "
                "pass 1e4 or so"
            )
        given = self._settings["class_weight"]
        if isinstance(given, Mapping):
            for weight in given.values():
                number = float(weight) if isinstance(weight, Real) else np.nan
                if not (number == 0 or WEIGHTS[0] <= number <= WEIGHTS[1]):
                    raise InvalidParameterError(
                        "class_weight= holds something that is neither 0 nor a number from 2**-480 "
                        "to 2**480; expected a weight for each class; pass {label: weight}"
                    )

    def _check_class_weight(self, work: LogisticWork) -> None:
        given = self._settings["class_weight"]
        if not isinstance(given, Mapping) or self._settings["classes"] is None:
            return
        strange = len(set(given) - set(work.training.classes.labels.tolist()))
        if strange:
            raise InvalidParameterError(
                f"class_weight= has {strange} labels that are not in classes=; expected no "
                "others; leave them out"
            )

    def _check_targets(self, y: Any) -> None:
        check_classes(y, self.classes)

    def _check_deletion(self, rows: Ints) -> None:
        intro = f"deleting {rows.size} records would leave"
        _refuse_few(self._accelerator.training.left(rows), intro, "delete fewer")

    def _update(self, delta: Delta) -> Outcome | None:
        work, n_live = self._accelerator, self._attached().n_live
        self._shown = _Shown()
        if delta.table is not None:
            return Outcome("resumed", n_live) if work.resume(delta) else None
        if delta.moved:
            work.take_arrays()
        scanned = work.remove(delta.leaving) if delta.leaving.size else 0
        if delta.arriving.size and not work.add(delta.arriving):
            return None
        return Outcome("updated", scanned and n_live, {"columns_scanned": scanned})

    def _published(self) -> PublishedModel:
        """Return the model, which is found out when it is needed."""
        self._check_fitted()
        if self._shown.published is None:
            self._shown.published = self._accelerator.publish(self._map, self.n_jobs)
        return self._shown.published

    # -- keeping -------------------------------------------------------------------------------

    def _schema(self) -> Fields:
        settings = self._settings = decode_params(self._info.params)
        self._check_settings()
        return logistic_schema(self.n_features_in_, settings)

    def _state(self) -> dict[str, Any]:
        found = self._published()
        return {
            "classes": {
                "labels": found.labels,
                "counts": found.counts,
                "taught": found.used_counts,
            },
            "columns": {"origin": found.origin, "top": found.top},
            "coefficients": found.values,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._settings, classes = decode_params(self._info.params), state["classes"]
        self._shown = _Shown(
            PublishedModel(
                labels=classes["labels"],
                counts=classes["counts"],
                used_counts=classes["taught"],
                values=state["coefficients"],
                **state["columns"],
            )
        )

    def _reattach(self) -> None:
        held, mine, same = self._attached(), self._published(), False
        try:
            work = LogisticWork(held, self._settings, mine)
            if work.training.n_used >= 2:
                same = held.vouched or work.publish(self._map, self.n_jobs).equals(mine)
        except ErasableError:
            same = False
        if not same:
            raise not_its_records(self)
        self._accelerator = work

    # -- what it is ----------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        self._check_fitted()
        return np.array((self._shown.published or self._accelerator.training.classes).labels)

    @property
    def coef_(self) -> Floats:
        """Coefficients, a row for each class, or one for two classes."""
        return self._equations()[0].copy()

    @property
    def intercept_(self) -> Floats:
        """Logits where all features are 0."""
        return self._equations()[1].copy()

    @property
    def n_iter_(self) -> NDArray[np.int32]:
        """Always 1."""
        self._check_fitted()
        return np.ones(1, dtype=np.int32)

    def _equations(self) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts for rows as everybody has them."""
        found = self._published()
        if self._shown.equations is None:
            self._shown.equations = found.equations(self._map)
        return self._shown.equations

    # -- predictions ---------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return the logits.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes, the logit of the second; -inf for a class without weight.
        """
        return self._of_logits(X, lambda logits: logits)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        predicted: NDArray[Any] = self.classes_[self._of_logits(X, most_probable)]
        return predicted

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
        return self._of_logits(X, probabilities)

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
        return self._of_logits(X, log_probabilities)

    def _of_logits(self, X: Any, function: Callable[[Floats], NDArray[Any]]) -> NDArray[Any]:
        """Return a function of the logits of every row."""
        matrix, found, mapped = self._read_matrix(X), self._published(), self._comes_mapped(X)
        slopes, constants = self._equations() if mapped else (np.zeros((0, 0)), np.zeros(0))

        def of_block(rows: slice) -> NDArray[Any]:
            some = matrix if matrix.shape[0] == rows.stop - rows.start else matrix[rows]
            logits = some @ slopes.T + constants if mapped else found.logits(some)
            return function(logits[:, 0] if found.labels.size == 2 else logits)

        parts = list(over_rows(of_block, matrix.shape[0], self.n_jobs))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Shown:
    """Cache until the next deletion: a prediction changes no attribute of an estimator."""

    def __init__(self, published: PublishedModel | None = None) -> None:
        self.published = published
        self.equations: tuple[Floats, Floats] | None = None


def _refuse_few(n_classes: int, intro: str, advice: str) -> None:
    if n_classes < 2:
        weights = "all weights are zero" if n_classes == 0 else "the data contains only one class"
        raise TooFewRecordsError(
            f"{intro} {n_classes} class{'' if n_classes == 1 else 'es'} with a weight; "
            f"LogisticRegression needs at least 2 ({weights}); {advice}"
        )

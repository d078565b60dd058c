"""Leave-one-out by deletion: a score of each record by the model without it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring

from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import Attachment
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.leave_out import each_without
from erasable.core.protocol import Learner
from erasable.core.records import Records
from erasable.core.rows import Rows
from erasable.core.values import Accepts


def _squared(y: NDArray[Any], predictions: NDArray[Any]) -> Floats:
    away = _columns(y) - _columns(predictions)
    squares: Floats = -np.mean(away * away, axis=1)
    return squares


def _absolute(y: NDArray[Any], predictions: NDArray[Any]) -> Floats:
    distances: Floats = -np.mean(np.abs(_columns(y) - _columns(predictions)), axis=1)
    return distances


def _accurate(y: NDArray[Any], predictions: NDArray[Any]) -> Floats:
    return np.asarray(y == predictions, dtype=np.float64)


_MEASURES = {
    "accuracy": _accurate,
    "neg_mean_absolute_error": _absolute,
    "neg_mean_squared_error": _squared,
}
"""Scorers of scikit-learn that are means over records: one pass instead of a call for each."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """A measure of each record's prediction, or a scorer of each model."""

    # ``measure(y, predictions)`` returns a number for each record.
    measure: Callable[[NDArray[Any], NDArray[Any]], Floats] | None = None
    scorer: Callable[..., float] | None = None  # ``scorer(estimator, X, y)`` returns a number

    def of_predictions(self, y: Any, predictions: Any, member: Ints) -> Floats | None:
        """Score every model by the predictions of its records; it has not seen these.

        `member` is the model of each record.
        """
        if self.measure is None:
            return None
        each = self.measure(y, predictions)
        return np.bincount(member, weights=each) / np.bincount(member)

    def of_model(self, model: Any, rows: Any, y: Any) -> float:
        """Score one model on rows as its user would give them."""
        assert self.scorer is not None
        if Accepts.of(model).documents:
            rows = rows[:, 0].tolist()
        with warnings.catch_warnings():
            # The rows come without the names that the columns may have had.
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            return float(self.scorer(model, rows, y))


def choose_scoring(estimator: Any, scoring: Any) -> Scoring:
    """Choose the scoring of an estimator; raise InvalidInputError if there is no such scorer."""
    if scoring is None and is_classifier(estimator):
        scoring = "accuracy"
    elif scoring is None and is_regressor(estimator):
        scoring = "neg_mean_squared_error"
    elif scoring is None:
        return Scoring()
    if isinstance(scoring, str) and scoring in _MEASURES:
        return Scoring(measure=_MEASURES[scoring])
    try:
        return Scoring(scorer=check_scoring(estimator, scoring))
    except ValueError as error:
        raise InvalidInputError(
            f"scoring={scoring!r} is no scorer ({' '.join(str(error).split())}); expected the name "
            "of one of scikit-learn, or a callable scorer(estimator, X, y); see "
            "sklearn.metrics.get_scorer_names()"
        ) from None


def _columns(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.float64, copy=False).reshape(values.shape[0], -1)


_METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
_OF_NO_CLASS = {"predict_proba": 0.0, "predict_log_proba": -np.inf, "decision_function": -np.inf}


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOneOut:
    """Result of `leave_one_out`.

    Attributes
    ----------
    ids : ndarray of shape (n_records,), int64, uint64 or object
        Which record each prediction is of, in the order of the rows.
    predictions : ndarray of shape (n_records, ...)
        What the model without a record (or without its group) predicts for it.
    scores : ndarray of shape (n_models,), float64, or None
        Score of each model on what it has not seen: one for each record, or for each group.
        None where there is no score: no `scoring`, and neither a classifier nor a regressor.
    groups : ndarray of shape (n_models,), int64, uint64 or object, or None
        Which group each score is of, sorted; None without groups.

    Examples
    --------
    >>> from erasable.linear_model import Ridge
    >>> result = leave_one_out(Ridge(), [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 9.0])
    >>> result.ids, result.predictions.round(2)
    (array([0, 1, 2, 3]), array([-1.33,  2.18,  5.06,  2.33]))
    >>> result.scores.round(2), round(result.score, 2)
    (array([ -1.78,  -1.38,  -9.36, -44.44]), -14.24)
    """

    ids: NDArray[Any]
    predictions: NDArray[Any]
    scores: Floats | None
    groups: NDArray[Any] | None

    @property
    def score(self) -> float | None:
        """Mean of `scores`; None if there are none."""
        return None if self.scores is None else float(self.scores.mean())


def leave_one_out(
    estimator: Erasable,
    X: Any = None,
    y: Any = None,
    *,
    ids: str | Iterable[Any] | None = None,
    groups: str | Iterable[Any] | None = None,
    sample_weight: Any = None,
    scoring: str | Callable[..., float] | None = None,
    method: str = "predict",
) -> LeaveOneOut:
    """Predict every record by the model that has never seen it, without n fits.

    The model is fitted once; then each record (or group) is deleted, predicted, and put back. The
    values are those of as many fits, bit for bit.

    Parameters
    ----------
    estimator : estimator of erasable
        Not changed. With `X` it is cloned and fitted; without, it has to be fitted, and its own
        records are left out.
    X : array-like, frame, sparse matrix, Records, or list of str, default=None
        Records, as `fit` takes them.
    y : array-like of shape (n_records,) or (n_records, n_outputs), default=None
        Targets.
    ids : array-like of int or str, or the name of a column, default=None
        Which record each row is. By default a pandas frame's index, or 0..n-1.
    groups : array-like of int or str, or the name of a column, default=None
        Records that are left out together: all those of one person. `Records`, or a fitted
        estimator, that have groups are left out by them, too.
    sample_weight : array-like of shape (n_records,), default=None
        How much each record counts in learning; scores do not weigh.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn, by name or as ``scorer(estimator, X, y)``. By default
        ``"neg_mean_squared_error"`` for a regressor and ``"accuracy"`` for a classifier.
    method : {"predict", "predict_proba", "predict_log_proba", "decision_function"}
        Which predictions. What a model cannot say of a class, because the record left out was its
        last, is 0 as a probability and -inf otherwise.

    Returns
    -------
    LeaveOneOut
        Predictions and ids of the records, scores of the models, and their mean.

    Raises
    ------
    InvalidInputError
        The estimator is not of erasable, or has no such method; a scorer that does not exist.
    TooFewRecordsError
        What is left without a record cannot be learned from, as in a fit: one class, say.
    DetachedError
        A fitted estimator without records was given.

    See Also
    --------
    sklearn.model_selection.cross_val_predict : Gives the same predictions with
        ``cv=LeaveOneOut()``, by n fits.

    Notes
    -----
    This is the first use of deletion, beside privacy, that Ginart et al. [1]_ name. A linear model
    takes a record out of its sums, solves, and puts it back, in O(n_features^2) for the sums. From
    any other model the record is deleted, and what the deletion changed is put back from a copy,
    which doubles the memory of the model but for its records. A model that keeps objects of
    compiled code (`Refit`, of trees) is copied for each record.

    Where `random_state` is None, one seed is drawn for all models.

    Measures that no single record has, such as R^2 or the area under a curve, are to be had of
    the predictions: ``r2_score(y, result.predictions)``.

    References
    ----------
    .. [1] Ginart, Guan, Valiant and Zou, "Making AI forget you: data deletion in machine
       learning", NeurIPS 2019, section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.linear_model import Ridge
    >>> from erasable.model_selection import leave_one_out
    >>> from erasable.pipeline import make_pipeline
    >>> from erasable.preprocessing import StandardScaler
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0
    >>> model = make_pipeline(StandardScaler(), Ridge(alpha=0.1))
    >>> result = leave_one_out(model, X, y)
    >>> left = np.arange(40) != 7
    >>> bool(result.predictions[7] == model.fit(X[left], y[left]).predict(X[[7]])[0])
    True

    The visits of one person are left out together:

    >>> people = np.repeat(["ann", "ben", "cem", "dan"], 10)
    >>> result = leave_one_out(model, X, y, groups=people)
    >>> result.groups, result.scores.shape
    (array(['ann', 'ben', 'cem', 'dan'], dtype=object), (4,))
    """
    _refuse_arguments(estimator, method)
    score = choose_scoring(estimator, scoring)
    model = _fitted(estimator, X, y, ids, groups, sample_weight)
    held = model._attached()
    try:
        held.records.refuse_stored()
        if not hasattr(model, method):
            raise InvalidInputError(
                f"method={method!r}, and this {type(model).__name__} has no {method}; expected one "
                "that it has; pass method='predict'"
            )
        live = held.live_rows()
        names, member = _members(held, live)
        predictions = None
        if method == "predict" and names is None and score.scorer is None:
            predictions = _at_once(model, live)
        if predictions is not None:
            scores = score.of_predictions(_target(held, live), predictions, member)
        else:
            predictions, scores = _one_by_one(model, live, member, score, method)
        return LeaveOneOut(held.ids, predictions, scores, names)
    finally:
        held.detach()  # at once, so that shared records can be erased


def _refuse_arguments(estimator: Any, method: str) -> None:
    if not isinstance(estimator, Erasable):
        raise InvalidInputError(
            f"the estimator is a {type(estimator).__name__}; expected one of erasable, which can "
            "delete; use its counterpart, or sklearn.model_selection.cross_val_predict"
        )
    if method not in _METHODS:
        raise InvalidInputError(
            f"method is {method!r}; expected one of {', '.join(map(repr, _METHODS))}; pass one of "
            "them"
        )


def _fitted(
    estimator: Erasable, X: Any, y: Any, ids: Any, groups: Any, sample_weight: Any
) -> Erasable:
    """Fit a clone of an estimator; without X, copy a fitted one."""
    if X is None:
        if any(given is not None for given in (y, ids, groups, sample_weight)):
            raise InvalidInputError(
                "leave_one_out was given y, ids, groups or sample_weight without X; expected "
                "X with them, or a fitted estimator alone; pass X"
            )
        estimator._refuse_if_owned()
        estimator._attached()
        return copy.deepcopy(estimator)
    if sample_weight is not None and not isinstance(X, Records):
        # Pipelines take weights only in records.
        X = Records(X, y, sample_weight=sample_weight, ids=ids, groups=groups)
        y = ids = groups = sample_weight = None
    if sample_weight is not None:
        raise InvalidInputError(
            "leave_one_out was given Records together with sample_weight; expected one or the "
            "other; pass Records(X, y, sample_weight=...)"
        )
    fitted: Erasable = clone(estimator).fit(X, y, ids=ids, groups=groups)
    return fitted


def _members(held: Attachment, live: Ints) -> tuple[NDArray[Any] | None, Ints]:
    """Return the names of the groups, if any, and the model that leaves out each live record."""
    groups = held.records.groups
    if groups is None:
        return None, np.arange(live.size)
    names, member = np.unique(groups[live], return_inverse=True)
    return names, member


def _target(held: Attachment, rows: Ints) -> Any:
    return None if held.records.y is None else held.records.y[rows]


def _at_once(model: Erasable, live: Ints) -> NDArray[Any] | None:
    """Return all predictions, if the model has a method for them."""
    predictions = model._leave_one_out_predictions(live) if isinstance(model, Learner) else None
    if predictions is None:
        return None
    one: NDArray[Any] = model.predict(Rows(model._attached().records.matrix[live[:1]]))
    return predictions[:, 0] if one.ndim == 1 else predictions


def _one_by_one(
    model: Erasable, live: Ints, member: Ints, score: Scoring, method: str
) -> tuple[NDArray[Any], Floats | None]:
    """Delete the records of each member, predict them, and take the deletion back."""
    held = model._attached()
    matrix = held.records.matrix
    classes = getattr(model, "classes_", None)
    order = np.argsort(member, kind="stable")
    parts = np.split(live[order], np.cumsum(np.bincount(member))[:-1])
    methods = {method, "predict"} if score.measure is not None else {method}
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in methods}
    scores = []
    for rows, without in zip(parts, each_without(model, parts), strict=True):
        for name, answers in found.items():
            answers.append(_answer(without, name, matrix[rows], classes))
        if score.scorer is not None:
            scores.append(score.of_model(without, matrix[rows], _target(held, rows)))
    back = np.argsort(order)
    told = {name: np.concatenate(answers)[back] for name, answers in found.items()}
    if score.measure is not None:
        by_record = score.of_predictions(_target(held, live), told["predict"], member)
        return told[method], by_record
    return told[method], np.array(scores, dtype=np.float64) if scores else None


def _answer(model: Any, method: str, rows: Any, classes: NDArray[Any] | None) -> NDArray[Any]:
    answer: NDArray[Any] = getattr(model, method)(Rows(rows))
    if method == "predict" or classes is None or np.array_equal(model.classes_, classes):
        return answer
    if answer.ndim == 1:
        raise InvalidInputError(
            f"without some records the model has {model.classes_.size} of {classes.size} classes, "
            f"whose {method} has no column for each; expected all classes; fix them with classes="
        )
    filled = np.full((answer.shape[0], classes.size), _OF_NO_CLASS[method])
    filled[:, np.searchsorted(classes, model.classes_)] = answer
    return filled

"""How well models do on what they have not seen: a number for each of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError
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
    """How to score: by a measure of each record's prediction, or by a scorer of each model.

    Attributes
    ----------
    measure : callable or None
        ``measure(y, predictions)`` returns a number for each record.
    scorer : callable or None
        ``scorer(estimator, X, y)`` returns a number.
    """

    measure: Callable[[NDArray[Any], NDArray[Any]], Floats] | None = None
    scorer: Callable[..., float] | None = None

    def of_predictions(self, y: Any, predictions: Any, member: Ints) -> Floats | None:
        """Score every model by the predictions of the records that it has not seen.

        Parameters
        ----------
        y, predictions : ndarray of shape (n_records, ...)
        member : ndarray of shape (n_records,), int64
            Number of the model that has not seen each record.
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
    """Choose how to score an estimator.

    Parameters
    ----------
    estimator : estimator of erasable
    scoring : str, callable or None
        See `leave_one_out`.

    Raises
    ------
    InvalidInputError
        There is no such scorer.
    """
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

"""Predictions of an ensemble: a vote on classes, or a mean.

A member gives no vote to classes that its own records do not have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from erasable.core.arrays import Floats
from erasable.ensemble._composed import Composed


class Vote(ClassifierMixin, Composed):
    """Ensemble of classifiers: the mean of their probabilities, or a count of their votes."""

    _kind = "classifier"

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes that the records have, sorted."""
        self._check_fitted()
        return self._labels.copy()

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return int(self.classes_.size)

    def predict_proba(self, X: Any) -> Floats:
        """Return the mean of what the members give for probabilities.

        Members without `predict_proba` vote for one class each.

        Parameters
        ----------
        X : as `fit` takes
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; rows add up to 1.
        """
        self._check_fitted()
        soft = all(hasattr(each.estimator, "predict_proba") for each in self._members.values())
        place = {label: column for column, label in enumerate(self._labels.tolist())}
        total, votes = 0.0, np.zeros((1, 1))
        for member, answer in self._answers("predict_proba" if soft else "predict", X):
            if total == 0.0:
                votes = np.zeros((len(answer), len(place)))
            weight = self._vote_weight(member)
            total += weight
            if soft:
                votes[:, [place[each] for each in _labels(member.estimator)]] += weight * answer
            else:
                columns = [place[label] for label in np.asarray(answer).tolist()]
                votes[np.arange(len(votes)), columns] += weight
        votes /= total
        return votes

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`; -inf for what no member thinks possible.

        Parameters
        ----------
        X : as `fit` takes

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
        """
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.predict_proba(X))
        return logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with most of the votes; of several, the first in `classes_`.

        Parameters
        ----------
        X : as `fit` takes

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        self._check_fitted()
        found: NDArray[Any] = self._labels[self.predict_proba(X).argmax(axis=1)]
        return found


class Mean(RegressorMixin, Composed):
    """Ensemble of regressors: the mean of what they predict."""

    _kind = "regressor"

    def predict(self, X: Any) -> Floats:
        """Return the mean of the members' predictions.

        Parameters
        ----------
        X : as `fit` takes
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), float64
        """
        self._check_fitted()
        total, mean = 0.0, np.zeros(1)
        for member, answer in self._answers("predict", X):
            weight = self._vote_weight(member)
            mean = weight * answer if total == 0.0 else mean + weight * answer
            total += weight
        return mean / total


def _labels(estimator: Any) -> list[Any]:
    labels: list[Any] = np.asarray(estimator.classes_).tolist()
    return labels

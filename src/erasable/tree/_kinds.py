"""Trees that predict classes, and trees that predict numbers."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from erasable.core._schema import Fields
from erasable.core._schema_models import classes, grid
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.tree._base import TreeModel
from erasable.tree._targets import ClassTargets, NumberTargets


def refuse_weights(given: Any) -> None:
    """Raise InvalidParameterError if weights of classes are no numbers, or negative."""
    for weight in given.values() if isinstance(given, Mapping) else ():
        if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
            raise InvalidParameterError(
                "class_weight= holds something that is no finite number from 0 on; "
                "expected a weight for each class; pass {label: weight}"
            )


class TreeClassifier(ClassifierMixin, TreeModel):
    """Base of the classifiers."""

    class_weight: Any
    _targets: ClassTargets

    def _validate_params(self) -> None:
        super()._validate_params()
        refuse_weights(self.class_weight)

    def _target_schema(self, n_records: int) -> tuple[str, Fields]:
        return "classes", classes(n_records)

    def _fit_targets(self) -> ClassTargets:
        return ClassTargets.fit(self._attached(), self._settings["class_weight"])

    def _targets_from(self, state: dict[str, Any]) -> ClassTargets:
        return ClassTargets.from_state(state["classes"], self._settings["class_weight"])

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        self._check_fitted()
        return self._targets.classes.labels.copy()

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        self._check_fitted()
        return self._targets.n_stats

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; rows add up to 1. What the records in a row's leaf
            are, as a mean over the trees.
        """
        total: Any = 0.0
        for flat, found in self._found(X):
            total = total + self._targets.shares(flat.leaves[found])
        shares: Floats = total / self._n_trees()
        return shares

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; -inf where the class is impossible.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        shares = self.predict_proba(X)
        predicted: NDArray[Any] = self._targets.classes.labels[shares.argmax(axis=1)]
        return predicted


class TreeRegressor(RegressorMixin, TreeModel):
    """Base of the regressors."""

    _targets: NumberTargets

    def _target_schema(self, n_records: int) -> tuple[str, Fields]:
        return "target", grid(1)

    def _fit_targets(self) -> NumberTargets:
        return NumberTargets.fit(self._attached())

    def _targets_from(self, state: dict[str, Any]) -> NumberTargets:
        return NumberTargets.from_state(state["target"])

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            Means of the records in a row's leaf, and of the trees.
        """
        total: Any = 0.0
        for flat, found in self._found(X):
            total = total + self._targets.means(flat.leaves[found])
        means: Floats = total / self._n_trees()
        return means

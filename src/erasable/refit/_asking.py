"""The methods of a refitted estimator, and their tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from erasable.core._column_choice import Columns
from erasable.core.arrays import Ints
from erasable.core.weighted import Weighted
from erasable.refit._fitting import ask
from erasable.refit._tags import input_tags, target_tags, unread_by

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _where(name: str) -> Callable[[_Method], _Method]:
    """Show a method only where the estimator has one of this name."""
    decorator: Callable[[_Method], _Method] = available_if(
        lambda model: getattr(model._answering(), name)
    )
    return decorator


class Asking(Weighted):
    """The half of `Refit` that answers; it asks its fitted estimator."""

    estimator: Any
    _text: list[int]

    @_where("predict")
    def predict(self, X: Any) -> Any:
        """Predict with the estimator."""
        return self._ask("predict", X)

    @_where("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the estimator."""
        return self._ask("predict_proba", X)

    @_where("predict_log_proba")
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithms of probabilities."""
        return self._ask("predict_log_proba", X)

    @_where("decision_function")
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the estimator."""
        return self._ask("decision_function", X)

    @_where("score_samples")
    def score_samples(self, X: Any) -> Any:
        """Score every row with the estimator."""
        return self._ask("score_samples", X)

    @_where("transform")
    def transform(self, X: Any) -> Any:
        """Transform with the estimator."""
        return self._ask("transform", X)

    def _answering(self) -> BaseEstimator:
        return self.__dict__.get("_estimator", self.estimator)

    def _ask(self, method: str, X: Any, *args: Any) -> Any:
        matrix = self._read_matrix(X)
        given = self._as_given(matrix, self._text)
        names = getattr(self, "feature_names_in_", None)
        return ask(self._fitted(), method, given, *args, matrix=matrix, names=names)

    def _fitted(self) -> Any:
        """Return the fitted estimator, which is not to be changed."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _fitted()")

    def _as_given(self, matrix: Any, text: list[int]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not implement _as_given()")

    def _sorted_rows(self) -> Ints:
        raise NotImplementedError(f"{type(self).__name__} does not implement _sorted_rows()")

    def _ask_about_records(self, method: str) -> Any:
        held = self._attached()
        matrix = held.records.matrix[held.live]
        given = self._as_given(matrix, self._text)
        return ask(self._fitted(), method, given, matrix=matrix)

    @_where("score")
    def score(self, X: Any, y: Any = None) -> float:
        """Score with the estimator.

        Parameters
        ----------
        X : as `fit` takes
        y : array-like of shape (n_rows,), default=None

        Returns
        -------
        float
        """
        return float(self._ask("score", X, *([] if y is None else [y])))

    @_where("inverse_transform")
    def inverse_transform(self, X: Any) -> Any:
        """Transform back with the estimator.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features_out)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        return ask(self._fitted(), "inverse_transform", X, matrix=X)

    @_where("get_feature_names_out")
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` makes."""
        if input_features is None and not hasattr(self._fitted(), "feature_names_in_"):
            input_features = getattr(self, "feature_names_in_", None)
        names: NDArray[Any] = self._fitted().get_feature_names_out(input_features)
        return names.copy()

    @_where("transform")
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Any:
        """Fit, and transform the records as `transform` would; see `fit`."""
        self.fit(X, y, sample_weight, ids=ids, groups=groups)
        return self._ask_about_records("transform")

    @_where("fit_predict")
    def fit_predict(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> NDArray[Any]:
        """Fit, and return the cluster of each record, or what `predict` says of it; see `fit`."""
        self.fit(X, y, sample_weight, ids=ids, groups=groups)
        found: NDArray[Any]
        if hasattr(self._fitted(), "labels_"):
            found = self.labels_
        else:
            found = self._ask_about_records("predict")
        return found

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels that a classifier knows."""
        classes: NDArray[Any] = deepcopy(self._fitted().classes_)
        return classes

    @property
    def offset_(self) -> Any:
        """What a detector of outliers subtracts from its scores."""
        return deepcopy(self._fitted().offset_)

    @property
    def labels_(self) -> NDArray[Any]:
        """Cluster of each record, in row order."""
        labels = np.asarray(self._fitted().labels_)
        place = np.searchsorted(self._attached().live_rows(), self._sorted_rows())
        out = np.zeros_like(labels)
        out[place] = labels
        return out

    @property
    def _marks_unread_text(self) -> bool:
        return False  # a composition of scikit-learn that reads no text takes none

    def _unread(self, columns: Columns) -> list[int]:
        return unread_by(self._at_fit("estimator"), columns)

    @property
    def _reads_numbers(self) -> bool:
        return False  # some estimators of scikit-learn keep the targets as they came

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        asked = self._at_fit("estimator")
        try:
            own = get_tags(asked)
        except (AttributeError, TypeError, ValueError):  # no estimator; fit will say so
            return tags
        for name in ("estimator_type", "classifier_tags", "regressor_tags"):
            setattr(tags, name, deepcopy(getattr(own, name)))
        tags.target_tags, tags.input_tags = target_tags(asked), input_tags(asked)
        if own.classifier_tags is not None:  # a table of 0 and 1 is several labels for a record
            tags.target_tags.multi_output |= own.classifier_tags.multi_label
        tags.transformer_tags = deepcopy(own.transformer_tags)
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

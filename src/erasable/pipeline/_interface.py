"""Scikit-learn's interface of a pipeline: steps by name, and what they answer together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Self, TypeVar

import numpy as np
import sklearn.pipeline
from numpy.typing import NDArray
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils._set_output import _safe_set_output
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in

from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.values import Values
from erasable.pipeline._composition import Composition
from erasable.pipeline._reading import active, names_after

__all__ = ["Composed"]


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _where(check: Callable[[Composed], Any]) -> Callable[[_Method], _Method]:
    """Show a method only where a check finds something, and raises no AttributeError."""
    decorator: Callable[[_Method], _Method] = available_if(check)
    return decorator


def _final_has(method: str) -> Callable[[Composed], Any]:
    return lambda pipeline: getattr(pipeline.steps[-1][1], method)


def _all_have(method: str) -> Callable[[Composed], Any]:
    return lambda pipeline: all(getattr(step, method) for _, step in active(pipeline.steps))


def _can_transform(pipeline: Composed) -> bool:
    last = pipeline.steps[-1][1]
    return last is None or isinstance(last, str) or hasattr(last, "transform")


def _forwarded(method: str, summary: str) -> Any:
    def call(self: Composed, X: Any) -> Any:
        return self._ask(method, self._read_matrix(X))

    call.__name__, call.__qualname__ = method, f"Pipeline.{method}"
    call.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, ...)
        """
    return _where(_final_has(method))(call)


class Composed(Composition):
    """Base of `Pipeline`: everything that is asked of its steps."""

    _PARTS = "steps"
    steps: list[tuple[str, Any]]

    def _parts(self) -> list[tuple[str, Any]]:
        return active(self.steps)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the steps, and with `deep` those by name and their parameters."""
        params: dict[str, Any] = self._get_params("steps", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set the steps, a step by its name, or a parameter as ``name__parameter``."""
        self._set_params("steps", **params)
        return self

    # -- steps ---------------------------------------------------------------------------------

    @property
    def named_steps(self) -> Bunch:
        """Steps by name."""
        return Bunch(**dict(self.steps))

    def __len__(self) -> int:
        """Count the steps."""
        return len(self.steps)

    def __getitem__(self, index: int | str | slice) -> Any:
        """Return a step by place or name, or a pipeline of some of them."""
        if isinstance(index, slice):
            if index.step not in (1, None):
                raise InvalidInputError(
                    f"a slice of a pipeline has step {index.step}; Pipeline slicing only supports "
                    "a step of 1; take all steps between two places"
                )
            part = type(self) if "_info" not in self.__dict__ else sklearn.pipeline.Pipeline
            return part(self.steps[index])
        return self.named_steps[index] if isinstance(index, str) else self.steps[index][1]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the container that `transform` returns: "default", "pandas" or "polars"."""
        for _, step in [
            *active(self.steps),
            *(self._layout.steps if "_layout" in self.__dict__ else ()),
        ]:
            _safe_set_output(step, transform=transform)
        return self

    @_where(_all_have("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` makes of columns of these names."""
        self._check_fitted()
        return names_after(self._layout.steps, _check_feature_names_in(self, input_features))

    # -- what it answers -----------------------------------------------------------------------

    def _ask(self, method: str, rows: Values, *args: Any) -> Any:
        rows = _wide(rows)
        given = self._layout.given(lambda node: self._evaluate(node, rows))
        return getattr(self._layout.steps[-1][1], method)(given, *args)

    def _transform_rows(self, rows: Values, like: Any) -> Any:
        if not self._layout.steps:
            return _wide(rows).copy()
        out = self._ask("transform", rows)
        if hasattr(out, "columns"):
            if hasattr(self, "get_feature_names_out"):
                out.columns = self.get_feature_names_out().tolist()
            if hasattr(out, "index") and isinstance(like, type(out)):
                out.index = like.index
        return out

    predict = _forwarded("predict", "Predict with the last step, for every row.")
    predict_proba = _forwarded("predict_proba", "Predict probabilities with the last step.")
    predict_log_proba = _forwarded("predict_log_proba", "Predict their logarithms.")
    decision_function = _forwarded("decision_function", "Decide with the last step.")
    score_samples = _forwarded("score_samples", "Score every row with the last step.")

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, where the last step is a classifier."""
        self._check_fitted()
        labels: NDArray[Any] = self.steps[-1][1].classes_
        return labels

    @_where(_final_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """Score with the last step.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None

        Returns
        -------
        float
        """
        return float(self._ask("score", self._read_matrix(X), y))

    @_where(_can_transform)
    def transform(self, X: Any) -> Any:
        """Transform with every step.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float64
            Or a frame, where the last step's `set_output` asked for one.
        """
        return self._transform_rows(self._read_matrix(X), X)

    @_where(_all_have("inverse_transform"))
    def inverse_transform(self, X: Any) -> Any:
        """Transform back with every step, the last one first.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features_out)

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        self._check_fitted()
        for _, step in reversed(active(self.steps)):
            X = step.inverse_transform(X)
        return X

    @_where(_can_transform)
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Any:
        """Fit, and transform the records; see `fit` and `transform`."""
        held = self.fit(X, y, ids=ids, groups=groups)._attached()
        return self._transform_rows(held.records.matrix[held.live], X)

    @_where(_final_has("fit_predict"))
    def fit_predict(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Any:
        """Fit, and return the labels of the records; see `fit`."""
        return self.fit(X, y, ids=ids, groups=groups).steps[-1][1].labels_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            steps = [get_tags(step) for _, step in active(self.steps)]
        except (AttributeError, TypeError, ValueError):  # not steps; fit will say so
            return tags
        if not steps:  # whatever comes passes
            tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.categorical = True
        else:
            first = active(self.steps)[0][1]
            if isinstance(first, Erasable):
                tags.input_tags = deepcopy(steps[0].input_tags)
                tags.input_tags.sparse = all(step.input_tags.sparse for step in steps)
            tags.input_tags.positive_only = steps[0].input_tags.positive_only
            for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
                setattr(tags, name, deepcopy(getattr(steps[-1], name)))
            tags.transformer_tags = deepcopy(steps[-1].transformer_tags)
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _wide(rows: Values) -> Values:
    return rows if rows.dtype == object else rows.astype(np.float64, copy=False)

"""Pipeline: an estimator that is a chain of estimators, and learns and deletes as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import sklearn.pipeline
from numpy.typing import NDArray
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils._set_output import _safe_set_output
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in

from erasable.core._column_choice import Columns
from erasable.core.arrays import Values
from erasable.core.changes import Affine
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.values import Accepts
from erasable.pipeline._composition import Composition, named
from erasable.pipeline._layout import Layout, Nested, lay_out
from erasable.pipeline._maps import StepMap, compose
from erasable.pipeline._nodes import GraphNode, RecordsNode
from erasable.pipeline._stateless import check_steps, names_after
from erasable.pipeline._tables import active, keeps_names

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _where(check: Callable[[Pipeline], Any]) -> Callable[[_Method], _Method]:
    """Make a method available only if a check passes, without AttributeError."""
    decorator: Callable[[_Method], _Method] = available_if(check)
    return decorator


def _final_has(method: str) -> Callable[[Pipeline], Any]:
    return lambda pipeline: getattr(pipeline.steps[-1][1], method)


def _all_have(method: str) -> Callable[[Pipeline], Any]:
    return lambda pipeline: all(getattr(step, method) for _, step in active(pipeline.steps))


def _can_transform(pipeline: Pipeline) -> bool:
    last = pipeline.steps[-1][1]
    return last is None or isinstance(last, str) or hasattr(last, "transform")


class Pipeline(Composition):
    """Steps in a row, from all of which a record is deleted at once.

    Every step but the last transforms what the next one learns from. `delete` brings all of them
    to what they would have learned without the records; steps tell each other what changed, so
    that most deletions do not learn anything again. What a deletion costs behind which kind of
    step: see `erasable.pipeline`.

    Parameters
    ----------
    steps : list of (str, estimator)
        Names and estimators of erasable, or stateless transformers of scikit-learn. None and
        "passthrough" do nothing. They are fitted in place, as in scikit-learn; a fitted step
        refuses to delete on its own.

    Attributes
    ----------
    named_steps : Bunch
        Steps by name. They are also to be had as ``pipeline[0]`` and ``pipeline["kmeans"]``.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    UnsupportedStepError
        From `fit`: a step learns from records but cannot delete them, or cannot stand in its
        place.
    InvalidInputError
        From `fit`: there are no steps, or two of one name.
    TooFewRecordsError
        From `fit` and `delete`: fewer records than the most demanding step needs.

    See Also
    --------
    make_pipeline : Makes up the names.

    Notes
    -----
    Between steps, values are float64 arrays without names, whatever `set_output` says; it says
    what `transform` returns. Only the first step sees the names of a frame's columns. A slice of
    a fitted pipeline is scikit-learn's pipeline of these steps, which predicts but cannot delete.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from erasable.cluster import KMeans
    >>> from erasable.pipeline import Pipeline
    >>> from erasable.preprocessing import StandardScaler
    >>> X = [[1, 20], [2, 10], [1, 30], [10, 10], [9, 20], [10, 30]]
    >>> steps = [("scaler", StandardScaler()), ("kmeans", KMeans(2, random_state=0))]
    >>> pipeline = Pipeline(steps).fit(X, ids=list("abcdef"))
    >>> pipeline.delete(["b"]).ids
    array(['b'], dtype=object)
    >>> bool(pipeline.predict([[1, 20]]) == pipeline["kmeans"].labels_[0])
    True
    >>> fresh = clone(pipeline).fit([X[i] for i in (0, 2, 3, 4, 5)], ids=list("acdef"))
    >>> pipeline.digest() == fresh.digest()
    True
    """

    _PARTS = "steps"
    _parameter_constraints: ClassVar[dict[str, Any]] = {"steps": [list]}

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    def _check_parts(self) -> None:
        self._check_names(self.steps)
        check_steps(self.steps)

    def _plan(self, source: GraphNode) -> Layout:
        steps = [(name, self._as_fitted(name, step)) for name, step in active(self.steps)]
        return lay_out(source, source, steps)

    def _first_steps(self) -> Iterator[tuple[str, Any, int]]:
        for name, step in self._parts()[:1]:
            yield name, step, self.n_features_in_

    def _check_targets(self, y: Any) -> None:
        for _, step in self._parts()[-1:]:
            if isinstance(step, Erasable):
                step._check_targets(y)

    # -- as a part of another composition ------------------------------------------------------

    @property
    def _checks_gaps(self) -> bool:  # type: ignore[override]
        first = [step for _, step in self._parts()[:1]]
        return any(isinstance(step, Erasable) and step._checks_gaps for step in first)

    def _unread(self, columns: Columns) -> list[int]:
        for _, step in self._parts():
            if not (isinstance(step, Nested) and step._hands_on):
                return step._unread(columns) if isinstance(step, Erasable) else []
        return []

    @property
    def _asks_by_name(self) -> bool:
        steps = (step for _, step in self._parts())
        for step in steps:
            if isinstance(step, Nested):
                if not step._hands_on:
                    return step._asks_by_name
            elif not keeps_names(step):
                return False
        return False

    @property
    def _hands_on(self) -> bool:
        return all(isinstance(step, Nested) and step._hands_on for _, step in self._parts())

    @property
    def _is_map(self) -> bool:
        steps = [step for _, step in self._parts()]
        return bool(steps) and all(isinstance(step, Erasable) and step._is_map for step in steps)

    @property
    def _ends_in_map(self) -> bool:
        if self._is_map:
            return False
        if "_layout" in self.__dict__:
            return bool(self._layout.maps)
        source = RecordsNode()
        return bool(lay_out(source, source, self._parts()).maps)

    def _affine(self) -> Affine:
        # Of all steps, also of those before a step that reads a table.
        return compose(StepMap(step) for _, step in self._parts())

    # -- predictions ---------------------------------------------------------------------------

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

    def _as_scikit_learn(self) -> sklearn.pipeline.Pipeline:
        return sklearn.pipeline.Pipeline(self.steps)

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

    # -- predictions ---------------------------------------------------------------------------

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

    @_where(_final_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the last step, for every row."""
        return self._ask("predict", self._read_matrix(X))

    @_where(_final_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities with the last step."""
        return self._ask("predict_proba", self._read_matrix(X))

    @_where(_final_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Predict the logarithms of probabilities."""
        return self._ask("predict_log_proba", self._read_matrix(X))

    @_where(_final_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the last step."""
        return self._ask("decision_function", self._read_matrix(X))

    @_where(_final_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Score every row with the last step."""
        return self._ask("score_samples", self._read_matrix(X))

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, where the last step is a classifier."""
        self._check_fitted()
        labels: NDArray[Any] = self.steps[-1][1].classes_
        return labels

    @_where(_final_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score with the last step.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
        sample_weight : array-like of shape (n_rows,), default=None
            How much each row counts, where the last step takes that.

        Returns
        -------
        float
        """
        weights = () if sample_weight is None else (sample_weight,)
        return float(self._ask("score", self._read_matrix(X), y, *weights))

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

    def _reading(self) -> Iterator[Tags]:
        """Yield the tags of the steps that get a sparse table if the first one does."""
        for _, step in active(self.steps):
            yield get_tags(step)
            if isinstance(step, Erasable) and step._makes_dense:
                return

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            steps = [get_tags(step) for _, step in active(self.steps)]
        except (AttributeError, TypeError, ValueError):  # not steps; fit will say so
            return tags
        if not steps:  # all tags come from the input
            tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.categorical = True
        else:
            first = active(self.steps)[0][1]
            if isinstance(first, Erasable) or Accepts.of(first).documents:
                tags.input_tags = deepcopy(steps[0].input_tags)
                tags.input_tags.sparse = all(step.input_tags.sparse for step in self._reading())
            tags.input_tags.positive_only = steps[0].input_tags.positive_only
            for name in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
                setattr(tags, name, deepcopy(getattr(steps[-1], name)))
            tags.transformer_tags = deepcopy(steps[-1].transformer_tags)
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def make_pipeline(*steps: Any, **others: Any) -> Pipeline:
    """Make a `Pipeline` of estimators, which are named after their types.

    Parameters
    ----------
    *steps : estimators
    **others : `memory`, `transform_input` and `verbose` of scikit-learn
        Ignored, or refused where they would change something.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> from erasable.cluster import KMeans
    >>> from erasable.preprocessing import StandardScaler
    >>> make_pipeline(StandardScaler(), KMeans())
    Pipeline(steps=[('standardscaler', StandardScaler()), ('kmeans', KMeans())])
    """
    return Pipeline(named(steps), **others)


def _wide(rows: Values) -> Values:
    return rows if rows.dtype == object else rows.astype(np.float64, copy=False)

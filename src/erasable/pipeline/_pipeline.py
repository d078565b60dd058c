"""The pipeline: an estimator that is a chain of estimators, learns and forgets as one."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import _name_estimators
from sklearn.preprocessing import FunctionTransformer

from erasable.core.estimator import Erasable
from erasable.core.values import Values
from erasable.pipeline._changes import Change
from erasable.pipeline._interface import Composed
from erasable.pipeline._stages import (
    Link,
    Stage,
    active,
    check_steps,
    compose,
    hands_on,
    plan,
    split,
)

__all__ = ["Pipeline", "make_pipeline"]


class Pipeline(Composed):
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {"steps": [list]}

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    def _check_parts(self) -> None:
        self._check_names(self.steps)
        check_steps(self.steps)

    def _plan(self) -> dict[str, list[Stage]]:
        return {"": plan([(name, self._as_fitted(name, step)) for name, step in self.steps])}

    def _joined_change(self, *, raw: bool) -> Change:
        return self._chain.output_change(raw=raw)

    # -- as a part of another pipeline ---------------------------------------------------------

    @property
    def _parts_refuse_gaps(self) -> bool:
        steps = self._parts()
        return bool(steps) and getattr(steps[0][1], "_parts_refuse_gaps", False)

    @property
    def _asks_by_name(self) -> bool:
        steps = [step for _, step in active(self.steps) if not hands_on(step)]
        return bool(steps) and getattr(steps[0], "_asks_by_name", False)

    @property
    def _hands_on(self) -> bool:
        return all(hands_on(step) for _, step in active(self.steps))

    def _after(self) -> tuple[Link, ...]:
        fitted = self.__dict__.get("_chains")
        stages = plan(self.steps) if fitted is None else fitted[""].stages
        return stages[-1].after if stages else ()

    @property
    def _is_affine(self) -> bool:
        steps = [step for _, step in active(self.steps)]
        return bool(steps) and all(isinstance(s, Erasable) and s._is_affine for s in steps)

    @property
    def _ends_in_map(self) -> bool:
        return not self._is_affine and bool(split(self._after())[1])

    def _affine(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if not self._is_affine:
            return compose(self._chain.last_maps())
        # All steps, also those before a step that reads a table.
        return compose([Link(name, step, learns=True) for name, step in active(self.steps)])

    def _transform_raw(self, rows: Values) -> Values:
        return self._chain.transform(self._read_matrix(rows), raw=True)

    def _transform_mapped(self, rows: Values) -> Values:
        return self._chain.apply_last_maps(rows)

    @classmethod
    def _law_instances(cls) -> list[Self]:
        """Pipelines of every kind, for the tests of the law."""
        from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
        from erasable.preprocessing import MinMaxScaler, StandardScaler

        rows: list[list[Any]] = [
            [StandardScaler(), KMeans(3)],
            [MinMaxScaler(), StandardScaler(with_mean=False), KMeans(2, max_iter=50, tol=1e-3)],
            [StandardScaler(quantize=True), QuantizedKMeans(2)],
            [FunctionTransformer(np.abs), MinMaxScaler(clip=True), "passthrough", KMeans(2)],
            [StandardScaler(), DivideAndConquerKMeans(2), MinMaxScaler()],
        ]
        return [cls(_name_estimators(steps)) for steps in rows]


def make_pipeline(*steps: Any) -> Pipeline:
    """Make a `Pipeline` of estimators, which are named after their types.

    Parameters
    ----------
    *steps : estimators

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
    return Pipeline(_name_estimators(steps))

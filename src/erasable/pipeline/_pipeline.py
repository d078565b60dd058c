"""The pipeline: an estimator that is a chain of estimators, learns and forgets as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from sklearn.pipeline import _name_estimators

from erasable.core.changes import Affine
from erasable.core.estimator import Erasable
from erasable.pipeline._interface import Composed
from erasable.pipeline._layout import Layout, lay_out
from erasable.pipeline._maps import StepMap, compose
from erasable.pipeline._nested import Nested
from erasable.pipeline._nodes import Node, Source
from erasable.pipeline._reading import active, check_steps

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

    def _plan(self, source: Node) -> Layout:
        steps = [(name, self._as_fitted(name, step)) for name, step in active(self.steps)]
        return lay_out(source, source, steps)

    def _first_steps(self) -> Iterator[tuple[str, Any, int]]:
        for name, step in self._parts()[:1]:
            yield name, step, self.n_features_in_

    # -- as a part of another composition ------------------------------------------------------

    @property
    def _checks_gaps(self) -> bool:  # type: ignore[override]
        first = [step for _, step in self._parts()[:1]]
        return any(isinstance(step, Erasable) and step._checks_gaps for step in first)

    @property
    def _asks_by_name(self) -> bool:
        steps = (step for _, step in self._parts())
        acting = [step for step in steps if not (isinstance(step, Nested) and step._hands_on)]
        return bool(acting) and isinstance(acting[0], Nested) and acting[0]._asks_by_name

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
        source = Source()
        return bool(lay_out(source, source, self._parts()).maps)

    def _affine(self) -> Affine:
        # Of all steps, also of those before a step that reads a table.
        return compose(StepMap(step) for _, step in self._parts())


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

"""The pipeline: an estimator that is a chain of estimators, learns and forgets as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import _name_estimators
from sklearn.preprocessing import FunctionTransformer

from erasable.core._book import base_state
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.params import part_params
from erasable.core.records import Attachment
from erasable.pipeline._chain import Chain
from erasable.pipeline._interface import Composed
from erasable.pipeline._stages import active, check_steps, plan

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
    _sign: object

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    # -- learning and forgetting ---------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
    ) -> Self:
        """Let every step learn, one after the other.

        Parameters
        ----------
        X : array-like, frame or Records of shape (n_records, n_features)
            Finite numbers, copied; `Records` are shared instead.
        y : array-like of shape (n_records,), default=None
            Targets, where the last step has any use for them.
        ids : array-like of int or str, or the name of a column, default=None
            Which record each row is. By default a pandas frame's index, or 0..n-1.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together.

        Returns
        -------
        self
            The fitted pipeline. If anything raises, it and its steps are what they were before.
        """
        self._validate_params()
        parts = [part for part in self.get_params().values() if isinstance(part, Erasable)]
        before = [(part, dict(part.__dict__)) for part in parts]
        try:
            return super().fit(X, y, ids=ids, groups=groups)
        except BaseException:
            for part, attributes in before:
                part.__dict__ = attributes
            raise

    def _validate_params(self) -> None:
        super()._validate_params()
        try:
            self._validate_names([name for name, _ in self.steps])
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{' '.join(str(error).split())}; expected a list of (name, estimator) with "
                "different names, without '__'; make_pipeline makes them up"
            ) from None
        check_steps(self.steps)
        for _, step in active(self.steps):
            step._validate_params()

    def _draw_seed(self) -> None:
        for stage in plan(self.steps):
            if stage.learns:
                stage.step._forget_learned()
                stage.step._draw_seed()

    def _minimum_records(self) -> int:
        steps = [step for _, step in active(self.steps) if isinstance(step, Erasable)]
        return max([1, *(step._minimum_records() for step in steps)])

    def _fit_rows(self) -> None:
        assert self._held is not None
        self._sign = object()
        self._chain = self._accelerator = Chain(plan(self.steps))
        self._chain.learn(self._held, self._sign)

    def _delete_checked(self, held: Attachment, rows: NDArray[np.int64]) -> Outcome:
        self._chain.prepare()
        return super()._delete_checked(held, rows)

    def _delete_rows(self, rows: NDArray[np.int64]) -> Outcome:
        outcome, self._changed_rows = self._chain.remove(rows)
        return outcome

    def _reattach(self) -> None:
        assert self._held is not None
        if self._chain.held is not self._held:
            self._chain.attach(self._held)
        self._chain.prepare()
        self._accelerator = self._chain

    # -- what it is ----------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {"steps": {stage.name: _part(stage.step) for stage in self._chain.learners}}

    def _digest_state(self) -> dict[str, Any]:
        record_set = base_state(self)["record_set"]
        digests = {}
        for stage in self._chain.learners:
            stage.step._book.id_set = record_set  # hashed once for all
            digests[stage.name] = stage.step.digest()
        return {"steps": digests}

    def _restore(self, state: dict[str, Any]) -> None:
        self._sign = object()
        self._chain = Chain(plan(self.steps))
        params = part_params(self._book.params["steps"])
        shared = {"n_records": self._book.n_records, "record_set": self._book.id_set}
        for stage in self._chain.learners:
            own = {"params": params[stage.name], **shared}
            stage.step._adopt({**own, **state["steps"][stage.name]}, None)
            stage.step._book.owner = self._sign
        if self._held is not None:
            self._chain.attach(self._held)

    def __getstate__(self) -> dict[str, Any]:
        """Keep the steps' states with the pipeline's own, and their parameters alone in them."""
        if "_book" in self.__dict__:
            self._check_fitted()
        state: dict[str, Any] = super().__getstate__()
        if "_learned" in state:
            state["steps"] = [
                (name, clone(step) if isinstance(step, Erasable) else step)
                for name, step in self.steps
            ]
        return state

    def _check_fitted(self) -> None:
        super()._check_fitted()
        stages, steps = self._chain.stages, active(self.steps)
        for stage, (name, step) in zip(stages, steps, strict=False):
            book = step.__dict__.get("_book") if stage.learns else None
            if stage.step is not step or (stage.learns and getattr(book, "owner", 0) != self._sign):
                raise NotFittedError(
                    f"step {name!r} was replaced, or fitted on its own, since this pipeline was "
                    "fitted; expected it as it was; fit the pipeline again"
                )
        if len(stages) != len(steps):
            raise NotFittedError(
                f"{len(steps)} steps are here and {len(stages)} were fitted; fit the pipeline again"
            )

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


def _part(step: Erasable) -> dict[str, Any]:
    """Return what is a step's own of its state; parameters and records are the pipeline's."""
    names = getattr(step, "feature_names_in_", None)
    return {
        "algorithm_version": step.algorithm_version,
        "feature_names": None if names is None else names.tolist(),
        "n_features": step.n_features_in_,
        "seed": getattr(step, "seed_", None),
        **step._state(),
    }


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

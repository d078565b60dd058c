"""Base of linear models that publish their optimum, rounded to a lattice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from erasable.core._changing import not_its_records
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.classes import check_classes
from erasable.core.deletion import Outcome
from erasable.core.errors import ErasableError, InvalidParameterError, TooFewRecordsError
from erasable.core.params import decode_params
from erasable.core.threads import over_rows
from erasable.core.weighted import Weighted
from erasable.linear_model._logistic_classes import WEIGHTS
from erasable.linear_model._logistic_published import Equations, PublishedModel, most_probable


class LatticeModel(Weighted):
    """Base of linear models whose state is the point of a lattice nearest to their optimum.

    The accelerator finds it: it has the methods of `_logistic_work.LogisticWork`.
    """

    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)
    _takes_map: ClassVar[bool] = True
    _reads_blocks: ClassVar[bool] = True
    _follows_table: ClassVar[bool] = True
    _as_if_dense: ClassVar[bool] = True
    n_jobs: int | None
    _settings: dict[str, Any]
    _shown: Shown

    @abstractmethod
    def _new_work(self, held: Attachment, start: Any = None) -> Any:
        """Make an accelerator, which starts from a published model if there is one."""

    @abstractmethod
    def _is_enough(self, work: Any) -> bool:
        """Tell whether there are records enough for a model."""

    @abstractmethod
    def _as_published(self, state: dict[str, Any]) -> Equations:
        """Return the published model of a state."""

    # -- learning and forgetting ---------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._settings = decode_params(self._info.params)
        self._check_settings()
        work = self._new_work(self._attached())
        self._check_work(work)
        work.open(self.n_jobs)
        work.columns.warn(work.table())
        self._accelerator = work
        self._shown = Shown()
        self._published()

    def _check_settings(self) -> None:
        if not np.isfinite(self._settings["C"]):
            raise InvalidParameterError(
                "C is infinite; expected a finite number, without which there may be no optimum; "
                "pass 1e4 or so"
            )

    def _check_work(self, work: Any) -> None:
        """Raise an error if there is no model of these records."""

    def _update(self, delta: Delta) -> Outcome | None:
        work, n_live = self._accelerator, self._attached().n_live
        self._shown = Shown()
        if delta.table is not None:
            return Outcome("resumed", n_live) if work.resume(delta) else None
        if delta.moved:
            work.take_arrays()
        scanned = work.remove(delta.leaving) if delta.leaving.size else 0
        if delta.arriving.size and not work.add(delta.arriving):
            return None
        return Outcome("updated", scanned and n_live, {"columns_scanned": scanned})

    def _published(self) -> Any:
        """Return the model, which is found out when it is needed."""
        self._check_fitted()
        if self._shown.published is None:
            self._shown.published = self._accelerator.publish(self._map, self.n_jobs)
        return self._shown.published

    # -- keeping -------------------------------------------------------------------------------

    def _restore(self, state: dict[str, Any]) -> None:
        self._settings = decode_params(self._info.params)
        self._shown = Shown(self._as_published(state))

    def _reattach(self) -> None:
        held, mine, same = self._attached(), self._published(), False
        try:
            work = self._new_work(held, mine)
            if self._is_enough(work):
                same = held.vouched or work.publish(self._map, self.n_jobs).equals(mine)
        except ErasableError:
            same = False
        if not same:
            raise not_its_records(self)
        self._accelerator = work

    # -- what it is ----------------------------------------------------------------------------

    def _equations(self) -> tuple[Floats, Floats]:
        """Return coefficients and intercepts for rows as everybody has them."""
        found = self._published()
        if self._shown.equations is None:
            self._shown.equations = found.equations(self._map)
        return self._shown.equations

    def _of_scores(self, X: Any, function: Callable[[Floats], NDArray[Any]]) -> NDArray[Any]:
        """Return a function of the scores of every row, in one dimension if there is but one."""
        matrix, found, mapped = self._read_matrix(X), self._published(), self._comes_mapped(X)
        slopes, constants = self._equations() if mapped else (np.zeros((0, 0)), np.zeros(0))

        def of_block(rows: slice) -> NDArray[Any]:
            some = matrix if matrix.shape[0] == rows.stop - rows.start else matrix[rows]
            scores = some @ slopes.T + constants if mapped else found.logits(some)
            return function(scores[:, 0] if scores.shape[1] == 1 else scores)

        parts = list(over_rows(of_block, matrix.shape[0], self.n_jobs))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LatticeClassifier(ClassifierMixin, LatticeModel):
    """Base of those that are classifiers, with weights of classes."""

    classes: Any

    def _is_enough(self, work: Any) -> bool:
        return bool(work.training.n_used >= 2)

    def _check_settings(self) -> None:
        super()._check_settings()
        given = self._settings["class_weight"]
        if isinstance(given, Mapping):
            for weight in given.values():
                number = float(weight) if isinstance(weight, Real) else np.nan
                if not (number == 0 or WEIGHTS[0] <= number <= WEIGHTS[1]):
                    raise InvalidParameterError(
                        "class_weight= holds something that is neither 0 nor a number from 2**-480 "
                        "to 2**480; expected a weight for each class; pass {label: weight}"
                    )

    def _check_work(self, work: Any) -> None:
        self._refuse_few(work.training.n_used, "the records have", "fit on records of more classes")
        given = self._settings["class_weight"]
        if not isinstance(given, Mapping) or self._settings["classes"] is None:
            return
        strange = len(set(given) - set(work.training.classes.labels.tolist()))
        if strange:
            raise InvalidParameterError(
                f"class_weight= has {strange} labels that are not in classes=; expected no "
                "others; leave them out"
            )

    def _check_targets(self, y: Any) -> None:
        check_classes(y, self.classes)

    def _check_deletion(self, rows: Ints) -> None:
        intro = f"deleting {rows.size} records would leave"
        self._refuse_few(self._accelerator.training.left(rows), intro, "delete fewer")

    def _refuse_few(self, n_classes: int, intro: str, advice: str) -> None:
        if n_classes >= 2:
            return
        weights = "all weights are zero" if n_classes == 0 else "the data contains only one class"
        raise TooFewRecordsError(
            f"{intro} {n_classes} class{'' if n_classes == 1 else 'es'} with a weight; "
            f"{type(self).__name__} needs at least 2 ({weights}); {advice}"
        )

    def _state(self) -> dict[str, Any]:
        found = self._published()
        return {
            "classes": {
                "labels": found.labels,
                "counts": found.counts,
                "taught": found.used_counts,
            },
            "columns": {"origin": found.origin, "top": found.top},
            "coefficients": found.values,
        }

    def _as_published(self, state: dict[str, Any]) -> PublishedModel:
        classes = state["classes"]
        return PublishedModel(
            labels=classes["labels"],
            counts=classes["counts"],
            used_counts=classes["taught"],
            values=state["coefficients"],
            **state["columns"],
        )

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        self._check_fitted()
        return np.array((self._shown.published or self._accelerator.training.classes).labels)

    @property
    def coef_(self) -> Floats:
        """Coefficients, a row for each class, or one for two classes."""
        return self._equations()[0].copy()

    @property
    def intercept_(self) -> Floats:
        """Logits where all features are 0."""
        return self._equations()[1].copy()

    # -- predictions ---------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of every row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            With two classes, the score of the second; -inf for a class without weight.
        """
        return self._of_scores(X, lambda scores: scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the best class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        predicted: NDArray[Any] = self.classes_[self._of_scores(X, most_probable)]
        return predicted


class Shown:
    """Cache until the next deletion: a prediction changes no attribute of an estimator."""

    def __init__(self, published: Any = None) -> None:
        self.published = published
        self.equations: tuple[Floats, Floats] | None = None

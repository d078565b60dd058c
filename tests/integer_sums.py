"""The smallest estimators that keep the law, for tests of what all estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets

from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import MagnitudeError
from erasable.core.estimator import Erasable


class IntegerSums(OneToOneFeatureMixin, TransformerMixin, Erasable):
    """Sums of the columns, each value rounded to an integer; and the record that draws lowest."""

    def __init__(self, least: int = 1, random_state: Any = None) -> None:
        self.least = least
        self.random_state = random_state

    def _minimum_records(self) -> int:
        return self.least

    def _fit_rows(self) -> None:
        matrix = self._held.records.matrix[self._held.live]
        if np.any(np.abs(matrix) > 2.0**40):
            raise MagnitudeError("values above 2**40; expected smaller ones; divide them")
        self.sums_ = _rounded(matrix)
        self._choose()

    def _update(self, delta: Delta) -> Outcome:
        matrix, n = self._held.records.matrix, delta.leaving.size + delta.arriving.size
        self.sums_ = self.sums_ - _rounded(matrix[delta.leaving]) + _rounded(matrix[delta.arriving])
        self._choose()
        return Outcome("updated", n, {"examined": n})

    def _choose(self) -> None:
        keys = self._record_keys()
        self.lowest_ = int(keys[self._held.live].min())

    def _state(self) -> dict[str, Any]:
        return {"sums": self.sums_, "draws": {"lowest": self.lowest_}}

    def _restore(self, state: dict[str, Any]) -> None:
        self.sums_ = state["sums"]
        self.lowest_ = state["draws"]["lowest"]

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Divide by the sums."""
        return self._read_matrix(X) / np.maximum(np.abs(self.sums_), 1)


class PlainSums(Erasable):
    """Sums, without a tape and without any method but `predict`."""

    _fields = ("sums_",)

    def _fit_rows(self) -> None:
        self.sums_ = _rounded(self._held.records.matrix[self._held.live])

    def _update(self, delta: Delta) -> Outcome:
        matrix = self._held.records.matrix
        self.sums_ = self.sums_ - _rounded(matrix[delta.leaving]) + _rounded(matrix[delta.arriving])
        return Outcome()

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Add up the rows and the sums."""
        return self._read_matrix(X).sum(axis=1) + self.sums_.sum()


class MajorityClass(ClassifierMixin, Erasable):
    """Counts of classes, that it cannot do without a target."""

    _fields = "classes_", "counts_"

    def _fit_rows(self) -> None:
        target = self._held.records.y[self._held.live]
        check_classification_targets(target)
        self.classes_, self.counts_ = np.unique(target, return_counts=True)

    def _update(self, delta: Delta) -> Outcome:
        self._fit_rows()
        return Outcome("refit", self._held.n_live)

    def predict(self, X: Any) -> NDArray[Any]:
        """Answer with the class that most records have."""
        n_rows = len(self._read_matrix(X))
        return np.repeat(self.classes_[self.counts_.argmax()], n_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class SortedValues(PlainSums):
    """Sums, with an accelerator: the live values of the first column, in order."""

    def _fit_rows(self) -> None:
        super()._fit_rows()
        self._reattach()

    def _reattach(self) -> None:
        self._accelerator = sorted(self._held.records.matrix[self._held.live, 0].tolist())

    def _update(self, delta: Delta) -> Outcome:
        matrix = self._held.records.matrix
        for value in matrix[delta.leaving, 0].tolist():
            self._accelerator.remove(value)
        self._accelerator = sorted([*self._accelerator, *matrix[delta.arriving, 0].tolist()])
        return super()._update(delta)


def _rounded(matrix: NDArray[Any]) -> NDArray[np.int64]:
    return np.rint(matrix).astype(np.int64).sum(axis=0)

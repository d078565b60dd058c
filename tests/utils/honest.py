"""Two small estimators that keep the law, to hold against those of `broken.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import MagnitudeError
from erasable.core.estimator import Erasable


class Totals(Erasable):
    """Correctly rounded totals of each column, and a record drawn by a race of uniforms."""

    def __init__(self, random_state: Any = None, scale: float = 1.0) -> None:
        self.random_state = random_state
        self.scale = scale

    def _minimum_records(self) -> int:
        return 2

    def _live(self) -> NDArray[np.float64]:
        return self._held.records.matrix[self._held.live].astype(np.float64) + 0.0  # no -0.0

    def _fit_rows(self) -> None:
        matrix = self._live()
        self._refuse_large(matrix)
        self.count_ = len(matrix)
        self.totals_ = np.array([math.fsum(column) * self.scale for column in matrix.T])
        keys = self._tape.record_keys(self._held.ids)
        self.drawn_ = matrix[np.argmin(self._tape.uniform(keys, 1, 0))]

    def _refuse_large(self, matrix: NDArray[np.float64]) -> None:
        if np.abs(matrix).max() > 1e300:
            raise MagnitudeError("values above 1e300; expected smaller ones; scale them down")

    def _update(self, delta: Delta) -> Outcome:
        self._fit_rows()
        return Outcome("updated", rows_touched=self.count_, counts={"columns": len(self.totals_)})

    def _state(self) -> dict[str, Any]:
        return {"count": self.count_, "totals": self.totals_, "drawn": {"record": self.drawn_}}

    def _restore(self, state: dict[str, Any]) -> None:
        self.count_ = state["count"]
        self.totals_ = state["totals"]
        self.drawn_ = state["drawn"]["record"]

    def predict(self, X: Any) -> NDArray[np.int64]:
        return np.sum(self._read_matrix(X) > self.totals_ / self.count_, axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        return float(np.mean(self.predict(X)))

    @property
    def labels_(self) -> NDArray[np.int64]:
        self._attached()
        return self.predict(self._live())


class ClassTotals(ClassifierMixin, Erasable):
    """Totals of each class: a classifier, so that targets reach the checks."""

    _fields = "classes_", "totals_"

    def _fit_rows(self) -> None:
        records, live = self._held.records, self._held.live
        matrix, target = records.matrix[live].astype(np.float64), records.y[live]
        if np.abs(matrix).max() > 1e300:
            raise MagnitudeError("values above 1e300; expected smaller ones; scale them down")
        self.classes_ = np.unique(target)
        self.totals_ = np.array(
            [[math.fsum(column) for column in matrix[target == name].T] for name in self.classes_]
        )

    def _update(self, delta: Delta) -> Outcome:
        self._fit_rows()
        return Outcome("refit")

    def predict(self, X: Any) -> NDArray[Any]:
        gaps = np.abs(self._read_matrix(X)[:, None, :] - self.totals_[None, :, :])
        return self.classes_[np.argmin(gaps.max(axis=2), axis=1)]

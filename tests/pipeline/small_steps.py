"""Small steps of every kind, with which pipelines are put together in the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from erasable.core.changes import Delta, TableChange
from erasable.core.deletion import Outcome
from erasable.core.estimator import Erasable


class Rarity(TransformerMixin, Erasable):
    """Row-wise: multiplies a column by how rare it is to be non-zero, in powers of two.

    A deletion changes the rows that are non-zero in a column whose rarity changes.
    """

    _fields = "counts_", "n_"

    def _fit_rows(self) -> None:
        self._count(self._held.records.matrix[self._held.live])

    def _count(self, matrix: NDArray[Any]) -> None:
        self.counts_ = np.count_nonzero(matrix, axis=0)
        self.n_ = len(matrix)

    _adds = False

    def _update(self, delta: Delta) -> Outcome:
        rows = delta.leaving
        matrix, live = self._held.records.matrix, self._held.live_rows()
        before = self.rarity_
        self.counts_ = self.counts_ - np.count_nonzero(matrix[rows], axis=0)
        self.n_ -= len(rows)
        changed = matrix[live][:, self.rarity_ != before].any(axis=1)
        self._change = TableChange(live[changed])
        return Outcome("updated", counts={"rows_changed": int(changed.sum())})

    @property
    def rarity_(self) -> NDArray[np.int64]:
        return np.array(
            [1 + self.n_.bit_length() - int(count).bit_length() for count in self.counts_]
        )

    def transform(self, X: Any) -> NDArray[Any]:
        return self._read_matrix(X) * self.rarity_


class Sums(TransformerMixin, Erasable):
    """Exact sums of whole numbers, which follow rows that change; says what it changed itself."""

    _fields = ("sums_",)

    def _fit_rows(self) -> None:
        self.sums_ = self._held.records.matrix[self._held.live].sum(axis=0)

    _follows_table = True

    def _update(self, delta: Delta) -> Outcome | None:
        matrix, n_followed = self._held.records.matrix, 0
        if delta.table is not None:
            if delta.before is None or delta.table.rows is None:
                return None
            changed = delta.table.rows
            self.sums_ = self.sums_ + matrix[changed].sum(axis=0) - delta.before.sum(axis=0)
            n_followed = len(changed)
        self.sums_ = self.sums_ - matrix[delta.leaving].sum(axis=0)
        self.sums_ = self.sums_ + matrix[delta.arriving].sum(axis=0)
        counts = {"rows_followed": n_followed} if delta.table is not None else {}
        return Outcome("updated", n_followed, counts)

    def transform(self, X: Any) -> NDArray[Any]:
        return self._read_matrix(X) + self.sums_

    def predict(self, X: Any) -> NDArray[Any]:
        return self._read_matrix(X) @ np.ones(len(self.sums_)) > 0


class Occasional(TransformerMixin, Erasable):
    """Keeps the columns that are not constant: the width of its output may change."""

    _fields = ("kept_",)

    def _fit_rows(self) -> None:
        matrix = self._held.records.matrix[self._held.live]
        self.kept_ = np.flatnonzero((matrix != matrix[0]).any(axis=0))

    def _update(self, delta: Delta) -> Outcome:
        before = self.kept_
        self._fit_rows()
        self._change = TableChange(columns=np.array([not np.array_equal(before, self.kept_)]))
        return Outcome("updated")

    def transform(self, X: Any) -> NDArray[Any]:
        return self._read_matrix(X)[:, self.kept_]


class Failing(Sums):
    """Raises at the deletions it is told to, after having changed something."""

    failures = 0

    def _update(self, delta: Delta) -> Outcome | None:
        outcome = super()._update(delta)
        if Failing.failures:
            Failing.failures -= 1
            raise KeyboardInterrupt
        return outcome

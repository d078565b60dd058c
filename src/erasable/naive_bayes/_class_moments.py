"""Exact first and second moments of the rows of every class, with weights.

The law it keeps: the grid and the sums are functions of the set of live rows. With weights, a row
is added as often as its weight has quanta; the moments of the rows as they are, of which
`epsilon_` is made, are summed besides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _unit_kernels as kernels
from erasable.core._grid_kernels import BITS
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.class_moments import ClassMoments, LabelledRows

__all__ = ["WeightedMoments"]


@dataclass(eq=False, slots=True)
class WeightedMoments(ClassMoments):
    """The same with weights.

    Attributes
    ----------
    limbs : ndarray of shape (5, n_classes, n_features), int64
        Sums of ``u m``, in two limbs of 26 bits, and of ``u m m``, in three; high ones first.
        Here m is a gridded value in quanta, and u the weight of its row.

    Examples
    --------
    >>> rows, weights = np.array([[1.0], [4.0], [7.0]]), np.array([3.0, 1.0, 2.0])
    >>> from erasable.core.classes import Classes
    >>> classes = Classes.fit(np.array([5, 5, 6]), np.arange(3))
    >>> from erasable.naive_bayes._weights import ClassWeights
    >>> of_classes = ClassWeights.fit(weights, np.arange(3), classes)
    >>> table = LabelledRows(rows, classes, lambda: np.arange(3), of_classes)
    >>> moments = WeightedMoments.fit(table)
    >>> moments.means(of_classes.sums).tolist(), moments.variances(of_classes.sums).tolist()
    ([[1.75], [7.0]], [[1.6875], [0.0]])
    """

    limbs: Ints = field(default_factory=lambda: np.zeros((5, 0, 0), dtype=np.int64))

    @classmethod
    def fit(cls, table: LabelledRows) -> Self:
        """Sum the live rows."""
        plain = ClassMoments.fit(table)
        shape = 5, table.classes.labels.size, table.matrix.shape[1]
        made = cls(plain.grid, plain.moments, np.zeros(shape, dtype=np.int64))
        made._add(table, table.live_rows(), 1)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any], counts: Ints) -> Self:
        """Rebuild them from what `state` returned."""
        plain = ClassMoments.from_state(state, counts)
        return cls(plain.grid, plain.moments, state["limbs"])

    def state(self) -> dict[str, Any]:
        """Return the grid, the sums with a line for each class, and those with weights."""
        return {**ClassMoments.state(self), "limbs": self.limbs}

    def remove(self, table: LabelledRows, rows: Ints) -> None:
        """Take rows out of the sums of their classes."""
        ClassMoments.remove(self, table, rows)
        self._add(table, rows, -1)

    def keep(self, kept: Flags) -> None:
        """Drop classes that are gone."""
        ClassMoments.keep(self, kept)
        self.limbs = self.limbs[:, kept]

    def means(self, totals: Ints) -> Floats:
        """Return the weighted mean of each column in each class; 0 in a class that weighs 0."""
        some = totals > 0
        means = np.zeros(self.limbs.shape[1:])
        offsets = (_joined(self.limbs[:2, some]) / _column(totals[some])).astype(np.float64)
        means[some] = self.grid.origin + offsets * self.grid.quantum
        return means

    def variances(self, totals: Ints) -> Floats:
        """Return the weighted variance of each column in each class; 0 in one that weighs 0."""
        some = totals > 0
        variances = np.zeros(self.limbs.shape[1:])
        first, second = _joined(self.limbs[:2, some]), _joined(self.limbs[2:, some])
        weight = _column(totals[some])
        spread = (weight * second - first * first) / (weight * weight)
        variances[some] = spread.astype(np.float64) * self.grid.quantum * self.grid.quantum
        return variances

    def _sum_again(self, table: LabelledRows, live: Ints, columns: Flags) -> None:
        ClassMoments._sum_again(self, table, live, columns)
        self.limbs[:, :, columns] = 0
        self._add(table, live, 1, columns)

    def _add(
        self, table: LabelledRows, rows: Ints, sign: int, columns: Flags | None = None
    ) -> None:
        grid, matrix = self.grid, table.matrix
        if columns is None:
            columns = np.ones(matrix.shape[1], dtype=np.bool_)
        per_column = columns, grid.origin, grid.magic, np.ldexp(1.0, BITS - grid.top)
        units = table.units(rows)
        kernels.add_moments(matrix, rows, table.codes, units, *per_column, sign, self.limbs)


def _joined(limbs: Ints) -> NDArray[Any]:
    """Put limbs together, the high one first, into Python's integers, which are exact.

    Examples
    --------
    >>> _joined(np.array([[1], [5]])).tolist()
    [67108869]
    """
    total: NDArray[Any] = limbs[0].astype(object)
    for limb in limbs[1:]:
        total = total * kernels.LIMB + limb.astype(object)
    return total


def _column(totals: Ints) -> NDArray[Any]:
    column: NDArray[Any] = totals.astype(object)[:, np.newaxis]
    return column

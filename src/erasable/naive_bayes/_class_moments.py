"""Exact first and second moments of the rows of every class, with and without weights.

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
from erasable.core.classes import Classes
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.values import Values
from erasable.naive_bayes._base import Codes, Floats, Ints, LiveRows
from erasable.naive_bayes._weights import ClassWeights

__all__ = ["ClassMoments", "WeightedMoments"]


@dataclass(eq=False, slots=True)
class ClassMoments:
    """Exact moments of the rows of every class, on one grid.

    Attributes
    ----------
    grid : Grid
        Of the rows of all classes.
    moments : list of Moments
        One for each class.
    """

    grid: Grid
    moments: list[Moments]

    @classmethod
    def fit(
        cls,
        matrix: Values,
        live: Ints,
        classes: Classes,
        weights: ClassWeights | None,
        names: Any,
    ) -> Self:
        """Sum the live rows."""
        grid = Grid.fit(matrix, live, names=names)
        rows = _rows_by_class(classes.codes, live, classes.labels.size)
        return cls(grid, [Moments.fit(grid, matrix, of_class) for of_class in rows])

    @classmethod
    def from_state(cls, state: dict[str, Any], counts: Ints) -> Self:
        """Rebuild them from what `state` returned."""
        grid = Grid.from_state(state["grid"])
        sums = state["moments"]
        return cls(
            grid,
            [
                Moments.from_state(grid, n, {name: lines[c] for name, lines in sums.items()})
                for c, n in enumerate(counts.tolist())
            ],
        )

    def state(self) -> dict[str, Any]:
        """Return the grid, and the sums with a line for each class."""
        each = [moments.state() for moments in self.moments]
        sums = {name: np.stack([lines[name] for lines in each]) for name in each[0]}
        return {"grid": self.grid.state(), "moments": sums}

    def remove(
        self, matrix: Values, rows: Ints, codes: Codes, weights: ClassWeights | None
    ) -> None:
        """Take rows out of the sums of their classes."""
        if rows.size == 1:
            self.moments[codes[rows[0]]].remove(matrix, rows)
            return
        for c, of_class in enumerate(_rows_by_class(codes, rows, len(self.moments))):
            if of_class.size:
                self.moments[c].remove(matrix, of_class)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop classes that are gone."""
        self.moments = [self.moments[c] for c in np.flatnonzero(kept).tolist()]

    def settle(
        self,
        matrix: Values,
        rows: Ints,
        codes: Codes,
        live_rows: LiveRows,
        weights: ClassWeights | None,
    ) -> int:
        """Bring the grid up to date, and sum the columns again whose grid has changed."""
        change = self.grid.remove(matrix, rows, live_rows)
        if change.exponents:
            self._sum_again(matrix, live_rows(), codes, weights, change.columns)
        return int(change.extremes.sum())

    def total(self) -> Moments:
        """Return the moments of all rows, whatever they weigh."""
        n_rows = sum(moments.n_rows for moments in self.moments)
        sums = np.sum([moments.sums for moments in self.moments], axis=0)
        return Moments(self.grid, n_rows, sums)

    def means(self, totals: Ints) -> Floats:
        """Return the mean of each column in each class; 0 where `totals`, its weight, is 0."""
        zero = np.zeros(self.grid.top.size)
        return np.stack([each.mean() if each.n_rows else zero for each in self.moments])

    def variances(self, totals: Ints) -> Floats:
        """Return the variance of each column in each class; 0 where `totals` is 0."""
        zero = np.zeros(self.grid.top.size)
        return np.stack([each.variance() if each.n_rows else zero for each in self.moments])

    def _sum_again(
        self,
        matrix: Values,
        live: Ints,
        codes: Codes,
        weights: ClassWeights | None,
        columns: NDArray[np.bool_],
    ) -> None:
        rows_left = _rows_by_class(codes, live, len(self.moments))
        for moments, of_class in zip(self.moments, rows_left, strict=True):
            moments.rederive(matrix, of_class, columns)


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
    >>> classes = Classes.fit(np.array([5, 5, 6]), np.arange(3))
    >>> of_classes = ClassWeights.fit(weights, np.arange(3), classes)
    >>> moments = WeightedMoments.fit(rows, np.arange(3), classes, of_classes, None)
    >>> moments.means(of_classes.sums).tolist(), moments.variances(of_classes.sums).tolist()
    ([[1.75], [7.0]], [[1.6875], [0.0]])
    """

    limbs: Ints = field(default_factory=lambda: np.zeros((5, 0, 0), dtype=np.int64))

    @classmethod
    def fit(
        cls,
        matrix: Values,
        live: Ints,
        classes: Classes,
        weights: ClassWeights | None,
        names: Any,
    ) -> Self:
        """Sum the live rows."""
        plain = ClassMoments.fit(matrix, live, classes, None, names)
        limbs = np.zeros((5, classes.labels.size, matrix.shape[1]), dtype=np.int64)
        made = cls(plain.grid, plain.moments, limbs)
        made._add(matrix, live, classes.codes, weights, 1)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any], counts: Ints) -> Self:
        """Rebuild them from what `state` returned."""
        plain = ClassMoments.from_state(state, counts)
        return cls(plain.grid, plain.moments, state["limbs"])

    def state(self) -> dict[str, Any]:
        """Return the grid, the sums with a line for each class, and those with weights."""
        return {**ClassMoments.state(self), "limbs": self.limbs}

    def remove(
        self, matrix: Values, rows: Ints, codes: Codes, weights: ClassWeights | None
    ) -> None:
        """Take rows out of the sums of their classes."""
        ClassMoments.remove(self, matrix, rows, codes, weights)
        self._add(matrix, rows, codes, weights, -1)

    def keep(self, kept: NDArray[np.bool_]) -> None:
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

    def _sum_again(
        self,
        matrix: Values,
        live: Ints,
        codes: Codes,
        weights: ClassWeights | None,
        columns: NDArray[np.bool_],
    ) -> None:
        ClassMoments._sum_again(self, matrix, live, codes, weights, columns)
        self.limbs[:, :, columns] = 0
        self._add(matrix, live, codes, weights, 1, columns)

    def _add(
        self,
        matrix: Values,
        rows: Ints,
        codes: Codes,
        weights: ClassWeights | None,
        sign: int,
        columns: NDArray[np.bool_] | None = None,
    ) -> None:
        assert weights is not None
        grid = self.grid
        if columns is None:
            columns = np.ones(matrix.shape[1], dtype=np.bool_)
        per_column = columns, grid.origin, grid.magic, np.ldexp(1.0, BITS - grid.top)
        units = weights.units(rows)
        kernels.add_moments(matrix, rows, codes, units, *per_column, sign, self.limbs)


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


def _rows_by_class(codes: Codes, rows: Ints, n_classes: int) -> list[Ints]:
    """Sort rows into classes, ascending in each.

    Examples
    --------
    >>> _rows_by_class(np.array([1, 0, 1], dtype=np.int32), np.arange(3), 2)
    [array([1]), array([0, 2])]
    """
    own = codes[rows]
    narrow = own.astype(np.uint16) if n_classes < 2**16 else own  # sorted in linear time
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(own, minlength=n_classes))
    return np.split(rows[order], ends[:-1])

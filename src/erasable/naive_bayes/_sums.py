"""Exact sums of non-negative values by class, of dense and of sparse rows.

The law it keeps: the sums, and the grid on which the values are read, are functions of the set of
live rows, and the same for a dense matrix and a sparse one of the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core import _class_kernels as kernels
from erasable.core import _unit_kernels as unit_kernels
from erasable.core._sparse_kernels import add_to_groups
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.class_moments import LabelledRows
from erasable.core.sparse import parts
from erasable.naive_bayes._magnitudes import TopGrid

__all__ = ["ClassSums", "WeightedSums"]


@dataclass(eq=False, slots=True)
class ClassSums:
    """Sums of the gridded values of every column, a line for each class.

    Attributes
    ----------
    grid : TopGrid
        Of the rows of all classes.
    sums : ndarray of shape (n_classes, n_features), float64
        Integers, exact, in quanta.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [2.0, 0.5], [0.0, 4.0]])
    >>> from erasable.core.classes import Classes
    >>> classes = Classes.fit(np.array(["a", "b", "b"], dtype=object), np.arange(3))
    >>> table = LabelledRows(rows, classes, lambda: np.flatnonzero(classes.codes >= 0))
    >>> sums = ClassSums.fit(table)
    >>> sums.counts(1.0).tolist()
    [[1.0, 0.0], [2.0, 4.5]]
    >>> gone = np.array([2])
    >>> sums.remove(table, gone)
    >>> _ = classes.remove(gone)
    >>> sums.settle(table, gone)
    1
    >>> sums.counts(1.0).tolist()
    [[1.0, 0.0], [2.0, 0.5]]
    """

    grid: TopGrid
    sums: NDArray[Any]

    @classmethod
    def fit(cls, table: LabelledRows) -> Self:
        """Sum the live rows, which hold no negative values."""
        matrix, live = table.matrix, table.live_rows()
        made = cls(
            TopGrid.fit(matrix, live), cls._zeros(table.classes.labels.size, matrix.shape[1])
        )
        made._add(table, live, 1)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild them from what `state` returned."""
        return cls(TopGrid.from_top(state["grid"]["top"]), state["sums"])

    def state(self) -> dict[str, Any]:
        """Return the grid, and the sums in quanta."""
        return {"grid": {"top": self.grid.top}, "sums": self.sums}

    def counts(self, quantum: float) -> Floats:
        """Return the sums as they are to be read, where a row that counts once weighs `quantum`."""
        counts: Floats = self.sums * self.grid.quantum
        return counts

    def remove(self, table: LabelledRows, rows: Ints) -> None:
        """Take rows out of the sums of their classes."""
        self._add(table, rows, -1)

    def keep(self, kept: Flags) -> None:
        """Drop classes that are gone."""
        self.sums = self.sums[kept]

    def settle(self, table: LabelledRows, rows: Ints) -> int:
        """Bring the grid up to date, and sum the columns again whose grid has changed."""
        columns = self.grid.remove(table.matrix, rows, table.live_rows)
        if columns is None:
            return 0
        self.sums[..., columns] = 0
        self._add_columns(table, table.live_rows(), columns)
        return int(columns.sum())

    @staticmethod
    def _zeros(n_classes: int, n_features: int) -> NDArray[Any]:
        return np.zeros((n_classes, n_features))

    def _add(self, table: LabelledRows, rows: Ints, sign: int) -> None:
        grid, matrix = self.grid, table.matrix
        codes, magic, per_quantum = table.codes, grid.magic, grid.per_quantum
        if issparse(matrix):
            add_to_groups(*parts(matrix), rows, codes, magic, per_quantum, float(sign), self.sums)
        else:
            kernels.add_rows(matrix, rows, codes, magic, per_quantum, float(sign), self.sums)

    def _add_columns(self, table: LabelledRows, live: Ints, columns: Flags) -> None:
        magic, per_quantum = self.grid.magic, self.grid.per_quantum
        matrix, codes = table.matrix, table.codes
        if issparse(matrix):
            kernels.add_columns_sparse(
                *parts(matrix), live, codes, columns, magic, per_quantum, self.sums
            )
        else:
            for j in np.flatnonzero(columns).tolist():
                kernels.add_column(matrix, live, codes, j, magic[j], per_quantum[j], self.sums)


class WeightedSums(ClassSums):
    """Sums to which a row is added as often as its weight has quanta.

    `sums` are int64 of shape (2, n_classes, n_features): limbs of 26 bits, high and low.
    """

    __slots__ = ()

    def counts(self, quantum: float) -> Floats:
        """Return the sums, rounded once."""
        high, low = self.sums
        counts: Floats = (high * float(unit_kernels.LIMB) + low) * self.grid.quantum * quantum
        return counts

    def keep(self, kept: Flags) -> None:
        """Drop classes that are gone."""
        self.sums = self.sums[:, kept]

    @staticmethod
    def _zeros(n_classes: int, n_features: int) -> NDArray[Any]:
        return np.zeros((2, n_classes, n_features), dtype=np.int64)

    def _add(self, table: LabelledRows, rows: Ints, sign: int) -> None:
        self._add_some(table, rows, np.ones(table.matrix.shape[1], dtype=np.bool_), sign)

    def _add_columns(self, table: LabelledRows, live: Ints, columns: Flags) -> None:
        self._add_some(table, live, columns, 1)

    def _add_some(self, table: LabelledRows, rows: Ints, columns: Flags, sign: int) -> None:
        grid, matrix = self.grid, table.matrix
        units = table.units(rows)
        codes, magic, per_quantum = table.codes, grid.magic, grid.per_quantum
        if issparse(matrix):
            unit_kernels.add_rows_sparse(
                *parts(matrix), rows, codes, units, columns, magic, per_quantum, sign, self.sums
            )
        else:
            unit_kernels.add_rows(
                matrix, rows, codes, units, columns, magic, per_quantum, sign, self.sums
            )

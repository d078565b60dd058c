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
from erasable.core._sparse_kernels import add_to_groups
from erasable.core.classes import Classes
from erasable.core.sparse import parts
from erasable.core.values import Values
from erasable.naive_bayes._base import Codes, Floats, Ints, LiveRows
from erasable.naive_bayes._tops import TopGrid

__all__ = ["ClassSums"]


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
    >>> classes = Classes.fit(np.array(["a", "b", "b"], dtype=object), np.arange(3))
    >>> sums = ClassSums.fit(rows, np.arange(3), classes)
    >>> sums.counts().tolist()
    [[1.0, 0.0], [2.0, 4.5]]
    >>> gone = np.array([2])
    >>> sums.remove(rows, gone, classes.codes)
    >>> sums.settle(rows, gone, classes.codes, lambda: np.arange(2))
    1
    >>> sums.counts().tolist()
    [[1.0, 0.0], [2.0, 0.5]]
    """

    grid: TopGrid
    sums: Floats

    @classmethod
    def fit(cls, matrix: Values, live: Ints, classes: Classes) -> Self:
        """Sum the live rows, which hold no negative values."""
        made = cls(TopGrid.fit(matrix, live), np.zeros((classes.labels.size, matrix.shape[1])))
        made._add(matrix, live, classes.codes, 1.0)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild them from what `state` returned."""
        return cls(TopGrid.from_top(state["grid"]["top"]), state["sums"])

    def state(self) -> dict[str, Any]:
        """Return the grid, and the sums in quanta."""
        return {"grid": {"top": self.grid.top}, "sums": self.sums}

    def counts(self) -> Floats:
        """Return the sums as they are to be read."""
        return self.sums * self.grid.quantum

    def remove(self, matrix: Values, rows: Ints, codes: Codes) -> None:
        """Take rows out of the sums of their classes."""
        self._add(matrix, rows, codes, -1.0)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop classes that are gone."""
        self.sums = self.sums[kept]

    def settle(self, matrix: Values, rows: Ints, codes: Codes, live_rows: LiveRows) -> int:
        """Bring the grid up to date, and sum the columns again whose grid has changed."""
        columns = self.grid.remove(matrix, rows, live_rows)
        if columns is None:
            return 0
        live, magic, per_quantum = live_rows(), self.grid.magic, self.grid.per_quantum
        self.sums[:, columns] = 0.0
        if issparse(matrix):
            kernels.add_columns_sparse(
                *parts(matrix), live, codes, columns, magic, per_quantum, self.sums
            )
        else:
            for j in np.flatnonzero(columns).tolist():
                kernels.add_column(matrix, live, codes, j, magic[j], per_quantum[j], self.sums)
        return int(columns.sum())

    def _add(self, matrix: Values, rows: Ints, codes: Codes, sign: float) -> None:
        magic, per_quantum = self.grid.magic, self.grid.per_quantum
        if issparse(matrix):
            add_to_groups(*parts(matrix), rows, codes, magic, per_quantum, sign, self.sums)
        else:
            kernels.add_rows(matrix, rows, codes, magic, per_quantum, sign, self.sums)

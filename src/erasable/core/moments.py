"""Exact first and second moments of the columns of a matrix.

The law it keeps: the sums are functions of the set of rows alone. They are integers held
exactly, so adding and removing rows commute and undo each other, and the mean and variance are
pure functions of the sums, computed in double-double in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _moment_kernels as kernels
from erasable.core._grid_kernels import BITS, long_rows, which
from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.grid import Grid

__all__ = ["Moments"]


@dataclass(eq=False, slots=True)
class Moments:
    """Count, sum and sum of squares of gridded columns, to which rows are added or taken out.

    Attributes
    ----------
    grid : Grid
        The grid on which the rows are read; shared, not copied.
    n_rows : int
        How many rows are summed.
    sums : ndarray of shape (4, n_features), float64
        Integers, exact, in quanta: the sums of m, and of h h, h l and l l, where a gridded value
        is ``m = h 2**13 + l`` quanta and h is the nearest integer to ``m / 2**13``. The last
        three are never combined: a combined sum of squares may need 79 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.grid import Grid
    >>> from erasable.core.moments import Moments
    >>> rows = np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]])
    >>> moments = Moments.fit(Grid.fit(rows), rows)
    >>> moments.mean(), moments.variance()
    (array([ 3., 20.]), array([  4.66666667, 200.        ]))
    >>> moments.remove(rows, np.array([1]))
    >>> moments.mean(), moments.variance()
    (array([ 3.5, 25. ]), array([  6.25, 225.  ]))
    """

    grid: Grid
    n_rows: int
    sums: Floats

    @classmethod
    def fit(cls, grid: Grid, matrix: Matrix, live_rows: Ints | None = None) -> Self:
        """Sum the live rows of a matrix.

        Parameters
        ----------
        grid : Grid
            Fitted to the same rows.
        matrix : ndarray of shape (n_rows, n_features), float64 or float32
            Values before the grid.
        live_rows : ndarray of int64, optional
            Distinct positions of the rows that count; all of them by default.

        Returns
        -------
        Moments
        """
        moments = cls(grid=grid, n_rows=0, sums=np.zeros((4, matrix.shape[1])))
        moments._accumulate(matrix, *which(matrix, live_rows), 1.0)
        return moments

    def add(self, matrix: Matrix, rows: Ints) -> None:
        """Add rows, whose values must lie within the range of the grid."""
        self._accumulate(matrix, False, rows, 1.0)

    def remove(self, matrix: Matrix, rows: Ints) -> None:
        """Take rows out, read on the grid on which they were added.

        Call it before :meth:`Grid.remove`, and :meth:`rederive` after, where that says that
        columns changed.
        """
        self._accumulate(matrix, False, rows, -1.0)

    def rederive(self, matrix: Matrix, live_rows: Ints, columns: NDArray[np.bool_]) -> None:
        """Sum some columns again, because their grid changed.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_features), float64 or float32
            Values before the grid.
        live_rows : ndarray of int64
            Positions of the rows that are left.
        columns : ndarray of shape (n_features,), bool
            The columns whose origin or top exponent changed.
        """
        grid = self.grid
        for j in np.flatnonzero(columns).tolist():
            per_quantum = 2.0 ** (BITS - int(grid.top[j]))
            self.sums[:, j] = kernels.column_sums(
                matrix, live_rows, j, grid.origin[j], grid.magic[j], per_quantum
            )

    @property
    def sum(self) -> Floats:
        """Exact sum of the gridded values relative to their origin, a float64 per column."""
        total: Floats = self.sums[0] * self.grid.quantum
        return total

    def mean(self) -> Floats:
        """Return the mean of each column, origin included; NaN without rows.

        Returns
        -------
        ndarray of shape (n_features,), float64
            Within 1 ulp of the exact mean of the gridded values.
        """
        if self.n_rows == 0:
            return np.full(self.sums.shape[1], np.nan)
        out = np.empty(self.sums.shape[1])
        kernels.means(float(self.n_rows), self.sums, self.grid.origin, self.grid.quantum, out)
        return out

    def variance(self) -> Floats:
        """Return the population variance of each column (divided by n); NaN without rows.

        Returns
        -------
        ndarray of shape (n_features,), float64
            Within 1 ulp of the exact variance of the gridded values; 0 only where they agree.
        """
        if self.n_rows == 0:
            return np.full(self.sums.shape[1], np.nan)
        out = np.empty(self.sums.shape[1])
        kernels.variances(float(self.n_rows), self.sums, self.grid.quantum, out)
        return out

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return copies of the sums, in quanta: ``sum`` as float64, and as int64 the halves'."""
        hh, hl, ll = self.sums[1:].astype(np.int64)
        return {"sum": self.sums[0].copy(), "hh": hh, "hl": hl, "ll": ll}

    @classmethod
    def from_state(cls, grid: Grid, n_rows: int, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Rebuild the moments of `n_rows` rows that gave `state`, on the same grid."""
        parts = [np.asarray(state[name], dtype=np.float64) for name in ("sum", "hh", "hl", "ll")]
        return cls(grid=grid, n_rows=n_rows, sums=np.array(parts))

    def _accumulate(self, matrix: Matrix, every: bool, rows: Ints, sign: float) -> None:
        grid = self.grid
        n, d = matrix.shape
        self.n_rows += int(sign) * (n if every else rows.size)
        per_column = (grid.origin, grid.magic, np.ldexp(1.0, BITS - grid.top))
        for part, (origin, magic, per_quantum), _ in long_rows(matrix, every, per_column, None):
            width = part.shape[1]
            sums = self.sums if width == d else np.zeros((4, width))
            scratch = np.empty((2, width))
            kernels.accumulate(part, rows, every, sign, origin, magic, per_quantum, sums, scratch)
            if sums is not self.sums:
                self.sums += sums.reshape(4, -1, d).sum(axis=1)

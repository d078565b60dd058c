"""Exact first and second moments of the columns of a matrix.

The law kept here: the sums are functions of the set of rows alone. They are exact integers, so
adding and removing rows commute and undo each other, and the mean and variance are functions of the
sums, computed in double-double in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _moment_kernels as kernels
from erasable.core._grid_kernels import BITS, long_rows
from erasable.core.arrays import Floats, Ints
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass, rows_in_memory, run

__all__ = ["Moments", "SumsOf", "column_sums"]

_WIDTH = 128  # values of a row: with its sums and their terms, it stays in a fast cache


@dataclass(eq=False, slots=True)
class Moments:
    """Count, sum and sum of squares of gridded columns, to which rows are added or subtracted.

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
    def fit(
        cls, grid: Grid, matrix: Any, live_rows: Ints | None = None, *, n_jobs: int | None = None
    ) -> Self:
        """Sum the live rows of a matrix.

        Parameters
        ----------
        grid : Grid
            Fitted to the same rows.
        matrix : ndarray of shape (n_rows, n_features), float64 or float32; or Stored
            Values before the grid.
        live_rows : ndarray of int64, optional
            Distinct positions of the rows that count; all of them by default.
        n_jobs : int or None
            Threads.

        Returns
        -------
        Moments
        """
        n_rows = matrix.shape[0] if live_rows is None else int(live_rows.size)
        return cls(grid, n_rows, run(SumsOf(grid), matrix, live_rows, n_jobs=n_jobs))

    @classmethod
    def fit_with_grid(
        cls,
        matrix: Any,
        live_rows: Ints | None = None,
        *,
        names: Sequence[str] | None = None,
        warn: bool = True,
        n_jobs: int | None = None,
    ) -> Self:
        """Fit the grid, too, which takes two passes in all; parameters as of `Grid.fit`."""
        grid, sums = Grid.fit_with(SumsOf, matrix, live_rows, names=names, warn=warn, n_jobs=n_jobs)
        return cls(grid, grid.n_rows, sums)

    def add(self, matrix: Any, rows: Ints) -> None:
        """Add rows, whose values must lie within the range of the grid."""
        self._accumulate(matrix, rows, 1.0)

    def remove(self, matrix: Any, rows: Ints) -> None:
        """Remove rows, read on the grid on which they were added.

        Call it before :meth:`Grid.remove`, and :meth:`rederive` after, where that says that
        columns changed.
        """
        self._accumulate(matrix, rows, -1.0)

    def rederive(self, matrix: Any, live_rows: Ints, columns: NDArray[np.bool_]) -> None:
        """Sum some columns again, because their grid changed.

        Parameters
        ----------
        matrix : ndarray or Stored, of shape (n_rows, n_features), float64 or float32
            Values before the grid.
        live_rows : ndarray of int64
            Positions of the rows that are left.
        columns : ndarray of shape (n_features,), bool
            The columns whose origin or top exponent changed.
        """
        chosen = np.flatnonzero(columns).tolist()
        if chosen:
            again = _SumColumns(self.grid, chosen)
            self.sums[:, chosen] = run(again, matrix, live_rows, columns=chosen)

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

    def _accumulate(self, matrix: Any, rows: Ints, sign: float) -> None:
        self.n_rows += int(sign) * rows.size
        _add_rows(self.grid, *rows_in_memory(matrix, rows), False, sign, self.sums)


class SumsOf(Pass[Floats]):
    """Sum rows on a grid, as `Moments.sums`.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0]])
    >>> grid, sums = Grid.fit_with(SumsOf, rows)
    >>> Moments(grid, 2, sums).mean()
    array([1.5])
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def of_block(self, block: Block) -> Floats:
        """Sum the rows of a block."""
        sums = np.zeros((4, block.matrix.shape[1]))
        _add_rows(self._grid, block.matrix, block.rows, block.every, 1.0, sums)
        return sums

    def merge(self, one: Floats, other: Floats) -> Floats:
        """Add the sums of two sets of rows."""
        one += other
        return one


class _SumColumns(SumsOf):
    """Sum some columns."""

    def __init__(self, grid: Grid, columns: list[int]) -> None:
        super().__init__(grid)
        self._columns = columns

    def of_block(self, block: Block) -> Floats:
        return column_sums(self._grid, self._columns, block, block.positions)


def column_sums(grid: Grid, columns: list[int], block: Block, rows: Ints) -> Floats:
    """Return the sums of some columns over rows of a block, as lines of `Moments.sums`.

    Examples
    --------
    >>> matrix = np.array([[1.0], [2.0], [4.0]])
    >>> grid = Grid.fit(matrix)
    >>> block = Block(matrix, np.arange(3), False)
    >>> sums = column_sums(grid, [0], block, np.array([0, 2]))
    >>> (sums[0] * grid.quantum).tolist()
    [5.0]
    """
    sums = np.zeros((4, len(columns)))
    for k, j in enumerate(columns):
        per_quantum = 2.0 ** (BITS - int(grid.top[j]))
        sums[:, k] = kernels.column_sums(
            block.matrix, rows, block.place(j), grid.origin[j], grid.magic[j], per_quantum
        )
    return sums


def _add_rows(grid: Grid, matrix: Any, rows: Ints, every: bool, sign: float, sums: Floats) -> None:
    """Add rows of a matrix in memory to sums, or subtract them if `sign` is -1."""
    d = matrix.shape[1]
    per_column = (grid.origin, grid.magic, np.ldexp(1.0, BITS - grid.top))
    for part, (origin, magic, per_quantum), _ in long_rows(matrix, every, per_column, None, _WIDTH):
        width = part.shape[1]
        wide = sums if width == d else np.zeros((4, width))
        scratch = np.empty((2, width))
        kernels.accumulate(part, rows, every, sign, origin, magic, per_quantum, wide, scratch)
        if wide is not sums:
            sums += wide.reshape(4, -1, d).sum(axis=1)

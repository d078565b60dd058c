"""Exact first and second moments of the columns of a matrix.

The law kept here: the sums are functions of the set of rows alone. They are exact integers, so
adding and removing rows commute and undo each other, and the mean and variance are functions of the
sums, computed in double-double in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _moment_kernels as kernels
from erasable.core._grid_kernels import BITS, long_rows
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass
from erasable.core.sparse import parts
from erasable.core.sparse_grid import SparseGrid
from erasable.core.summaries import Gridded
from erasable.core.tables import Table

__all__ = ["Moments", "SumsOf", "column_sums"]

_WIDTH = 128  # values of a row: with its sums and their terms, it stays in a fast cache


@dataclass(eq=False, slots=True)
class Moments(Gridded):
    """Count, sum and sum of squares of gridded columns, to which rows are added or subtracted.

    Attributes
    ----------
    grid : Grid or SparseGrid
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
    >>> from erasable.core.moments import Moments
    >>> table = Table(np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]]))
    >>> moments = Moments.fit_with_grid(table)
    >>> moments.mean(), moments.variance()
    (array([ 3., 20.]), array([  4.66666667, 200.        ]))
    >>> moments.subtract(table.some(lambda: np.array([0, 2])), np.array([1]))
    0
    >>> moments.mean(), moments.variance()
    (array([ 3.5, 25. ]), array([  6.25, 225.  ]))
    """

    grid: Any
    n_rows: int
    sums: Floats

    @classmethod
    def fit(cls, grid: Any, table: Table) -> Self:
        """Sum the rows of a table that count, on the grid of these rows."""
        if table.is_sparse:
            made = cls(grid, 0, np.zeros((4, table.n_features)))
            made.accumulate(table, table.live_rows(), 1)
            return made
        rows = table.live_rows()
        return cls(grid, rows.size, table.run(SumsOf(grid), rows))

    @classmethod
    def fit_with_grid(cls, table: Table, *, warn: bool = True) -> Self:
        """Fit the grid, too, which takes two passes in all; see `Grid.fit`."""
        if table.is_sparse:
            return cls.fit(SparseGrid.fit(table.matrix, table.live_rows()), table)
        grid, sums = Grid.fit_with(
            SumsOf, table.matrix, table.live_rows(),
            names=table.names, warn=warn, n_jobs=table.n_jobs,
        )  # fmt: skip
        return cls(grid, grid.n_rows, sums)

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`; the values of added rows must lie within the range of the grid."""
        self.n_rows += sign * rows.size
        if table.is_sparse:
            self._add_sparse(table, rows, np.ones(table.n_features, dtype=np.bool_), sign)
        else:
            _add_rows(self.grid, *table.in_memory(rows), False, float(sign), self.sums)

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`."""
        if table.is_sparse:
            self.sums[:, columns] = 0.0
            self._add_sparse(table, table.live_rows(), columns, 1)
            return
        chosen = np.flatnonzero(columns).tolist()
        self.sums[:, chosen] = table.run(_SumColumns(self.grid, chosen), columns=chosen)

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

    def state(self) -> dict[str, Any]:
        """Return copies of the sums, in quanta: ``sum`` as float64, and as int64 the halves'."""
        hh, hl, ll = self.sums[1:].astype(np.int64)
        return {"sum": self.sums[0].copy(), "hh": hh, "hl": hl, "ll": ll}

    @classmethod
    def from_state(cls, grid: Grid, n_rows: int, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Rebuild the moments of `n_rows` rows that gave `state`, on the same grid."""
        parts = [np.asarray(state[name], dtype=np.float64) for name in ("sum", "hh", "hl", "ll")]
        return cls(grid=grid, n_rows=n_rows, sums=np.array(parts))

    def _add_sparse(self, table: Table, rows: Ints, columns: Flags, sign: int) -> None:
        per_quantum = np.ldexp(1.0, BITS - self.grid.top)
        kernels.accumulate_sparse(
            *parts(table.matrix), rows, columns, float(sign), self.grid.magic, per_quantum,
            self.sums,
        )  # fmt: skip


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

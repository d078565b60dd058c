"""Exact first and second moments of the rows of every class.

The law kept here: the grid and the sums are functions of the set of live rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core import _moment_kernels as kernels
from erasable.core._grid_kernels import BITS
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.attachment import Attachment
from erasable.core.classes import Classes
from erasable.core.grid import Grid
from erasable.core.moments import Moments, column_sums
from erasable.core.passes import Block, Pass, Stored, run
from erasable.core.row_arrays import PerLiveRow, PerRow
from erasable.core.values import Values

__all__ = ["ClassMoments", "LabelledRows"]


@dataclass(frozen=True, eq=False, slots=True)
class LabelledRows:
    """Rows with classes, which are counted or summed by class.

    Attributes
    ----------
    matrix : ndarray, csr_array or Stored, of shape (n_rows, n_features)
    classes : Classes
    live_rows : callable
        Returns the positions of the live rows.
    weights : erasable.core._weighted_moments.ClassWeights or None
    names : list of str or None
        Names of the columns.
    n_jobs : int or None
        Threads of a pass over all rows.

    Examples
    --------
    >>> classes = Classes.fit(np.array([5, 6, 5]), np.arange(3))
    >>> table = LabelledRows(np.zeros((3, 1)), classes, lambda: np.arange(3))
    >>> table.codes, table.units(np.array([2]))
    (array([0, 1, 0], dtype=int32), array([1]))
    """

    matrix: Values
    classes: Classes
    live_rows: Callable[[], Ints]
    weights: Any = None
    names: list[str] | None = None
    n_jobs: int | None = None

    @classmethod
    def of(
        cls, held: Attachment, classes: Classes, weights: Any = None, n_jobs: int | None = None
    ) -> Self:
        """Return the rows of records that a model holds."""
        records = held.records
        names = records.feature_names
        return cls(records.matrix, classes, held.live_rows, weights, names, n_jobs)

    @property
    def codes(self) -> Ints32:
        """Return the codes of the rows' classes."""
        return self.classes.codes

    def units(self, rows: Ints) -> Ints:
        """Return how much rows count, in quanta; 1 each, where there are no weights."""
        if self.weights is None:
            return np.ones(rows.size, dtype=np.int64)
        units: Ints = self.weights.units(rows)
        return units

    def add(
        self, adder: Adder, rows: Ints, sums: NDArray[Any], *params: Any, few: bool = False
    ) -> None:
        """Add rows to exact sums: all of a stored matrix in a pass, or a `few` of them.

        `adder` is a function of a module.
        """
        units = self.units(rows)
        if not isinstance(self.matrix, Stored):
            adder(self.matrix, rows, self.codes, units, sums, *params)
        elif few:
            adder(self.matrix[rows], np.arange(rows.size), self.codes[rows], units, sums, *params)
        else:
            adding = _Adding(adder, self.codes, units, sums, params)
            sums += run(adding, self.matrix, rows, n_jobs=self.n_jobs)


Adder: TypeAlias = Callable[..., None]
"""Adds rows to sums; arguments: matrix, positions, codes, units, sums, parameters."""


class _Adding(Pass[NDArray[Any]]):
    """Add rows to sums, from zero."""

    def __init__(
        self, adder: Adder, codes: Ints32, units: Ints, sums: NDArray[Any], params: tuple[Any, ...]
    ) -> None:
        self._adder, self._params = adder, params
        self._codes, self._units = PerRow(codes), PerLiveRow(units)
        self._shape, self._dtype = sums.shape, sums.dtype

    def of_block(self, block: Block) -> NDArray[Any]:
        sums = np.zeros(self._shape, self._dtype)
        codes, units = self._codes.of(block), self._units.of(block)
        self._adder(block.matrix, block.positions, codes, units, sums, *self._params)
        return sums

    def merge(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        one += other
        return one


@dataclass(eq=False, slots=True)
class ClassMoments:
    """Exact moments of the rows of every class, on one grid.

    Attributes
    ----------
    grid : Grid
        Of the rows of all classes.
    moments : list of Moments
        One for each class.

    Examples
    --------
    >>> rows, live = np.array([[1.0], [4.0], [7.0]]), np.arange(3)
    >>> classes = Classes.fit(np.array([5, 5, 6]), live)
    >>> moments = ClassMoments.fit(LabelledRows(rows, classes, lambda: live))
    >>> moments.means(classes.counts).tolist(), moments.variances(classes.counts).tolist()
    ([[2.5], [7.0]], [[2.25], [0.0]])
    """

    grid: Grid
    moments: list[Moments]

    @classmethod
    def fit(cls, table: LabelledRows) -> Self:
        """Sum the live rows."""
        counts = table.classes.counts.tolist()
        grid, sums = Grid.fit_with(
            lambda grid: _Sum(grid, table.codes, len(counts)),
            table.matrix, table.live_rows(), names=table.names, n_jobs=table.n_jobs,
        )  # fmt: skip
        return cls(grid, [Moments(grid, n, own) for n, own in zip(counts, sums, strict=True)])

    @classmethod
    def from_state(cls, state: dict[str, Any], counts: Ints) -> Self:
        """Rebuild the moments from `state`."""
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

    def remove(self, table: LabelledRows, rows: Ints) -> None:
        """Remove rows from the sums of their classes."""
        if rows.size == 1:
            self.moments[table.codes[rows[0]]].remove(table.matrix, rows)
            return
        for c, of_class in enumerate(_rows_by_class(table.codes, rows, len(self.moments))):
            if of_class.size:
                self.moments[c].remove(table.matrix, of_class)

    def keep_classes(self, kept: NDArray[np.bool_]) -> None:
        """Keep only the lines of these classes."""
        self.moments = [self.moments[c] for c in np.flatnonzero(kept).tolist()]

    def regrid(self, table: LabelledRows, rows: Ints) -> int:
        """Update the grid, and sum again the columns whose grid has changed."""
        change = self.grid.remove(table.matrix, rows, table.live_rows)
        if change.exponents:
            self._sum_again(table, table.live_rows(), change.columns)
        return int(change.extremes.sum())

    def arrive(self, table: LabelledRows, rows: Ints) -> int | None:
        """Add rows to the sums of classes and to the grid; return how many columns changed."""
        change = self.grid.add(table.matrix, rows, table.live_rows)
        self._put(table, rows)
        if change.exponents:
            self._sum_again(table, table.live_rows(), change.columns)
        return int(change.columns.sum())

    def _put(self, table: LabelledRows, rows: Ints) -> None:
        """Add rows to the sums of their classes, on the grid as it is."""
        for c, of_class in enumerate(_rows_by_class(table.codes, rows, len(self.moments))):
            if of_class.size:
                self.moments[c].add(table.matrix, of_class)

    def total(self) -> Moments:
        """Return the moments of all rows, without weights."""
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

    def _sum_again(self, table: LabelledRows, live: Ints, columns: NDArray[np.bool_]) -> None:
        chosen = np.flatnonzero(columns).tolist()
        again = _SumColumns(self.grid, table.codes, len(self.moments), chosen)
        sums = run(again, table.matrix, live, columns=chosen)
        for moments, own in zip(self.moments, sums, strict=True):
            moments.sums[:, chosen] = own


class _Sum(Pass[Floats]):
    """Sum the rows of every class on a grid, as `Moments.sums`."""

    def __init__(self, grid: Grid, codes: Ints32, n_classes: int) -> None:
        self._grid, self._codes, self._n_classes = grid, PerRow(codes), n_classes

    def of_block(self, block: Block) -> Floats:
        grid, d = self._grid, block.matrix.shape[1]
        sums = np.zeros((self._n_classes, 4, d))
        columns = np.stack([grid.origin, grid.magic, np.ldexp(1.0, BITS - grid.top)])
        kernels.accumulate_by_class(
            block.matrix, block.rows, block.every, self._codes.of(block), columns, sums,
            np.empty((2, d)),
        )  # fmt: skip
        return sums

    def merge(self, one: Floats, other: Floats) -> Floats:
        one += other
        return one


class _SumColumns(_Sum):
    """Sum some columns."""

    def __init__(self, grid: Grid, codes: Ints32, n_classes: int, columns: list[int]) -> None:
        super().__init__(grid, codes, n_classes)
        self._columns = columns

    def of_block(self, block: Block) -> Floats:
        by_class = _rows_by_class(self._codes.of(block), block.positions, self._n_classes)
        return np.stack([column_sums(self._grid, self._columns, block, rows) for rows in by_class])


def _rows_by_class(codes: Ints32, rows: Ints, n_classes: int) -> list[Ints]:
    """Sort rows into classes, ascending in each."""
    own = codes[rows]
    narrow = own.astype(np.uint16) if n_classes < 2**16 else own  # sorted in linear time
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(own, minlength=n_classes))
    return np.split(rows[order], ends[:-1])

"""Exact first and second moments of the rows of every class.

The law kept here: the grid and the sums are functions of the set of live rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _moment_kernels as kernels
from erasable.core._grid_kernels import BITS
from erasable.core._schema import Fields, Sizes, grid, moments, refuse_negative_variance
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.grid import Grid
from erasable.core.moments import Moments, column_sums
from erasable.core.passes import Block, Pass
from erasable.core.row_arrays import PerRow
from erasable.core.summaries import Gridded
from erasable.core.tables import Table

__all__ = ["ClassMoments"]


def _check_variances(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    counts = value["classes"]["counts"][:, np.newaxis]
    refuse_negative_variance(value["moments"], counts, "moments.hh")


@dataclass(eq=False, slots=True)
class ClassMoments(Gridded):
    """Exact moments of the rows of every class, on one grid.

    Attributes
    ----------
    grid : Grid
        Of the rows of all classes.
    moments : list of Moments
        One for each class.

    Examples
    --------
    >>> rows = np.array([[1.0], [4.0], [7.0]])
    >>> from erasable.core.classes import Classes
    >>> classes = Classes.fit(np.array([5, 5, 6]), np.arange(3))
    >>> moments = ClassMoments.fit(Table(rows, classes=classes))
    >>> moments.means(classes.counts).tolist(), moments.variances(classes.counts).tolist()
    ([[2.5], [7.0]], [[2.25], [0.0]])
    """

    schema: ClassVar[Fields] = Fields(
        {"grid": grid("n_features"), "moments": moments("n_classes", "n_features")},
        relations=(_check_variances,),
    )
    grid: Grid
    moments: list[Moments]

    @classmethod
    def fit(cls, table: Table) -> Self:
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

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`."""
        if rows.size == 1:
            self.moments[table.codes[rows[0]]].accumulate(table, rows, sign)
            return
        for c, of_class in enumerate(_rows_by_class(table.codes, rows, len(self.moments))):
            if of_class.size:
                self.moments[c].accumulate(table, of_class, sign)

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`."""
        chosen = np.flatnonzero(columns).tolist()
        again = _SumColumns(self.grid, table.codes, len(self.moments), chosen)
        sums = table.run(again, columns=chosen)
        for of_class, own in zip(self.moments, sums, strict=True):
            of_class.sums[:, chosen] = own

    def keep_classes(self, kept: NDArray[np.bool_]) -> None:
        """Keep only the lines of these classes."""
        self.moments = [self.moments[c] for c in np.flatnonzero(kept).tolist()]

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

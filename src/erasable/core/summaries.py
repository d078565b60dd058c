"""Summaries: what is learned of rows by counting and adding.

The law kept here: a summary is a function of the set of rows that are in it. Its numbers are exact,
so adding and subtracting rows commute and undo each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from erasable.core.arrays import Flags, Ints
from erasable.core.changes import Delta
from erasable.core.tables import Table

__all__ = ["Gridded", "Mergeable", "Summary"]


class Summary(ABC):
    """Counts or exact sums over rows of a table, to which rows are added or subtracted.

    Both return how many columns were read again in all rows that count.

    Examples
    --------
    >>> class Total(Summary):
    ...     total = 0
    ...     def add(self, table, rows):
    ...         self.total += int(table.matrix[rows].sum())
    ...         return 0
    ...     def subtract(self, table, rows):
    ...         self.total -= int(table.matrix[rows].sum())
    ...         return 0
    ...     def state(self):
    ...         return {"total": self.total}
    >>> total, table = Total(), Table(np.array([[3], [4]]))
    >>> total.add(table, np.array([0, 1])), total.subtract(table, np.array([0])), total.state()
    (0, 0, {'total': 4})
    """

    __slots__ = ()

    @abstractmethod
    def add(self, table: Table, rows: Ints) -> int | None:
        """Add rows, which count already; None if everything is to be summed again instead."""

    @abstractmethod
    def subtract(self, table: Table, rows: Ints) -> int:
        """Subtract rows, which can still be read, and do not count any more."""

    def update(self, table: Table, delta: Delta) -> int | None:
        """Subtract rows that leave, and add rows that arrive, which count already."""
        scanned = 0
        if delta.leaving.size:
            scanned = self.subtract(table.without(delta.arriving), delta.leaving)
        if not delta.arriving.size:
            return scanned
        more = self.add(table, delta.arriving)
        return None if more is None else scanned + more

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the arrays that a model must keep."""


class Mergeable(Summary):
    """A summary to which that of other rows can be added.

    Examples
    --------
    >>> from erasable.core.gram import Gram
    >>> issubclass(Gram, Mergeable)
    True
    """

    __slots__ = ()

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add a summary of other rows, with the same grids if there are any."""


class Gridded(Summary):
    """Sums of values on a grid of the columns; a column is summed again when its grid changes.

    A subclass implements `accumulate` and `sum_again`. `grid` is a `Grid`, `SparseGrid` or
    `TopGrid` of the same rows.

    Examples
    --------
    >>> from erasable.core.grid import Grid
    >>> class Sums(Gridded):
    ...     def __init__(self, table):
    ...         self.grid, self.sums = Grid.fit(table.matrix), np.zeros(table.n_features)
    ...         self.accumulate(table, table.live_rows(), 1)
    ...     def accumulate(self, table, rows, sign):
    ...         self.sums += sign * self.grid.apply(table.matrix, rows).sum(axis=0)
    ...     def sum_again(self, table, columns):
    ...         gridded = self.grid.apply(table.matrix, table.live_rows())
    ...         self.sums[columns] = gridded.sum(axis=0)[columns]
    ...     def state(self):
    ...         return {**self.grid.state(), "sums": self.sums}
    >>> table = Table(np.array([[0.5, 3.0], [0.25, 4.0], [700.0, 3.5]]))
    >>> sums = Sums(table)
    >>> sums.subtract(table.some(lambda: np.array([0, 1])), np.array([2]))
    1
    >>> sums.state()["sums"]
    array([0.75, 7.  ])
    """

    __slots__ = ()
    grid: Any

    @abstractmethod
    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """Add rows to the sums, on the grid as it is, or subtract them if `sign` is -1."""

    @abstractmethod
    def sum_again(self, table: Table, columns: Flags) -> None:
        """Sum some columns of all rows that count, on the grid as it is."""

    def add(self, table: Table, rows: Ints) -> int | None:
        """See `Summary`."""
        change = self.grid.add(table, rows)
        self.accumulate(table, rows, 1)
        if not change.exponents:
            return 0
        self.sum_again(table, change.columns)
        return int(np.count_nonzero(change.columns))

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        self.accumulate(table, rows, -1)
        change = self.grid.subtract(table, rows)
        if change.is_none:
            return 0
        if change.exponents:
            self.sum_again(table, change.columns)
        return int(np.count_nonzero(change.extremes))

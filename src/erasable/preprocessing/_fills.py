"""Values that fill gaps, learned from those that are observed in each column.

Each class brings its statistics to those of a fit without the deleted rows, and keeps no more in
its state than that needs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

import erasable.preprocessing._mean_kernels as kernels
from erasable.core import _grid_kernels as grid_kernels
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.core.grid import MAX_ROWS
from erasable.core.ids import name_some, shorten
from erasable.core.messages import refuse_huge_columns, refuse_many_rows
from erasable.core.passes import Block, Pass
from erasable.core.quantiles import Quantiles
from erasable.core.summaries import Summary
from erasable.core.tables import Table
from erasable.preprocessing._categories import Categories, has_gap, plain
from erasable.preprocessing._sparse_fills import gaps_in, is_gap

Reached = tuple[Floats, Floats, Ints]
"""Lowest and highest value of each column; how many values equal these, and how many there are."""


class _Extremes(Pass[Reached]):
    takes_gaps = True

    def __init__(self, gap: float) -> None:
        self._gap = gap

    def of_block(self, block: Block) -> Reached:
        d = block.matrix.shape[1]
        found = np.full(d, np.inf), np.full(d, -np.inf), np.zeros((3, d), dtype=np.int64)
        kernels.extremes(block.matrix, block.positions, self._gap, *found)
        return found

    def merge(self, one: Reached, other: Reached) -> Reached:
        low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
        counts = np.zeros_like(one[2])
        for found in (one, other):
            counts[0] += np.where(found[0] == low, found[2][0], 0)
            counts[1] += np.where(found[1] == high, found[2][1], 0)
            counts[2] += found[2][2]
        return low, high, counts


class _Sums(Pass[Floats]):
    takes_gaps = True

    def __init__(self, gap: float, grid: kernels.Grid) -> None:
        self._gap, self._grid = gap, grid

    def of_block(self, block: Block) -> Floats:
        sums = np.zeros(block.matrix.shape[1])
        kernels.add(block.matrix, block.positions, self._gap, self._grid, sums)
        return sums

    def merge(self, one: Floats, other: Floats) -> Floats:
        return one + other  # integers, in quanta


class _CountGaps(Pass[tuple[Ints, Ints]]):
    """Count values that are gaps, and those that are NaN."""

    takes_gaps = True

    def __init__(self, marker: Any) -> None:
        self._marker = marker

    def of_block(self, block: Block) -> tuple[Ints, Ints]:
        own: Any = block.matrix if block.every else block.matrix[block.rows]
        gaps, strays = (_count_gaps(own, each) for each in (self._marker, np.nan))
        return gaps, strays

    def merge(self, one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        return one[0] + other[0], one[1] + other[1]


def _count_gaps(own: Any, marker: Any) -> Ints:
    """Count the gaps of each column; a value that is not stored is none."""
    if issparse(own):
        some = own.indices[is_gap(own.data, marker)]
        return np.bincount(some, minlength=own.shape[1]).astype(np.int64)
    counts: Ints = np.count_nonzero(gaps_in(own, marker), axis=0).astype(np.int64)
    return counts


def constant_of(given: Any, *, objects: bool) -> Any:
    """Return the value that gaps are filled with, in a table of objects or of numbers."""
    value = plain(given)
    if given is None:
        value = "missing_value" if objects else 0.0
    try:
        number = isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # of an integer that no float reaches
        number = False
    if not (number or (objects and isinstance(value, str))):
        raise InvalidParameterError(
            f"fill_value={shorten(given)} cannot be cast to the input data, which "
            f"holds {'text' if objects else 'numbers'}; expected "
            f"{'text or a' if objects else 'a finite'} number; pass another fill_value"
        )
    return value


def refuse_strays(strays: NDArray[Any], marker: Any, names: Sequence[str] | None) -> None:
    """Raise InvalidDataError where NaN is no gap; `strays` says where, or how often a column."""
    if marker != marker:
        return
    counts = np.atleast_2d(strays).sum(axis=0)
    if counts.any():
        columns: Any = names or range(counts.size)
        named = name_some([columns[j] for j in np.flatnonzero(counts).tolist()])
        raise InvalidDataError(
            f"Input X contains NaN: {int(counts.sum())} values of columns {named}, and "
            f"missing_values is {shorten(marker)}; expected one marker of gaps; replace one by "
            "the other"
        )


class Fill(Summary):
    """Fill values of each column."""

    @abstractmethod
    def statistics(self) -> NDArray[Any]:
        """Return what each column is filled with; NaN where nothing is observed."""


class Means(Fill):
    """Means of gridded values, of a dense table or a sparse one."""

    def __init__(self, table: Table, marker: float) -> None:
        live = table.live_rows()
        refuse_many_rows(live.size, MAX_ROWS)
        d = table.n_features
        self._gap = float(marker)
        self._low, self._high, self._reached = table.run_dense(_Extremes(self._gap), live)
        self._refuse_huge()
        self.origin, self.top, self.sums = np.zeros(d), np.zeros(d, dtype=np.int64), np.zeros(d)
        self._bracket(range(d))
        self.sums = table.run_dense(_Sums(self._gap, self._grid()), live)

    @property
    def n_values(self) -> Ints:
        """How many values each column has."""
        counts: Ints = self._reached[2]
        return counts

    def _refuse_huge(self) -> None:
        limit = 2.0**grid_kernels.MAX_TOP
        huge = (self.n_values > 0) & (np.maximum(-self._low, self._high) > limit)
        refuse_huge_columns(huge, f"2**{grid_kernels.MAX_TOP}")

    def add(self, table: Table, rows: Ints) -> int:
        low, high = self._low.copy(), self._high.copy()
        for near, at in table.dense_blocks(rows):
            kernels.extremes(near, at, self._gap, self._low, self._high, self._reached)
        self._refuse_huge()
        wider = np.flatnonzero((self._low != low) | (self._high != high)).tolist()
        moved = self._bracket(wider)
        for near, at in table.dense_blocks(rows):
            kernels.add(near, at, self._gap, self._grid(), self.sums)
        self._sum_again(table, moved)
        return len(moved)

    def subtract(self, table: Table, rows: Ints) -> int:
        bounds, grid, lost = (self._low, self._high), self._grid(), False
        for near, at in table.dense_blocks(rows):
            lost |= kernels.forget(near, at, self._gap, grid, bounds, self._reached, self.sums)
        if not lost:
            return 0
        some = (self._reached[:2] == 0).any(axis=0) & np.isfinite(self._low)
        if not some.any():
            return 0
        columns = np.flatnonzero(some).tolist()
        found = table.run_dense(_Extremes(self._gap), columns=columns)
        self._low[columns], self._high[columns], self._reached[:, columns] = found
        self._sum_again(table, self._bracket(columns))
        return len(columns)

    def statistics(self) -> Floats:
        out = np.zeros(self.sums.size)
        quantum = np.ldexp(1.0, self.top - grid_kernels.BITS)
        kernels.means(self.n_values, self.sums, self.origin, quantum, out)
        return out

    def state(self) -> dict[str, Any]:
        return {"origin": self.origin, "sum": self.sums, "top": self.top}

    @classmethod
    def restored(cls, state: Mapping[str, Any], n_values: Ints) -> Means:
        """Return means with their statistics, from which no rows can be removed."""
        means = cls(Table(np.zeros((0, n_values.size))), np.nan)
        means._reached[2] = n_values
        means.origin, means.top, means.sums = state["origin"], state["top"], state["sum"]
        return means

    def _grid(self) -> tuple[Floats, Floats, Floats]:
        """Return origin, magic number and quanta per unit of every column."""
        per_quantum = np.ldexp(1.0, grid_kernels.BITS - self.top)
        return self.origin, np.ldexp(1.0, self.top + grid_kernels.BITS), per_quantum

    def _bracket(self, columns: Iterable[int]) -> list[int]:
        """Derive the grid of columns from their extremes; return those that have another now."""
        moved = []
        for j in columns:
            origin, top = 0.0, 0
            if self.n_values[j]:
                origin, top = grid_kernels.bracket(self._low[j], self._high[j])
            if origin != self.origin[j] or top != self.top[j]:
                moved.append(j)
            self.origin[j], self.top[j] = origin, top
        return moved

    def _sum_again(self, table: Table, columns: list[int]) -> None:
        if columns:
            origin, magic, per_quantum = (numbers[columns] for numbers in self._grid())
            sums = _Sums(self._gap, (origin, magic, per_quantum))
            self.sums[columns] = table.run_dense(sums, columns=columns)


class Medians(Fill):
    """Medians, halfway between the two middle values, of a dense table or a sparse one."""

    def __init__(self, table: Table, marker: float) -> None:
        self._quantiles = Quantiles.fit(table, [0.5], marker)

    def add(self, table: Table, rows: Ints) -> int:
        return self._quantiles.add(table, rows)

    def subtract(self, table: Table, rows: Ints) -> int:
        return self._quantiles.subtract(table, rows)

    def statistics(self) -> Floats:
        return self._quantiles.middle(0)

    def state(self) -> dict[str, Any]:
        return {"statistics": self.statistics()}


class Modes(Fill):
    """The most frequent value of each column; of several, the smallest."""

    def __init__(self, table: Table, marker: Any, *, objects: bool) -> None:
        self._categories = Categories.fit(table, marker=marker)
        self._modes = np.zeros(table.n_features, dtype=object if objects else np.float64)
        for j in range(table.n_features):
            self._find(j)

    def add(self, table: Table, rows: Ints) -> int | None:
        if self._categories.add(table, rows) is None:
            return None
        for j in range(self._modes.size):
            self._find(j)
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        codes, touched = self._categories.codes, list(range(self._modes.size))
        if codes is not None:  # by category: a whole number may differ from its float
            known = enumerate(zip(self._categories.labels, codes[rows].T, strict=True))
            touched = [j for j, (each, own) in known if (each[own] == self._modes[j]).any()]
        self._categories.subtract(table, rows)
        for j in touched:
            self._find(j)
        return 0

    def statistics(self) -> NDArray[Any]:
        return self._modes.copy()

    def state(self) -> dict[str, Any]:
        return {"statistics": self._modes}

    def _find(self, j: int) -> None:
        labels, counts = self._categories.labels[j], self._categories.count(j)
        if has_gap(labels):
            labels, counts = labels[:-1], counts[:-1]
        # As in a file: objects hold floats of Python, and not of NumPy.
        self._modes[j] = np.nan
        if counts.any():
            self._modes[j] = labels[[np.argmax(counts)]].tolist()[0]


class Constants(Fill):
    """Values that no record has a part in."""

    def __init__(self, statistics: NDArray[Any]) -> None:
        self._values = statistics

    def add(self, table: Table, rows: Ints) -> int:
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        return 0

    def statistics(self) -> NDArray[Any]:
        return self._values.copy()

    def state(self) -> dict[str, Any]:
        return {"statistics": self._values}


class Gaps(Summary):
    """The gaps, marked by `marker`, of the rows that count; of a dense matrix, their places."""

    def __init__(self, table: Table, marker: Any) -> None:
        live = table.live_rows()
        self._marker, self._mask = marker, None
        counts, self.strays = table.run(_CountGaps(marker), live)  # `strays`: values that are NaN
        # live values of each column, without gaps
        self.n_values: Ints = live.size - counts
        if not (table.is_stored or table.is_sparse):
            self._columns = np.flatnonzero(counts)
            self._mask = np.zeros((self._columns.size, table.matrix.shape[0]), dtype=np.bool_)
            for place, j in enumerate(self._columns.tolist()):
                self._mask[place, live] = gaps_in(table.matrix[live, j], marker)

    def add(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        self.n_values = self.n_values + rows.size - _count_gaps(table.matrix[rows], self._marker)
        if self._mask is None:
            return 0
        matrix, gaps = table.matrix, gaps_in(table.matrix[rows], self._marker)
        columns = np.union1d(self._columns, np.flatnonzero(gaps.any(axis=0)))
        n_columns, n_rows = self._mask.shape
        if columns.size > n_columns or n_rows < matrix.shape[0]:
            mask = np.zeros((columns.size, matrix.shape[0] + matrix.shape[0] // 8), dtype=np.bool_)
            mask[np.searchsorted(columns, self._columns), :n_rows] = self._mask
            self._columns, self._mask = columns, mask
        self._mask[:, rows] = gaps[:, columns].T
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        self.n_values = self.n_values - rows.size + _count_gaps(table.matrix[rows], self._marker)
        if self._mask is not None:
            self._mask[:, rows] = False
        return 0

    def state(self) -> dict[str, Any]:
        """See `Summary`."""
        return {"n_values": self.n_values}

    def rows(self, columns: Flags) -> Ints | None:
        """Return the positions of rows with gaps in some columns; None: any row may have some."""
        if self._mask is None:
            return None
        chosen = self._mask[columns[self._columns]]
        return np.flatnonzero(chosen.any(axis=0))

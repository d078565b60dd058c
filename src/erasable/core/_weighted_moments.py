"""Exact first and second moments of rows that have weights.

The law kept here: grids of values and of weights are functions of the live rows that have a
positive weight; on them all sums are of whole numbers, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core import _unit_kernels as kernels
from erasable.core._grid_kernels import BITS, MAX_TOP
from erasable.core._magnitudes import TopGrid
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.classes import Classes
from erasable.core.errors import MagnitudeError
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerLiveRow, PerRow
from erasable.core.sparse import parts
from erasable.core.sparse_grid import SparseGrid
from erasable.core.summaries import Gridded, Summary
from erasable.core.tables import Table

LEAST_WEIGHT = 2.0**-507
"""Weights up to this count as 0, for any other weights."""


@dataclass(eq=False, slots=True)
class WeightUnits(Gridded):
    """Weights of records, in quanta of a grid of one column; a subclass may sum them."""

    weights: Floats  # of all rows; empty if not available
    grid: TopGrid

    @classmethod
    def of(cls, weights: Floats, live: Ints) -> Self:
        """Round the weights of the live rows; raise MagnitudeError for one above ``2**480``."""
        _refuse_huge(weights[live])
        return cls(weights, TopGrid.fit(weights[:, np.newaxis], live))

    @property
    def quantum(self) -> float:
        """The weight of a sum of 1."""
        return float(self.grid.quantum[0])

    def units(self, rows: Ints) -> Ints:
        """Return the weights of rows, in quanta."""
        units: Ints = np.rint(self.weights[rows] * self.grid.per_quantum[0]).astype(np.int64)
        return units

    def counted(self, rows: Ints) -> Ints:
        """Return the rows whose weight does not count as 0."""
        return rows[self.weights[rows] > LEAST_WEIGHT]

    def add(self, table: Table, rows: Ints) -> int | None:
        """See `Summary`: 1 if the quantum has changed."""
        _refuse_huge(self.weights[rows])
        return Gridded.add(self, self._column(table), rows)

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`: 1 if the quantum may have changed."""
        return Gridded.subtract(self, self._column(table), rows)

    def _column(self, table: Table) -> Table:
        return Table(self.weights[:, np.newaxis], table.live_rows, classes=table.classes)

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`: nothing is summed."""

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`: nothing is summed."""

    def state(self) -> dict[str, Any]:
        """Return the exponent of the grid."""
        return {"top": self.grid.top}


@dataclass(eq=False, slots=True)
class ClassWeights(WeightUnits):
    """Exact sums of the weights of each class."""

    sums: Ints  # of shape (n_classes,), in quanta

    @classmethod
    def fit(cls, weights: Floats, live: Ints, classes: Classes) -> Self:
        """Sum the weights of the live rows; raise MagnitudeError for one above ``2**480``."""
        units = WeightUnits.of(weights, live)
        made = cls(weights, units.grid, np.zeros(classes.labels.size, dtype=np.int64))
        made.accumulate(Table(weights, classes=classes), live, 1)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild the sums from `state`."""
        return cls(np.empty(0), TopGrid.from_top(state["top"]), state["sums"])

    def state(self) -> dict[str, Any]:
        """Return the exponent of the grid, and the sums in quanta."""
        return {"top": self.grid.top, "sums": self.sums}

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`."""
        np.add.at(self.sums, table.codes[rows], sign * self.units(rows))

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`."""
        self.sums[:] = 0
        self.accumulate(table, table.live_rows(), 1)

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""
        self.sums = self.sums[kept]


def _refuse_huge(weights: Floats) -> None:
    huge = int(np.count_nonzero(weights > 2.0**MAX_TOP))
    if huge:
        raise MagnitudeError(
            f"sample_weight is beyond 2**{MAX_TOP} for {huge} records; exact sums need "
            "smaller weights; divide all of them by a constant"
        )


@dataclass(eq=False, slots=True)
class WeightedMoments(Summary):
    """Sums of gridded columns, each row as often as its weight has quanta.

    `limbs` are sums of ``u m``, in two limbs of 26 bits, and of ``u m m``, in three, high ones
    first; m is a gridded value in quanta, and u the weight of its row.
    """

    grid: Any  # a Grid or SparseGrid of the rows with a positive weight
    weights: WeightUnits
    total: int  # sum of the weights, in quanta
    limbs: Ints  # of shape (5, 1, n_features)

    @classmethod
    def fit(cls, table: Table) -> Self:
        """Sum the rows that count; at least one of them weighs more than 0."""
        of_rows = table.weights
        rows, matrix = of_rows.counted(table.live_rows()), table.matrix
        shape = 5, 1, table.n_features
        if table.is_sparse:
            made = cls(SparseGrid.fit(matrix, rows), of_rows, 0, np.zeros(shape, dtype=np.int64))
            made._add(table, rows, 1)
            return made
        units, codes = of_rows.units(rows), np.zeros(matrix.shape[0], dtype=np.int32)
        grid, limbs = Grid.fit_with(
            lambda grid: AddUnits(codes, units, columns_of(grid), shape),
            matrix, rows, names=table.names, warn=False, n_jobs=table.n_jobs,
        )  # fmt: skip
        return cls(grid, of_rows, int(units.sum()), limbs)

    @classmethod
    def from_state(cls, grid: Any, state: dict[str, Any]) -> Self:
        """Rebuild the moments from `state` and a grid."""
        told = state["weights"]
        weights = WeightUnits(np.empty(0), TopGrid.from_top(told["top"]))
        return cls(grid, weights, int(told["sums"][0]), state["limbs"][:, np.newaxis])

    def state(self) -> dict[str, Any]:
        """Return the exponent of the weights' grid, their sum in quanta, and the sums of rows."""
        sums = np.array([self.total], dtype=np.int64)
        return {"weights": {"top": self.weights.grid.top, "sums": sums}, "limbs": self.limbs[:, 0]}

    def outweighs(self, rows: Ints) -> bool:
        """Return without a pass whether the other rows weigh more than 0; False if unsure."""
        return self.total > int(self.weights.units(rows).sum())

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        counted = self.weights.counted(rows)
        if not counted.size:
            return 0
        own = table.some(lambda: self.weights.counted(table.live_rows()))
        self._add(own, counted, -1)
        coarse = bool(self.weights.subtract(own, counted))
        change = self.grid.subtract(own, counted)
        if coarse or change.exponents:
            self._sum_again(own, change.columns | coarse)
        return int((change.extremes | coarse).sum())

    def add(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        coarse = bool(self.weights.add(table, rows))
        counted = self.weights.counted(rows)
        if not counted.size:
            return 0
        own = table.some(lambda: self.weights.counted(table.live_rows()))
        columns = self.grid.add(own, counted).columns | coarse
        self._add(own, counted, 1)
        if columns.any():
            self._sum_again(own, columns)
        return int(columns.sum())

    def mean(self) -> Floats:
        """Return the mean of each column, rounded once relative to its origin."""
        mean: Floats = means(self.grid, self.limbs, np.array([self.total]))[0]
        return mean

    def variance(self) -> Floats:
        """Return the population variance of each column."""
        variance: Floats = variances(self.grid, self.limbs, np.array([self.total]))[0]
        return variance

    def _sum_again(self, table: Table, columns: Flags) -> None:
        """Sum some columns again, and the weights, because a grid has changed."""
        self.limbs[:, :, columns] = 0
        self.total = 0
        self._add(table, table.live_rows(), 1, columns)

    def _add(self, table: Table, rows: Ints, sign: int, columns: Flags | None = None) -> None:
        units, per_column = self.weights.units(rows), columns_of(self.grid, columns)
        self.total += sign * int(units.sum())
        if table.is_sparse:
            wanted, _, magic, per_quantum = per_column
            kernels.add_moments_sparse(
                *parts(table.matrix), rows, units, wanted, magic, per_quantum, sign, self.limbs
            )
        elif sign > 0:
            codes = np.zeros(table.matrix.shape[0], dtype=np.int32)
            adding = AddUnits(codes, units, per_column, self.limbs.shape)
            self.limbs += run(adding, table.matrix, rows)
        else:
            near, places = table.in_memory(rows)
            codes = np.zeros(near.shape[0], dtype=np.int32)
            kernels.add_moments(near, places, codes, units, *per_column, sign, self.limbs)


PerColumn: TypeAlias = tuple[Flags, Floats, Floats, Floats]
"""Arguments of kernels: wanted columns, origins, magic numbers, quanta."""


class AddUnits(Pass[Ints]):
    """Sum rows as `WeightedMoments.limbs`, by class; `units` are weights of the rows that count."""

    def __init__(
        self, codes: Ints32, units: Ints, per_column: PerColumn, shape: tuple[int, ...]
    ) -> None:
        self._codes, self._units = PerRow(codes), PerLiveRow(units)
        self._per_column, self._shape = per_column, shape

    def of_block(self, block: Block) -> Ints:
        """Sum the rows of a block."""
        limbs = np.zeros(self._shape, dtype=np.int64)
        codes, units = self._codes.of(block), self._units.of(block)
        kernels.add_moments(
            block.matrix, block.positions, codes, units, *self._per_column, 1, limbs
        )
        return limbs

    def merge(self, one: Ints, other: Ints) -> Ints:
        """Add the sums of two sets of rows."""
        return one + other


def columns_of(grid: Any, wanted: Flags | None = None) -> PerColumn:
    """Return what kernels need of the columns of a grid; by default all of them are wanted."""
    chosen = np.ones(grid.top.size, dtype=np.bool_) if wanted is None else wanted
    return chosen, grid.origin, grid.magic, np.ldexp(1.0, BITS - grid.top)


def means(grid: Any, limbs: Ints, totals: Ints) -> Floats:
    """Return the weighted means of columns, a line for each total; 0 where that is 0."""
    some = totals > 0
    found = np.zeros(limbs.shape[1:])
    offsets = (joined(limbs[:2, some]) / _column(totals[some])).astype(np.float64)
    found[some] = grid.origin + offsets * grid.quantum
    return found


def variances(grid: Any, limbs: Ints, totals: Ints) -> Floats:
    """Return the weighted variances of columns, a line for each total; 0 where that is 0."""
    some = totals > 0
    found = np.zeros(limbs.shape[1:])
    first, second = joined(limbs[:2, some]), joined(limbs[2:, some])
    weight = _column(totals[some])
    spread = (weight * second - first * first) / (weight * weight)
    found[some] = spread.astype(np.float64) * grid.quantum * grid.quantum
    return found


def joined(limbs: Ints) -> NDArray[Any]:
    """Join limbs, the high one first, into Python integers, which are exact."""
    total: NDArray[Any] = limbs[0].astype(object)
    for limb in limbs[1:]:
        total = total * kernels.LIMB + limb.astype(object)
    return total


def _column(totals: Ints) -> NDArray[Any]:
    return totals.astype(object)[:, np.newaxis]

"""Passes that find the extremes of columns and count their values on grids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from erasable.core import _grid_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Block, Pass, rows_in_memory

if TYPE_CHECKING:
    from erasable.core.grid import Grid


SAMPLE = 2_000


class CountAtExtremes(Pass[tuple[Ints, Ints]]):
    """Count values off a grid and beyond float32; sample every `step`-th row, none if it is 0."""

    def __init__(self, grid: Grid, step: int) -> None:
        self._grid, self._step = grid, step

    def of_block(self, block: Block) -> tuple[Ints, Ints]:
        matrix, rows, every, *_ = block
        grid, d = self._grid, matrix.shape[1]
        coarse, sampled = np.zeros((2, 2, d), dtype=np.int64)
        per_column = grid.origin, grid.magic
        for part, (origin, magic), _ in kernels.long_rows(matrix, every, per_column, None):
            packed = np.zeros(part.shape[1], dtype=np.int64)
            kernels.count_coarse(part, rows, every, origin, magic, packed)
            coarse += kernels.unpack(packed, d)
        if self._step:
            first = -block.rank % self._step
            sample = matrix[first :: self._step] if every else matrix[rows[first :: self._step]]
            offsets = sample.astype(np.float64) - grid.origin
            nonzero = offsets != 0
            vanished = nonzero & (np.abs(offsets) <= grid.quantum / 2)
            sampled += np.stack([nonzero.sum(axis=0), vanished.sum(axis=0)])
        return coarse, sampled

    def merge(self, one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        return one[0] + other[0], one[1] + other[1]


class Regridded(NamedTuple):
    """A column, and its origin and magic number before and after."""

    column: int
    before: tuple[float, float]
    after: tuple[float, float]


class Regrid(Pass[Ints]):
    """Count values of columns off their new grid, beyond float32, and whether some have moved."""

    def __init__(self, moved: list[Regridded]) -> None:
        self._moved = moved

    def of_block(self, block: Block) -> Ints:
        rows = block.positions
        found = [
            kernels.regrid(block.matrix, rows, block.place(column), before, after)
            for column, before, after in self._moved
        ]
        return np.array(found, dtype=np.int64)

    def merge(self, one: Ints, other: Ints) -> Ints:
        return one + other


def sampled_values(matrix: Any, rows: Ints, origin: Floats, quantum: Floats) -> Ints:
    """Count, in a sample of the rows, values that are not at the origin, and those that vanish.

    >>> values = np.array([[1e10, 5.0], [1.0, 6.0], [0.0, 7.0]])
    >>> sampled_values(values, np.arange(3), np.zeros(2), np.array([256.0, 2.0**-23]))
    array([[2, 3],
           [1, 0]])
    """
    matrix, rows = rows_in_memory(matrix, rows[:: max(1, -(-rows.size // SAMPLE))])
    sample: Any = matrix[rows]
    if issparse(sample):
        offsets, places = sample.data - origin[sample.indices], sample.indices
    else:
        offsets = sample.astype(np.float64) - origin
        places = np.broadcast_to(np.arange(origin.size), offsets.shape)
    nonzero = offsets != 0
    vanished = nonzero & (np.abs(offsets) <= quantum[places] / 2)
    counts = [np.bincount(places[each], minlength=origin.size) for each in (nonzero, vanished)]
    return np.stack(counts)


def skewed_columns(sampled: Ints) -> Ints:
    """Return the columns in which more than 1 % of the values off the origin become 0."""
    nonzero, vanished = sampled
    return np.flatnonzero(vanished > 0.01 * nonzero)


Found = tuple[Floats, Floats, Ints]


class FindAgain(Pass[Found]):
    """Find extremes of some columns, and their counts; inf, -inf and 0 without rows."""

    def __init__(self, columns: list[int]) -> None:
        self._columns = columns

    def of_block(self, block: Block) -> Found:
        low, high = np.full((2, len(self._columns)), np.inf)
        high *= -1.0
        counts = np.zeros((2, low.size), dtype=np.int64)
        if block.size:
            rows = block.positions
            for k, column in enumerate(self._columns):
                found = kernels.rescan(block.matrix, rows, block.place(column))
                low[k], high[k], *counts[:, k] = found
        return low, high, counts

    def merge(self, one: Found, other: Found) -> Found:
        low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
        counts = sum(
            np.stack([(found[0] == low) * found[2][0], (found[1] == high) * found[2][1]])
            for found in (one, other)
        )
        return low, high, np.asarray(counts)


class Find(FindAgain):
    """Do the same for all columns, faster."""

    def __init__(self) -> None:
        super().__init__([])

    def of_block(self, block: Block) -> Found:
        d = block.matrix.shape[1]
        counts = np.zeros((2, d), dtype=np.int64)
        bounds = np.full(d, np.inf), np.full(d, -np.inf)
        if block.size == 0:
            return *bounds, counts
        matrix, rows, every, *_ = block
        lowest, highest = [], []
        for part, (low, high), _ in kernels.long_rows(matrix, every, bounds, None):
            lows, highs = low.copy(), high.copy()
            kernels.extremes(part, rows, every, lows, highs)
            lowest.append(lows.reshape(-1, d).min(axis=0))
            highest.append(highs.reshape(-1, d).max(axis=0))
        # Adding 0.0 makes -0.0 into 0.0: the order of the two must not show.
        found = np.min(lowest, axis=0) + 0.0, np.max(highest, axis=0) + 0.0
        for part, (low, high), _ in kernels.long_rows(matrix, every, found, None):
            reached = np.zeros(part.shape[1], dtype=np.int64)
            kernels.count_reached(part, rows, every, low, high, reached)
            counts += kernels.unpack(reached, d)
        return *found, counts

"""Values that fill the gaps of a stored table, found where its blocks are."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.passes import Block, Pass, Stored, run
from erasable.preprocessing import _mean_kernels as kernels
from erasable.preprocessing._sparse_fills import gaps_in

Reached = tuple[Floats, Floats, Ints]
"""Lowest and highest value of each column; how many values equal these, and how many there are."""


def reached(matrix: Stored, live_rows: Ints, gap: float, columns: Any = None) -> Reached:
    """Return the extremes of columns, and counts; see `_mean_kernels.extremes`."""
    return run(_Extremes(gap), matrix, live_rows, columns=columns)


def summed(
    matrix: Stored, live_rows: Ints, gap: float, grid: kernels.Grid, columns: Any = None
) -> Floats:
    """Return the sums of gridded values; see `_mean_kernels.add`."""
    return run(_Sums(gap, grid), matrix, live_rows, columns=columns)


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


class StoredGaps:
    """The numbers of gaps of the live rows of a stored table; `Gaps` without a mask of them.

    Parameters
    ----------
    matrix : Stored
    live_rows : ndarray of int64
    marker : number, str or NaN
        What a gap is marked with.

    Attributes
    ----------
    n_values : ndarray of shape (n_features,), int64
        How many live values each column has.
    strays : ndarray of shape (n_features,), int64
        How many values are NaN.
    """

    def __init__(self, matrix: Stored, live_rows: Ints, marker: Any) -> None:
        self._marker = marker
        gaps, self.strays = run(_CountGaps(marker), matrix, live_rows)
        self.n_values: Ints = live_rows.size - gaps

    def remove(self, matrix: Any, rows: Ints) -> None:
        """Forget rows, which can still be read."""
        self.n_values = self.n_values - np.count_nonzero(
            ~gaps_in(matrix[rows], self._marker), axis=0
        )

    def rows(self, columns: Flags) -> None:
        """Return None: any row may have gaps in these columns."""
        return None


class _CountGaps(Pass[tuple[Ints, Ints]]):
    """Count values that are gaps, and those that are NaN."""

    takes_gaps = True

    def __init__(self, marker: Any) -> None:
        self._marker = marker

    def of_block(self, block: Block) -> tuple[Ints, Ints]:
        own = block.matrix[block.positions]
        gaps, strays = (
            np.count_nonzero(gaps_in(own, each), axis=0).astype(np.int64)
            for each in (self._marker, np.nan)
        )
        return gaps, strays

    def merge(self, one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        return one[0] + other[0], one[1] + other[1]

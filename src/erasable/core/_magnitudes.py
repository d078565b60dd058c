"""Grid of non-negative columns, of dense and of sparse rows.

The law kept here: the grid is a function of the live rows alone, and the same for a dense matrix
and a sparse one of the same values. It depends on no single record, except on one that is alone in
the top power of two of a column; deleting any other takes time in proportion to its own values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import issparse

from erasable.core import _class_kernels as kernels
from erasable.core._grid_kernels import BITS, MAX_TOP, MIN_TOP
from erasable.core.arrays import Flags, Floats, Ints, Values
from erasable.core.grid import MAX_ROWS, GridChange
from erasable.core.messages import refuse_huge_columns, refuse_many_rows
from erasable.core.passes import Block, Pass, run
from erasable.core.sparse import parts
from erasable.core.tables import Table


@dataclass(eq=False, slots=True)
class TopGrid:
    """Fixed-point grid without an origin, of columns without negative values.

    A gridded value is a multiple of ``2**(top - 26)``, and ``x <= 2**top`` for every live value x.
    """

    top: Ints  # exponents; at least -480, as in columns of zeros
    half: Floats  # 2**(top - 1)
    counts: Ints  # live values above `half`
    magic: Floats  # 2**(top + 26), for rounding in kernels
    per_quantum: Floats  # 2**(26 - top), which makes gridded values whole numbers

    @classmethod
    def fit(cls, matrix: Values, live: Ints) -> Self:
        """Derive the grid from the live rows.

        Raise MagnitudeError for values above ``2**480``, or more than ``2**27`` rows.
        """
        refuse_many_rows(live.size, MAX_ROWS)
        grid = cls.from_top(np.full(matrix.shape[1], MIN_TOP, dtype=np.int64))
        if issparse(matrix):
            kernels.find_tops_sparse(*parts(matrix), live, grid.half, grid.counts)
        else:
            grid.half, grid.counts = run(_FindTops(), matrix, live)
        grid._derive_unit()
        refuse_huge_columns(grid.top > MAX_TOP, f"2**{MAX_TOP}")
        return grid

    @classmethod
    def from_top(cls, top: Ints) -> Self:
        """Make a grid that can round, but has no rows to :meth:`subtract`."""
        d = top.size
        half, counts = np.ldexp(0.5, top), np.zeros(d, dtype=np.int64)
        grid = cls(top, half, counts, np.zeros(d), np.zeros(d))
        grid._derive_unit()
        return grid

    @property
    def quantum(self) -> Floats:
        """Distance of two neighbours on the grid, a float64 per column."""
        return np.ldexp(1.0, self.top - BITS)

    def add(self, table: Table, rows: Ints) -> GridChange:
        """Add rows, which count in the table.

        Raise MagnitudeError for a value above ``2**480``; the grid is not usable afterwards.
        """
        before = self.half.copy()
        if table.is_sparse:
            kernels.find_tops_sparse(*parts(table.matrix), rows, self.half, self.counts)
        else:
            kernels.find_tops(*table.in_memory(rows), self.half, self.counts)
        columns: Flags = self.half != before
        if not columns.any():
            return GridChange.none(self.top.size)
        self._derive_unit()
        refuse_huge_columns(self.top > MAX_TOP, f"2**{MAX_TOP}")
        return _change_of(columns)

    def subtract(self, table: Table, rows: Ints) -> GridChange:
        """Subtract rows, which the matrix still has, and which do not count any more.

        A column is read again if it lost its last value above `half`.
        """
        matrix = table.matrix
        if table.is_sparse:
            gone = kernels.forget_tops_sparse(*parts(matrix), rows, self.half, self.counts)
        else:
            gone = kernels.forget_tops(*table.in_memory(rows), self.half, self.counts)
        if not gone:
            return GridChange.none(self.top.size)
        columns: Flags = (self.counts == 0) & (self.top > MIN_TOP)
        if not columns.any():
            return GridChange.none(self.top.size)
        live = table.live_rows()
        if table.is_sparse:  # its columns are scattered over its rows
            half = np.where(columns, np.ldexp(0.5, MIN_TOP), np.inf)
            kernels.find_tops_sparse(*parts(matrix), live, half, self.counts)
            self.half[columns] = half[columns]
        else:
            chosen = np.flatnonzero(columns)
            found = run(_FindSomeTops(chosen), matrix, live)
            self.half[chosen], self.counts[chosen] = found[0][chosen], found[1][chosen]
        self._derive_unit()
        return _change_of(columns)

    def _derive_unit(self) -> None:
        """Compute the fields that follow from `half`."""
        self.top = np.frexp(self.half)[1].astype(np.int64)
        self.magic = np.ldexp(1.0, self.top + BITS)
        self.per_quantum = np.ldexp(1.0, BITS - self.top)


def _change_of(columns: Flags) -> GridChange:
    return GridChange(True, columns, columns, columns)


class _FindTops(Pass[tuple[Floats, Ints]]):
    """Find half the power of two that bounds each column, and count the values above it."""

    def of_block(self, block: Block) -> tuple[Floats, Ints]:
        half, counts = self._nothing(block)
        kernels.find_tops(block.matrix, block.positions, half, counts)
        return half, counts

    def merge(self, one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
        half = np.maximum(one[0], other[0])
        return half, (one[0] == half) * one[1] + (other[0] == half) * other[1]

    def _nothing(self, block: Block) -> tuple[Floats, Ints]:
        d = block.matrix.shape[1]
        return np.full(d, np.ldexp(0.5, MIN_TOP)), np.zeros(d, dtype=np.int64)


class _FindSomeTops(_FindTops):
    """Do the same for some columns."""

    def __init__(self, columns: Ints) -> None:
        self._columns = columns

    def of_block(self, block: Block) -> tuple[Floats, Ints]:
        half, counts = self._nothing(block)
        for j in self._columns.tolist():
            kernels.find_top(block.matrix, block.positions, j, half, counts)
        return half, counts

"""Grid of the columns of a sparse matrix.

The law kept here is that of `erasable.core.grid`: the grid is a function of the live rows alone,
and any sum of gridded values is exact. It has no origin, because zeros that are not stored must
stay zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from erasable.core import _sparse_kernels as kernels
from erasable.core._grid_kernels import BITS, MAX_TOP, MIN_TOP
from erasable.core.arrays import Floats, Ints
from erasable.core.grid import MAX_ROWS, GridChange
from erasable.core.messages import refuse_huge_columns, refuse_many_rows
from erasable.core.sparse import parts
from erasable.core.tables import Table

__all__ = ["SparseGrid", "tops"]


@dataclass(eq=False, slots=True)
class SparseGrid:
    """Fixed-point grid of the columns of a sparse matrix; `erasable.core.grid.Grid` for CSR.

    Attributes
    ----------
    peak : ndarray of shape (n_features,), float64
        Largest magnitude of each column; 0 in columns without values.
    counts : ndarray of shape (2, n_features), int64
        How many live values have that magnitude, and how many are not 0.
    top : ndarray of shape (n_features,), int64
        Exponents: ``|x| <= 2**top`` for every live value, and a gridded value is a multiple of
        ``2**(top - 26)``. 0 in columns without values.
    magic : ndarray of shape (n_features,), float64
        ``2**(top + 26)``, what the kernels round with.
    n_rows : int
        Number of live rows.

    Examples
    --------
    >>> from erasable.core.sparse import canonical
    >>> matrix = canonical(csr_array([[0.0, 5.0], [3.0, 0.5], [0.0, 1.0]]))
    >>> grid = SparseGrid.fit(matrix, np.arange(3))
    >>> grid.top, grid.counts.tolist()
    (array([2, 3]), [[1, 1], [1, 3]])
    >>> grid.subtract(Table(matrix, lambda: np.array([1, 2])), np.array([0])).columns
    array([False,  True])
    """

    peak: Floats
    counts: Ints
    top: Ints
    magic: Floats
    n_rows: int

    @classmethod
    def fit(cls, matrix: csr_array, live_rows: Ints) -> Self:
        """Derive the grid from the live rows of a matrix.

        Parameters
        ----------
        matrix : csr_array of shape (n_rows, n_features), float64 or float32
            Finite values.
        live_rows : ndarray of int64
            Distinct positions of the rows that count.

        Returns
        -------
        SparseGrid

        Raises
        ------
        MagnitudeError
            If a value exceeds ``2**480`` in magnitude, or there are more than ``2**27`` rows.
        """
        refuse_many_rows(live_rows.size, MAX_ROWS)
        d = matrix.shape[1]
        peak, counts = np.zeros(d), np.zeros((2, d), dtype=np.int64)
        kernels.peaks(*parts(matrix), live_rows, peak, counts)
        refuse_huge_columns(peak > 2.0**MAX_TOP, f"2**{MAX_TOP}")
        top = tops(peak)
        return cls(peak, counts, top, np.ldexp(1.0, top + BITS), int(live_rows.size))

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> Self:
        """Rebuild a grid that can round, but knows no rows to :meth:`subtract`."""
        top = np.array(state["top"], dtype=np.int64)
        d = top.size
        empty = np.zeros((2, d), dtype=np.int64)
        return cls(np.zeros(d), empty, top, np.ldexp(1.0, top + BITS), 0)

    @property
    def quantum(self) -> Floats:
        """Distance of two neighbours on the grid, a float64 per column."""
        return np.ldexp(1.0, self.top - BITS)

    @property
    def origin(self) -> Floats:
        """Zeros: what `Grid` would subtract."""
        return np.zeros(self.top.size)

    def apply(self, matrix: csr_array, rows: Ints) -> csr_array:
        """Round rows to the grid.

        Returns
        -------
        csr_array of shape (len(rows), n_features), float64
        """
        chosen = matrix[rows]
        data = np.empty(chosen.data.size)
        every = np.arange(chosen.shape[0])
        kernels.to_grid(*parts(chosen), every, self.magic, data)
        return csr_array((data, chosen.indices, chosen.indptr), shape=chosen.shape)

    def add(self, table: Table, rows: Ints) -> GridChange:
        """Add rows, in time in their values while none exceeds its column's bound; see `Grid`."""
        refuse_many_rows(self.n_rows + rows.size, MAX_ROWS)
        self.n_rows += rows.size
        peak, before, matrix = self.peak.copy(), self.magic, table.matrix
        kernels.peaks(*parts(matrix), rows, self.peak, self.counts)
        refuse_huge_columns(self.peak > 2.0**MAX_TOP, f"2**{MAX_TOP}")
        top = tops(self.peak)
        columns, values = top != self.top, np.zeros(top.size, dtype=np.bool_)
        self.top, self.magic = top, np.ldexp(1.0, top + BITS)
        if (columns & (peak > 0)).any():
            kernels.moved(*parts(matrix), table.live_rows(), before, self.magic, values)
        return GridChange(bool(columns.any()), columns, values, self.peak != peak)

    def subtract(self, table: Table, rows: Ints) -> GridChange:
        """Subtract rows, in time in their values while no column loses its peak; see `Grid`.

        `extremes` of what changed are the columns whose peak changed.
        """
        self.n_rows -= rows.size
        matrix = table.matrix
        d = self.top.size
        still = np.zeros(d, dtype=np.bool_)
        if not kernels.forget_peaks(*parts(matrix), rows, self.peak, self.counts):
            return GridChange(False, still, still, still)
        lost = (self.counts[0] == 0) & (self.peak > 0)
        self.peak[lost] = 0.0
        scan = lost & (self.counts[1] > 0)
        before = self.magic
        if scan.any():
            live = table.live_rows()
            kernels.rescan_peaks(*parts(matrix), live, scan, self.peak, self.counts)
        top = tops(self.peak)
        columns = top != self.top
        values = still.copy()
        self.top, self.magic = top, np.ldexp(1.0, top + BITS)
        if (columns & scan).any():
            kernels.moved(*parts(matrix), live, before, self.magic, values)
        return GridChange(bool(columns.any()), columns, values, lost)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of the array that a model must keep: ``top`` (int64)."""
        return {"top": self.top.copy()}


def tops(peak: Floats) -> Ints:
    """Smallest exponents that bound the magnitudes; 0 for columns of zeros.

    Examples
    --------
    >>> tops(np.array([0.0, 4.0, 5.0]))
    array([0, 2, 3])
    """
    fraction, exponent = np.frexp(peak)
    found = exponent.astype(np.int64) - (fraction == 0.5)
    return np.where(peak > 0, np.maximum(found, MIN_TOP), 0)

"""Exact moments of the columns of a sparse matrix, of which only stored values are read."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core._grid_kernels import BITS, quantise
from erasable.core._jit import kernel
from erasable.core._moment_kernels import HALF, ROUND_HALF
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.moments import Moments
from erasable.core.sparse import parts


class SparseMoments(Moments):
    """`erasable.core.moments.Moments` for CSR, on a `SparseGrid`: zeros add nothing to any sum.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from erasable.core.sparse import SparseGrid, canonical
    >>> rows = canonical(csr_array([[0.0, 1.0], [4.0, 1.0], [8.0, 4.0]]))
    >>> moments = SparseMoments.fit(SparseGrid.fit(rows, np.arange(3)), rows, np.arange(3))
    >>> moments.mean(), moments.variance()
    (array([4., 2.]), array([10.66666667,  2.        ]))
    """

    @classmethod
    def fit(
        cls, grid: Any, matrix: Any, live_rows: Ints | None = None, *, n_jobs: int | None = None
    ) -> Self:
        """Sum the live rows of a matrix."""
        moments = cls(grid=grid, n_rows=0, sums=np.zeros((4, matrix.shape[1])))
        rows = np.arange(matrix.shape[0]) if live_rows is None else live_rows
        moments._accumulate(matrix, rows, 1.0)
        return moments

    def rederive(self, matrix: Any, live_rows: Ints, columns: Flags) -> None:
        """Sum some columns again, because their grid changed."""
        self.sums[:, columns] = 0.0
        self._sum(matrix, live_rows, columns, 1.0)

    def _accumulate(self, matrix: Any, rows: Ints, sign: float) -> None:
        self.n_rows += int(sign) * rows.size
        self._sum(matrix, rows, np.ones(matrix.shape[1], dtype=np.bool_), sign)

    def _sum(self, matrix: Any, rows: Ints, columns: Flags, sign: float) -> None:
        per_quantum = np.ldexp(1.0, BITS - self.grid.top)
        _add(*parts(matrix), rows, columns, sign, self.grid.magic, per_quantum, self.sums)


@kernel
def _add(
    data: Matrix,
    indices: NDArray[np.int32] | Ints,
    indptr: NDArray[np.int32] | Ints,
    rows: Ints,
    columns: Flags,
    sign: float,
    magic: Floats,
    per_quantum: Floats,
    sums: Floats,
) -> None:
    """Add the values of rows in some columns to `sums` (m, hh, hl, ll), or take them away."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if not columns[j]:
                continue
            m = quantise(np.float64(data[e]), magic[j]) * per_quantum[j]
            upper = (m + ROUND_HALF) - ROUND_HALF
            h, lower = upper / HALF, m - upper
            sums[0, j] += sign * m
            sums[1, j] += sign * (h * h)
            sums[2, j] += sign * (h * lower)
            sums[3, j] += sign * (lower * lower)

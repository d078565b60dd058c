"""A forget set and a retain set, with the exact moments of both.

The law they keep: a moment is a function of the set of rows alone. Values are rounded once to a
grid that both sets share, and sums of gridded values are exact, so any order of the rows and any
sharding gives the same bits. The grid and the sums are those of `erasable.core`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core import _grid_kernels as grid_kernels
from erasable.core._grid_kernels import Floats
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.sparse import SparseGrid, take_rows, tops
from erasable.removal import _row_kernels as kernels

__all__ = ["Sets", "distances_to", "products_with"]

_HALF = 2.0**13  # as in `Moments`


class Sets:
    """The two sets that scores contrast.

    Parameters
    ----------
    forget, retain : ndarray or csr_array of shape (n_rows, n_features), float64 or float32

    Attributes
    ----------
    grid : Grid or SparseGrid
        That of the union of both.
    forget_moments, retain_moments : Moments
    """

    def __init__(self, forget: Any, retain: Any) -> None:
        self.forget, self.retain = forget, retain

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return bool(issparse(self.forget))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.forget.shape[1])

    @cached_property
    def grid(self) -> Grid | SparseGrid:
        """Round both sets alike."""
        if self.sparse:
            peaks = [SparseGrid.fit(X, np.arange(X.shape[0])).peak for X in self._both]
            return SparseGrid.from_state({"top": tops(np.maximum(*peaks))})
        grids = [Grid.fit(X) for X in self._both]
        d = self.n_features
        origin, top, magic = np.empty(d), np.empty(d, dtype=np.int64), np.empty(d)
        low = np.minimum(grids[0].low, grids[1].low)
        high = np.maximum(grids[0].high, grids[1].high)
        grid_kernels.brackets(low, high, origin, top, magic)
        return Grid.from_state({"top": top, "origin": origin})

    @cached_property
    def forget_moments(self) -> Moments:
        """Exact sums of the forget set."""
        return self._moments(self.forget)

    @cached_property
    def retain_moments(self) -> Moments:
        """Exact sums of the retain set."""
        return self._moments(self.retain)

    @property
    def _both(self) -> tuple[Any, Any]:
        return self.forget, self.retain

    def _moments(self, matrix: Any) -> Moments:
        grid: Any = self.grid
        if not self.sparse:
            return Moments.fit(grid, matrix)
        gridded = grid.apply(matrix, np.arange(matrix.shape[0]))
        whole = gridded.data / grid.quantum[gridded.indices]
        upper = np.rint(whole / _HALF)
        lower = whole - upper * _HALF
        # Sums of whole numbers below 2**53: exact in whichever order they are added.
        terms = (whole, upper * upper, upper * lower, lower * lower)
        sums = [np.bincount(gridded.indices, t, minlength=self.n_features) for t in terms]
        return Moments(grid=grid, n_rows=matrix.shape[0], sums=np.array(sums))

    def part(self, forget_rows: NDArray[np.int64], retain_rows: NDArray[np.int64]) -> Sets:
        """Copy some rows of both."""
        return Sets(take_rows(self.forget, forget_rows), take_rows(self.retain, retain_rows))


def distances_to(centre: Floats, rows: Any) -> Floats:
    """Return the squared Euclidean distance of each row to a centre."""
    out = np.empty(rows.shape[0])
    if issparse(rows):
        kernels.sparse_distances(rows.data, rows.indices, rows.indptr, centre, out)
    else:
        kernels.distances(rows, centre, out)
    return out


def products_with(centre: Floats, rows: Any) -> Floats:
    """Return the scalar product of each row with a centre."""
    out = np.empty(rows.shape[0])
    if issparse(rows):
        kernels.sparse_products(rows.data, rows.indices, rows.indptr, centre, out)
    else:
        kernels.products(rows, centre, out)
    return out

"""The gridded records of a clustering model, kept up to date as records leave."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from erasable.core.arrays import Ints, Words
from erasable.core.attachment import Attachment
from erasable.core.grid import Grid
from erasable.core.threads import over_rows, several

from ._distances import Points


class GriddedTable:
    """Records on the grid, with their keys.

    Parameters
    ----------
    held : Attachment
        The records of the model.
    keys : ndarray of shape (n_rows,), uint64
        Their keys; shared with the model, which blanks those of deleted records.
    names : list of str or None
        Names of the columns, for warnings.
    warn : bool
        Whether to warn of columns that the grid is too coarse for.
    n_jobs : int or None
        Threads.

    Attributes
    ----------
    grid : Grid
    X : ndarray of shape (n_rows, n_features)
        Gridded values; the records' own matrix where rounding changes nothing.
    rows : ndarray of shape (n_records,), int64
        Rows of the records that were live when the table was made; positions index it.
    """

    def __init__(
        self,
        held: Attachment,
        keys: Words,
        names: list[str] | None = None,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        matrix = held.records.matrix
        self.rows = held.live_rows()
        self.grid = Grid.fit(
            matrix,
            None if self.rows.size == matrix.shape[0] else self.rows,
            names=names,
            warn=warn,
            n_jobs=n_jobs,
        )
        self.keys = keys
        self._held = held
        self._shared = self.grid.lossless and not self.grid.origin.any()
        dtype = np.float32 if self.grid.narrow else np.float64
        self.X = matrix if self._shared else self._gridded(matrix, dtype, n_jobs)
        if self.rows.size < matrix.shape[0]:
            self.wipe(np.flatnonzero(~held.live))

    def _gridded(self, matrix: NDArray[Any], dtype: DTypeLike, n_jobs: int | None) -> NDArray[Any]:
        if not several(matrix.shape[0], n_jobs):
            return self.grid.apply(matrix, dtype=dtype)
        out = np.empty(matrix.shape, dtype)

        def apply(rows: slice) -> None:
            out[rows] = self.grid.apply(matrix[rows], dtype=dtype)

        for _ in over_rows(apply, matrix.shape[0], n_jobs):
            pass
        return out

    def points(self) -> Points:
        """Return the records as a k-means problem."""
        return Points(self.X, self.keys, self.rows)

    def positions(self, rows: Ints) -> Ints:
        """Return the positions of rows."""
        if self.rows.size == self.X.shape[0]:
            return rows
        return np.searchsorted(self.rows, rows)

    def remove(self, rows: Ints) -> bool:
        """Take rows off the grid; return whether gridded values of other rows changed."""
        change = self.grid.remove(self._held.records.matrix, rows, self._held.live_rows)
        return bool(change.values.any())

    def wipe(self, rows: Ints) -> None:
        """Overwrite the gridded values of rows that are deleted."""
        if not self._shared:
            self.X[rows] = 0.0

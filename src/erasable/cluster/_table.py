"""The gridded records of a clustering model, kept up to date as records leave and come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from erasable.core.arrays import Ints, Words
from erasable.core.attachment import Attachment
from erasable.core.grid import Grid, GridChange
from erasable.core.row_arrays import padded
from erasable.core.tables import Table
from erasable.core.tape import Tape
from erasable.core.threads import over_rows, several

from ._distances import Points

_FEW = 16  # keys that are compared with all others one by one


def chosen_rows(held: Attachment) -> Ints | None:
    """Return the rows that are live, None for all: they are not sent to where records are."""
    return None if held.n_live == held.records.n_rows else held.live_rows()


class RecordGrid:
    """The grid of a model's records, which are put on it when they are read, and their keys."""

    in_memory: ClassVar[bool] = False
    grid: Grid

    def __init__(self, held: Attachment, keys: Words) -> None:
        self.held = held
        # (n_rows,); shared with the model, which blanks those of deleted records
        self.keys = keys

    def take_arrays(self, held: Attachment) -> None:
        """Refer to the records where they are now, with room for new ones."""
        self.held = held
        self.keys = padded(self.keys, held.records.n_rows, keep=True)

    def add(self, rows: Ints, tape: Tape) -> bool:
        """Take in rows that are live now; return whether other rows are still what they were.

        If not, or if a key is that of another record, the table has to be made anew.
        """
        if not self._bears(self.grid.add(Table.of(self.held), rows)):
            return False
        new = tape.record_keys(self.held.records.ids[rows])
        if np.unique(new).size < new.size or self._knows(new):
            return False
        self.keys[rows] = new
        return True

    def _bears(self, change: GridChange) -> bool:
        """Tell whether the grid is still that of the other rows, after an addition."""
        return not change.columns.any()

    def _knows(self, keys: Words) -> bool:
        """Tell whether any of some keys is there; those of deleted records are 0."""
        if keys.size > _FEW:
            return bool(np.isin(self.keys, keys).any())  # many among few: the faster way
        return any((self.keys == key).any() for key in keys)

    def remove(self, rows: Ints, live_rows: Callable[[], Ints] | None = None) -> GridChange:
        """Take rows off the grid.

        `live_rows` returns those that are left; by default those that are live.
        """
        live_rows = self.held.live_rows if live_rows is None else live_rows
        return self.grid.subtract(Table(self.held.records.matrix, live_rows), rows)

    def wipe(self, rows: Ints) -> None:
        """Overwrite what is held of rows that are deleted."""
        self.keys[rows] = 0


class GriddedTable(RecordGrid):
    """Records on the grid in memory."""

    in_memory = True

    def __init__(
        self,
        held: Attachment,
        keys: Words,
        names: list[str] | None = None,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        matrix = held.records.matrix
        # (n_records,); rows of the records that were live when the table was made
        self.rows = held.live_rows()
        chosen = None if self.rows.size == matrix.shape[0] else self.rows
        super().__init__(held, keys)
        self.grid = Grid.fit(matrix, chosen, names=names, warn=warn, n_jobs=n_jobs)
        self._shared = self.grid.lossless and not self.grid.origin.any()
        dtype = np.float32 if self.grid.narrow else np.float64
        # (n_rows, n_features); gridded values; the records' own matrix where rounding changes
        # nothing
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

    def take_arrays(self, held: Attachment) -> None:
        """See `RecordGrid`."""
        super().take_arrays(held)
        matrix = held.records.matrix
        self.X = matrix if self._shared else padded(self.X, matrix.shape[0])

    def add(self, rows: Ints, tape: Tape) -> bool:
        """See `RecordGrid`."""
        added = super().add(rows, tape)
        if added and not self._shared:
            self.X[rows] = self.grid.apply(self.held.records.matrix, rows, dtype=self.X.dtype)
        return added

    def _bears(self, change: GridChange) -> bool:
        """Tell whether gridded values are what they were, and `X` has room for all."""
        if change.values.any():
            return False
        if self._shared:
            return self.grid.lossless and not self.grid.origin.any()
        return self.X.dtype == np.float64 or self.grid.narrow

    def wipe(self, rows: Ints) -> None:
        """See `RecordGrid`."""
        super().wipe(rows)
        if not self._shared:
            self.X[rows] = 0.0

"""Exact second moments of the records of every segment, all on the same grids.

Because the grids are the same, a record that changes its segment is taken from one sum and added
to another without error, and the sums of all segments add up to those of all records.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Ints
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.passes import Stored
from erasable.core.records import Records
from erasable.core.row_arrays import padded
from erasable.core.threads import in_threads
from erasable.linear_model._design import _as_columns

Labels = NDArray[np.int32]


class SegmentSums:
    """What is summed of the live rows of records; an accelerator, but for `grams`.

    Parameters
    ----------
    records : Records
        With targets of numbers.
    grid : Grid
        Of the matrix; the caller keeps it up to date.
    live_rows : ndarray of int64
        Positions of the rows that count.
    labels : ndarray of shape (n_live,), int32
        Their segments.
    n_segments : int
    warn : bool, default=False
        Warn of targets of which many small values become 0?
    n_jobs : int or None
        Threads.

    Attributes
    ----------
    grams : list of Gram
        One for each segment.

    Raises
    ------
    InvalidDataError, MagnitudeError
        See `Gram.fit` and `Grid.fit`.
    """

    def __init__(
        self,
        records: Records,
        grid: Grid,
        live_rows: Ints,
        labels: Labels,
        n_segments: int,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self._records = records
        self._targets = _as_columns(records.y, live_rows)
        names = [f"y[{k}]" for k in range(self._targets.shape[1])]
        self._target_grid = Grid.fit(self._targets, live_rows, names=names, warn=warn)
        self._labels = np.full(records.n_rows, -1, dtype=np.int32)
        self._labels[live_rows] = labels
        self._n_jobs, self._n_segments = n_jobs, n_segments
        # Copies without extremes: those of the grids are brought up to date, these need not be.
        self._grids = Grid.from_state(grid.state()), Grid.from_state(self._target_grid.state())
        self.grams = self._summed(live_rows, labels)

    def _summed(self, rows: Ints, labels: Labels) -> list[Gram]:
        """Sum rows by their segments: where they are stored, in one pass."""
        matrix, targets = self._records.matrix, self._targets
        grid, of_targets = self._grids
        if isinstance(matrix, Stored):
            return Gram.fit_each(grid, matrix, of_targets, targets, rows, labels, self._n_segments)

        def gram(s: int) -> Gram:
            return Gram.fit(grid, matrix, of_targets, targets, rows[labels == s])

        return list(in_threads(gram, range(self._n_segments), self._n_jobs))

    def take_arrays(self, records: Records) -> None:
        """Refer to the arrays of records that have room for new rows."""
        assert records.y is not None
        self._records, n_rows = records, records.n_rows
        table = records.y.reshape(n_rows, -1)
        own = table.dtype == np.float64
        self._targets = table if own else padded(self._targets, n_rows)
        self._labels = padded(self._labels, n_rows, fill=-1)

    def add(self, rows: Ints, labels: Labels) -> Ints:
        """Take new rows into the sums; return their segments."""
        return self._move(rows, labels, 1)

    def remove(self, rows: Ints) -> Ints:
        """Take rows out of the sums; return the segments they were in."""
        return self._move(rows, self._labels[rows], -1)

    def keeps_grids(self, grid: Grid, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        """Take rows off the grid of the targets; tell whether it and `grid` are what they were."""
        change = self._target_grid.remove(self._targets, rows, live_rows)
        return self._is_on(grid) and not change.exponents

    def has_grids(self, grid: Grid, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        """Take new rows into the grid of the targets; see `keeps_grids`."""
        if not np.may_share_memory(self._targets, self._records.y):
            assert self._records.y is not None
            self._targets[rows] = self._records.y[rows].reshape(rows.size, -1)
        change = self._target_grid.add(self._targets, rows, live_rows)
        return self._is_on(grid) and not change.exponents

    def _is_on(self, grid: Grid) -> bool:
        own = self.grams[0].grid
        return np.array_equal(own.top, grid.top) and np.array_equal(own.origin, grid.origin)

    def relabel(self, live_rows: Ints, labels: Labels) -> tuple[Ints, Ints]:
        """Move rows to where they belong now; return these, and the segments concerned."""
        moving = self._labels[live_rows] != labels
        rows, after = live_rows[moving], labels[moving]
        before = self._labels[rows]
        if isinstance(self._records.matrix, Stored) and rows.size:
            for s, gram in enumerate(self._summed(rows, before)):
                self.grams[s].subtract(gram)
            for s, gram in enumerate(self._summed(rows, after)):
                self.grams[s].merge(gram)
            self._labels[rows] = after
            return rows, np.union1d(before, after)
        left = self._move(rows, before, -1)
        return rows, np.union1d(left, self._move(rows, after, 1))

    def wipe(self, rows: Ints) -> None:
        """Overwrite what was copied of rows."""
        if not np.may_share_memory(self._targets, self._records.y):
            self._targets[rows] = 0.0

    def _move(self, rows: Ints, labels: Labels, sign: int) -> Ints:
        matrix = self._records.matrix
        segments = np.unique(labels).astype(np.int64)
        for s in segments.tolist():
            some = rows if segments.size == 1 else rows[labels == s]
            if sign > 0:
                self.grams[s].add(matrix, self._targets, some)
            else:
                self.grams[s].remove(matrix, self._targets, some)
        self._labels[rows] = labels if sign > 0 else -1
        return segments


def add_up(grams: list[Gram]) -> Gram:
    """Return the sums of all segments together."""
    total = grams[0].copy()
    for gram in grams[1:]:
        total.n_rows += gram.n_rows
        total.totals += gram.totals
    return total

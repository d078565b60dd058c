"""The columns that a linear model learns from, and their exact second moments.

Without weights these are the features and targets as they are, and the constant is understood.
With weights they are ``sqrt(w)`` times the features less their origins, ``sqrt(w)`` itself, and
``sqrt(w)`` times the targets less theirs: what is rounded to the grid is then not the offset.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.extremes import Extremes
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.matrices import blank_rows
from erasable.core.records import Records
from erasable.core.row_arrays import padded
from erasable.core.tables import Table


class WeightedTargets:
    """Targets, perhaps weighted, that are summed with other columns of the live rows of records.

    A subclass implements `forget`, `_graded` and `_again`.
    """

    gram: Gram
    origin: Floats | None

    def __init__(self, records: Records, live_rows: Ints) -> None:
        self._records = records
        self._plain = _as_columns(records.y, live_rows)
        self._targets = self._plain
        self._outer: list[Grid] = []
        self.origin = None

    def forget(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """Take rows out; return how many columns were read again, None: sum everything anew."""
        raise NotImplementedError(f"{type(self).__name__} does not implement forget()")

    def learn(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """Take rows in; return how many columns were read again, None: sum everything anew."""
        raise NotImplementedError(f"{type(self).__name__} does not implement learn()")

    def take_arrays(self, records: Records) -> None:
        """Refer to the arrays of records that have room for new rows."""
        self._records = records
        assert records.y is not None
        table = records.y.reshape(records.n_rows, -1)
        if table.dtype == np.float64:
            self._plain = table
        elif self._plain.shape[0] < records.n_rows:
            self._plain = padded(self._plain, records.n_rows)
        self._targets = self._plain if not self._outer else padded(self._targets, records.n_rows)

    def _read_targets(self, rows: Ints) -> None:
        """Copy the targets of new rows, where they are copied."""
        assert self._records.y is not None
        if not np.may_share_memory(self._plain, self._records.y):
            self._plain[rows] = self._records.y[rows].reshape(rows.size, -1)

    def _graded(self) -> list[tuple[Any, Any]]:
        """Return the grids, and the dense columns that each of them is of."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _graded()")

    def _again(self, live_rows: Ints) -> Any:
        """Sum other rows of the records."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _again()")

    def wipe(self, rows: Ints) -> None:
        """Overwrite what was copied of rows."""
        for copied in (self._plain, self._targets):
            if not np.may_share_memory(copied, self._records.y):
                copied[rows] = 0.0

    def keeps_grids(self, rows: Ints) -> Flags:
        """Tell of each dense row whether taking it out surely changes no grid."""
        kept = np.ones(rows.size, dtype=np.bool_)
        for grid, columns in self._graded():
            kept &= ~alone_at_extreme(grid.extremes, columns, rows)
        if self._records.weights is not None:
            kept[self._records.weights[rows] == 0.0] = False
        return kept

    def without(self, rows: Ints, live_rows: Ints) -> tuple[Gram, Floats | None]:
        """Return the sums, and the origins, of the live rows without some of them."""
        left = np.setdiff1d(live_rows, rows, assume_unique=True)
        other = copy.copy(self)
        other.gram, other._outer = copy.deepcopy((self.gram, self._outer))
        if other.forget(rows, lambda: left) is None:
            other = self._again(left)
        return other.gram, other.origin

    def _counted(self, rows: Ints) -> Ints:
        weights = self._records.weights
        return rows if weights is None else rows[weights[rows] > 0.0]

    def _weigh_targets(self, weights: Floats, rows: Ints) -> Floats:
        """Make the targets ``sqrt(w)`` and ``sqrt(w)`` times themselves; return ``sqrt(w)``."""
        root: Floats = np.sqrt(weights[rows])[:, None]
        self._outer = [Grid.fit(self._plain, rows, warn=False)]
        self._targets = np.zeros((self._plain.shape[0], 1 + self._plain.shape[1]))
        self._targets[rows, :1] = root
        self._targets[rows, 1:] = root * (self._plain[rows] - self._outer[0].origin)
        return root


class LinearDesign(WeightedTargets):
    """Sums over live rows; `gram` and `origin` are state, the rest an accelerator."""

    def __init__(
        self,
        records: Records,
        live_rows: Ints,
        names: Sequence[str] | None = None,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(records, live_rows)
        self._matrix: Any = records.matrix
        rows = self._counted(live_rows)
        if records.weights is not None:
            self._weigh(records.weights, rows)
        of_targets = [f"y[{k}]" for k in range(self._targets.shape[1])]
        target_grid = Grid.fit(self._targets, rows, names=of_targets, warn=warn)
        table = Table(self._matrix, lambda: rows, targets=self._targets, names=names, n_jobs=n_jobs)
        self.gram = Gram.fit_with_grid(table, target_grid, warn=warn)

    def forget(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """See `WeightedTargets`."""
        if self.origin is not None:
            rows = self._counted(rows)
            every, live_rows = live_rows, lambda: self._counted(every())
            if self._origins_move(rows, live_rows):
                return None
        return self.gram.subtract(Table(self._matrix, live_rows, targets=self._targets), rows)

    def take_arrays(self, records: Records) -> None:
        """See `WeightedTargets`."""
        super().take_arrays(records)
        if self.origin is None:
            self._matrix = records.matrix
        elif not issparse(records.matrix):
            self._matrix = padded(self._matrix, records.n_rows)

    def learn(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """See `WeightedTargets`."""
        self._read_targets(rows)
        if self.origin is not None:
            rows = self._counted(rows)
            every, live_rows = live_rows, lambda: self._counted(every())
            if not self._weigh_more(rows, live_rows):
                return None
        return self.gram.add(Table(self._matrix, live_rows, targets=self._targets), rows)

    def wipe(self, rows: Ints) -> None:
        """Overwrite what was copied of rows."""
        if self._matrix is not self._records.matrix:
            blank_rows(self._matrix, rows)
        super().wipe(rows)

    @property
    def tables(self) -> tuple[Any, Floats]:
        """What is summed: the matrix, and the targets behind it."""
        return self._matrix, self._targets

    def _graded(self) -> list[tuple[Any, Any]]:
        return [
            (self.gram.grid, self._matrix),
            (self.gram.target_grid, self._targets),
            *zip(self._outer, (self._records.matrix, self._plain), strict=False),
        ]

    def _again(self, live_rows: Ints) -> LinearDesign:
        return LinearDesign(self._records, live_rows)

    # -- weights -------------------------------------------------------------------------------

    def _weigh(self, weights: Floats, rows: Ints) -> None:
        matrix, root = self._records.matrix, self._weigh_targets(weights, rows)
        if issparse(matrix):
            self._matrix = _scaled(matrix, rows, root[:, 0])
        else:
            self._outer.insert(0, Grid.fit(matrix, rows, warn=False))
            self._matrix = np.zeros(matrix.shape)
            self._matrix[rows] = root * (matrix[rows] - self._outer[0].origin)
        self.origin = self._origins()

    def _weigh_more(self, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        """Weigh new rows; false if the origins are others now."""
        records = self._records
        assert records.weights is not None
        for grid, values in zip(self._outer[::-1], (self._plain, records.matrix), strict=False):
            grid.add(Table(values, live_rows), rows)
        if self.origin is None or not np.array_equal(self._origins(), self.origin):
            return False
        root = np.sqrt(records.weights[rows])[:, None]
        self._targets[rows, :1] = root
        self._targets[rows, 1:] = root * (self._plain[rows] - self._outer[-1].origin)
        if issparse(records.matrix):
            counted = live_rows()
            self._matrix = _scaled(records.matrix, counted, np.sqrt(records.weights[counted]))
        else:
            self._matrix[rows] = root * (records.matrix[rows] - self._outer[0].origin)
        return True

    def _origins(self) -> Floats:
        of_features = [np.zeros(self._matrix.shape[1])] if issparse(self._matrix) else []
        return np.concatenate([*of_features, *(grid.origin for grid in self._outer)])

    def _origins_move(self, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        for grid, values in zip(
            self._outer[::-1], (self._plain, self._records.matrix), strict=False
        ):
            grid.subtract(Table(values, live_rows), rows)
        return self.origin is None or not np.array_equal(self._origins(), self.origin)


def _as_columns(y: Any, rows: Ints) -> Floats:
    """Return targets as columns of numbers, their own where they are such; else a copy of rows."""
    table = y.reshape(y.shape[0], -1)
    if table.dtype == np.float64:
        own: Floats = table
        return own
    columns = np.zeros(table.shape)
    every = rows.size == table.shape[0]
    columns[... if every else rows] = table if every else table[rows]
    return columns


def _scaled(matrix: Any, rows: Ints, factors: Floats) -> csr_array:
    """Copy some rows of a sparse matrix, each times a factor; the others are blank."""
    every = np.zeros(matrix.shape[0])
    every[rows] = factors
    data = matrix.data * np.repeat(every, np.diff(matrix.indptr))
    scaled = csr_array((data, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
    blank_rows(scaled, np.setdiff1d(np.arange(matrix.shape[0]), rows, assume_unique=True))
    return scaled


def alone_at_extreme(extremes: Extremes, matrix: Any, rows: Ints) -> Flags:
    """Tell which rows are the only ones at the lowest or the highest value of some column."""
    alone = np.zeros(rows.size, dtype=np.bool_)
    _find_alone(matrix, rows, extremes.low, extremes.high, extremes.counts, alone)
    return alone


@kernel
def _find_alone(
    matrix: Matrix, rows: Ints, low: Floats, high: Floats, counts: Ints, alone: Flags
) -> None:
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            at_low = counts[0, j] == 1 and value == low[j]
            alone[i] |= at_low or (counts[1, j] == 1 and value == high[j])

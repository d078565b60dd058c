"""The columns that a linear model learns from, and their exact second moments.

Without weights these are the features and targets as they are, and the constant is understood.
With weights they are ``sqrt(w)`` times the features less their origins, ``sqrt(w)`` itself, and
``sqrt(w)`` times the targets less theirs: what is rounded to the grid is then not the offset.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.attachment import HeldRecords
from erasable.core.changes import Delta
from erasable.core.extremes import Extremes
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.matrices import blank_rows
from erasable.core.row_arrays import padded
from erasable.core.tables import Table


class WeightedTargets(ABC):
    """Targets, perhaps weighted, that are summed with other columns of the live rows of records.

    A subclass calls `_weigh_first` before it fits `gram`, and `_set_origin` after that.
    """

    gram: Gram
    origin: Floats | None = None

    def __init__(self, records: HeldRecords, live_rows: Ints) -> None:
        self._records = records
        self._plain = _as_columns(records.y, live_rows)
        self._targets = self._plain
        self._outer: list[Grid] = []  # of what is weighted; that of the targets is the last

    def update(self, table: Table, delta: Delta) -> int | None:
        """Subtract and add rows; see `erasable.core.summaries.Summary.update`."""
        scanned: int | None = 0
        if delta.leaving.size:
            scanned = self.subtract(table.without(delta.arriving), delta.leaving)
        if scanned is None or not delta.arriving.size:
            return scanned
        more = self.add(table, delta.arriving)
        return None if more is None else scanned + more

    def add(self, table: Table, rows: Ints) -> int | None:
        """Add rows, which count in the table; see `subtract`."""
        assert self._records.y is not None
        if not np.may_share_memory(self._plain, self._records.y):
            self._plain[rows] = self._records.y[rows].reshape(rows.size, -1)
        return self._change(table, rows, 1)

    def subtract(self, table: Table, rows: Ints) -> int | None:
        """Subtract rows, which do not count any more in the table.

        Return how many columns were read again; None if everything is to be summed again.
        """
        return self._change(table, rows, -1)

    def _change(self, table: Table, rows: Ints, sign: int) -> int | None:
        if self.origin is None:
            return self._accumulate(table.live_rows, rows, sign)
        rows = self._counted(rows)

        def live_rows() -> Ints:
            return self._counted(table.live_rows())

        for grid, values in zip(self._outer[::-1], (self._plain, table.matrix), strict=False):
            (grid.add if sign > 0 else grid.subtract)(Table(values, live_rows), rows)
        if not np.array_equal(self._origins(), self.origin):
            return None
        if sign > 0:
            self._weigh(rows, live_rows)
        return self._accumulate(live_rows, rows, sign)

    @abstractmethod
    def _accumulate(self, live_rows: Callable[[], Ints], rows: Ints, sign: int) -> int | None:
        """Add weighted rows to the sums, or subtract them; see `subtract`."""

    @abstractmethod
    def _graded(self) -> list[tuple[Any, Any]]:
        """Return the grids, and the dense columns that each of them is of."""

    @abstractmethod
    def _again(self, live_rows: Ints) -> Self:
        """Sum other rows of the records."""

    @abstractmethod
    def parts(self, rows: Ints) -> Iterator[tuple[slice, Any, Any, Any, Any]]:
        """Yield dense records by parts: of `rows`, what is summed, the features, their places."""

    def take_arrays(self, records: HeldRecords) -> None:
        """Refer to the arrays of records that have room for new rows."""
        self._records = records
        assert records.y is not None
        table = records.y.reshape(records.n_rows, -1)
        self._plain = table if table.dtype == np.float64 else padded(self._plain, records.n_rows)
        self._targets = self._plain if not self._outer else padded(self._targets, records.n_rows)

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
        if other.subtract(Table(self._records.matrix, lambda: left), rows) is None:
            other = self._again(left)
        return other.gram, other.origin

    def _counted(self, rows: Ints) -> Ints:
        weights = self._records.weights
        return rows if weights is None else rows[weights[rows] > 0.0]

    def _weigh_first(self, rows: Ints) -> None:
        """Make the targets ``sqrt(w)`` and ``sqrt(w)`` times themselves, if there are weights."""
        if self._records.weights is not None:
            self._outer = self._fit_outer(rows)
            self._targets = np.zeros((self._plain.shape[0], 1 + self._plain.shape[1]))
            self._weigh(rows, lambda: rows)

    def _fit_outer(self, rows: Ints) -> list[Grid]:
        """Fit grids to what is weighted."""
        return [Grid.fit(self._plain, rows, warn=False)]

    def _weigh(self, rows: Ints, live_rows: Callable[[], Ints]) -> Floats:
        """Weigh some of the live rows; return ``sqrt(w)`` as a column."""
        assert self._records.weights is not None
        root: Floats = np.sqrt(self._records.weights[rows])[:, None]
        self._targets[rows, :1] = root
        self._targets[rows, 1:] = root * (self._plain[rows] - self._outer[-1].origin)
        return root

    def _set_origin(self) -> None:
        self.origin = self._origins() if self._outer else None

    def _origins(self) -> Floats:
        """Return what was subtracted before weighting; 0 for columns without a grid."""
        found = np.concatenate([grid.origin for grid in self._outer])
        return np.concatenate([np.zeros(self.gram.top.size - 1 - found.size), found])


class LinearDesign(WeightedTargets):
    """Sums over live rows; `gram` and `origin` are state, the rest an accelerator."""

    def __init__(
        self,
        records: HeldRecords,
        live_rows: Ints,
        names: Sequence[str] | None = None,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(records, live_rows)
        self._matrix: Any = records.matrix
        self._is_sparse = Table(records.matrix).is_sparse
        rows = self._counted(live_rows)
        self._weigh_first(rows)
        of_targets = [f"y[{k}]" for k in range(self._targets.shape[1])]
        target_grid = Grid.fit(self._targets, rows, names=of_targets, warn=warn)
        table = Table(self._matrix, lambda: rows, targets=self._targets, names=names, n_jobs=n_jobs)
        self.gram = Gram.fit_with_grid(table, target_grid, warn=warn)
        self._set_origin()

    def _accumulate(self, live_rows: Callable[[], Ints], rows: Ints, sign: int) -> int:
        table = Table(self._matrix, live_rows, targets=self._targets)
        return (self.gram.add if sign > 0 else self.gram.subtract)(table, rows)

    def take_arrays(self, records: HeldRecords) -> None:
        """See `WeightedTargets`."""
        super().take_arrays(records)
        if self.origin is None:
            self._matrix = records.matrix
        elif not self._is_sparse:
            self._matrix = padded(self._matrix, records.n_rows)

    def wipe(self, rows: Ints) -> None:
        """Overwrite what was copied of rows."""
        if self._matrix is not self._records.matrix:
            blank_rows(self._matrix, rows)
        super().wipe(rows)

    def parts(self, rows: Ints) -> Iterator[tuple[slice, Any, Any, Any, Any]]:
        """See `WeightedTargets`."""
        if not self._is_sparse:
            yield slice(None), self._matrix, self._targets, self._records.matrix, rows

    def _graded(self) -> list[tuple[Any, Any]]:
        return [
            (self.gram.grid, self._matrix),
            (self.gram.target_grid, self._targets),
            *zip(self._outer, (self._records.matrix, self._plain), strict=False),
        ]

    def _again(self, live_rows: Ints) -> Self:
        return type(self)(self._records, live_rows)

    def _fit_outer(self, rows: Ints) -> list[Grid]:
        found = super()._fit_outer(rows)
        if self._is_sparse:
            return found
        self._matrix = np.zeros(self._records.matrix.shape)
        return [Grid.fit(self._records.matrix, rows, warn=False), *found]

    def _weigh(self, rows: Ints, live_rows: Callable[[], Ints]) -> Floats:
        """Weigh the features, too; sparse ones are copied again, where rows have come."""
        root = super()._weigh(rows, live_rows)
        matrix, weights = self._records.matrix, self._records.weights
        assert weights is not None
        if self._is_sparse:
            counted = live_rows()
            self._matrix = _scaled(matrix, counted, np.sqrt(weights[counted]))
        else:
            self._matrix[rows] = root * (matrix[rows] - self._outer[0].origin)
        return root


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

"""The columns that the ridge behind random waves learns from, and their exact second moments.

Waves lie between -1 and 1, so their grid is the same for all data: its quantum is ``2**-26``. With
weights all columns are multiplied by ``sqrt(w)``, and the quantum by the power of two that
covers the largest of these. The waves are never kept: a deletion computes those of its rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from erasable.core._grid_kernels import MIN_TOP, ceil_log2
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.records import Records
from erasable.linear_model._design import _as_columns, alone_at_extreme

from ._waves import Waves

__all__ = ["WaveDesign"]


class WaveDesign:
    """What is summed of the live rows of records; an accelerator, but for `gram` and `origin`.

    Parameters
    ----------
    waves : Waves
    records : Records
        With targets of numbers.
    live_rows : ndarray of int64
        Positions of the rows that count.
    warn : bool, default=False
        Warn of targets of which many small values become 0?

    Attributes
    ----------
    gram : Gram
        Of the waves and the targets; with weights, of both and ``sqrt(w)`` between them.
    origin : ndarray of shape (n_waves + n_targets,), float64, or None
        With weights, what waves and targets are less before they are weighted.

    Raises
    ------
    MagnitudeError
        See `Grid.fit`.
    """

    gram: Gram
    origin: Floats | None

    def __init__(self, waves: Waves, records: Records, live_rows: Ints, warn: bool = False) -> None:
        self._waves = waves
        self._records = records
        self._plain = _as_columns(records.y, live_rows)
        self._targets = self._plain
        self._outer: Grid | None = None
        self.origin = None
        rows = self._counted(live_rows)
        if records.weights is not None:
            self._weigh(records.weights, rows)
        names = [f"y[{k}]" for k in range(self._targets.shape[1])]
        self._grid = Grid.fit(self._targets, rows, names=names, warn=warn)
        nothing, width = np.zeros((0, waves.n_waves)), self._targets.shape[1]
        self.gram = Gram.fit(self._wave_grid(), nothing, self._grid, np.zeros((0, width)))
        for some, table in waves.blocks(records.matrix, rows):
            self.gram.add(self._weighted(table, some), self._targets[some], np.arange(some.size))

    def forget(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """Take rows out of the sums; None if a grid has changed, and all has to be summed anew."""
        rows = self._counted(rows)
        if not self._keep_grids(rows, lambda: self._counted(live_rows())):
            return None
        table, targets = self.tables(rows)
        self.gram.remove(table, targets, np.arange(rows.size))
        return 0

    def wipe(self, rows: Ints) -> None:
        """Overwrite what was copied of rows."""
        for copied in (self._plain, self._targets):
            if not np.may_share_memory(copied, self._records.y):
                copied[rows] = 0.0

    def tables(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return what is summed of some rows: of their waves, and of their targets."""
        table = self._waves.at(self._records.matrix, rows)
        return self._weighted(table, rows), self._targets[rows]

    def keeps_grids(self, rows: Ints) -> Flags:
        """Tell of each row whether taking it out surely changes no grid."""
        kept = ~alone_at_extreme(self._grid.extremes, self._targets, rows)
        if self._outer is not None:
            kept &= ~alone_at_extreme(self._outer.extremes, self._plain, rows)
        if self._records.weights is not None:
            kept[self._records.weights[rows] == 0.0] = False
        return kept

    def without(self, rows: Ints, live_rows: Ints) -> tuple[Gram, Floats | None]:
        """Return the sums, and the origins, of the live rows without some of them."""
        left = np.setdiff1d(live_rows, rows, assume_unique=True)
        other = copy.copy(self)
        other.gram, other._grid, other._outer = copy.deepcopy((self.gram, self._grid, self._outer))
        if other.forget(rows, lambda: left) is None:
            other = WaveDesign(self._waves, self._records, left)
        return other.gram, other.origin

    # -- weights and grids ---------------------------------------------------------------------

    def _counted(self, rows: Ints) -> Ints:
        weights = self._records.weights
        return rows if weights is None else rows[weights[rows] > 0.0]

    def _weigh(self, weights: Floats, rows: Ints) -> None:
        root = np.sqrt(weights[rows])[:, None]
        self._outer = Grid.fit(self._plain, rows, warn=False)
        self._targets = np.zeros((self._plain.shape[0], 1 + self._plain.shape[1]))
        self._targets[rows, :1] = root
        self._targets[rows, 1:] = root * (self._plain[rows] - self._outer.origin)
        self.origin = np.concatenate([np.zeros(self._waves.n_waves), self._outer.origin])

    def _weighted(self, table: Floats, rows: Ints) -> Floats:
        weights = self._records.weights
        return table if weights is None else table * np.sqrt(weights[rows])[:, None]

    def _top(self) -> int:
        if self._outer is None:
            return 0
        return max(ceil_log2(float(self._grid.high[0])), MIN_TOP)

    def _wave_grid(self) -> Grid:
        zeros = np.zeros(self._waves.n_waves)
        return Grid.from_state({"top": np.full(zeros.size, self._top()), "origin": zeros})

    def _keep_grids(self, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        if self._grid.remove(self._targets, rows, live_rows).exponents:
            return False
        if self._outer is None:
            return True
        origin = self._outer.origin.copy()
        self._outer.remove(self._plain, rows, live_rows)
        still = np.array_equal(self._outer.origin, origin)
        return still and self._top() == self.gram.top[0]

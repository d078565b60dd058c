"""The columns that the ridge behind random waves learns from, and their exact second moments.

Waves lie between -1 and 1, so their grid is the same for all data: its quantum is ``2**-26``. With
weights all columns are multiplied by ``sqrt(w)``, and the quantum by the power of two that
covers the largest of these. The waves are never kept: a deletion computes those of its rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from erasable.core._grid_kernels import MIN_TOP, ceil_log2
from erasable.core.arrays import Floats, Ints
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass, Remote, each_block, run
from erasable.core.records import Records
from erasable.core.row_arrays import PerRow
from erasable.core.threads import in_threads
from erasable.linear_model._design import WeightedTargets

from ._waves import Waves


class WaveDesign(WeightedTargets):
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
    n_jobs : int or None
        Threads.

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

    def __init__(
        self,
        waves: Waves,
        records: Records,
        live_rows: Ints,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(records, live_rows)
        self._waves = waves
        rows = self._counted(live_rows)
        if records.weights is not None:
            self._weigh_targets(records.weights, rows)
            self.origin = np.concatenate([np.zeros(waves.n_waves), self._outer[0].origin])
        names = [f"y[{k}]" for k in range(self._targets.shape[1])]
        grid = Grid.fit(self._targets, rows, names=names, warn=warn)
        zeros, nothing = np.zeros(waves.n_waves), np.zeros((0, waves.n_waves))
        of_waves = Grid.from_state({"top": np.full(zeros.size, self._top(grid)), "origin": zeros})
        self.gram = Gram.fit(of_waves, nothing, grid, np.zeros((0, self._targets.shape[1])))
        self._sum(rows, n_jobs)

    def _sum(self, rows: Ints, n_jobs: int | None) -> None:
        """Add rows to the sums; each thread has sums of its own first."""
        if isinstance(self._records.matrix, Remote):
            weights = self._records.weights
            roots = None if weights is None else np.sqrt(weights)
            wanted = _SumWaves(self._waves, self.gram.copy(), self._targets, roots)
            self.gram.merge(run(wanted, self._records.matrix, rows))
            return
        none, own, parts = self.gram.copy(), threading.local(), []

        def add(block: Block, places: Ints) -> None:
            if not hasattr(own, "gram"):
                own.gram = none.copy()
                parts.append(own.gram)
            table, some = self._waves.at(block.matrix, places), block.first + places
            own.gram.add(self._weighted(table, some), self._targets[some], np.arange(some.size))

        for block in each_block(self._records.matrix, rows):
            portions = self._waves.portions(block.positions)
            for _ in in_threads(partial(add, block), portions, n_jobs):
                pass
        for part in parts:
            self.gram.merge(part)

    def forget(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """See `WeightedTargets`; None if any grid has changed."""
        rows = self._counted(rows)
        if not self._keep_grids(rows, lambda: self._counted(live_rows())):
            return None
        table, targets = self.tables(rows)
        self.gram.remove(table, targets, np.arange(rows.size))
        return 0

    def learn(self, rows: Ints, live_rows: Callable[[], Ints]) -> int | None:
        """See `WeightedTargets`; None if any grid has changed."""
        self._read_targets(rows)
        rows = self._counted(rows)
        if not self._has_grids(rows, lambda: self._counted(live_rows())):
            return None
        table, targets = self.tables(rows)
        self.gram.add(table, targets, np.arange(rows.size))
        return 0

    def tables(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return what is summed of some rows: of their waves, and of their targets."""
        table = self._waves.at(self._records.matrix, rows)
        return self._weighted(table, rows), self._targets[rows]

    def _graded(self) -> list[tuple[Any, Any]]:
        targets = self.gram.target_grid, self._targets
        return [targets, *zip(self._outer, (self._plain,), strict=False)]

    def _again(self, live_rows: Ints) -> WaveDesign:
        return WaveDesign(self._waves, self._records, live_rows)

    # -- weights and grids ---------------------------------------------------------------------

    def _weighted(self, table: Floats, rows: Ints) -> Floats:
        weights = self._records.weights
        return table if weights is None else table * np.sqrt(weights[rows])[:, None]

    def _top(self, targets: Grid) -> int:
        return max(ceil_log2(float(targets.high[0])), MIN_TOP) if self._outer else 0

    def _has_grids(self, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        """Take new rows into all grids; tell whether these are what they were."""
        weights, grid = self._records.weights, self.gram.target_grid
        for outer in self._outer:
            origin = outer.origin.copy()
            outer.add(self._plain, rows, live_rows)
            if not np.array_equal(outer.origin, origin):
                return False
            assert weights is not None
            root = np.sqrt(weights[rows])[:, None]
            self._targets[rows] = np.hstack([root, root * (self._plain[rows] - origin)])
        if grid.add(self._targets, rows, live_rows).exponents:
            return False
        return bool(self._top(grid) == self.gram.top[0])

    def _keep_grids(self, rows: Ints, live_rows: Callable[[], Ints]) -> bool:
        grid = self.gram.target_grid
        if grid.remove(self._targets, rows, live_rows).exponents:
            return False
        for outer in self._outer:
            origin = outer.origin.copy()
            outer.remove(self._plain, rows, live_rows)
            if not np.array_equal(outer.origin, origin):
                return False
        return bool(self._top(grid) == self.gram.top[0])


class _SumWaves(Pass[Gram]):
    """Add rows to sums where they are.

    Parameters
    ----------
    waves : Waves
    none : Gram
        Of no rows.
    targets : ndarray of shape (n_rows, n_targets)
    roots : ndarray of shape (n_rows,), or None
        Of the weights.
    """

    def __init__(self, waves: Waves, none: Gram, targets: Floats, roots: Floats | None) -> None:
        self._waves, self._none = waves, none
        self._targets, self._roots = PerRow(targets), None if roots is None else PerRow(roots)

    def of_block(self, block: Block) -> Gram:
        gram, targets = self._none.copy(), self._targets.of(block)
        for some in self._waves.portions(block.positions):
            table = self._waves.at(block.matrix, some)
            if self._roots is not None:
                table *= self._roots.of(block)[some, None]
            gram.add(table, targets[some], np.arange(some.size))
        return gram

    def merge(self, one: Gram, other: Gram) -> Gram:
        one.merge(other)
        return one

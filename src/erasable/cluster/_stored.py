"""A k-means run over records that stay where they are: it is made of passes, and keeps none.

The law kept here: seeds, centroids and sums of every level are those of `_run.LloydRun`, to the
bit. What makes its deletions fast is 9 bytes a record and level; here a deletion takes records out
of the seeding and of the levels above the first that changes, and runs the other levels again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.deletion import Outcome
from erasable.core.grid import Grid
from erasable.core.moments import Moments, SumsOf
from erasable.core.passes import Block, Pass, Together, run
from erasable.core.row_arrays import PerRow, Scratch

from ._distances import Points
from ._layout import Levels, grown, new_levels
from ._pass_kernels import begin_level, end_level
from ._run import RuleFor
from ._seeding import Seeding, metric_for
from ._seeding_kernels import retract
from ._stored_passes import Level, SeedingStep, Winners, first_winner

if TYPE_CHECKING:
    from ._single import SingleRunModel

_FIRST_LEVELS = 16  # there is room for at first


class StoredRun:
    """The accelerator of a model whose records are read block by block; see `GriddedRun`.

    Attributes
    ----------
    grid : Grid
    moments : Moments or None
        Where the model's rule needs them.
    phases : ndarray or None
        Whatever phases the model's rule draws, once it has drawn them.
    run : StoredLloyd
    """

    def __init__(
        self, model: SingleRunModel, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held, n_jobs = model._attached(), model._n_jobs
        matrix, keys = held.records.matrix, model._record_keys()
        live = None if held.n_live == held.records.n_rows else held.live_rows()
        self.phases: Floats | None = None
        self.moments: Moments | None = None
        self.run = StoredLloyd(
            model._at_fit("n_clusters"), model._at_fit("max_iter"), model.seed_, model._metric()
        )
        first = self.run.begin(matrix, live, keys)

        def further(grid: Grid) -> Pass[Any]:
            passes: list[Pass[Any]] = [first(grid)]
            return Together(*passes, *([SumsOf(grid)] if model._needs_moments() else []))

        self.grid, found = Grid.fit_with(
            further, matrix, live, names=names, warn=warn, n_jobs=n_jobs
        )
        if model._needs_moments():
            self.moments = Moments(self.grid, self.grid.n_rows, found[1])
        self._setting = model._setting(self)
        self.run.seed(self.grid, found[0], matrix, live, n_jobs)
        self.run.descend(partial(model._rule, self), matrix, live, n_jobs)

    def remove(self, model: SingleRunModel, rows: Ints) -> Outcome:
        """Delete rows; whatever cannot be carried through is learned again."""
        held, n_jobs = model._attached(), model._n_jobs
        matrix = held.records.matrix
        if self.moments is not None:
            self.moments.remove(matrix, rows)
        change = self.grid.remove(matrix, rows, held.live_rows)
        values = matrix[rows]
        if (
            change.columns.any()
            or self._setting != model._setting(self)
            or not self.run.stands_without(rows, values, model._metric())
        ):
            self.__init__(model)  # type: ignore[misc]
            passes = model._at_fit("n_clusters") + 2 + self.run.built
            return Outcome("refit", held.n_live * passes, {"passes": passes})
        gone = Block(values, NO_ROWS, every=True)
        rule = partial(model._rule, self)
        passes = self.run.descend(rule, matrix, held.live_rows(), n_jobs, gone)
        counts = {"flips": 0, "passes": passes, "seeding_steps": 0}
        return Outcome("resumed" if passes else "updated", held.n_live * passes, counts)


class StoredLloyd:
    """Seeds and levels; the part of `LloydRun` that is the model.

    Parameters
    ----------
    n_clusters, max_iter : int
        As in `KMeans`.
    seed : int
        Of the tape.
    weights : ndarray of shape (n_features,), or empty
        Of the metric.

    Attributes
    ----------
    levels : Levels
        Of no positions.
    built, final : int
        See `LloydRun`.
    """

    def __init__(self, n_clusters: int, max_iter: int, seed: int, weights: Floats) -> None:
        self.max_iter = max_iter
        self._weights, self._turned = weights, False
        self.seeding = Seeding(n_clusters, seed, 1.0)
        self.built = self.final = -1

    @property
    def centers(self) -> Floats:
        """Centroids of the model, shape (n_clusters, n_features), on the grid's origin."""
        centers: Floats = self.levels.centers[self.final]
        return centers

    def state(self) -> dict[str, Any]:
        """Return what the run is; see `LloydRun.state`."""
        last = self.final + 1
        return {
            "seeds": {
                "chosen": self._keys[np.arange(len(self._keys)), self._leading()],
                "candidates": self._keys,
                "potentials": self.seeding.potentials,
            },
            "path": {
                "centers": self.levels.centers[:last],
                "sums": self.levels.sums[:last],
                "counts": self.levels.counts[:last],
            },
        }

    def begin(self, matrix: Any, live: Ints | None, keys: Words) -> Any:
        """Find who wins the first race; return what makes the first step's pass of a grid."""
        seeding = self.seeding
        k, tries, d = seeding.n_clusters, seeding.n_candidates, matrix.shape[1]
        self._keys, self._values = np.zeros((k, tries), np.uint64), np.zeros((k, tries, d))
        self.levels: Levels = new_levels(min(self.max_iter + 1, _FIRST_LEVELS), 0, k, d)
        row = np.array([first_winner(seeding, keys, live)])
        raw = matrix[row]
        # Each step sees both, so that they are sent once to where the records are.
        self._per_row = PerRow(keys), Scratch(matrix.shape[0], np.inf)

        def first(grid: Grid) -> SeedingStep:
            seeding.quantum, seeding.weights = metric_for(grid.top, self._weights)
            value = grid.apply(raw)
            self._note(0, row, keys[row], value)
            return SeedingStep(grid, seeding, 0, value[:0], value, *self._per_row)

        return first

    def _note(self, step: int, rows: Ints, keys: Words, values: Floats) -> None:
        self.seeding.candidates[step, : rows.size] = rows
        self._keys[step, : rows.size], self._values[step, : rows.size] = keys, values

    def seed(
        self,
        grid: Grid,
        found: tuple[Ints, Winners],
        matrix: Any,
        live: Ints | None,
        n_jobs: int | None,
    ) -> None:
        """Run the steps of the seeding; `found` is what the first of them has found."""
        seeding, self._grid = self.seeding, grid
        for step in range(seeding.n_clusters):
            sums, winners = found
            seeding.potentials[step, : sums.size] = sums
            best = int(np.argmin(sums))
            seeding.chosen[step] = seeding.candidates[step, best]
            self.levels.centers[0, step] = self._values[step, best]
            if step + 1 < seeding.n_clusters:
                values = winners.values[best]
                self._note(step + 1, winners.rows[best], winners.keys[best], values)
                seeds = self.levels.centers[0, : step + 1]
                further = SeedingStep(grid, seeding, step + 1, seeds, values, *self._per_row)
                found = run(further, matrix, live, n_jobs=n_jobs)
        del self._per_row

    def _leading(self) -> Ints:
        """Return which of its candidates each step has chosen."""
        leading: Ints = self.seeding.potentials.argmin(axis=1)
        return leading

    def stands_without(self, rows: Ints, raw: Floats, weights: Floats) -> bool:
        """Take rows out of all potentials; tell whether every step chooses what it did.

        Where it does not, as in another metric of the seeding, all has to be learned again.
        `weights` are those of the metric from now on.
        """
        seeding = self.seeding
        quantum, rounded = metric_for(self._grid.top, weights)
        same = quantum == seeding.quantum and np.array_equal(rounded, seeding.weights)
        if not same or np.isin(seeding.candidates, rows).any():
            return False
        self._turned = not np.array_equal(weights, self._weights)
        self._weights = weights
        k, tries = seeding.candidates.shape
        gone = self._grid.apply(raw)
        X = np.concatenate([self._values.reshape(k * tries, -1), gone])
        points = Points(X, np.empty(0, np.uint64), np.arange(len(X)))
        places = np.arange(k * tries).reshape(k, tries)
        chosen = places[np.arange(k), self._leading()]
        potentials = seeding.potentials.copy()
        stands = retract(
            points, points.rows[k * tries :], seeding.weights, seeding.quantum, chosen,
            np.where(seeding.candidates < 0, -1, places), potentials,
        )  # fmt: skip
        if stands:
            seeding.potentials[:] = potentials
        return stands

    def descend(
        self,
        rule_for: RuleFor,
        matrix: Any,
        live: Ints | None,
        n_jobs: int | None,
        gone: Block | None = None,
    ) -> int:
        """Run down the levels; return how many were run in a pass over all records.

        See `_levels.descend`; `gone` are the records that have left since the levels were built.
        """
        passes, start, built = 0, 0, self.built
        while True:
            n_levels = self.levels.centers.shape[0]
            rule = rule_for(n_levels)
            plain = rule.shift < 0.0 and rule.squares.size == 0
            for t in range(start, n_levels):
                before = self.levels.centers[t].copy()
                if t > 0 and begin_level(t, rule, self.levels) and plain:
                    # Nothing moves any more.
                    self._end(t - 1, t - 1)
                    return passes
                level = Level(self._grid, self.levels.centers[t], self._weights)
                kept = t <= built and np.array_equal(before, self.levels.centers[t])
                if gone is not None and kept and not self._turned:
                    sums, counts = level.of_block(gone)
                    self.levels.sums[t] -= sums
                    self.levels.counts[t] -= counts
                else:
                    self.levels.sums[t], self.levels.counts[t] = run(
                        level, matrix, live, n_jobs=n_jobs
                    )
                    passes += 1
                final = end_level(t, rule, self._weights, self.levels)
                if final >= 0:
                    self._end(t, final)
                    return passes
            if n_levels == self.max_iter + 1:
                self._end(t, t)
                return passes
            start = n_levels
            self.levels = grown(self.levels, min(2 * n_levels, self.max_iter + 1))

    def _end(self, built: int, final: int) -> None:
        self.built, self.final = built, final
        for unused in (self.levels.centers, self.levels.sums):
            unused[built + 1 :] = 0.0

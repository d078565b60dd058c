"""A k-means run by passes over stored records, of which it holds none.

Seeds, centroids and sums of every level are those of `_run.LloydRun`, to the bit. It saves the 9
bytes for each record and level that make deletions there fast: a deletion takes records out of the
seeding and of the levels above the first that changes, and runs the other levels again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Floats, Ints, Ints32, Words
from erasable.core.attachment import Attachment
from erasable.core.deletion import Action
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerRow, Scratch, Written
from erasable.core.tape import Stream

from ._distances import Points, new_scratch
from ._layout import Levels, Rule
from ._lloyd import add_to_nearest, assign_some, lloyd
from ._run import Path, RunReport, Terms
from ._seeding import Seeding
from ._seeding_kernels import admit, lower_and_sum, nearest_distance, race, retract
from ._table import RecordGrid, chosen_rows

_AT_ONCE = 2**17  # values on the grid, which stay in cache
_NO_VALUES, _NO_KEYS = np.empty((0, 1)), np.empty(0, np.uint64)


def gridded_parts(grid: Grid, block: Block) -> Iterator[tuple[slice, Any, Points]]:
    """Put a block on the grid, some rows at a time, each time in the same scratch.

    Yield which of the rows that count they are, where they are in the block's matrix, and their
    values. New memory for each would cost as much time as all distances.
    """
    d = block.matrix.shape[1]
    step = min(max(1, _AT_ONCE // d), block.size)
    scratch, rows = np.empty((step, d)), np.arange(step)
    for start in range(0, block.size, max(1, step)):
        span = slice(start, min(start + step, block.size))
        m = span.stop - start
        if block.every:
            where: Any = span
            gridded = grid.apply(block.matrix[span], out=scratch[:m])
        else:
            where = block.rows[span]
            gridded = grid.apply(block.matrix, where, out=scratch[:m])
        yield span, where, Points(gridded, _NO_KEYS, rows[:m])


# -- seeding ---------------------------------------------------------------------------------------


class Winners(NamedTuple):
    """Who has won the races of a step: one line for each seed that the step before may choose."""

    rows: Ints  # (n_lines, n_races); -1 where there was nobody
    keys: Words  # (n_lines, n_races)
    stakes: Floats  # (n_lines, n_races)
    values: Floats  # (n_lines, n_races, n_features); on the grid

    @classmethod
    def nobody(cls, n_lines: int, n_races: int, n_features: int) -> Winners:
        """Return what there is before the races."""
        shape = n_lines, n_races
        stakes, values = np.zeros(shape), np.zeros((*shape, n_features))
        return cls(np.full(shape, -1), np.zeros(shape, np.uint64), stakes, values)


def run_races(seeding: Seeding, step: int, keys: Words, stakes: Floats) -> Ints:
    """Run the races of a step; return which of the entrants win them."""
    n_races = 1 if step == 0 else seeding.n_candidates
    who, winners = np.arange(keys.size), np.empty(n_races, np.int64)
    race(
        Points(_NO_VALUES, keys, who), who, stakes, seeding.seed, np.uint32(Stream.RACE),
        np.uint32(step * 64), n_races, winners,
    )  # fmt: skip
    return winners


def first_winner(seeding: Seeding, keys: Words, live_rows: Ints | None) -> int:
    """Return the row that wins the first race, where all stakes are equal."""
    n = keys.size if live_rows is None else live_rows.size
    found: list[int] = []
    for start in range(0, n, _AT_ONCE):
        if live_rows is None:
            own = keys[start : start + _AT_ONCE]
            found.append(start + int(run_races(seeding, 0, own, np.ones(own.size))[0]))
        else:
            rows = live_rows[start : start + _AT_ONCE]
            found.append(int(rows[run_races(seeding, 0, keys[rows], np.ones(rows.size))[0]]))
    best = run_races(seeding, 0, keys[found], np.ones(len(found)))
    return found[int(best[0])]


class _Races:
    """Races of the step after one, a line for each seed that the step may choose.

    Who wins among all wins among some: records enter some at a time, and no others are remembered.
    """

    def __init__(self, seeding: Seeding, step: int, n_lines: int) -> None:
        self._seeding, self._step = seeding, step
        self._ahead: list[list[tuple[Ints, Words, Floats]]] = [[] for _ in range(n_lines)]

    def enter(self, first: int, keys: Words, stakes: Floats) -> None:
        """Have records enter, the first of which is the so many-th; a line of stakes for each."""
        for ahead, own in zip(self._ahead, stakes, strict=True):
            who = run_races(self._seeding, self._step + 1, keys, own)
            ahead.append((first + who, keys[who], own[who]))

    def winners(self, line: int) -> tuple[Ints, Floats]:
        """Return which records have won, and their stakes."""
        rows, keys, stakes = map(np.concatenate, zip(*self._ahead[line], strict=True))
        who = run_races(self._seeding, self._step + 1, keys, stakes)
        return rows[who], stakes[who]


class SeedingStep(Pass[tuple[Ints, Winners]]):
    """Sum the potentials of a step's candidates, and run the races of the next step.

    The winner of the step is known after the pass only, so the races of the next step are run for
    every candidate. `potential` is lowered by the last seed, and by all `seeds` where it is fresh;
    lowering it twice changes nothing. Seeds and candidates are on the grid.
    """

    def __init__(
        self,
        grid: Grid,
        seeding: Seeding,
        step: int,
        seeds: Floats,
        candidates: Floats,
        keys: PerRow,
        potential: Scratch,
    ) -> None:
        self._grid, self._seeding, self._step = grid, seeding, step
        self._seeds, self._candidates = seeds, candidates
        self._keys, self._potential = keys, potential
        self._last = step + 1 == seeding.n_clusters

    def of_block(self, block: Block) -> tuple[Ints, Winners]:
        n_lines, d = self._candidates.shape
        sums, part = np.zeros((2, n_lines), np.int64)
        own, weights = self._potential.of(block), self._seeding.weights
        to_seed, to_candidates = new_scratch(d, 1), new_scratch(d, n_lines)
        races = _Races(self._seeding, self._step, n_lines)
        keys = self._keys.of(block)
        size, distance, lowered = 0, np.empty(0), np.empty((n_lines, 0))
        for span, where, points in gridded_parts(self._grid, block):
            if points.rows.size != size:
                size = points.rows.size
                distance, lowered = np.empty(size), np.empty((n_lines, size))
            potential = own[where]
            for seed in self._new_seeds(potential):
                nearest_distance(points, points.rows, seed, weights, to_seed, distance)
                np.minimum(potential, distance, out=potential)
            own[where] = potential
            lower_and_sum(
                points, points.rows, self._candidates, weights, self._seeding.quantum, potential,
                lowered, part, to_candidates,
            )  # fmt: skip
            sums += part
            if not self._last:
                races.enter(span.start, keys[where], lowered)
        return sums, self._won(block, keys, races)

    def merge(self, one: tuple[Ints, Winners], other: tuple[Ints, Winners]) -> tuple[Ints, Winners]:
        return one[0] + other[0], self._better(one[1], other[1])

    def _new_seeds(self, potential: Floats) -> Iterator[Floats]:
        """Yield the seeds that potentials are to be lowered by; those after a seed are finite."""
        fresh = potential.size and np.isinf(potential).any()
        for at in range(0 if fresh else max(0, self._step - 1), self._step):
            yield self._seeds[at : at + 1]

    def _won(self, block: Block, keys: Words, races: _Races) -> Winners:
        n_lines, d = self._candidates.shape
        found = Winners.nobody(n_lines, self._seeding.n_candidates, d)
        if self._last or block.size == 0:
            return found
        for line in range(n_lines):
            who, found.stakes[line] = races.winners(line)
            rows = who if block.every else block.rows[who]
            found.rows[line], found.keys[line] = block.first + rows, keys[rows]
            found.values[line] = self._grid.apply(block.matrix, rows)
        return found

    def _better(self, one: Winners, other: Winners) -> Winners:
        if one.rows.size == 0 or other.rows[0, 0] < 0:
            return one
        if one.rows[0, 0] < 0:
            return other
        both = Winners._make(np.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
        who = [
            run_races(self._seeding, self._step + 1, keys, stakes)
            for keys, stakes in zip(both.keys, both.stakes, strict=True)
        ]
        lines = np.arange(len(who))[:, None]
        return Winners._make(each[lines, np.array(who)] for each in both)


# -- levels and labels -----------------------------------------------------------------------------


class Level(Pass[tuple[Floats, Ints]]):
    """Add up the records that are nearest to each centroid: their gridded values, and how many."""

    def __init__(self, grid: Grid, centers: Floats, weights: Floats) -> None:
        self._grid, self._centers, self._weights = grid, centers, weights

    def of_block(self, block: Block) -> tuple[Floats, Ints]:
        k, d = self._centers.shape
        sums, counts, scratch = np.zeros((k, d)), np.zeros(k, np.int64), new_scratch(d, k)
        for _, _, points in gridded_parts(self._grid, block):
            add_to_nearest(points, self._centers, self._weights, scratch, sums, counts)
        return sums, counts

    def merge(self, one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
        return one[0] + other[0], one[1] + other[1]


class _Nearest(Pass[None]):
    """Write the nearest centroid of every record, and the squared distance to it."""

    def __init__(
        self, grid: Grid, centers: Floats, weights: Floats, labels: Ints32, squared: Floats
    ) -> None:
        self._grid, self._centers, self._weights = grid, centers, weights
        self._labels, self._squared = Written(labels), Written(squared)

    def of_block(self, block: Block) -> None:
        k, d = self._centers.shape
        scratch = new_scratch(d, k)
        labels, squared = self._labels.of(block), self._squared.of(block)
        for span, _, points in gridded_parts(self._grid, block):
            assign_some(
                points, points.rows, self._centers, self._weights, scratch, labels[span],
                squared[span],
            )  # fmt: skip

    def merge(self, one: None, other: None) -> None:
        return None


def find_nearest(
    grid: Grid, centers: Floats, weights: Floats, held: Attachment, n_jobs: int | None
) -> tuple[Ints32, Floats]:
    """Find the nearest centroid of every record, and the squared distance to it.

    `centers` are relative to the grid's origin; `weights` is empty for the Euclidean metric.
    """
    labels, squared = np.empty(held.n_live, np.int32), np.empty(held.n_live)
    pass_ = _Nearest(grid, centers, weights, labels, squared)
    run(pass_, held.records.matrix, chosen_rows(held), n_jobs=n_jobs)
    return labels, squared


class StoredRun(Path):
    """A k-means run over records that are read block by block, whose levels have no positions."""

    def __init__(self, table: RecordGrid, seeding: Seeding, max_iter: int, weights: Floats) -> None:
        super().__init__(seeding, max_iter, weights, 0, table.held.records.matrix.shape[1])
        self._table = table

    def begin(self, metric_of: Callable[[Grid], tuple[float, Floats]]) -> Any:
        """Find who wins the first race; return what makes the first step's pass of a grid.

        `metric_of` returns the quantum and the weights of the seeding.
        """
        seeding, held, keys = self.seeding, self._table.held, self._table.keys
        matrix, live = held.records.matrix, chosen_rows(held)
        k, tries, d = seeding.n_clusters, seeding.n_candidates, matrix.shape[1]
        self._keys, self._values = np.zeros((k, tries), np.uint64), np.zeros((k, tries, d))
        row = np.array([first_winner(seeding, keys, live)])
        raw = matrix[row]
        # Each step sees both, so that they are sent once to where the records are.
        self._per_row = PerRow(keys), Scratch(matrix.shape[0], np.inf)

        def first(grid: Grid) -> SeedingStep:
            seeding.quantum, seeding.weights = metric_of(grid)
            value = grid.apply(raw)
            self._note(0, row, keys[row], value)
            return SeedingStep(grid, seeding, 0, value[:0], value, *self._per_row)

        return first

    def _note(self, step: int, rows: Ints, keys: Words, values: Floats) -> None:
        self.seeding.candidates[step, : rows.size] = rows
        self._keys[step, : rows.size], self._values[step, : rows.size] = keys, values

    def seed(self, found: tuple[Ints, Winners], n_jobs: int | None) -> None:
        """Run the steps of the seeding; `found` is what the first of them has found."""
        seeding, grid, held = self.seeding, self._table.grid, self._table.held
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
                found = run(further, held.records.matrix, chosen_rows(held), n_jobs=n_jobs)
        del self._per_row

    def fit(self, terms: Terms) -> None:
        """Run from the seeds on."""
        self._descend(terms, chosen_rows(self._table.held), None)

    def exchange(self, leaving: Ints, rows: Ints, terms: Terms) -> RunReport | None:
        """Delete rows and take others in, in one go; None where all has to be learned again."""
        matrix, held = self._table.held.records.matrix, self._table.held
        left, came = (
            matrix[some] if some.size else np.empty((0, matrix.shape[1]))
            for some in (leaving, rows)
        )
        if not self._stands(leaving, left, rows, came, terms):
            return None
        turned = terms.weights is not None and not np.array_equal(terms.weights, self._weights)
        self._weights = self._weights if terms.weights is None else terms.weights
        changes = [(Block(left, NO_ROWS, every=True), -1), (Block(came, NO_ROWS, every=True), 1)]
        passes = self._descend(terms, held.live_rows(), None if turned else changes)
        action: Action = "resumed" if passes else "updated"
        return RunReport(action, held.n_live * passes, 0, passes, 0)

    @property
    def n_passes(self) -> int:
        """Passes over all records that a fit made."""
        return self.n_clusters + 2 + self.built

    def _seed_keys(self) -> tuple[Words, Words]:
        return self._keys[np.arange(self.n_clusters), self._leading()], self._keys

    def _leading(self) -> Ints:
        """Return which of its candidates each step has chosen."""
        leading: Ints = self.seeding.potentials.argmin(axis=1)
        return leading

    def _stands(self, leaving: Ints, left: Floats, rows: Ints, came: Floats, terms: Terms) -> bool:
        """Correct all potentials for rows and their values; tell if every step chooses the same.

        Where it does not, as in another metric of the seeding, all has to be learned again.
        """
        seeding, table = self.seeding, self._table
        same = terms.quantum is None or terms.quantum == seeding.quantum
        if terms.seeding_weights is not None:
            same = same and np.array_equal(terms.seeding_weights, seeding.weights)
        if not same or np.isin(seeding.candidates, leaving).any():
            return False
        k, tries = seeding.candidates.shape
        known = self._values.reshape(k * tries, -1)
        X = np.concatenate([known, *(table.grid.apply(some) for some in (left, came))])
        keys = np.concatenate([self._keys.ravel(), table.keys[leaving], table.keys[rows]])
        points = Points(X, keys, np.arange(len(X)))
        gone, come = np.split(points.rows[k * tries :], [leaving.size])
        places = np.arange(k * tries).reshape(k, tries)
        chosen = places[np.arange(k), self._leading()]
        tried = np.where(seeding.candidates < 0, -1, places)
        potentials, scores = seeding.potentials.copy(), seeding.scores.copy()
        stands = True
        if come.size:
            stands = admit(
                points, come, seeding.seed, np.uint32(Stream.RACE), seeding.weights,
                seeding.quantum, chosen, tried, potentials, scores, np.zeros(k, np.bool_),
            )  # fmt: skip
        if stands and gone.size:
            stands = retract(
                points, gone, seeding.weights, seeding.quantum, chosen, tried, potentials
            )
        if stands:
            seeding.potentials[:], seeding.scores[:] = potentials, scores
        return stands

    def _descend(
        self, terms: Terms, live: Ints | None, changes: Sequence[tuple[Block, int]] | None
    ) -> int:
        """Process the levels; return how many were assigned in a pass over all records.

        `changes` are the records that left or came since the levels were built, with their signs,
        if these still hold.
        """
        matrix, grid, built = self._table.held.records.matrix, self._table.grid, self.built

        def assign_level(
            t: int, new: bool, moved: bool, before: Floats, rule: Rule, weights: Floats,
            levels: Levels,
        ) -> tuple[int, int, int]:  # fmt: skip
            level = Level(grid, levels.centers[t], weights)
            if changes is not None and t <= built and np.array_equal(before, levels.centers[t]):
                for block, sign in changes:
                    sums, counts = level.of_block(block)
                    levels.sums[t] += sign * sums
                    levels.counts[t] += sign * counts
                return 0, 0, 0
            levels.sums[t], levels.counts[t] = run(level, matrix, live, n_jobs=terms.n_jobs)
            return 0, 0, 1

        process = lloyd(assign_level)

        def run_down(start: int, rule: Rule) -> tuple[int, int, int, int, int]:
            # No level counts as built: the run ends as soon as nothing moves, to save passes.
            return process(start, -1, False, rule, self._weights, self.levels)

        _, _, passes = self._process(run_down, terms.rule)
        self._clear_unused()
        return passes

"""Passes of k-means over records that are not kept: a step of the seeding, a level, the labels.

The law kept here: what a pass finds does not depend on how records are cut into blocks. Sums are
exact. Who wins a race is a function of keys and stakes, so that the winner among all records is
the winner among the winners of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from erasable.core.arrays import Floats, Ints, Ints32, Words
from erasable.core.attachment import Attachment
from erasable.core.grid import Grid
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerRow, Scratch, Written
from erasable.core.tape import Stream

from ._distances import Points, new_room
from ._lloyd_kernels import assign_some
from ._pass_kernels import add_to_nearest
from ._seeding import Seeding
from ._seeding_kernels import lower_and_sum, nearest_distance, race

_AT_ONCE = 2**17  # values on the grid, which stay in cache
_NO_VALUES, _NO_KEYS = np.empty((0, 1)), np.empty(0, np.uint64)


def gridded_parts(grid: Grid, block: Block) -> Iterator[tuple[slice, Any, Points]]:
    """Put a block on the grid, some rows at a time, each time in the same room.

    Yield which of the rows that count they are, where they are in the block's matrix, and their
    values. New memory for each would cost as much time as all distances.
    """
    d = block.matrix.shape[1]
    step = min(max(1, _AT_ONCE // d), block.size)
    room, rows = np.empty((step, d)), np.arange(step)
    for start in range(0, block.size, max(1, step)):
        span = slice(start, min(start + step, block.size))
        m = span.stop - start
        if block.every:
            where: Any = span
            gridded = grid.apply(block.matrix[span], out=room[:m])
        else:
            where = block.rows[span]
            gridded = grid.apply(block.matrix, where, out=room[:m])
        yield span, where, Points(gridded, _NO_KEYS, rows[:m])


# -- seeding ---------------------------------------------------------------------------------------


class Winners(NamedTuple):
    """Who has won the races of a step: one line for each seed that the step before may choose.

    Attributes
    ----------
    rows : ndarray of shape (n_lines, n_races), int64
        -1 where there was nobody.
    keys : ndarray of shape (n_lines, n_races), uint64
    stakes : ndarray of shape (n_lines, n_races), float64
    values : ndarray of shape (n_lines, n_races, n_features), float64
        On the grid.
    """

    rows: Ints
    keys: Words
    stakes: Floats
    values: Floats

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

    Which candidate wins the step is known when all records were seen. So the next step's races are
    run for each of them.

    Parameters
    ----------
    grid : Grid
    seeding : Seeding
    step : int
    seeds : ndarray of shape (step, n_features)
        Those that are chosen, on the grid, the last one last.
    candidates : ndarray of shape (n_candidates, n_features)
        On the grid.
    keys : PerRow of uint64
    potential : Scratch
        Lowered by the last seed, and by all of them where it is fresh; to do that twice changes
        nothing.
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
        to_seed, to_candidates = new_room(d, 1), new_room(d, n_lines)
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
        sums, counts, room = np.zeros((k, d)), np.zeros(k, np.int64), new_room(d, k)
        for _, _, points in gridded_parts(self._grid, block):
            add_to_nearest(points, self._centers, self._weights, room, sums, counts)
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
        room = new_room(d, k)
        labels, squared = self._labels.of(block), self._squared.of(block)
        for span, _, points in gridded_parts(self._grid, block):
            assign_some(
                points, points.rows, self._centers, self._weights, room, labels[span], squared[span]
            )

    def merge(self, one: None, other: None) -> None:
        return None


def find_nearest(
    grid: Grid, centers: Floats, weights: Floats, held: Attachment, n_jobs: int | None
) -> tuple[Ints32, Floats]:
    """Find the nearest centroid of every record, and the squared distance to it.

    `centers` are relative to the grid's origin; `weights` is empty for the Euclidean metric.
    """
    labels, squared = np.empty(held.n_live, np.int32), np.empty(held.n_live)
    live = None if held.n_live == held.records.n_rows else held.live_rows()
    pass_ = _Nearest(grid, centers, weights, labels, squared)
    run(pass_, held.records.matrix, live, n_jobs=n_jobs)
    return labels, squared

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
from erasable.core.tape import Stream

from ._distances import Points, new_room
from ._lloyd_kernels import assign_some
from ._pass_kernels import add_to_nearest
from ._seeding import Seeding
from ._seeding_kernels import lower_and_sum, nearest_distance, race

_AT_ONCE = 2**17  # values on the grid, which stay in cache
_NO_VALUES = np.empty((0, 1))


def gridded_parts(grid: Grid, block: Block) -> Iterator[tuple[slice, Any, Floats]]:
    """Put a block on the grid, some rows at a time.

    Yields
    ------
    span : slice
        Which of the rows that count they are.
    where : slice or ndarray of int64
        Where they are in the block's matrix.
    gridded : ndarray of shape (n, n_features), float64
    """
    step = max(1, _AT_ONCE // block.matrix.shape[1])
    for start in range(0, block.size, step):
        span = slice(start, min(start + step, block.size))
        if block.every:
            yield span, span, grid.apply(block.matrix[span])
        else:
            rows = block.rows[span]
            yield span, rows, grid.apply(block.matrix, rows)


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


class SeedingStep(Pass[tuple[Ints, Winners]]):
    """Sum the potentials of a step's candidates, and run the races of the next step.

    Which candidate wins the step is known when all records were seen. So the next step's races are
    run for each of them.

    Parameters
    ----------
    grid : Grid
    seeding : Seeding
    step : int
    seed : ndarray of shape (1, n_features), or (0, n_features) in the first step
        The seed that was chosen last, on the grid.
    candidates : ndarray of shape (n_candidates, n_features)
        On the grid.
    keys : ndarray of shape (n_rows,), uint64
    potential : ndarray of shape (n_rows,)
        Lowered by `seed`, where it is not yet; to do that twice changes nothing.
    """

    def __init__(
        self,
        grid: Grid,
        seeding: Seeding,
        step: int,
        seed: Floats,
        candidates: Floats,
        keys: Words,
        potential: Floats,
    ) -> None:
        self._grid, self._seeding, self._step = grid, seeding, step
        self._seed, self._candidates = seed, candidates
        self._keys, self._potential = keys, potential
        self._last = step + 1 == seeding.n_clusters

    def of_block(self, block: Block) -> tuple[Ints, Winners]:
        n_lines, d = self._candidates.shape
        sums = np.zeros(n_lines, np.int64)
        reached = np.empty((n_lines, 0 if self._last else block.size))
        own, weights = block.of(self._potential), self._seeding.weights
        to_seed, to_candidates = new_room(d, 1), new_room(d, n_lines)
        for span, where, gridded in gridded_parts(self._grid, block):
            points = Points.queries(gridded)
            potential = own[where]
            if self._seed.size:
                distance = np.empty(potential.size)
                nearest_distance(points, points.rows, self._seed, weights, to_seed, distance)
                potential = np.minimum(potential, distance)
                own[where] = potential
            part, lowered = np.empty(n_lines, np.int64), np.empty((n_lines, potential.size))
            lower_and_sum(
                points, points.rows, self._candidates, weights, self._seeding.quantum, potential,
                lowered, part, to_candidates,
            )  # fmt: skip
            sums += part
            if not self._last:
                reached[:, span] = lowered
        return sums, self._race(block, reached)

    def merge(self, one: tuple[Ints, Winners], other: tuple[Ints, Winners]) -> tuple[Ints, Winners]:
        return one[0] + other[0], self._better(one[1], other[1])

    def _race(self, block: Block, reached: Floats) -> Winners:
        n_lines, d = self._candidates.shape
        found = Winners.nobody(n_lines, self._seeding.n_candidates, d)
        if self._last or block.size == 0:
            return found
        keys = block.of(self._keys)
        keys = keys if block.every else keys[block.rows]
        for line, stakes in enumerate(reached):
            who = run_races(self._seeding, self._step + 1, keys, stakes)
            rows = who if block.every else block.rows[who]
            found.rows[line] = block.first + rows
            found.keys[line], found.stakes[line] = keys[who], stakes[who]
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
        for _, _, gridded in gridded_parts(self._grid, block):
            add_to_nearest(
                Points.queries(gridded), self._centers, self._weights, room, sums, counts
            )
        return sums, counts

    def merge(self, one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
        return one[0] + other[0], one[1] + other[1]


class _Nearest(Pass[None]):
    """Write the nearest centroid of every record, and the squared distance to it."""

    def __init__(
        self, grid: Grid, centers: Floats, weights: Floats, labels: Ints32, squared: Floats
    ) -> None:
        self._grid, self._centers, self._weights = grid, centers, weights
        self._labels, self._squared = labels, squared

    def of_block(self, block: Block) -> None:
        k, d = self._centers.shape
        room = new_room(d, k)
        own = slice(block.rank, block.rank + block.size)
        labels, squared = self._labels[own], self._squared[own]
        for span, _, gridded in gridded_parts(self._grid, block):
            points = Points.queries(gridded)
            assign_some(
                points, points.rows, self._centers, self._weights, room, labels[span], squared[span]
            )

    def merge(self, one: None, other: None) -> None:
        return None


def find_nearest(
    grid: Grid, centers: Floats, weights: Floats, held: Attachment, n_jobs: int | None
) -> tuple[Ints32, Floats]:
    """Find the nearest centroid of every record, and the squared distance to it.

    Parameters
    ----------
    grid : Grid
    centers : ndarray of shape (n_clusters, n_features)
        On the grid's origin.
    weights : ndarray of shape (n_features,), or empty
        Of the metric.
    held : Attachment
        Of n records.
    n_jobs : int or None

    Returns
    -------
    labels : ndarray of shape (n,), int32
    squared : ndarray of shape (n,)
    """
    labels, squared = np.empty(held.n_live, np.int32), np.empty(held.n_live)
    live = None if held.n_live == held.records.n_rows else held.live_rows()
    pass_ = _Nearest(grid, centers, weights, labels, squared)
    run(pass_, held.records.matrix, live, n_jobs=n_jobs)
    return labels, squared

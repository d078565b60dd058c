"""Passes over stored records by which the upper parts of trees are grown, level by level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

import erasable.tree._level_kernels as kernels
from erasable.core._grid_kernels import NO_ROWS
from erasable.core._tape_kernels import siphash24_integers
from erasable.core.arrays import Flags, Floats, Ints, Matrix, Words
from erasable.core.passes import Block, Pass
from erasable.core.row_arrays import PerRow, RowArray, padded
from erasable.tree._columns import FOR_VALUES, TAG
from erasable.tree._forest import Draws
from erasable.tree._layout import TreeRules
from erasable.tree._level_kernels import Drawn, LevelCounts, Top, is_regression

_32 = np.uint64(32)
_LAST = np.iinfo(np.int64)
_Found = TypeVar("_Found")


class LevelRecords(NamedTuple):
    """Records as the trees see them, but for their values."""

    y: Ints  # (n_rows,)
    keys: Words  # (n_rows,); by which rows get their weights in the bags
    draws: Draws
    whole: Flags  # (n_trees,); trees that learn from all records
    seed: int  # of the tape
    rules: TreeRules
    units: Ints  # (n_rows,); weights of the records; empty where they have none

    def weights(self, keys: Words, units: Ints, tree: int) -> Ints:
        """Return what records weigh in a tree, by their keys and weights."""
        weights: Ints = self.times(keys, tree).astype(np.int64)
        return weights * units if self.rules.weighted else weights

    def times(self, keys: Words, tree: int) -> NDArray[np.uint8]:
        """Return how often records, by their keys, are in the bag of a tree."""
        if self.whole[tree]:
            return np.ones(keys.size, dtype=np.uint8)
        times: NDArray[np.uint8] = self.draws.weights(keys, slice(tree, tree + 1))[0]
        return times

    def with_room(self, n_rows: int) -> LevelRecords:
        """Return records with room for so many rows; what lay elsewhere is overwritten."""
        units = padded(self.units, n_rows) if self.rules.weighted else self.units
        y, keys = padded(self.y, n_rows), padded(self.keys, n_rows)
        return self._replace(y=y, keys=keys, units=units)

    def without_rows(self) -> LevelRecords:
        """Return the rest, which is sent to wherever blocks are; rows are sent block by block."""
        return self._replace(y=NO_ROWS, keys=np.empty(0, dtype=np.uint64), units=NO_ROWS)


class Sent(NamedTuple):
    """What passes are sent of each record, see `LevelRecords`."""

    y: PerRow
    keys: PerRow
    units: PerRow | None

    @classmethod
    def of(cls, records: LevelRecords) -> Self:
        """Make it of what the trees see."""
        units = PerRow(records.units) if records.rules.weighted else None
        return cls(PerRow(records.y), PerRow(records.keys), units)

    def of_block(self, block: Block) -> tuple[Ints, Words, Ints]:
        """Return targets, keys and weights of the records of a block."""
        rows = block.positions
        units = NO_ROWS if self.units is None else self.units.of(block)[rows]
        return self.y.of(block)[rows], self.keys.of(block)[rows], units


class Sending(Pass[_Found]):
    """Base of passes that are sent something of each record."""

    takes_gaps = True
    _sent: Sent

    def row_arrays(self) -> list[RowArray]:
        return [each for each in self._sent if each is not None]


class LevelNodes(NamedTuple):
    """Open nodes, and the features that are looked at in them."""

    top: Top
    trees: list[int]  # those that have an open node
    features: Ints  # (n_open, n_looked); -1 for none
    races: Words  # (n_open, n_looked)


def placed(
    records: LevelRecords,
    top: Top,
    trees: list[int],
    matrix: Matrix,
    rows: Ints,
    keys: Words,
    units: Ints,
) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield for each tree the weights of rows of a matrix, and in which open nodes they are."""
    for tree in trees:
        weights, slots = records.weights(keys, units, tree), np.empty(rows.size, dtype=np.int64)
        kernels.locate(matrix, rows, weights, top, tree, slots)
        yield tree, weights, slots


def hashes_of(seed: int, values: Matrix) -> Words:
    """Hash values of a feature, by which they are drawn."""
    words = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    hashes = np.empty(words.size, dtype=np.uint64)
    siphash24_integers(np.uint64(seed), FOR_VALUES, TAG, words, hashes)
    hashes >>= _32
    hashes[np.isnan(values)] = kernels.NO_HASH
    return hashes


class Drawing(Sending[Drawn]):
    """Draw values of the features of open nodes."""

    def __init__(self, records: LevelRecords, sent: Sent, nodes: LevelNodes) -> None:
        self._records, self._sent, self._nodes = records.without_rows(), sent, nodes

    def of_block(self, block: Block) -> Drawn:
        records, nodes = self._records, self._nodes
        shape = (*nodes.features.shape, records.rules.sample)
        drawn = Drawn(
            np.zeros(shape[:2], dtype=np.int64), np.zeros(shape, dtype=np.uint64), np.zeros(shape),
            np.tile(np.array([_LAST.max, _LAST.min], dtype=np.int64), (shape[0], 1)),
            np.zeros(shape[:2], dtype=np.int64),
        )  # fmt: skip
        rows = block.positions
        y, keys, units = self._sent.of_block(block)
        hashes = self._hashes(block.matrix, rows)
        for _, _, slots in placed(records, nodes.top, nodes.trees, block.matrix, rows, keys, units):
            kernels.draw(block.matrix, rows, y, hashes, slots, nodes.features, nodes.races, drawn)
        return drawn

    def _hashes(self, matrix: Matrix, rows: Ints) -> Words:
        """Hash the values of features that are looked at."""
        hashes = np.zeros((matrix.shape[1], rows.size), dtype=np.uint64)
        for f in np.unique(self._nodes.features[self._nodes.features >= 0]).tolist():
            hashes[f] = hashes_of(self._records.seed, matrix[rows, f])
        return hashes

    def merge(self, one: Drawn, other: Drawn) -> Drawn:
        kernels.join_draws(one, other)
        return one


class Counting(Sending[LevelCounts]):
    """Count the records of open nodes between values drawn."""

    def __init__(
        self,
        records: LevelRecords,
        sent: Sent,
        nodes: LevelNodes,
        found: Ints,
        values: Floats,
        n_stats: int,
    ) -> None:
        self._records, self._sent, self._nodes = records.without_rows(), sent, nodes
        self._found, self._values, self._n_stats = found, values, n_stats

    def of_block(self, block: Block) -> LevelCounts:
        records, nodes = self._records, self._nodes
        n_open, n_looked, sample = self._values.shape
        shape = n_open, n_looked, sample + 1
        counted = LevelCounts(
            np.zeros(shape, dtype=np.int64), np.zeros((*shape, self._n_stats), dtype=np.int64),
            np.zeros(shape, dtype=np.int64), np.full(shape, np.inf),
            np.zeros(shape, dtype=np.int64),
            np.zeros((n_open, n_looked, self._n_stats + 1), dtype=np.int64),
        )  # fmt: skip
        rows = block.positions
        y, keys, units = self._sent.of_block(block)
        for _, weights, slots in placed(
            records, nodes.top, nodes.trees, block.matrix, rows, keys, units
        ):
            kernels.count(
                block.matrix, rows, y, weights, slots, nodes.features, self._found, self._values,
                is_regression(records.rules), counted,
            )  # fmt: skip
        return counted

    def merge(self, one: LevelCounts, other: LevelCounts) -> LevelCounts:
        lows = np.minimum(one.lows, other.lows)
        n_lows = one.n_lows * (one.lows == lows) + other.n_lows * (other.lows == lows)
        return LevelCounts(
            one.counts + other.counts, one.stats + other.stats, one.owns + other.owns, lows,
            n_lows, one.gaps + other.gaps,
        )  # fmt: skip


Rows = list[tuple[Ints, Matrix]]
"""Rows, and their values, in several parts."""


class Gathering(Sending[Rows]):
    """Find the rows of open nodes, and their values; each once, in whatever order."""

    finds_records = True

    def __init__(self, records: LevelRecords, sent: Sent, top: Top, trees: list[int]) -> None:
        self._records, self._sent, self._top, self._trees = records.without_rows(), sent, top, trees

    def of_block(self, block: Block) -> Rows:
        rows = block.positions
        wanted = np.zeros(rows.size, dtype=np.bool_)
        _, keys, units = self._sent.of_block(block)
        found = placed(self._records, self._top, self._trees, block.matrix, rows, keys, units)
        for _, _, slots in found:
            wanted |= slots >= 0
        return [(block.first + rows[wanted], block.matrix[rows[wanted]])]

    def merge(self, one: Rows, other: Rows) -> Rows:
        return one + other


def put_together(found: Rows) -> tuple[Ints, Matrix]:
    """Return rows, ascending, and their values."""
    rows = np.concatenate([each for each, _ in found])
    order = np.argsort(rows)
    return rows[order], np.concatenate([values for _, values in found])[order]

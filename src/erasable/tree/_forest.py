"""The trees of a model over records in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints, Words
from erasable.core.attachment import Attachment
from erasable.core.digest import LeafHash
from erasable.core.row_arrays import padded
from erasable.core.tape import Stream, Tape
from erasable.core.threads import in_threads
from erasable.tree._columns import TreeColumns, turn
from erasable.tree._flat import FlatTree, forest_hash
from erasable.tree._grown import NO_UNITS, PerThread, UpdatableTree, bag_of
from erasable.tree._hash_kernels import bag_weights
from erasable.tree._layout import TreeRecords, TreeRules, beside

_MANY = 2**16
"""Records from which on forests grow from a table that lies there by rows and by columns,"""
_MOST = 2**31
"""unless it takes more bytes than this."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Where the draws of a forest come from."""

    keys: Words  # (n_trees,); keys of the trees
    names: Words  # (n_features,); keys of the features
    ranks: Ints  # (n_features,); places of the features among their sorted names
    # (n_trees,); seeds of the bags; None where every tree learns from all records
    seeds: Words | None

    @classmethod
    def of(cls, tape: Tape, n_trees: int, names: list[str], bagged: bool) -> Self:
        """Draw keys of trees and of features."""
        ranks = np.empty(len(names), dtype=np.int64)
        ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        own = [tape.child("tree", t) for t in range(n_trees)]
        return cls(
            np.array([each.child("splits").seed for each in own], dtype=np.uint64),
            np.array([tape.key_of(name) for name in names], dtype=np.uint64),
            ranks,
            np.array([each.seed for each in own], dtype=np.uint64) if bagged else None,
        )

    def weights(self, record_keys: Words, trees: slice = slice(None)) -> NDArray[np.uint8]:
        """Return how often each record (a column) counts in each of some trees (a line)."""
        weights = np.ones((self.keys[trees].size, record_keys.size), dtype=np.uint8)
        if self.seeds is not None:
            bag_weights(self.seeds[trees], record_keys, int(Stream.LEAF), weights)
        return weights


class ForestRecords(NamedTuple):
    """Records as a forest learns from them, but for their values, and how it learns."""

    y: Ints  # (n_rows,)
    live: Ints  # rows that count, ascending
    keys: Words  # of the live rows, by which they get their weights in the bags
    units: Ints  # (n_rows,); weights, see `TreeRecords`
    rules: TreeRules
    draws: Draws
    n_stats: int
    class_weight: Floats
    n_jobs: int | None


class ArrivingRecords(NamedTuple):
    """Records that come to a forest, but for their values; see `ForestRecords`."""

    rows: Ints
    y: Ints  # (n,); as trees see them
    keys: Words  # (n,)
    units: Ints  # (n,), if the records have weights


@dataclass(eq=False, slots=True)
class Forest:
    """Trees over records; an accelerator, of which nothing but `flats` is in the state."""

    trees: list[UpdatableTree]
    columns: TreeColumns
    table: TreeRecords
    rules: TreeRules
    draws: Draws
    whole: NDArray[np.bool_]  # (n_trees,); trees whose bag was empty: they learn from all records
    has_to_learn_again: ClassVar[bool] = False

    @property
    def can_add(self) -> bool:
        """Whether rows that come change no decision of nodes that do not get them."""
        return self.rules.min_decrease == 0

    @classmethod
    def fit(
        cls, columns: TreeColumns, records: ForestRecords, known: list[FlatTree] | None = None
    ) -> Self | None:
        """Grow all trees, or lay out those that are known; None if they do not fit."""
        y, live, keys, units, rules, draws, n_stats, class_weight, n_jobs = records
        n_trees = draws.keys.size
        several = known is None and n_trees > 1 and live.size > _MANY
        wide = table_of(columns, y, draws, class_weight, several, n_jobs, units)
        table = wide._replace(by_column=beside(columns.packed.shape[1], 1))
        forest = cls([], columns, table, rules, draws, np.zeros(n_trees, dtype=np.bool_))
        thread = PerThread(wide, rules, n_stats)

        def grown(t: int) -> UpdatableTree | None:
            bag = bag_of(live, draws.weights(keys, slice(t, t + 1))[0], units)
            forest.whole[t] = bag.size == 0
            if forest.whole[t]:
                bag = bag_of(live, units=units)
            if known is None:
                return UpdatableTree.of(bag, draws.keys[t], thread.inputs)
            return UpdatableTree.restored(known[t], bag, draws.keys[t], thread.inputs, columns)

        for tree in in_threads(grown, range(n_trees), n_jobs):
            if tree is None:
                return None
            forest.trees.append(tree)
        return forest

    def update(
        self,
        held: Attachment,
        leaving: Ints,
        leaving_keys: Words,
        arriving: ArrivingRecords,
        n_jobs: int | None = None,
    ) -> tuple[int, int]:
        """Take rows in, and take others out of the trees that learned from them.

        Rows that leave are no longer live, but can still be read; other rows are left. Return how
        many nodes decided otherwise than before, and how many records were below them.
        """
        if arriving.rows.size:
            self._take_in(held, leaving, arriving)
        come_weights = self.draws.weights(arriving.keys)
        gone_weights = self.draws.weights(leaving_keys)
        units, n_stats = self.table.units, self.trees[0].growing.stats.shape[1]
        thread = PerThread(self.table, self.rules, n_stats)

        def updated(t: int) -> tuple[int, int]:
            tree, inputs, bag = self.trees[t], thread.inputs, None
            come = bag_of(arriving.rows, come_weights[t], units)
            gone = bag_of(leaving, gone_weights[t], units)
            if self.whole[t] and come.size:
                self.whole[t], bag = False, come
            elif self.whole[t]:
                come, gone = bag_of(arriving.rows, units=units), bag_of(leaving, units=units)
            elif gone.size == tree.n_records + come.size:
                self.whole[t], bag = True, bag_of(held.live_rows(), units=units)
            if bag is not None:
                self.trees[t] = UpdatableTree.of(bag, tree.key, inputs)
                return 1, bag.size
            nodes = records = 0
            if come.size:
                nodes, records = tree.add(come, inputs)
            if gone.size:
                more, below = tree.remove(gone, held.live, inputs)
                nodes, records = nodes + more, records + below
            return nodes, records

        concerned = come_weights.any(axis=1) | gone_weights.any(axis=1) | self.whole
        counts = list(in_threads(updated, np.flatnonzero(concerned).tolist(), n_jobs))
        return sum(nodes for nodes, _ in counts), sum(records for _, records in counts)

    def _take_in(self, held: Attachment, leaving: Ints, arriving: ArrivingRecords) -> None:
        """Write records that arrive into the tables."""
        rows, y, _, units = arriving
        matrix = held.records.matrix
        self.columns.make_room(matrix.shape[0])

        def there() -> Ints:
            return np.union1d(held.live_rows(), leaving)

        for codes, other, columns in self.columns.take(matrix, rows, there):
            for tree in self.trees:
                tree.recode(codes, other, columns)
        packed = self.columns.packed
        targets = packed.view(np.int64)[:, -1]
        targets[rows] = y
        own = self.table.units
        if own.size:
            own = padded(own, targets.size)
            own[rows] = units
        self.table = self.table._replace(
            packed=packed, y=targets, n_values=self.columns.codes.n_codes,
            n_gaps=self.columns.codes.n_gaps, units=own,
        )  # fmt: skip

    def forget(self, rows: Ints) -> None:
        """Overwrite what is left of rows in the tables."""
        self.columns.forget(rows)
        self.table.y[rows] = 0
        if self.table.units.size:
            self.table.units[rows] = 0

    def keep_classes(self, kept: NDArray[np.bool_], class_weight: Floats) -> None:
        """Drop classes of which no record is left."""
        place = np.maximum(np.cumsum(kept) - 1, 0)
        self.table.y[:] = place[self.table.y]
        self.table = self.table._replace(class_weight=class_weight)
        for tree in self.trees:
            tree.keep_classes(kept)

    def flats(self) -> list[FlatTree]:
        """Return the trees as the model has them."""
        return [tree.flat(self.columns) for tree in self.trees]

    def hash(self) -> LeafHash:
        """Hash all trees; of these, only what has changed since the last time."""
        return forest_hash([tree.hash(self.columns, self.rules) for tree in self.trees])


def table_of(
    columns: TreeColumns,
    y: Ints,
    draws: Draws,
    class_weight: Floats,
    several: bool,
    n_jobs: int | None = None,
    units: Ints = NO_UNITS,
) -> TreeRecords:
    """Make a table of the records; by columns, too, where `several` large trees are grown."""
    targets = columns.packed.view(np.int64)[:, -1]
    targets[:] = y
    width = columns.packed.shape[1]
    several = several and y.size > _MANY and columns.packed.nbytes <= _MOST
    by_column = beside(width, y.size if several else 1)
    if several:
        turn(columns.packed, by_column.T, n_jobs)
    return TreeRecords(
        columns.packed, columns.codes.n_codes, columns.codes.n_gaps, draws.names, draws.ranks,
        targets, class_weight, by_column, units,
    )  # fmt: skip

"""Trees over stored records: large nodes are grown by passes, small ones from gathered records.

Trees are those of `_forest.Forest`, to the bit: a split depends on values drawn by hashes, and on
counts, and passes find both. The records of a small node are read into memory, where the code for
records in memory grows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np

import erasable.tree._level_kernels as kernels
from erasable.core.arrays import Flags, Floats, Ints, Matrix, Words
from erasable.core.attachment import Attachment
from erasable.core.digest import LeafHash
from erasable.core.passes import Stored, run, storage
from erasable.core.tape import Tape
from erasable.core.threads import in_threads
from erasable.tree._columns import TreeColumns
from erasable.tree._flat import FlatTree, forest_hash
from erasable.tree._forest import ArrivingRecords, Draws, ForestRecords, table_of
from erasable.tree._grown import Bag, PerThread, UpdatableTree, bag_of, bag_rows, moved
from erasable.tree._layout import GAPS_LEFT, GAPS_RIGHT, NO_GAPS, NOTHING, TreeRules
from erasable.tree._level_kernels import Drawn, LevelCounts, is_regression
from erasable.tree._level_passes import (
    Counting,
    Drawing,
    Gathering,
    LevelNodes,
    LevelRecords,
    Sent,
    hashes_of,
    placed,
    put_together,
)
from erasable.tree._score_kernels import weight_of
from erasable.tree._upper import BestSplit, SplitCandidates, UpperNode, flat_of, top_of


class GatheredNode(NamedTuple):
    """A node whose records are known."""

    # its records, by their positions among those that were gathered, and their times in it
    bag: Bag
    key: int  # of its path
    depth: int
    whole: float  # weight of all records of its tree, see `UpdatableTree.of`


@dataclass(frozen=True, eq=False)
class GatheredRecords:
    """Records, and the nodes that are grown from them; it can be pickled."""

    matrix: Matrix  # (n, n_features)
    y: Ints  # (n,)
    gathered_nodes: list[GatheredNode]
    tape: Tape
    draws: Draws
    rules: TreeRules
    class_weight: Floats
    n_stats: int
    units: Ints  # (n,); their weights; empty where they have none

    def part(self, places: Sequence[int]) -> GatheredRecords:
        """Return some of the nodes, with the records of these and no others."""
        chosen = [self.gathered_nodes[place] for place in places]
        wanted = np.zeros(self.y.size, dtype=np.bool_)
        for gathered_node in chosen:
            wanted[bag_rows(gathered_node.bag)] = True
        where = np.cumsum(wanted) - 1
        own = [
            gathered_node._replace(bag=moved(gathered_node.bag, where)) for gathered_node in chosen
        ]
        return GatheredRecords(
            self.matrix[wanted], self.y[wanted], own, self.tape, self.draws, self.rules,
            self.class_weight, self.n_stats, self.units[wanted] if self.units.size else self.units,
        )  # fmt: skip

    def grow(self, n_jobs: int | None = None) -> list[FlatTree]:
        """Grow all nodes."""
        columns = TreeColumns.fit(self.matrix, np.arange(self.y.size), self.tape, n_jobs)
        several = len(self.gathered_nodes) > 1
        table = table_of(
            columns, self.y, self.draws, self.class_weight, several, n_jobs, self.units
        )
        thread = PerThread(table, self.rules, self.n_stats)

        def grown(node: GatheredNode) -> FlatTree:
            key = np.uint64(node.key)
            tree = UpdatableTree.of(node.bag, key, thread.inputs, node.depth, node.whole)
            return tree.flat(columns)

        return list(in_threads(grown, self.gathered_nodes, n_jobs))


def grow_where(
    matrix: Stored, gathered: GatheredRecords, n_jobs: int | None
) -> Iterator[tuple[int, FlatTree]]:
    """Grow all nodes, on workers if there are any; yield the place of each, and its tree."""
    if not storage(matrix).n_calls:
        yield from enumerate(gathered.grow(n_jobs))
        return
    shares = dealt(
        [gathered_node.bag.size for gathered_node in gathered.gathered_nodes], matrix.n_calls
    )
    parts = (partial(GatheredRecords.grow, gathered.part(share)) for share in shares)
    for share, flats in zip(shares, matrix.call(parts), strict=True):
        yield from zip(share, flats, strict=True)


def dealt(sizes: Sequence[int], n: int) -> list[list[int]]:
    """Deal items to at most n shares: the largest first, each to the share that has least.

    >>> dealt([5, 1, 4, 3], 2)
    [[0, 1], [2, 3]]
    """
    shares: list[list[int]] = [[] for _ in range(min(n, len(sizes)))]
    loads = [0] * len(shares)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        least = loads.index(min(loads))
        shares[least].append(place)
        loads[least] += sizes[place]
    return shares


_TOGETHER = 4
"""So many times the records of the largest node that is gathered are in memory at once."""

Open = list[tuple[int, UpperNode]]
"""Nodes that are to be grown, and their trees."""


class _Some(NamedTuple):
    """Some records of a tree."""

    rows: Ints
    matrix: Matrix  # (n, n_features)
    y: Ints
    weights: Ints

    def divided(self, feature: int, value: float, gap_side: int) -> tuple[_Some, _Some]:
        """Return those that go to the left of a split, and those that go to the right."""
        column = self.matrix[:, feature].astype(np.float64)
        left = column <= value
        if gap_side == GAPS_LEFT:
            left |= np.isnan(column)
        return self.chosen(left), self.chosen(~left)

    def chosen(self, which: Flags) -> _Some:
        """Return some of them."""
        return _Some._make(each[which] for each in self)


class StoredForest:
    """Trees over stored records; an accelerator, of which nothing but `flats` is in the state."""

    def __init__(self, matrix: Stored, records: ForestRecords, tape: Tape, gathered: int) -> None:
        y, live, live_keys, units, rules, draws, n_stats, class_weight, n_jobs = records
        n_trees = draws.keys.size
        keys = np.zeros(matrix.shape[0], dtype=np.uint64)
        keys[live] = live_keys
        self._matrix, self._tape, self._gathered = matrix, tape, gathered
        whole = np.zeros(n_trees, dtype=np.bool_)
        self._records = LevelRecords(y, keys, draws, whole, tape.seed, rules, units)
        self._per_row: Sent | None = None
        self._class_weight, self._n_stats = class_weight, n_stats
        self._roots = [self._root(tree, live) for tree in range(n_trees)]
        self._flats: list[FlatTree | None] = [None] * n_trees
        self._grow(list(enumerate(self._roots)), live, n_jobs)

    @property
    def rules(self) -> TreeRules:
        """Rules by which the trees were grown."""
        return self._records.rules

    can_add = True

    @property
    def has_to_learn_again(self) -> bool:
        """Whether a deletion may change decisions of nodes that do not have the record."""
        return self.rules.min_decrease > 0

    # -- growing -------------------------------------------------------------------------------

    def _root(self, tree: int, live: Ints) -> UpperNode:
        """Return the root of a tree, which learns from all records if its bag is empty."""
        records = self._records
        weights = self._weights(live, records.keys[live], tree)
        if not weights.any():
            records.whole[tree] = True
            weights = self._weights(live, records.keys[live], tree)
        own = weights > 0
        total = self._total(live[own], weights[own])
        return UpperNode(int(records.draws.keys[tree]), 0, int(np.count_nonzero(own)), total)

    def _in_bag(self, tree: int, some: ArrivingRecords) -> Flags:
        """Tell which records are in the bag of a tree, even if it learns from all records."""
        inside: Flags = self._records.draws.weights(some.keys, slice(tree, tree + 1))[0] > 0
        return inside & (some.units > 0) if self.rules.weighted else inside

    def _weights(self, rows: Ints, keys: Words, tree: int) -> Ints:
        """Return what rows weigh in a tree."""
        units = self._records.units
        return self._records.weights(keys, units[rows] if units.size else units, tree)

    def _total(self, rows: Ints, weights: Ints) -> Ints:
        """Return the stats of records."""
        y, total = self._records.y[rows], np.zeros(self._n_stats, dtype=np.int64)
        if is_regression(self.rules):
            total[0], total[1] = weights.sum(), (weights * y).sum()
        else:
            np.add.at(total, y, weights)
        return total

    def _whole(self, tree: int) -> float:
        """Weigh all records of a tree, where a gain is held against it."""
        if self.rules.min_decrease == 0:
            return 1.0
        return float(weight_of(self._roots[tree].total, self.rules, self._class_weight))

    def _grow(self, waiting: Open, live: Ints, n_jobs: int | None) -> None:
        """Grow trees below nodes that are open."""
        few: Open = []
        while waiting:
            large: Open = []
            for tree, node in waiting:
                self._flats[tree] = None
                if node.is_small(self.rules):
                    continue
                (few if node.n <= self._gathered else large).append((tree, node))
            waiting = self._level(large, live, n_jobs) if large else []
        while few:
            n, size = few[0][1].n, 1
            while size < len(few) and n + few[size][1].n <= _TOGETHER * self._gathered:
                n, size = n + few[size][1].n, size + 1
            self._gather(few[:size], live, n_jobs)
            few = few[size:]

    def _level(self, open_: Open, live: Ints, n_jobs: int | None) -> Open:
        """Have nodes decide; return those that are open then."""
        nodes, left = self._nodes_of(open_), []
        drawn = run(Drawing(self._records, self._sent(), nodes), self._matrix, live, n_jobs=n_jobs)
        features, regression = nodes.features, is_regression(self.rules)
        constant = (drawn.found == 0) | ((drawn.found == 1) & (drawn.n_gaps == 0))
        for slot, k in np.argwhere(constant & (features >= 0)).tolist():
            value = float(drawn.values[slot, k, 0]) if drawn.found[slot, k] else float("nan")
            open_[slot][1].still[int(features[slot, k])] = value
        features[constant] = -1
        for slot, (_, node) in enumerate(open_):
            if regression and drawn.extremes[slot, 0] == drawn.extremes[slot, 1]:
                features[slot] = -1  # a leaf
            elif (features[slot] < 0).all():
                node.looked += features.shape[1]
                if node.looked < self._records.draws.names.size:
                    left.append(open_[slot])
            elif node.looked:  # of those beyond `max_features` the first counts
                features[slot, np.flatnonzero(features[slot] >= 0)[1:]] = -1
        varied = np.flatnonzero((features >= 0).any(axis=1))
        if varied.size == 0:
            return left
        some = [open_[slot] for slot in varied.tolist()]
        nodes = nodes._replace(
            features=features[varied], races=nodes.races[varied],
            top=top_of(self._roots, [node for _, node in some]), trees=_trees_of(some),
        )  # fmt: skip
        drawn = Drawn(
            drawn.found[varied], drawn.priorities[varied], drawn.values[varied],
            drawn.extremes[varied], drawn.n_gaps[varied],
        )  # fmt: skip
        values, lasts = _in_order(drawn)
        counting = Counting(self._records, self._sent(), nodes, drawn.found, values, self._n_stats)
        counted = run(counting, self._matrix, live, n_jobs=n_jobs)
        for slot, (tree, node) in enumerate(some):
            there = nodes.features[slot] >= 0
            node.candidates = SplitCandidates(
                nodes.features[slot, there], drawn.found[slot, there], lasts[slot, there],
                values[slot, there], LevelCounts(*(each[slot, there] for each in counted)),
            )  # fmt: skip
            best = self._decided(tree, node)
            if best.place >= 0:
                node.divide(best)
                left.extend((tree, child) for child in node.children)
        return left

    def _sent(self) -> Sent:
        """Return what passes are sent, which a copy of the forest makes anew."""
        if self._per_row is None or self._per_row.y.values is not self._records.y:
            self._per_row = Sent.of(self._records)
        return self._per_row

    def _decided(self, tree: int, node: UpperNode) -> BestSplit:
        ranks = self._records.draws.ranks
        return node.decide(self.rules, ranks, self._class_weight, self._whole(tree))

    def _nodes_of(self, open_: Open) -> LevelNodes:
        """Choose the features that are looked at next in nodes that are open."""
        names, q = self._records.draws.names, self.rules.max_features
        features = np.full((len(open_), q), -1, dtype=np.int64)
        races, own = np.zeros((len(open_), q), dtype=np.uint64), np.empty_like(names)
        for slot, (_, node) in enumerate(open_):
            kernels.find_races(np.uint64(node.key), names, own)
            chosen = np.argsort(own, kind="stable")[node.looked : node.looked + q]
            features[slot, : chosen.size], races[slot, : chosen.size] = chosen, own[chosen]
        top = top_of(self._roots, [node for _, node in open_])
        return LevelNodes(top, _trees_of(open_), features, races)

    def _gather(self, open_: Open, live: Ints, n_jobs: int | None) -> None:
        """Grow nodes from their records, which pass through here if workers grow them."""
        records, trees = self._records, _trees_of(open_)
        top = top_of(self._roots, [node for _, node in open_])
        found = run(Gathering(records, self._sent(), top, trees), self._matrix, live, n_jobs=n_jobs)
        rows, matrix = put_together(found)
        del found
        gathered_nodes: dict[int, GatheredNode] = {}
        keys = records.keys[rows]
        units = records.units[rows] if records.units.size else records.units
        places = placed(records, top, trees, matrix, np.arange(rows.size), keys, units)
        for tree, _, slots in places:
            times = records.times(keys, tree)
            for slot, (other, node) in enumerate(open_):
                if other == tree:
                    own = np.flatnonzero(slots == slot)
                    bag = bag_of(own, times[own])
                    gathered_nodes[slot] = GatheredNode(
                        bag, node.key, node.depth, self._whole(tree)
                    )
        gathered = GatheredRecords(
            matrix, records.y[rows], [gathered_nodes[slot] for slot in range(len(open_))],
            self._tape, records.draws, self.rules, self._class_weight, self._n_stats, units,
        )  # fmt: skip
        for slot, flat in grow_where(self._matrix, gathered, n_jobs):
            open_[slot][1].flat = flat

    # -- forgetting ----------------------------------------------------------------------------

    def update(
        self,
        held: Attachment,
        leaving: Ints,
        leaving_keys: Words,
        arriving: ArrivingRecords,
        n_jobs: int | None = None,
    ) -> tuple[int, int]:
        """Take rows in, and take others out of the trees that learned from them.

        See `Forest.update`. Return how many nodes were grown again, and how many records are in
        them.
        """
        self._matrix, live, records = held.records.matrix, held.live_rows(), self._records
        self._records = records = records.with_room(held.records.n_rows)
        records.y[arriving.rows], records.keys[arriving.rows] = arriving.y, arriving.keys
        if records.units.size:
            records.units[arriving.rows] = arriving.units
        self._per_row = None
        arrived, left = self._read(arriving.rows), self._read(leaving)
        waiting: Open = []
        for tree, root in enumerate(self._roots):
            if records.whole[tree] and self._in_bag(tree, arriving).any():
                records.whole[tree], anew = False, True
            else:
                come = self._of_tree(tree, arrived, arriving.keys)
                gone = self._of_tree(tree, left, leaving_keys)
                if not (come.rows.size or gone.rows.size):
                    continue
                anew = gone.rows.size == root.n + come.rows.size
                records.whole[tree] |= anew
            self._flats[tree] = None
            if anew:
                self._roots[tree] = self._root(tree, live)
                waiting.append((tree, self._roots[tree]))
            else:
                waiting += self._exchange(tree, root, come, gone)
        outcome = len(waiting), sum(node.n for _, node in waiting)
        self._grow(waiting, live, n_jobs)
        return outcome

    def _read(self, rows: Ints) -> _Some:
        """Read rows, each with weight 1."""
        matrix = self._matrix[rows] if rows.size else np.empty((0, self._matrix.shape[1]))
        return _Some(rows, matrix, self._records.y[rows], np.ones_like(rows))

    def _of_tree(self, tree: int, some: _Some, keys: Words) -> _Some:
        """Return those of some records that a tree learns from, with their weights in it."""
        weights = self._weights(some.rows, keys, tree)
        return some._replace(weights=weights).chosen(weights > 0)

    def _exchange(self, tree: int, root: UpperNode, come: _Some, gone: _Some) -> Open:
        """Exchange rows in the nodes of a tree; return those that have to be grown again."""
        found: Open = []
        waiting = [(root, come, gone)]
        while waiting:
            node, come, gone = waiting.pop()
            node.n += come.rows.size - gone.rows.size
            node.total = (
                node.total
                + self._total(come.rows, come.weights)
                - self._total(gone.rows, gone.weights)
            )
            before = node.split.gap_side
            if not self._stands(tree, node, come, gone):
                node.open()
                found.append((tree, node))
            elif node.children:
                # Those that go are where gaps went before.
                sides = (each.divided(node.feature, node.value, before) for each in (come, gone))
                for child, (more, less) in zip(
                    node.children, zip(*sides, strict=True), strict=True
                ):
                    if more.rows.size or less.rows.size:
                        waiting.append((child, more, less))
        return found

    def _stands(self, tree: int, node: UpperNode, come: _Some, gone: _Some) -> bool:
        """Exchange records in what a node knows; tell whether it still decides as it did."""
        if node.flat is not None:
            return False  # its records are not in memory
        small = node.is_small(self.rules)
        if node.candidates is None or small:
            # A leaf stays a leaf, whichever records leave.
            return not node.children and (small or not come.rows.size)
        squares = is_regression(self.rules)
        if come.rows.size:
            if not self._draws_alike(node, come.matrix):
                return False
            node.candidates.add(come.matrix, come.y, come.weights, squares)
        kept = node.candidates.remove(gone.matrix, gone.y, gone.weights, squares)
        if not kept or not node.children:
            return False
        best = self._decided(tree, node)
        if (best.place, best.j) != (node.split.place, node.split.j):
            return False
        # Where there are no gaps any more, none is on the wrong side; the first that came is on
        # the right.
        side, before = best.gap_side, node.split.gap_side
        if side not in (before, NO_GAPS) and (before, side) != (NO_GAPS, GAPS_RIGHT):
            return False
        node.split = replace(node.split, gap_side=side)
        # Where no split gains anything, all targets may be equal now.
        if squares and best.score <= NOTHING * float(node.total[0]):
            return False
        return not np.isnan(node.candidates.above(best))

    def _draws_alike(self, node: UpperNode, matrix: Matrix) -> bool:
        """Tell whether a node with these records, too, draws what it has drawn."""
        candidates, names = node.candidates, self._records.draws.names
        assert candidates is not None
        for f, value in node.still.items():
            column = matrix[:, f].astype(np.float64)
            if not np.array_equal(column, np.full_like(column, value), equal_nan=True):
                return False
        races = np.empty_like(names)
        kernels.find_races(np.uint64(node.key), names, races)
        for k, f in enumerate(candidates.features.tolist()):
            drawn = candidates.values[k, : candidates.found[k]]
            column = matrix[:, f].astype(np.float64)
            others = np.setdiff1d(column[~np.isnan(column)], drawn)
            if not others.size:
                continue
            last = drawn[candidates.lasts[k]]
            if drawn.size < self.rules.sample or self._first(last, others, races[f]) != last:
                return False
        return True

    def _first(self, last: float, others: Floats, race: np.uint64) -> float:
        """Return which of some values of a feature is drawn first."""
        column = np.append(last, others)[:, np.newaxis]
        drawn = Drawn(
            np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1, 1), dtype=np.uint64),
            np.zeros((1, 1, 1)), np.zeros((1, 2), dtype=np.int64),
            np.zeros((1, 1), dtype=np.int64),
        )  # fmt: skip
        none = np.zeros(column.size, dtype=np.int64)
        kernels.draw(
            column, np.arange(column.size), none, hashes_of(self._records.seed, column[:, 0])[None],
            none, np.zeros((1, 1), dtype=np.int64), np.array([[race]]), drawn,
        )  # fmt: skip
        return float(drawn.values[0, 0, 0])

    def forget(self, rows: Ints) -> None:
        """Overwrite what is kept of rows."""
        self._records.y[rows] = 0
        self._records.keys[rows] = 0
        if self._records.units.size:
            self._records.units[rows] = 0

    def keep_classes(self, kept: Flags, class_weight: Floats) -> None:
        """Drop classes of which no record is left."""
        place = np.maximum(np.cumsum(kept) - 1, 0)
        self._records.y[:] = place[self._records.y]
        self._per_row = None
        self._class_weight, self._n_stats = class_weight, int(np.count_nonzero(kept))
        for root in self._roots:
            for node in root.below():
                node.keep_classes(kept)
        self._flats = [None] * len(self._roots)

    # -- what it is ----------------------------------------------------------------------------

    def flats(self) -> list[FlatTree]:
        """Return the trees as the model has them."""
        found = []
        for tree, root in enumerate(self._roots):
            flat = self._flats[tree]
            if flat is None:
                flat = self._flats[tree] = flat_of(root)
            found.append(flat)
        return found

    def hash(self) -> LeafHash:
        """Hash all trees."""
        return forest_hash([flat.hash(self.rules) for flat in self.flats()])

    def matching(self, known: Sequence[FlatTree]) -> Self | None:
        """Return the forest if its trees are those that are known."""
        found = forest_hash([flat.hash(self.rules) for flat in known])
        return self if found == self.hash() else None


def _trees_of(open_: Open) -> list[int]:
    return sorted({tree for tree, _ in open_})


def _in_order(drawn: Drawn) -> tuple[Floats, Ints]:
    """Return values drawn, ascending, and infinity behind them; and the place of the last drawn."""
    n_drawn = drawn.found[..., np.newaxis]
    there = np.arange(drawn.values.shape[2]) < n_drawn
    values = np.where(there, drawn.values, np.inf)
    last = np.take_along_axis(values, np.maximum(n_drawn - 1, 0), axis=2)
    lasts = (np.where(there, values, np.inf) < last).sum(axis=2)
    return np.sort(values, axis=2), lasts

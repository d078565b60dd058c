"""The upper part of a tree whose records are stored: nodes and their candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

import erasable.tree._level_kernels as kernels
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.tree._flat import NO_SIDES, FlatTree, told_sides
from erasable.tree._layout import (
    ALL_VALUES,
    ANY_VALUE,
    GAPS_LEFT,
    NO_GAPS,
    NodeCandidates,
    TreeRules,
)
from erasable.tree._level_kernels import LevelCounts, Top, is_regression
from erasable.tree._score_kernels import gain_of


@dataclass(eq=False, slots=True)
class SplitCandidates:
    """The candidates of a node: values drawn of its features that are not constant."""

    # features, found, lasts: (n_features,); see `_level_kernels.choose`
    features: Ints
    found: Ints
    lasts: Ints
    values: Floats  # (n_features, sample); values drawn, ascending; infinity behind them
    counted: LevelCounts  # of this node, without the first dimension

    def add(self, matrix: Matrix, y: Ints, weights: Ints, squares: bool) -> None:
        """Take records in, of whose values none is drawn that was not drawn before."""
        rows = np.arange(y.size)
        kernels.count(
            matrix, rows, y, weights, np.zeros_like(rows), self.features[np.newaxis],
            self.found[np.newaxis], self.values[np.newaxis], squares,
            LevelCounts._make(each[np.newaxis] for each in self.counted),
        )  # fmt: skip

    def remove(self, matrix: Matrix, y: Ints, weights: Ints, squares: bool) -> bool:
        """Take records out; tell whether all values drawn are still there, and none is constant."""
        counted, kept = self.counted, True
        for k, f in enumerate(self.features.tolist()):
            column, found = matrix[:, f].astype(np.float64), int(self.found[k])
            there = ~np.isnan(column)
            counted.gaps[k] -= _summed(y[~there], weights[~there], squares, counted.gaps.shape[1])
            x, own_y, own_weights = column[there], y[there], weights[there]
            places = np.searchsorted(self.values[k, :found], x)
            np.subtract.at(counted.counts[k], places, 1)
            if squares:
                np.subtract.at(counted.stats[k, :, 0], places, own_weights)
                np.subtract.at(counted.stats[k, :, 1], places, own_weights * own_y)
            else:
                np.subtract.at(counted.stats[k], (places, own_y), own_weights)
            padded = np.append(self.values[k, :found], np.inf)
            own = padded[places] == x
            np.subtract.at(counted.owns[k], places[own], 1)
            low = counted.lows[k, places] == x
            np.subtract.at(counted.n_lows[k], places[low & ~own], 1)
            kept = kept and bool((counted.owns[k, :found] > 0).all())
            kept = kept and bool(found > 1 or counted.gaps[k, -1] > 0)
        return kept

    def best(
        self, node: UpperNode, rules: TreeRules, ranks: Ints, class_weight: Floats
    ) -> BestSplit:
        """Return the best split of a node."""
        sample = self.values.shape[1]
        counts = np.zeros((*self.values.shape, 2), dtype=np.int32)
        counts[..., 0] = self.counted.owns[:, :sample]
        counts[..., 1] = np.cumsum(self.counted.counts[:, :sample], axis=1)
        lefts = np.cumsum(self.counted.stats[:, :sample], axis=1)
        codes = np.tile(np.arange(sample, dtype=np.int32), (self.features.size, 1))
        out, gaps = np.empty(3, dtype=np.int64), self.counted.gaps
        candidates = NodeCandidates(codes, counts, lefts, gaps)
        score = kernels.choose(
            self.features, self.found, self.lasts, candidates, node.total, node.n, ranks, rules,
            class_weight, np.empty_like(node.total), out,
        )  # fmt: skip
        place, j, side = out.tolist()
        if place < 0:
            return NO_SPLIT
        own = gaps[place]
        if j == ALL_VALUES:
            return BestSplit(place, j, side, score, node.n - int(own[-1]), node.total - own[:-1])
        n, left = int(counts[place, j, 1]), lefts[place, j].copy()
        if side == GAPS_LEFT:
            n, left = n + int(own[-1]), left + own[:-1]
        return BestSplit(place, j, side, score, n, left)

    def above(self, split: BestSplit) -> float:
        """Return the least value that is larger than that of a split; NaN if it is not known.

        Infinity for the split that divides the gaps from all values.
        """
        if split.j == ALL_VALUES:
            return float("inf")
        k, j = split.place, split.j + 1
        low, n_lows = float(self.counted.lows[k, j]), int(self.counted.n_lows[k, j])
        if low == np.inf:
            return float(self.values[k, j])
        return low if n_lows > 0 else float("nan")

    def keep_classes(self, kept: Flags) -> None:
        """Drop classes of which no record is left."""
        self.counted = self.counted._replace(
            stats=np.ascontiguousarray(self.counted.stats[..., kept]),
            gaps=np.ascontiguousarray(self.counted.gaps[:, np.append(kept, True)]),
        )


def _summed(y: Ints, weights: Ints, squares: bool, width: int) -> Ints:
    """Return the stats of records, and how many there are; see `LevelCounts.gaps`."""
    sums = np.zeros(width, dtype=np.int64)
    if squares:
        sums[0], sums[1] = weights.sum(), (weights * y).sum()
    else:
        np.add.at(sums, y, weights)
    sums[-1] = y.size
    return sums


@dataclass(frozen=True, eq=False, slots=True)
class BestSplit:
    """A split of a node."""

    # place, j: index of the feature in `SplitCandidates.features`, and of the value among those
    # drawn, or `ALL_VALUES`; -1 for no split
    place: int
    j: int
    gap_side: int  # where records without a value go
    score: float
    n: int  # how many records go to the left
    total: Ints  # (n_stats,); their stats


NO_SPLIT = BestSplit(-1, -1, NO_GAPS, -np.inf, 0, np.zeros(0, dtype=np.int64))


@dataclass(eq=False, slots=True)
class UpperNode:
    """A node of the upper part of a tree."""

    key: int  # of its path
    # depth, n: how many splits are above it, and how many records it has
    depth: int
    n: int
    total: Ints  # (n_stats,); stats of these
    looked: int = 0  # how many features were looked at, all of them constant
    still: dict[int, float] = field(default_factory=dict)  # values of constant features
    candidates: SplitCandidates | None = None  # None until they are counted
    split: BestSplit = NO_SPLIT
    children: list[UpperNode] = field(default_factory=list)  # two or none
    # what was grown of its records; of a node without children that is no leaf for ever
    flat: FlatTree | None = None

    def open(self) -> None:
        """Forget what is below it, and why."""
        self.looked, self.still, self.candidates, self.split = 0, {}, None, NO_SPLIT
        self.children, self.flat = [], None

    def keep_classes(self, kept: Flags) -> None:
        """Drop classes of which no record is left."""
        self.total = np.ascontiguousarray(self.total[kept])
        if self.candidates is not None:
            self.candidates.keep_classes(kept)
        if self.split.place >= 0:
            self.split = replace(self.split, total=self.split.total[kept])
        if self.flat is not None:
            leaves = np.ascontiguousarray(self.flat.leaves[:, kept])
            self.flat = replace(self.flat, leaves=leaves)

    def is_small(self, rules: TreeRules) -> bool:
        """Tell whether it can have no split, whatever its records."""
        if self.n < max(rules.min_split, 2) or self.n < 2 * rules.min_leaf:
            return True
        if self.depth >= rules.max_depth:
            return True
        return not is_regression(rules) and int(np.count_nonzero(self.total)) < 2

    def decide(
        self, rules: TreeRules, ranks: Ints, class_weight: Floats, whole: float
    ) -> BestSplit:
        """Return the split that its candidates lead to."""
        assert self.candidates is not None
        best = self.candidates.best(self, rules, ranks, class_weight)
        if best.place >= 0 and rules.min_decrease > 0:
            gain = gain_of(best.score, self.total, rules, class_weight)
            if gain / whole < rules.min_decrease:
                return NO_SPLIT
        return best

    def divide(self, best: BestSplit) -> None:
        """Make children."""
        keys = np.empty(2, dtype=np.uint64)
        kernels.find_children(np.uint64(self.key), keys)
        left, right = keys.tolist()
        self.split = best
        self.children = [
            UpperNode(left, self.depth + 1, best.n, best.total.copy()),
            UpperNode(right, self.depth + 1, self.n - best.n, self.total - best.total),
        ]

    @property
    def feature(self) -> int:
        """Feature of its split."""
        assert self.candidates is not None
        return int(self.candidates.features[self.split.place])

    @property
    def value(self) -> float:
        """Largest value on the left."""
        assert self.candidates is not None
        if self.split.j == ALL_VALUES:
            return ANY_VALUE
        return float(self.candidates.values[self.split.place, self.split.j])

    @property
    def threshold(self) -> float:
        """The middle between the values next to its split; see `_flat_kernels`."""
        assert self.candidates is not None
        low, high = self.value, self.candidates.above(self.split)
        if high == np.inf:
            return low
        middle = low / 2.0 + high / 2.0
        return middle if low <= middle < high else low

    def below(self) -> Iterator[UpperNode]:
        """Yield it and all nodes below it, each before those to its left and right."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


def top_of(roots: Sequence[UpperNode], open_: Sequence[UpperNode]) -> Top:
    """Lay the upper parts of trees out, with numbers of the open nodes."""
    nodes = [node for root in roots for node in root.below()]
    places = {id(node): place for place, node in enumerate(nodes)}
    slots = {id(node): slot for slot, node in enumerate(open_)}
    top = Top(
        np.array([places[id(root)] for root in roots], dtype=np.int64),
        np.full(len(nodes), -1, dtype=np.int64), np.zeros(len(nodes)),
        np.array([node.split.gap_side for node in nodes], dtype=np.int64),
        np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=np.int64),
        np.array([slots.get(id(node), -1) for node in nodes], dtype=np.int64),
    )  # fmt: skip
    for place, node in enumerate(nodes):
        if node.children:
            top.features[place], top.values[place] = node.feature, node.value
            top.lefts[place], top.rights[place] = (places[id(each)] for each in node.children)
    return top


def flat_of(root: UpperNode) -> FlatTree:
    """Return a tree as the model has it."""
    features, thresholds, leaves, sides = [], [], [], []
    for node in root.below():
        if node.children:
            features.append(np.array([node.feature], dtype=np.int32))
            thresholds.append(np.array([node.threshold]))
            sides.append(np.array([node.split.gap_side], dtype=np.uint8))
        elif node.flat is not None:
            features.append(node.flat.features)
            thresholds.append(node.flat.thresholds)
            leaves.append(node.flat.leaves)
            own = node.flat.gap_sides
            sides.append(own if own.size else np.zeros(node.flat.thresholds.size, dtype=np.uint8))
        else:
            features.append(np.array([-1], dtype=np.int32))
            leaves.append(node.total[np.newaxis])
    none = [np.empty(0)]
    return FlatTree(
        np.concatenate(features), np.concatenate(thresholds or none), np.concatenate(leaves),
        told_sides(np.concatenate([NO_SIDES, *sides])),
    )  # fmt: skip

"""The expected nearest neighbour utility, exactly, for staying models of one kind in each class."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

import erasable.selection._memory as _memory
import erasable.selection.utilities._dense_kernels as _dense_kernels
import erasable.selection.utilities._heap_kernels as _heap_kernels
import erasable.selection.utilities._ranked_kernels as _ranked_kernels
from erasable.core.arrays import Floats, Ints
from erasable.selection._functions import Queue, SetFunction
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._similarities import ClassBlock, places_of

NEGLIGIBLE = 2.0**-43  # the share of a similarity that may be lost: 1e-13


def ranks_needed(bound: Bound, block: ClassBlock, k: int) -> tuple[int, Floats | None, Floats]:
    """Return the number of ranks that matter, their weights, and factors of the records' gains.

    At most `k` records will be chosen. Weights have the shape (n_ranks + 1,) and end with 0; None
    where owners stay with different probabilities.
    """
    probability = np.ascontiguousarray(bound.probability[block.records])
    k = max(1, min(k, len(probability)))
    number = int(bound.block[block.records[0]]) if len(probability) else -1
    if number >= 0:
        weights = bound.laws[number].rank_weights(k + 1)
        weights[k:] = 0.0
        np.minimum.accumulate(weights, out=weights)
        beyond = np.cumsum(weights[::-1])[::-1]
        n_ranks = max(1, min(k, int((beyond > NEGLIGIBLE).sum())))
        factor = np.ones(len(probability))
    else:
        lowest = float(min(probability[probability > 0], default=1.0))
        n_ranks = k if lowest < 1e-12 else min(k, _leave_all(lowest))
        factor = probability
        if (probability != lowest).any():
            return n_ranks, None, factor
        weights = np.asarray((1.0 - lowest) ** np.arange(n_ranks + 1), dtype=np.float64)
    weights = weights[: n_ranks + 1].copy()
    weights[n_ranks] = 0.0  # ranks from there on are negligible
    return n_ranks, weights, factor


def _leave_all(s: float) -> int:
    """Return the number of owners from which on the probability that all leave is negligible."""
    return 1 if s == 1.0 else math.ceil(math.log(NEGLIGIBLE) / math.log1p(-s))


# Targets in a group. To read so many in one piece is fast, and rows are no power of two apart,
# which would have them share places in the processor's cache. Where one rank counts, a share takes
# so little that larger ones cost less than they spare.
_WIDTH, _WIDTH_OF_ONE_RANK = 896, 8192


class DenseRanks:
    """The chosen of one class in the order of their similarity to each target, owners independent.

    At most `k` records will be added; `width` targets are dealt with together, by default a fast
    number.
    """

    def __init__(self, block: ClassBlock, bound: Bound, k: int, width: int | None = None) -> None:
        self.block = block
        self.probability = np.ascontiguousarray(bound.probability[block.records])
        n, m = block.dense.shape
        n_ranks, weights, self.factor = ranks_needed(bound, block, k)
        simple = n_ranks == 1 and weights is not None
        width = width or _even(m, _WIDTH_OF_ONE_RANK if simple else _WIDTH)
        n_groups = -(-m // width)
        shape = (n_groups, n_ranks, width)
        more = (n_groups, n_ranks + 1, width)
        alike = weights is not None
        self.targets = _dense_kernels.DenseTargets(
            dense=block.dense,
            near=np.zeros((0 if simple else n_groups, min(k, n), width), dtype=block.dense.dtype),
            counts=np.zeros((_rows_of_counts(block, simple), m), dtype=np.min_scalar_type(k)),
            seen=np.full((n, n_groups), -1, dtype=np.int32),
            shares=np.zeros((n, n_groups)),
            ranks=np.zeros(shape, dtype=block.dense.dtype),
            stays=np.zeros((0, 0, 0) if alike else shape),
            a=np.ones(more) if weights is None else weights.reshape(1, -1, 1),
            t=np.zeros(more),
            depth=np.zeros(n_groups, dtype=np.int64),
            carry=np.zeros((2, max(width, 32))),
        )
        self.n_chosen, self.most = 0, min(k, n)

    @staticmethod
    def bytes_of(block: ClassBlock, bound: Bound, k: int) -> float:
        """Return the least memory it takes, without what it can do without."""
        n_ranks, weights, _ = ranks_needed(bound, block, k)
        n, m = block.dense.shape
        item: float = block.dense.itemsize
        each = (item + 8.0 if weights is not None else item + 24.0) * (n_ranks + 1)
        near = 0.0 if n_ranks == 1 else item * min(k, n)
        needed: float = (each + near) * (m + _WIDTH) + 12.0 * n * (m / _WIDTH + 1)
        return needed

    def gains(self, items: Ints, factor: Floats | None = None) -> Floats:
        out = np.empty(len(items))
        factor = self.factor if factor is None else factor
        _dense_kernels.gains(items, factor, self.n_chosen, self.targets, out)
        return out

    def add(self, j: int) -> None:
        if self.probability[j] == 0:  # ranks are for those who may stay
            return
        if self.n_chosen == self.most:
            raise IndexError(
                f"{self.most} records of the class were added; expected no more, and none twice; "
                "make the function for a larger k"
            )
        _dense_kernels.add(j, float(self.probability[j]), self.n_chosen, NEGLIGIBLE, self.targets)
        self.n_chosen += 1

    def heap(self, places: Ints, weights: Floats | None) -> DenseHeap:
        return DenseHeap(self, places, weights)


def _even(m: int, most: int) -> int:
    """Return the width of the fewest groups of at most `most` targets, of about equal sizes."""
    n_groups = -(-m // most)
    return -(-m // (8 * n_groups)) * 8


def _rows_of_counts(block: ClassBlock, simple: bool) -> int:
    """Return the number of rows of counts: all records if half of the memory holds them, else 1."""
    if simple:
        return 0
    n, m = block.dense.shape
    return n if 4.0 * n * m <= _memory.available_memory() else 1


class ClassHeap(ABC):
    """The records of one class by upper bounds of their gains, times `weights` if given.

    `part` is `DenseRanks` or another class with `block`, `factor` and `gains`; `places` are those
    of the records in the class.
    """

    def __init__(self, part: Any, places: Ints, weights: Floats | None) -> None:
        self.part, self.places = part, np.sort(places)
        self.factor = part.factor if weights is None else part.factor * weights
        self.bound = np.full(len(part.block.records), -np.inf)
        self.bound[places] = part.gains(places, self.factor)
        self.left = len(places)
        _heap_kernels.make_heap(self.bound, self.places)

    @abstractmethod
    def pick(self) -> int:
        """Bring the best to the top; return how many gains were computed."""

    @abstractmethod
    def next_round(self) -> None:
        """Mark gains as out of date, after a record of the class was added."""

    def top(self) -> tuple[float, int]:
        place = self.places[0]
        return float(self.bound[place]), int(self.part.block.records[place])

    def remove_top(self) -> None:
        _heap_kernels.remove_top(self.left, self.bound, self.places)
        self.left -= 1


class DenseHeap(ClassHeap):
    """A heap of gains that are sums of shares, computed one by one."""

    n_shares = 0

    def pick(self) -> int:
        part, n_groups = self.part, self.part.targets.seen.shape[1]
        before = self.n_shares // n_groups
        self.n_shares += _dense_kernels.pick(
            self.left, self.bound, self.places, self.factor, part.n_chosen, part.targets
        )
        return int(self.n_shares // n_groups - before)

    def next_round(self) -> None:
        """Do nothing: shares know when they were computed."""


def has_closed_form(blocks: list[ClassBlock], bound: Bound) -> bool:
    """Tell whether the owners of each class are all independent or all exchangeable."""
    return all(len(np.unique(bound.block[block.records])) <= 1 for block in blocks)


class ExpectedNearest(SetFunction):
    """The expected nearest neighbour utility of at most `k` chosen records, class by class."""

    def __init__(self, blocks: list[ClassBlock], bound: Bound, k: int) -> None:
        self.n = sum(len(block.records) for block in blocks)
        kinds = [_kind(block, bound) for block in blocks]
        n_bytes = sum(
            kind.bytes_of(block, bound, k) for kind, block in zip(kinds, blocks, strict=True)
        )
        _memory.check_memory(
            n_bytes, "the nearest of the chosen", "choose fewer, or pass n_neighbors"
        )
        self.parts = [kind(block, bound, k) for kind, block in zip(kinds, blocks, strict=True)]
        self.part_of, self.place_of = places_of(blocks)

    def gains(self, items: Ints) -> Floats:
        out = np.empty(len(items))
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(self.part_of[items] == number)
            if len(here):
                out[here] = part.gains(self.place_of[items[here]])
        self.n_evaluations += len(items)
        return out

    def _add(self, j: int) -> None:
        self.parts[self.part_of[j]].add(int(self.place_of[j]))

    def queue(self, items: Ints, weights: Floats | None = None) -> Queue:
        return _Queues(self, items, weights)


def _kind(block: ClassBlock, bound: Bound) -> type[SparseRanks] | type[DenseRanks]:
    """Return the class for a block: gains of dense similarities compare with all chosen."""
    return SparseRanks if len(block.starts) or bound.unit is not None else DenseRanks


class SparseRanks:
    """The nearest of the chosen of one class, for each target, as far as they matter.

    For sparse similarities, and for owners of several records, of whom the nearest record alone
    counts.
    """

    def __init__(self, block: ClassBlock, bound: Bound, k: int) -> None:
        self.block = block
        self.probability = np.ascontiguousarray(bound.probability[block.records])
        n_ranks, weights, self.factor = ranks_needed(bound, block, k)
        shape = (block.n_targets, n_ranks)
        if weights is None:
            a = np.zeros((max(block.n_targets, 2), n_ranks + 1))
            a[:, 0] = 1.0
        else:
            a = weights[None, :]
        no_units = np.zeros(0, dtype=np.int64)
        self.ranks = _ranked_kernels.Ranks(
            dense=block.dense,
            starts=block.starts,
            targets=block.targets,
            values=block.values,
            unit_of=no_units if bound.unit is None else bound.unit[block.records],
            ranks=np.zeros(shape),
            stays=np.zeros(shape),
            units=np.full(shape, -1, dtype=np.int64),
            sizes=np.zeros(block.n_targets, dtype=np.int64),
            a=a,
            t=np.zeros((block.n_targets, n_ranks + 1)),
        )

    @staticmethod
    def bytes_of(block: ClassBlock, bound: Bound, k: int) -> float:
        n_ranks, _, _ = ranks_needed(bound, block, k)
        return 40.0 * block.n_targets * (n_ranks + 1)

    def gains(self, items: Ints, factor: Floats | None = None) -> Floats:
        out = np.empty(len(items))
        _ranked_kernels.gains(items, self.factor if factor is None else factor, self.ranks, out)
        return out

    def add(self, j: int) -> None:
        if self.probability[j] == 0:  # ranks are for those who may stay
            return
        _ranked_kernels.add(j, float(self.probability[j]), NEGLIGIBLE, self.ranks)

    def heap(self, places: Ints, weights: Floats | None) -> _SparseHeap:
        return _SparseHeap(self, places, weights)


class _SparseHeap(ClassHeap):
    """A heap of gains that are computed anew in each round, as far as they are looked at."""

    def __init__(self, part: SparseRanks, places: Ints, weights: Floats | None) -> None:
        super().__init__(part, places, weights)
        self.rounds = np.zeros(len(self.bound), dtype=np.int64)
        self.round = 0

    def pick(self) -> int:
        return _ranked_kernels.pick(
            self.left, self.bound, self.places, self.factor, self.part.ranks, self.rounds,
            self.round,
        )  # fmt: skip

    def next_round(self) -> None:
        self.round += 1


class _Queues(Queue):
    """A heap for each class, and the best of each: classes do not change each other's gains."""

    def __init__(
        self, function: ExpectedNearest, items: Ints, weights: Floats | None = None
    ) -> None:
        self.function: ExpectedNearest = function
        self.weights = np.ones(function.n) if weights is None else weights
        self.heaps: list[ClassHeap] = []
        for number, part in enumerate(function.parts):
            places = function.place_of[items[function.part_of[items] == number]]
            ours = None if weights is None else weights[part.block.records]
            self.heaps.append(part.heap(places, ours))
        function.n_evaluations += len(items)
        self.best: list[tuple[float, int, int]] = []
        self.stale = list(range(len(self.heaps)))  # classes whose best is not in the race

    def pop(self) -> tuple[int, float]:
        while self.stale:
            number = self.stale.pop()
            heap = self.heaps[number]
            if heap.left:
                self.function.n_evaluations += heap.pick()
                bound, j = heap.top()
                heapq.heappush(self.best, (-bound, j, number))
        bound, j, number = heapq.heappop(self.best)
        self.heaps[number].remove_top()
        self.stale.append(number)
        weight = float(self.weights[j])
        return j, -bound / weight if weight else 0.0

    def next_round(self) -> None:
        for number in self.stale:
            self.heaps[number].next_round()

    def __len__(self) -> int:
        return sum(heap.left for heap in self.heaps)

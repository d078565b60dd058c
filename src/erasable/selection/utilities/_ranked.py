"""The expected nearest neighbour utility, exactly, for every staying model of one kind a class."""

from __future__ import annotations

import heapq

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.selection import _memory
from erasable.selection._functions import Queue, SetFunction
from erasable.selection.staying import Bound
from erasable.selection.utilities import _ranked_kernels
from erasable.selection.utilities._dense_ranks import ClassHeap, DenseRanks
from erasable.selection.utilities._rank_weights import NEGLIGIBLE, ranks_needed
from erasable.selection.utilities._similarities import ClassBlock, places_of


def has_closed_form(blocks: list[ClassBlock], bound: Bound) -> bool:
    """Say whether of each class all owners decide on their own, or all are alike."""
    return all(len(np.unique(bound.block[block.records])) <= 1 for block in blocks)


class ExpectedNearest(SetFunction):
    """What the chosen are worth after deletions; a class at a time.

    Parameters
    ----------
    blocks : list of ClassBlock
    bound : Bound
    k : int
        The most that will be added.
    """

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
    """Say how the nearest are kept: what dense similarities gain by needs a comparison with all."""
    return SparseRanks if len(block.starts) or bound.unit is not None else DenseRanks


class SparseRanks:
    """One class: the nearest of the chosen, of each target, as far as they matter.

    For similarities that are sparse, and for records whose owners decide for several: there the
    nearest of each owner counts alone.
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
    """Gains are computed anew in each round, as far as they are looked at."""

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

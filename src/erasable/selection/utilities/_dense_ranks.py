"""The expected nearest neighbour utility of one class whose similarities are dense."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.selection import _memory
from erasable.selection.staying import Bound
from erasable.selection.utilities import _dense_kernels
from erasable.selection.utilities import _heap_kernels
from erasable.selection.utilities._rank_weights import NEGLIGIBLE, ranks_needed
from erasable.selection.utilities._similarities import ClassBlock

# Targets in a group. To read so many in one piece is fast, and rows are no power of two apart,
# which would have them share places in the processor's cache. Where one rank counts, a share takes
# so little that larger ones cost less than they spare.
_WIDTH, _WIDTH_OF_ONE_RANK = 896, 8192


class DenseRanks:
    """One class: the chosen in the order of their similarity to each target.

    Each record decides for itself.

    Parameters
    ----------
    block : ClassBlock
        Dense.
    bound : Bound
    k : int
    width : int, default=None
        How many targets are dealt with together; by default a size that is fast.
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
        """Return what it takes at least, without what can be done without."""
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
    """Return the width of the fewest groups of at most `most` targets, which are about alike."""
    n_groups = -(-m // most)
    return -(-m // (8 * n_groups)) * 8


def _rows_of_counts(block: ClassBlock, simple: bool) -> int:
    """Return how many rows of counts are kept: of all records, if half of the memory takes them."""
    if simple:
        return 0
    n, m = block.dense.shape
    return n if 4.0 * n * m <= _memory.available_memory() else 1


class ClassHeap(ABC):
    """The records of one class by bounds of their gains.

    Parameters
    ----------
    part : DenseRanks, or another class with `block`, `factor` and `gains`
    places : ndarray of int64
        Of the records in the class.
    weights : ndarray of shape (n_records,), or None
        What gains are taken times.
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
        """Say that a record of the class was added."""

    def top(self) -> tuple[float, int]:
        place = self.places[0]
        return float(self.bound[place]), int(self.part.block.records[place])

    def remove_top(self) -> None:
        _heap_kernels.remove_top(self.left, self.bound, self.places)
        self.left -= 1


class DenseHeap(ClassHeap):
    """Gains are sums of shares, which are computed one by one."""

    n_shares = 0

    def pick(self) -> int:
        part, n_groups = self.part, self.part.targets.seen.shape[1]
        before = self.n_shares // n_groups
        self.n_shares += _dense_kernels.pick(
            self.left, self.bound, self.places, self.factor, part.n_chosen, part.targets
        )
        return int(self.n_shares // n_groups - before)

    def next_round(self) -> None:
        """Shares know when they were computed."""

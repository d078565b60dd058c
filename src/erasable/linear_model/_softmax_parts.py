"""Results of parts of a softmax design, found where the rows are, and joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from erasable.core.arrays import Floats
from erasable.core.passes import Block, Pass
from erasable.core.portions import Portion
from erasable.core.row_arrays import PerLiveRow, PerRow, RowArray, Written
from erasable.linear_model._lattice import Pair, pair_sum
from erasable.linear_model._softmax_kernels import shares

if TYPE_CHECKING:
    from erasable.linear_model._softmax_design import SoftmaxDesign

Exact: TypeAlias = tuple[Pair, Floats, float]
"""A gradient as a pair, the squares of the residuals, and the sum of ``s (1 - p)``."""


class There(Pass[Any]):
    """Have a design of a block's rows do what a design is asked for."""

    def __init__(
        self,
        design: SoftmaxDesign,
        sent: tuple[PerRow, PerRow],
        function: Callable[..., Any],
        merge: Callable[[Any, Any], Any],
        params: tuple[Any, ...],
        read: Sequence[Floats],
        written: Sequence[Floats],
    ) -> None:
        nothing = np.empty((0, design.unit.size)), np.zeros(0), np.empty(0, np.int32)
        self._design, self._function, self._merge = design.local(*nothing), function, merge
        (self._weights, self._codes), self._params = sent, params
        self._read = [PerLiveRow(each) for each in read]
        self._written = [Written(each) for each in written]

    def row_arrays(self) -> list[RowArray]:
        return [self._weights, self._codes, *self._read, *self._written]

    def of_block(self, block: Block) -> Any:
        weights, codes = self._weights.of(block), self._codes.of(block)
        design = self._design.local(block.matrix, weights, codes)
        portion = Portion(slice(0, block.size), block.matrix, 0)
        arrays = [each.of(block) for each in (*self._read, *self._written)]
        return self._function(design, portion, *self._params, *arrays)

    def merge(self, one: Any, other: Any) -> Any:
        return self._merge(one, other)


def add(one: Any, other: Any) -> Any:
    """Add up arrays, or numbers, or each of several; arrays of `one` are overwritten.

    >>> add((np.ones(2), 3.0), (np.ones(2), 4.0))
    (array([2., 2.]), 7.0)
    """
    if isinstance(one, tuple):
        return tuple([add(*pair) for pair in zip(one, other, strict=True)])
    one += other
    return one


def add_exactly(one: Exact, other: Exact) -> Exact:
    """Add up gradients in double-double arithmetic.

    >>> half = (np.array([1.0]), np.array([2.0**-60])), np.array([4.0]), 0.5
    >>> (high, low), squares, missing = add_exactly(half, half)
    >>> high, low == 2.0**-59, squares, missing
    (array([2.]), array([ True]), array([8.]), 1.0)
    """
    return pair_sum(one[0], other[0]), one[1] + other[1], one[2] + other[2]


def total(parts: Iterable[Floats]) -> Floats:
    """Return the sum of arrays, the first of which is overwritten."""
    every = iter(parts)
    out = next(every)
    for part in every:
        out += part
    return out


def couplings(logits: Floats, weights: Floats, reference: bool) -> Pair:
    """Return the Hessians of records in their logits, shape (n, m, m), as a pair.

    They are ``s p_k p_l`` for two classes, rounded, and exact sums of these: so rounding changes
    the form ``s sum_kl p_k p_l (z_k - z_l)**2 / 2`` by a share of itself.
    """
    n, m = logits.shape
    chances = shares(logits, reference)
    chances /= chances.sum(axis=1, keepdims=True)
    both = chances[:, :m, None] * chances[:, None, :] * weights[:, None, None]
    high, low = -both[:, :, :m], np.zeros((n, m, m))
    for k in range(m):
        total: Pair = np.zeros(n), np.zeros(n)
        for other in range(m + 1):
            if other != k:
                total = pair_sum(total, (both[:, k, other], np.zeros(n)))
        high[:, k, k], low[:, k, k] = total
    return high, low


def mirrored(half: Floats) -> Floats:
    """Complete blocks (k, :, l, :) of which the lower halves are filled."""
    m, width = half.shape[:2]
    columns = np.arange(width)
    whole = half + half.transpose(0, 3, 2, 1)
    whole[:, columns, :, columns] = half[:, columns, :, columns]
    return whole.reshape(m * width, m * width)

"""Passes that find the extremes of columns, count values on grids, and find values at ranks.

A float has a key of 64 bits in the same order. For values at ranks, four passes count the keys by
16 bits at a time, each among those that begin like the value at a rank; a last one counts those
between two ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core import _grid_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Block, Pass, Remote, run, storage

Keys = NDArray[np.uint64]
Window = tuple[Floats, Ints, int]
"""Distinct values between two ranks, their counts, and the number of smaller values."""

_BITS, _DIGITS = np.uint64(16), 4
_SIGN = np.uint64(1) << np.uint64(63)


class RemoteColumns:
    """Columns of a matrix whose rows are in other processes; see `Quantiles`.

    `rows` returns the rows that count; `gap` is no value, and neither is NaN.
    """

    def __init__(self, matrix: Remote, rows: Callable[[], Ints], gap: float = np.nan) -> None:
        self._matrix, self._rows, self._gap = matrix, rows, gap

    def windows(
        self, columns: Sequence[int], limits: Callable[[int], tuple[Ints, Ints]]
    ) -> list[tuple[int, list[Window]]]:
        """Return the number of values of each column, and its values between pairs of ranks.

        `limits` returns the first and the last ranks for a number of values.
        """
        rows, own = self._rows(), list(columns)
        known = [np.zeros(1, dtype=np.uint64) for _ in own]
        ranks: list[Ints] = []
        sizes: list[int] = []
        starts: list[Keys] = []
        for digit in range(_DIGITS):
            counted = run(_Digits(known, digit, self._gap), self._matrix, rows, columns=own)
            if digit == 0:
                sizes = [int(found[0][1].sum()) for found in counted]
                ranks = [np.concatenate(limits(n)) if n else _NONE for n in sizes]
                starts = [np.zeros(each.size, dtype=np.uint64) for each in ranks]
            for place, found in enumerate(counted):
                _narrow(known[place], found, starts[place], ranks[place])
            known = [np.unique(each) for each in starts]
        ends = [each.reshape(2, -1) for each in starts]
        windows = run(_Between(ends, self._gap), self._matrix, rows, columns=own)
        made = [[(value_of(keys), n, less) for keys, n, less in each] for each in windows]
        return list(zip(sizes, made, strict=True))


_NONE: Ints = np.empty(0, dtype=np.int64)

Digits = list[list[tuple[Keys, Ints]]]
"""For each column and each prefix: the next digits of keys, and their counts."""


class _Digits(Pass[Digits]):
    """Count the next digits of the keys that have some prefixes."""

    takes_gaps = True

    def __init__(self, known: Sequence[Keys], digit: int, gap: float) -> None:
        self._known, self._digit, self._gap = list(known), digit, gap

    def of_block(self, block: Block) -> Digits:
        found: Digits = []
        shift = _BITS * np.uint64(_DIGITS - 1 - self._digit)
        for place, known in enumerate(self._known):
            keys = _keys(block, place, self._gap) >> shift
            own = []
            for start in known:
                digits = keys if self._digit == 0 else keys[keys >> _BITS == start]
                own.append(np.unique(digits, return_counts=True))
            found.append(own)
        return found

    def merge(self, one: Digits, other: Digits) -> Digits:
        return [
            [_joined(*both) for both in zip(mine, theirs, strict=True)]
            for mine, theirs in zip(one, other, strict=True)
        ]


Between = list[list[tuple[Keys, Ints, int]]]


class _Between(Pass[Between]):
    """Count the distinct keys in a range, and the keys before it."""

    takes_gaps = True

    def __init__(self, ends: Sequence[Keys], gap: float) -> None:
        self._ends, self._gap = list(ends), gap

    def of_block(self, block: Block) -> Between:
        found: Between = []
        for place, (low, high) in enumerate(self._ends):
            keys = _keys(block, place, self._gap)
            own: list[tuple[Keys, Ints, int]] = []
            for first, last in zip(low, high, strict=True):
                inside = keys[(keys >= first) & (keys <= last)]
                values, counts = np.unique(inside, return_counts=True)
                own.append((values, counts, int(np.count_nonzero(keys < first))))
            found.append(own)
        return found

    def merge(self, one: Between, other: Between) -> Between:
        return [
            [
                (*_joined((keys, counts), (more, others)), less + fewer)
                for (keys, counts, less), (more, others, fewer) in zip(mine, theirs, strict=True)
            ]
            for mine, theirs in zip(one, other, strict=True)
        ]


def _joined(one: tuple[Keys, Ints], other: tuple[Keys, Ints]) -> tuple[Keys, Ints]:
    keys, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.zeros(keys.size, dtype=np.int64)
    np.add.at(counts, places, np.concatenate([one[1], other[1]]))
    return keys, counts


def _narrow(known: Keys, found: Sequence[tuple[Keys, Ints]], starts: Keys, ranks: Ints) -> None:
    """Lengthen the prefixes of values at ranks; ranks count from the first with the prefix."""
    own = np.searchsorted(known, starts)
    for at, place in enumerate(own.tolist()):
        keys, counts = found[place]
        ends = np.cumsum(counts)
        next_ = int(np.searchsorted(ends, ranks[at], side="right"))
        starts[at] = keys[next_]
        ranks[at] -= ends[next_] - counts[next_]


def _keys(block: Block, place: int, gap: float) -> Keys:
    values: Any = block.matrix[block.positions, place].astype(np.float64)
    values = values[(values == values) & (values != gap)]
    return key_of(values)


def key_of(values: Floats) -> Keys:
    """Return keys, which have the order of the values."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def value_of(keys: Keys) -> Floats:
    """Return the values of keys."""
    return np.where(keys & _SIGN, keys & ~_SIGN, ~keys).view(np.float64)


SAMPLE = 2_000


class CountAtExtremes(Pass[tuple[Ints, Ints]]):
    """Count values off a grid and beyond float32; sample every `step`-th row, none if it is 0."""

    def __init__(self, origin: Floats, top: Ints, step: int) -> None:
        self._origin, self._top, self._step = origin, top, step

    def of_block(self, block: Block) -> tuple[Ints, Ints]:
        matrix, rows, every, *_ = block
        d = matrix.shape[1]
        coarse, sampled = np.zeros((2, 2, d), dtype=np.int64)
        per_column = self._origin, np.ldexp(1.0, self._top + kernels.BITS)
        for part, (origin, magic), _ in kernels.long_rows(matrix, every, per_column, None):
            packed = np.zeros(part.shape[1], dtype=np.int64)
            kernels.count_coarse(part, rows, every, origin, magic, packed)
            coarse += kernels.unpack(packed, d)
        if self._step:
            first = -block.rank % self._step
            sample = matrix[first :: self._step] if every else matrix[rows[first :: self._step]]
            offsets = sample.astype(np.float64) - self._origin
            nonzero = offsets != 0
            vanished = nonzero & (np.abs(offsets) <= np.ldexp(0.5, self._top - kernels.BITS))
            sampled += np.stack([nonzero.sum(axis=0), vanished.sum(axis=0)])
        return coarse, sampled

    def merge(self, one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
        return one[0] + other[0], one[1] + other[1]


class Regridded(NamedTuple):
    """A column, and its origin and magic number before and after."""

    column: int
    before: tuple[float, float]
    after: tuple[float, float]


class Regrid(Pass[Ints]):
    """Count values of columns off their new grid, beyond float32, and whether some have moved."""

    def __init__(self, moved: list[Regridded]) -> None:
        self._moved = moved

    def of_block(self, block: Block) -> Ints:
        rows = block.positions
        found = [
            kernels.regrid(block.matrix, rows, block.place(column), before, after)
            for column, before, after in self._moved
        ]
        return np.array(found, dtype=np.int64)

    def merge(self, one: Ints, other: Ints) -> Ints:
        return one + other


def sampled_values(matrix: Any, rows: Ints, origin: Floats, quantum: Floats) -> Ints:
    """Count, in a sample of the rows, values that are not at the origin, and those that vanish.

    >>> values = np.array([[1e10, 5.0], [1.0, 6.0], [0.0, 7.0]])
    >>> sampled_values(values, np.arange(3), np.zeros(2), np.array([256.0, 2.0**-23]))
    array([[2, 3],
           [1, 0]])
    """
    matrix, rows = storage(matrix).in_memory(rows[:: max(1, -(-rows.size // SAMPLE))])
    sample: Any = matrix[rows]
    if issparse(sample):
        offsets, places = sample.data - origin[sample.indices], sample.indices
    else:
        offsets = sample.astype(np.float64) - origin
        places = np.broadcast_to(np.arange(origin.size), offsets.shape)
    nonzero = offsets != 0
    vanished = nonzero & (np.abs(offsets) <= quantum[places] / 2)
    counts = [np.bincount(places[each], minlength=origin.size) for each in (nonzero, vanished)]
    return np.stack(counts)


def skewed_columns(sampled: Ints) -> Ints:
    """Return the columns in which more than 1 % of the values off the origin become 0."""
    nonzero, vanished = sampled
    return np.flatnonzero(vanished > 0.01 * nonzero)


Found = tuple[Floats, Floats, Ints]


class FindAgain(Pass[Found]):
    """Find extremes of some columns, and their counts; inf, -inf and 0 without rows."""

    def __init__(self, columns: list[int]) -> None:
        self._columns = columns

    def of_block(self, block: Block) -> Found:
        low, high = np.full((2, len(self._columns)), np.inf)
        high *= -1.0
        counts = np.zeros((2, low.size), dtype=np.int64)
        if block.size:
            rows = block.positions
            for k, column in enumerate(self._columns):
                found = kernels.rescan(block.matrix, rows, block.place(column))
                low[k], high[k], *counts[:, k] = found
        return low, high, counts

    def merge(self, one: Found, other: Found) -> Found:
        low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
        counts = sum(
            np.stack([(found[0] == low) * found[2][0], (found[1] == high) * found[2][1]])
            for found in (one, other)
        )
        return low, high, np.asarray(counts)


class Find(FindAgain):
    """Do the same for all columns, faster."""

    def __init__(self) -> None:
        super().__init__([])

    def of_block(self, block: Block) -> Found:
        d = block.matrix.shape[1]
        counts = np.zeros((2, d), dtype=np.int64)
        bounds = np.full(d, np.inf), np.full(d, -np.inf)
        if block.size == 0:
            return *bounds, counts
        matrix, rows, every, *_ = block
        lowest, highest = [], []
        for part, (low, high), _ in kernels.long_rows(matrix, every, bounds, None):
            lows, highs = low.copy(), high.copy()
            kernels.extremes(part, rows, every, lows, highs)
            lowest.append(lows.reshape(-1, d).min(axis=0))
            highest.append(highs.reshape(-1, d).max(axis=0))
        # Adding 0.0 makes -0.0 into 0.0: the order of the two must not show.
        found = np.min(lowest, axis=0) + 0.0, np.max(highest, axis=0) + 0.0
        for part, (low, high), _ in kernels.long_rows(matrix, every, found, None):
            reached = np.zeros(part.shape[1], dtype=np.int64)
            kernels.count_reached(part, rows, every, low, high, reached)
            counts += kernels.unpack(reached, d)
        return *found, counts

"""Values at ranks of columns whose rows are in other processes, found in five passes.

A float has a key of 64 bits in the same order. Four passes count the keys by 16 bits at a time,
each among those that begin like the value at a rank; a last one counts those between two ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Block, Pass, Remote, run

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

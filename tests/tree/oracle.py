"""Trees grown slowly, from what the docs say: in Python's integers, with no counts that are kept.

Shares with the estimators only the tape (SipHash and Philox, which have tests of their own).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from erasable.core._tape_kernels import draw2, siphash24
from erasable.core.tape import Stream, Tape
from subroutines import standalone

draw2 = standalone(draw2)

_64, _32 = 2**64 - 1, 2**32 - 1
_INVERSE_E = sum(Fraction((-1) ** k, math.factorial(k)) for k in range(60))


def mix64(x: int) -> int:
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD & _64
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53 & _64
    return x ^ (x >> 33)


def mix32(x: int) -> int:
    x = (x ^ (x >> 16)) * 0x85EBCA6B & _32
    x = (x ^ (x >> 13)) * 0xC2B2AE35 & _32
    return x ^ (x >> 16)


def poisson(word: int) -> int:
    """Invert the distribution function at ``word / 2**64``."""
    weight, below = 0, _INVERSE_E
    while word >= int(below * 2**64):
        weight += 1
        below += _INVERSE_E / math.factorial(weight)
    return weight


@dataclass
class Record:
    values: tuple[float, ...]
    y: int
    owner: int | str
    weight: int = 1


RIGHT, LEFT = 1, 2
"""Sides of gaps in a split; 0 where no record has one."""


def parted(
    records: list[Record], f: int, value: float, side: int
) -> tuple[list[Record], list[Record]]:
    """The records on the left and on the right of a split."""
    which = [side == LEFT if math.isnan(r.values[f]) else r.values[f] <= value for r in records]
    left = [r for r, is_left in zip(records, which, strict=True) if is_left]
    return left, [r for r, is_left in zip(records, which, strict=True) if not is_left]


@dataclass
class Oracle:
    """Grows what an estimator should have grown."""

    seed: int
    names: list[str]
    n_stats: int
    criterion: str = "gini"
    max_depth: float = math.inf
    min_split: int = 2
    min_leaf: int = 1
    max_features: int = 1
    n_thresholds: int = 16
    min_decrease: float = 0.0
    scale: float = 1.0
    class_weight: list[float] | None = None
    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    leaves: list[list[int]] = field(default_factory=list)
    gap_sides: list[int] = field(default_factory=list)

    def grow_forest(self, records: list[Record], n_trees: int, bags: bool) -> list[int]:
        """Grow all trees; return how many nodes each has."""
        sizes = []
        for t in range(n_trees):
            tape = Tape(self.seed).child("tree", t)
            if bags:
                owners = np.array([r.owner for r in records], dtype=object)
                for record, key in zip(
                    records, Tape(self.seed).record_keys(owners).tolist(), strict=True
                ):
                    word, _ = draw2(
                        np.uint64(tape.seed),
                        np.uint64(key),
                        np.uint32(int(Stream.LEAF)),
                        np.uint32(0),
                    )
                    record.weight = poisson(int(word))
                if not any(record.weight for record in records):
                    for record in records:
                        record.weight = 1
            before = len(self.features)
            bag = [record for record in records if record.weight]
            self._whole = self._weight(self._stats(bag))
            self._grow(bag, tape.child("splits").seed, 0)
            sizes.append(len(self.features) - before)
        return sizes

    # -- a node --------------------------------------------------------------------------------

    def _grow(self, records: list[Record], key: int, depth: int) -> None:
        split = self._split(records, key, depth)
        if split is None:
            self.features.append(-1)
            self.leaves.append(self._stats(records))
            return
        feature, value, side = split
        left, right = parted(records, feature, value, side)
        self.features.append(feature)
        self.gap_sides.append(side)
        if value == math.inf:
            self.thresholds.append(float(np.finfo(np.float64).max))
        else:
            after = min(r.values[feature] for r in right if r.values[feature] > value)
            middle = value / 2 + after / 2
            self.thresholds.append(middle if value <= middle < after else value)
        self._grow(left, mix64((key + 0x9E3779B97F4A7C15) & _64), depth + 1)
        self._grow(right, mix64((key + 0xD1B54A32D192ED03) & _64), depth + 1)

    def _split(self, records: list[Record], key: int, depth: int) -> tuple[int, float, int] | None:
        """The feature, the largest value on the left, infinity for all, and the side of gaps."""
        n = len(records)
        small = n < max(2, self.min_split, 2 * self.min_leaf)
        if small or depth >= self.max_depth or len({r.y for r in records}) == 1:
            return None
        races = [mix64(key ^ Tape(self.seed).key_of(name)) for name in self.names]
        order = sorted(range(len(self.names)), key=races.__getitem__)
        present = [
            sorted({r.values[f] for r in records if not math.isnan(r.values[f])})
            for f in range(len(self.names))
        ]
        gaps = [any(math.isnan(r.values[f]) for r in records) for f in range(len(self.names))]
        constant = [
            len(v) == 0 or (len(v) == 1 and not g) for v, g in zip(present, gaps, strict=True)
        ]
        looked = order[: self.max_features]
        rest = order[self.max_features :]
        while rest and all(constant[f] for f in looked):
            looked.append(rest.pop(0))
        found = []
        for f in looked:
            if constant[f]:
                continue
            offered = sorted(present[f], key=lambda v, f=f: (self._priority(v, races[f]), v))
            drawn = [v for v in offered if v != present[f][-1]][: self.n_thresholds]
            sides = (RIGHT, LEFT) if gaps[f] else (0,)
            tried = [(value, side) for value in drawn for side in sides]
            for value, side in tried + ([(math.inf, RIGHT)] if gaps[f] else []):
                left, _ = parted(records, f, value, side)
                if min(len(left), n - len(left)) >= self.min_leaf:
                    score = self._score(self._stats(left), self._stats(records))
                    found.append((-score, self.names[f], value, side == LEFT, f, side))
        if not found:
            return None
        score, _, value, _, f, side = min(found)
        if self.min_decrease > 0.0:
            gain = self._gain(-score, self._stats(records))
            if gain / self._whole < self.min_decrease:
                return None
        return f, value, side

    def _priority(self, value: float, race: int) -> int:
        message = np.frombuffer(b"f" + np.float64(value).tobytes(), dtype=np.uint8)
        purpose = np.uint64(int.from_bytes(b"values\0\0", "little"))
        word = int(siphash24(np.uint64(self.seed), purpose, message, 0, 9))
        return mix32((word >> 32) ^ (race & _32))

    # -- scores --------------------------------------------------------------------------------

    def _stats(self, records: list[Record]) -> list[int]:
        if self.criterion == "squared_error":
            return [sum(r.weight for r in records), sum(r.weight * r.y for r in records)]
        counts = [0] * self.n_stats
        for record in records:
            counts[record.y] += record.weight
        return counts

    def _weighted(self, counts: list[int]) -> list[Any]:
        if self.class_weight is None:
            return counts
        return [float(n) * w for n, w in zip(counts, self.class_weight, strict=True)]

    def _weight(self, stats: list[int]) -> float:
        if self.criterion == "squared_error":
            return float(stats[0])
        return float(sum(map(float, self._weighted(stats))))

    def _score(self, left: list[int], total: list[int]) -> float:
        right = [whole - part for whole, part in zip(total, left, strict=True)]
        if self.criterion == "squared_error":
            apart = left[1] / left[0] - right[1] / right[0]
            return float(left[0]) * float(right[0]) / float(total[0]) * apart * apart
        score = 0.0
        for part in (self._weighted(left), self._weighted(right)):
            if (inside := sum(part)) > 0:
                score += sum(x * x for x in part) / inside
        return score

    def _gain(self, score: float, total: list[int]) -> float:
        if self.criterion == "squared_error":
            return score * self.scale
        parts = self._weighted(total)
        return score - sum(float(x) * x for x in parts) / float(sum(parts))

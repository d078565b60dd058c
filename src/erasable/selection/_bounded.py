"""Lazy greedy choice by samples where weighted totals of gains are cheap: few gains are computed.

Where only shortfalls below a threshold count, record j adds ``min(short, g_j)`` in a sample. For
any set A of samples,

    sum min(short, g_j) <= sum over A of short + sum outside of A of g_j

and the second sum, over samples, is a weighted total. With A the samples in which a record that
is nearly the best adds more than is short, the bound is nearly the gain of all that are nearly the
best. Bounds from earlier rounds, which serve elsewhere, are far looser: here a choice changes
nearly every gain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from erasable.selection._functions import Queue

if TYPE_CHECKING:
    from erasable.selection._sampled import SampledFunction

__all__ = ["BoundedQueue"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-11  # bounds and gains are summed in another order


class BoundedQueue(Queue):
    """Records by marginal gain, computed in the order of bounds, as far as these are larger.

    It chooses what looking at every gain would. Ties go to the record that comes first.
    """

    def __init__(
        self, function: SampledFunction, items: Ints, weights: Floats | None = None
    ) -> None:
        self.sampled, self.items = function, np.sort(items)
        self.weights = np.ones(len(items)) if weights is None else weights[self.items]
        self.left = np.ones(len(items), dtype=bool)
        self.bounds: Floats | None = None
        self.gains = np.full(len(items), np.nan)  # those computed in this round
        self.near_best: int | None = None

    def pop(self) -> tuple[int, float]:
        if self.bounds is None:
            self.bounds = self._bounds()
        best, worth = -1, -np.inf
        while True:
            at = int(np.argmax(self.bounds))
            if self.bounds[at] <= worth + _ROUNDING * abs(worth):
                # Who is left can at most be equal; then the first counts.
                first = self.bounds[:best] >= worth - _ROUNDING * abs(worth)
                unknown = np.flatnonzero(first & np.isnan(self.gains[:best]))
                if not len(unknown):
                    break
                at = int(unknown[0])
            here = self._gain(at)
            if (here, -at) > (worth, -best):
                best, worth = at, here
        self.left[best] = False
        self.bounds[best] = -np.inf
        return int(self.items[best]), float(self.gains[best])

    def _gain(self, at: int) -> float:
        """Return a gain times its weight, computed once in a round."""
        assert self.bounds is not None
        if np.isnan(self.gains[at]):
            (self.gains[at],) = self.sampled.gains(self.items[at : at + 1])
            self.bounds[at] = self.gains[at] * self.weights[at]
        return float(self.bounds[at])

    def _bounds(self) -> Floats:
        """Return what each record adds at most, times its weight; records that are gone, never."""
        if self.near_best is None or self.sampled.threshold is not None:
            # These find who is nearly the best; those below are tight for who is like that.
            self.near_best = int(self.items[np.argmax(self._bounds_by(self.near_best))])
        return self._bounds_by(self.near_best)

    def _bounds_by(self, near_best: int | None) -> Floats:
        bounds = self.sampled.bounds(near_best)[self.items] * self.weights
        return np.where(self.left, bounds, -np.inf)

    def next_round(self) -> None:
        self.bounds = None
        self.gains[:] = np.nan

    def __len__(self) -> int:
        return int(self.left.sum())

"""Choices under costs: several are made, and the one of the largest value is taken.

A choice by gain per cost alone can be arbitrarily bad: a cheap record of a good ratio may leave too
little for an expensive one that is worth far more. So can a choice by gain alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidInputError
from erasable.selection._functions import SetFunction
from erasable.selection._optimizers import Choice, CostBudget, maximize

ENUMERATION = "partial-enumeration"
_SIZE = 3  # records that a start has, for the bound 1 - 1/e
_MOST = 1_000_000  # starts


@dataclass
class Best:
    """The best choice so far."""

    chosen: Choice
    # with what was held and chosen; None until something was tried
    function: SetFunction | None = None
    n_evaluations: int = 0  # of all that was tried

    def consider(self, chosen: Choice, function: SetFunction) -> None:
        """Keep a choice if it is worth more than those before."""
        self.n_evaluations += function.n_evaluations
        if self.function is None or function.value > self.function.value:
            self.chosen, self.function = chosen, function


def best_of_greedy(
    make: Callable[[], SetFunction], items: Ints, budget: CostBudget, optimizer: str, seed: int
) -> Best:
    """Choose by gain; where costs differ, also by gain per cost, and take the better.

    `make` returns the function with what is held. For a submodular function the choice reaches at
    least (1 - 1/e) / 2 of the best (Leskovec et al., KDD 2007).
    """
    budgets = [budget]
    if budget.costs is not None and len(np.unique(budget.costs[items])) > 1:
        budgets.append(replace(budget, by_ratio=False))
    best = Best([])
    for each in budgets:
        function = make()
        chosen = maximize(function, items, each, optimizer, np.random.default_rng(seed))
        best.consider(chosen, function)
    return best


def best_of_enumeration(
    make: Callable[[], SetFunction], items: Ints, budget: CostBudget, optimizer: str, seed: int
) -> Best:
    """Try every set of at most three records as a start, and fill it up by gain per cost.

    The best of these and of the greedy choices reaches at least 1 - 1/e of the best, for a
    submodular function (Sviridenko, Operations Research Letters 2004). Too many sets raise
    InvalidInputError.
    """
    n_starts = sum(comb(len(items), size) for size in range(1, _SIZE + 1))
    if n_starts > _MOST:
        raise InvalidInputError(
            f"{ENUMERATION} would make {n_starts:,} selections from {len(items):,} records; "
            f"expected {_MOST:,} or fewer; pass optimizer='auto'"
        )
    best = best_of_greedy(make, items, budget, optimizer, seed)
    for start in _starts(items, budget):
        function = make()
        chosen: Choice = []
        for j in start:
            (gain,) = function.gains(np.array([j])).tolist()
            function.add(j, gain)
            chosen.append((j, gain))
        if len(start) == _SIZE:
            rest = replace(budget, spent=sum(map(budget.cost, start)))
            rng = np.random.default_rng(seed)
            chosen += maximize(function, np.setdiff1d(items, start), rest, optimizer, rng)
        best.consider(chosen, function)
    return best


def _starts(items: Ints, budget: CostBudget) -> Iterator[tuple[int, ...]]:
    """Yield the sets of one to three records that the budget affords."""
    for size in range(1, _SIZE + 1):
        for start in combinations(items.tolist(), size):
            if budget.affords(sum(map(budget.cost, start)), budget.k):
                yield start

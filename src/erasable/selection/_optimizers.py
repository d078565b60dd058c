"""Greedy maximisation of set functions, by gain or by gain per cost.

Every choice is repeatable: ties go to the record that comes first, and draws come from a generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.selection._functions import SetFunction

Choice = list[tuple[int, float]]

_ROUNDING = 1e-9  # the share of a budget by which sums of costs may miss it


@dataclass(frozen=True)
class CostBudget:
    """A limit of a selection: a number of records, or a sum of their costs."""

    k: float  # records, or a sum of costs
    costs: Floats | None = None  # shape (n_records,), above 0; None: each record costs 1
    spent: float = 0.0  # the part of `k` that is used up
    by_ratio: bool = True  # whether records are chosen by gain per cost, or by gain

    @property
    def left(self) -> float:
        """The part of the budget that is left."""
        return self.k - self.spent

    def cost(self, j: int) -> float:
        """Return the cost of record j."""
        return 1.0 if self.costs is None else float(self.costs[j])

    @property
    def weights(self) -> Floats | None:
        """Factors of gains for a choice by gain per cost; None where all are 1."""
        return 1 / self.costs if self.by_ratio and self.costs is not None else None

    def worth(self, gains: Floats, items: Ints) -> Floats:
        """Return the numbers by which some records are chosen: gains, or gains per cost."""
        # Not divided by costs: lazy and greedy have to round equally, to agree on ties.
        weights = self.weights
        return gains if weights is None else gains * weights[items]

    def most(self, items: Ints) -> int:
        """Return the largest number of these records that the budget affords."""
        if self.costs is None:
            return int(min(self.k, len(items)))
        cheapest = np.cumsum(np.sort(self.costs[items]))
        # Sums here and the rest of a budget round differently: rather one too many than too few.
        return int(np.searchsorted(cheapest, self.k * (1 + 2 * _ROUNDING), side="right"))

    def affords(self, cost: Any, left: float) -> Any:
        """Return which costs `left` affords, up to rounding: 0.3 affords three times 0.1."""
        return cost <= left + _ROUNDING * self.k


def _lazy(
    function: SetFunction, items: Ints, budget: CostBudget, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Use gains from earlier rounds as bounds, because gains only shrink (Minoux 1978)."""
    queue = function.queue(np.sort(items), budget.weights)
    left = budget.left
    cheapest = 1.0 if budget.costs is None else budget.costs[items].min(initial=np.inf)
    while len(queue) and budget.affords(cheapest, left):
        j, gain = queue.pop()
        if not budget.affords(budget.cost(j), left):
            continue
        left -= budget.cost(j)
        yield j, gain
        queue.next_round()


def _greedy(
    function: SetFunction, items: Ints, budget: CostBudget, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Compute every gain in every round: for gains that may grow (Nemhauser et al. 1978)."""
    left, remaining = budget.left, np.sort(items)
    while True:
        remaining = _affordable(remaining, budget, left)
        if not len(remaining):
            return
        gains = function.gains(remaining)
        at = int(np.argmax(budget.worth(gains, remaining)))
        j = int(remaining[at])
        left -= budget.cost(j)
        remaining = np.delete(remaining, at)
        yield j, float(gains[at])


def _stochastic(
    function: SetFunction, items: Ints, budget: CostBudget, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Take the best of n / k log(1 / 0.1) random records a round (Mirzasoleiman et al. 2015).

    Records are drawn by their places among `items`.
    """
    if not len(items):
        return
    left, remaining = budget.left, items
    rounds = budget.k if budget.costs is None else budget.k / np.median(budget.costs[items])
    part = max(1, int(np.ceil(len(items) / max(rounds, 1) * np.log(1 / _SLACK))))
    while True:
        remaining = _affordable(remaining, budget, left)
        if not len(remaining):
            return
        at = rng.permutation(len(remaining))[:part]
        at = at[np.argsort(remaining[at])]
        gains = function.gains(remaining[at])
        best = int(np.argmax(budget.worth(gains, remaining[at])))
        j = int(remaining[at[best]])
        left -= budget.cost(j)
        remaining = np.delete(remaining, at[best])
        yield j, float(gains[best])


def _random_greedy(
    function: SetFunction, items: Ints, budget: CostBudget, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Take any of the k best, for functions that may shrink (Buchbinder et al. 2014).

    Where fewer than k have a gain above 0, a round chooses nothing with the remaining probability.
    With costs, k is the largest number that the budget affords, and the best are those by gain per
    cost.
    """
    left, remaining, k = budget.left, np.sort(items), budget.most(items)
    for _ in range(k):
        remaining = _affordable(remaining, budget, left)
        if not len(remaining):
            return
        gains = function.gains(remaining)
        best = np.argsort(-budget.worth(gains, remaining), kind="stable")[:k]
        at = int(rng.integers(k))
        if at >= len(best) or gains[best[at]] <= 0:
            continue
        j = int(remaining[best[at]])
        left -= budget.cost(j)
        gain = float(gains[best[at]])
        remaining = np.delete(remaining, best[at])
        yield j, gain


_SLACK = 0.1
OPTIMIZERS = {
    "lazy": _lazy,
    "greedy": _greedy,
    "stochastic": _stochastic,
    "random-greedy": _random_greedy,
}


def _affordable(items: Ints, budget: CostBudget, left: float) -> Ints:
    if budget.costs is None:
        return items if left >= 1 else items[:0]
    paid: Ints = items[budget.affords(budget.costs[items], left)]
    return paid


def maximize(
    function: SetFunction,
    items: Ints,
    budget: CostBudget,
    optimizer: str = "lazy",
    rng: np.random.Generator | None = None,
) -> Choice:
    """Choose records one by one and add them to the function; return them and their gains."""
    chosen: Choice = []
    steps = OPTIMIZERS[optimizer](function, items, budget, rng or np.random.default_rng())
    for j, gain in steps:
        function.add(j, gain)
        chosen.append((j, gain))
    return chosen

"""How a set function is maximised: greedily, by gain, or by gain for the money.

Each choice is repeatable: ties go to the record that comes first, luck comes from a generator.
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
    """How much may be chosen: so many records, or, where they have costs, so much money.

    Attributes
    ----------
    k : float
        Records, or money.
    costs : ndarray of shape (n_records,), float64, or None
        Above 0. None: each record counts 1.
    spent : float
        How much of it is gone.
    by_ratio : bool
        Whether records are chosen by gain for the money, or by gain.
    """

    k: float
    costs: Floats | None = None
    spent: float = 0.0
    by_ratio: bool = True

    @property
    def left(self) -> float:
        """How much may still be chosen."""
        return self.k - self.spent

    def cost(self, j: int) -> float:
        """Return what record j costs."""
        return 1.0 if self.costs is None else float(self.costs[j])

    @property
    def weights(self) -> Floats | None:
        """What gains are taken times; None where that is 1."""
        return 1 / self.costs if self.by_ratio and self.costs is not None else None

    def worth(self, gains: Floats, items: Ints) -> Floats:
        """Return what some records are chosen by: their gains, or these for the money."""
        # Not over costs: where records are worth the same, lazy and greedy have to round alike.
        weights = self.weights
        return gains if weights is None else gains * weights[items]

    def most(self, items: Ints) -> int:
        """Return how many of some records can be chosen at most."""
        if self.costs is None:
            return int(min(self.k, len(items)))
        cheapest = np.cumsum(np.sort(self.costs[items]))
        # Sums round in another order than what is left does: one too many rather than too few.
        return int(np.searchsorted(cheapest, self.k * (1 + 2 * _ROUNDING), side="right"))

    def affords(self, cost: Any, left: float) -> Any:
        """Say what of some costs can be paid of what is left: of 0.3, three times 0.1."""
        return cost <= left + _ROUNDING * self.k


def _lazy(
    function: SetFunction, items: Ints, budget: CostBudget, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Minoux: gains from earlier rounds are bounds, because gains only shrink."""
    queue = function.queue(items, budget.weights)
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
    """Look at every gain in every round: for functions whose gains may grow."""
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
    """Mirzasoleiman et al. 2015: the best of a random part, n / k log(1 / 0.1) in each round."""
    if not len(items):
        return
    left, remaining = budget.left, np.sort(items)
    rounds = budget.k if budget.costs is None else budget.k / np.median(budget.costs[items])
    part = max(1, int(np.ceil(len(items) / max(rounds, 1) * np.log(1 / _SLACK))))
    while True:
        remaining = _affordable(remaining, budget, left)
        if not len(remaining):
            return
        at = np.sort(rng.permutation(len(remaining))[:part])
        gains = function.gains(remaining[at])
        best = int(np.argmax(budget.worth(gains, remaining[at])))
        j = int(remaining[at[best]])
        left -= budget.cost(j)
        remaining = np.delete(remaining, at[best])
        yield j, float(gains[best])


def _random_greedy(
    function: SetFunction, items: Ints, budget: CostBudget, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """Buchbinder et al. 2014: any of the k best, for functions that may shrink.

    Where fewer than k have a gain above 0, nothing is chosen in a round with what is left of the
    probability. With costs, k is how many can be paid at most, and the best are so for the money.
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
    """Choose records one after another, and add them to the function.

    Parameters
    ----------
    function : SetFunction
        What was held before is in it already.
    items : ndarray of shape (n_items,), int64
        Records to choose from.
    budget : Budget
    optimizer : {"lazy", "greedy", "stochastic", "random-greedy"}
    rng : Generator, default=None

    Returns
    -------
    list of (int, float)
        Records in the order of their choice, with their marginal gains.

    References
    ----------
    Nemhauser et al. 1978; Minoux 1978; Mirzasoleiman et al. 2015; Buchbinder et al. 2014.

    Examples
    --------
    >>> from erasable.selection.staying import Certain
    >>> from erasable.selection.utilities import NearestNeighbor
    >>> problem = NearestNeighbor("precomputed").problem(np.diag([1.0, 3.0, 2.0]))
    >>> maximize(problem.expected(Certain().bind(3), 2), np.arange(3), CostBudget(2))
    [(1, 3.0), (2, 2.0)]
    """
    chosen: Choice = []
    steps = OPTIMIZERS[optimizer](function, items, budget, rng or np.random.default_rng())
    for j, gain in steps:
        function.add(j, gain)
        chosen.append((j, gain))
    return chosen

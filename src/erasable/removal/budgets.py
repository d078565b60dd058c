"""Budgets: the number of records of the forget set that leave.

Each takes the beginning of the order that a score gives; `Cost` may leave out records that it
cannot afford.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_integer
from erasable.removal._frontier import Frontier
from erasable.removal._inputs import as_numbers, read_number

__all__ = [
    "Budget",
    "Cost",
    "Count",
    "Coverage",
    "Curve",
    "MaxShift",
    "MinRemoval",
    "Share",
    "as_budget",
]


@dataclass(frozen=True)
class Curve:
    """The order, weights and frontier from which a budget chooses.

    Attributes
    ----------
    order : ndarray of shape (n_forget,), int64
        Rows of the forget set, first to leave first.
    weights : ndarray of shape (n_forget,), float64
        Of its rows: scores as shares of what there is to remove.
    frontier : callable
        Returns the `Frontier`; computed when it is called.

    Examples
    --------
    >>> curve = Curve(np.array([1, 0]), np.array([1.0, 3.0]), lambda: None)
    >>> Coverage(0.75).choose(curve)
    array([1])
    """

    order: Ints
    weights: Floats
    frontier: Callable[[], Frontier]


class Budget(BaseEstimator, ABC):
    """Base of the budgets: a subclass has a `choose` method.

    Examples
    --------
    >>> isinstance(Count(5), Budget)
    True
    """

    @abstractmethod
    def choose(self, curve: Curve) -> Ints:
        """Choose rows of the forget set.

        Parameters
        ----------
        curve : Curve

        Returns
        -------
        ndarray of int64
            Rows, first to leave first.

        Raises
        ------
        InvalidParameterError, InvalidInputError
            A budget out of range, or a target that cannot be reached.
        """

    def most(self, n: int) -> int:
        """Return the largest number of `n` records that it takes, as far as known without scores.

        Raises
        ------
        InvalidParameterError
            A budget out of range.
        """
        return n


class Count(Budget):
    """A number of records.

    Parameters
    ----------
    n : int
        From 1 to the size of the forget set.

    Examples
    --------
    >>> Count(1).choose(Curve(np.array([1, 0]), np.ones(2), lambda: None))
    array([1])
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def choose(self, curve: Curve) -> Ints:
        """Choose the first `n`."""
        return curve.order[: self.most(curve.order.size)]

    def most(self, n: int) -> int:
        """Return the count."""
        if not is_integer(type(self.n)) or not 1 <= self.n <= n:
            raise InvalidParameterError(
                f"n={shorten(self.n)} records to delete; expected an integer from 1 to "
                f"{n}, the size of forget; pass one"
            )
        return int(self.n)


class Share(Budget):
    """A share of the forget set, rounded up.

    Parameters
    ----------
    share : float
        Above 0, at most 1.

    Examples
    --------
    >>> Share(0.5).choose(Curve(np.array([2, 1, 0]), np.ones(3), lambda: None))
    array([2, 1])
    """

    def __init__(self, share: float) -> None:
        self.share = share

    def choose(self, curve: Curve) -> Ints:
        """Choose the first ``ceil(share * n)``."""
        return curve.order[: self.most(curve.order.size)]

    def most(self, n: int) -> int:
        """Return the share of `n`."""
        share = read_number(self.share, "share", 0.0, 1.0, ends="(]")
        # 0.1 * 30 is 3.0000000000000004 in floats, and means 3.
        return int(np.ceil(share * n * (1 - 1e-12)))


class Cost(Budget):
    """The records that a total cost affords, where records cost differently to delete.

    Records are taken in the order of their scores; one that is too expensive for the rest of the
    budget is left out, and a cheaper one after it may still be taken.

    Parameters
    ----------
    costs : array-like of shape (n_forget,)
        Above 0, in the order of the forget set.
    budget : float
        The limit of their total cost.

    Examples
    --------
    >>> curve = Curve(np.array([2, 1, 0]), np.ones(3), lambda: None)
    >>> Cost([1.0, 5.0, 2.0], budget=3.0).choose(curve)
    array([2, 0])
    """

    def __init__(self, costs: Any, budget: float) -> None:
        self.costs = costs
        self.budget = budget

    def choose(self, curve: Curve) -> Ints:
        """Choose the records that the budget affords."""
        budget = read_number(self.budget, "budget", 0.0, np.inf, ends="()")
        costs = _read_costs(self.costs, curve.order.size)
        chosen, left = [], budget
        rounding = budget * 1e-12  # three times 0.1 is 0.30000000000000004 in floats, and means 0.3
        for row, cost in zip(curve.order.tolist(), costs[curve.order].tolist(), strict=True):
            if cost <= left + rounding:
                chosen.append(row)
                left -= cost
        if not chosen:
            raise InvalidParameterError(
                f"budget={budget:g}, and the cheapest record costs {costs.min():g}; expected one "
                "that can be paid; pass a larger budget"
            )
        return np.array(chosen, dtype=np.int64)


class Coverage(Budget):
    """The fewest records that hold a share of the total score.

    Scores count as in `Frontier.share`: a log density ratio by what a deletion gains, others by
    their height above 0 or, where some are negative, above the least.

    Parameters
    ----------
    share : float, default=0.8
        Above 0, at most 1.

    Examples
    --------
    >>> Coverage(0.8).choose(Curve(np.array([0, 1, 2]), np.array([8.0, 1.0, 1.0]), lambda: None))
    array([0])
    """

    def __init__(self, share: float = 0.8) -> None:
        self.share = share

    def choose(self, curve: Curve) -> Ints:
        """Choose the shortest beginning of the order."""
        share = read_number(self.share, "share", 0.0, 1.0, ends="(]")
        held = np.cumsum(curve.weights[curve.order])
        if held[-1] == 0.0:
            raise InvalidInputError(
                "all scores are equal, so no share of them is anywhere; expected scores that "
                "differ; pass a Count or a Share"
            )
        reached = held >= share * held[-1] * (1 - 1e-12)
        return curve.order[: int(np.argmax(reached)) + 1]


class MinRemoval(Budget):
    """The fewest records whose deletion reaches a removal, by the curve's estimate.

    Parameters
    ----------
    alpha : float
        Least ``KL(p1, p)``, in nats.

    Examples
    --------
    >>> frontier = Frontier(np.arange(3), np.array([0.1, 0.4, 0.5]), np.zeros(3), np.zeros(3))
    >>> MinRemoval(0.3).choose(Curve(np.array([1, 0]), np.ones(2), lambda: frontier))
    array([1])
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def choose(self, curve: Curve) -> Ints:
        """Choose the shortest beginning of the order that reaches it; none may be enough."""
        alpha = read_number(self.alpha, "alpha", 0.0, np.inf, ends="[)")
        reached = curve.frontier().alpha
        if not (reached >= alpha).any():
            best = int(np.argmax(reached))
            raise InvalidInputError(
                f"alpha={alpha:g} cannot be reached; expected at most {reached[best]:.6g}, which "
                f"deleting {best} of {curve.order.size} records gives; pass a smaller alpha"
            )
        return curve.order[: int(np.argmax(reached >= alpha))]


class MaxShift(Budget):
    """The largest removal whose shift of the wanted domain stays within a bound.

    Parameters
    ----------
    epsilon : float
        Most ``KL(p2, p)``, in nats, by the curve's estimate.

    Examples
    --------
    >>> frontier = Frontier(
    ...     np.arange(3), np.array([0.1, 0.4, 0.5]), np.array([0.1, 0.2, 0.9]), np.zeros(3)
    ... )
    >>> MaxShift(0.3).choose(Curve(np.array([1, 0]), np.ones(2), lambda: frontier))
    array([1])
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def choose(self, curve: Curve) -> Ints:
        """Choose the beginning with the largest alpha; of equal ones the shortest."""
        epsilon = read_number(self.epsilon, "epsilon", 0.0, np.inf, ends="[)")
        frontier = curve.frontier()
        within = frontier.epsilon <= epsilon
        if not within.any():
            least = int(np.argmin(frontier.epsilon))
            raise InvalidInputError(
                f"epsilon={epsilon:g} cannot be kept; expected {frontier.epsilon[least]:.6g} or "
                f"more, which deleting {least} of {curve.order.size} records gives; pass a larger "
                "epsilon"
            )
        return curve.order[: int(np.argmax(np.where(within, frontier.alpha, -1.0)))]


def as_budget(budget: Any) -> Budget:
    """Read a budget: an integer is a count, a float a share.

    Raises
    ------
    InvalidParameterError
        Something else.

    Examples
    --------
    >>> as_budget(100), as_budget(0.2)
    (Count(n=100), Share(share=0.2))
    """
    if isinstance(budget, Budget):
        return budget
    if is_integer(type(budget)):
        return Count(budget)
    if isinstance(budget, float | np.floating):
        return Share(float(budget))
    raise InvalidParameterError(
        f"budget={shorten(budget)}; expected an integer (a count), a float (a share), or a budget; "
        "pass for instance 100, 0.2, or Coverage(0.8)"
    )


def _read_costs(costs: Any, n: int) -> NDArray[np.float64]:
    given = as_numbers(costs)
    if given.shape != (n,) or not ((given > 0) & (given < np.inf)).all():
        fault = (
            f"an array of shape {given.shape}"
            if given.shape != (n,)
            else f"{int((~((given > 0) & (given < np.inf))).sum())} that are not above 0 and finite"
        )
        raise InvalidParameterError(
            f"costs: {fault}; expected a number above 0 for each of the {n} records of forget; "
            "pass them in the order of forget"
        )
    return given

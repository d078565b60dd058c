"""What of the utility after deletions is maximised: its mean, or its mean in the worst cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection._functions import SetFunction
from erasable.selection._optimizers import Budget, Choice, maximize
from erasable.selection._sampled import SampledFunction, cvar, error_of_cvar
from erasable.selection.staying import Bound, Sampler
from erasable.selection.utilities import Problem

__all__ = ["CVaR", "Expected", "Solution", "Task", "check_objective", "check_samples", "sampled"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """Everything that a selection is made of.

    Attributes
    ----------
    problem : Problem
    bound : Bound
    held : ndarray of int64
        Records that are held already, and may be deleted as well.
    items : ndarray of int64
        Records to choose from.
    budget : Budget
    optimizer : str
    seed : int
    most : int
        How many records can be held in the end.
    """

    problem: Problem
    bound: Bound
    held: Ints
    items: Ints
    budget: Budget
    optimizer: str
    seed: int
    most: int

    def choose(self, function: SetFunction) -> Choice:
        """Add what is held to a function, then what is best, and return that."""
        for j in self.held.tolist():
            function.add(j)
        rng = np.random.default_rng(self.seed)
        return maximize(function, self.items, self.budget, self.optimizer, rng)


@dataclass(frozen=True)
class Solution:
    """A selection, and what it is worth.

    Attributes
    ----------
    chosen : list of (int, float)
        Records in the order of their choice, with what each added to the objective.
    value : float
        Of the objective, with what was held.
    standard_error : float
        0.0 where the value is exact.
    n_evaluations : int
        How many marginal gains were computed.
    """

    chosen: Choice
    value: float
    standard_error: float
    n_evaluations: int


@dataclass(frozen=True)
class Expected:
    """The utility that is expected after deletions.

    It is exact where the utility has a closed form for the staying model, and a sample average
    where it has none.

    Parameters
    ----------
    n_samples : int, default=None
        How many samples of who stays are drawn, if any are. By default as many as keep a marginal
        gain within `error` with probability `confidence`.
    error : float, default=0.02
        As a share of the largest gain in the round before (section 4.4, Hoeffding's inequality).
    confidence : float, default=0.95

    Examples
    --------
    >>> Expected().samples_needed(), Expected(error=0.02, confidence=0.963).samples_needed()
    (4612, 4988)
    """

    n_samples: int | None = None
    error: float = 0.02
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_samples(self.n_samples, self.error, self.confidence)

    def samples_needed(self) -> int:
        """Return how many samples are drawn where there is no closed form."""
        if self.n_samples is not None:
            return self.n_samples
        return math.ceil(math.log(2 / (1 - self.confidence)) / (2 * self.error**2))

    def solve(self, task: Task) -> Solution:
        """Choose the records of the largest expected utility, greedily."""
        function = self.function(task)
        chosen = task.choose(function)
        error = function.standard_error if isinstance(function, SampledFunction) else 0.0
        return Solution(chosen, function.value, error, function.n_evaluations)

    def function(self, task: Task) -> SetFunction:
        """Return the expected utility as a function of the records, none of them chosen yet."""
        exact = task.problem.expected(task.bound, task.most)
        if exact is not None:
            return exact
        return sampled(task, self.samples_needed())


@dataclass(frozen=True)
class CVaR:
    """The utility that is expected in the worst cases: the conditional value at risk.

    For each threshold tau the records are chosen greedily; the best tau is searched by Brent's
    method (section 4.3), near the quantile alpha of what the selection for the expected utility is
    worth. That selection is a candidate, too, so that the result is never worse than it on the
    samples.

    Its error says little where the worst cases are few: draw so many samples that alpha of them
    are 100 or more. With fewer than 10 there is a `SelectionWarning`.

    On the samples that it was chosen by, a selection looks better than it is. Where that is more
    than selections differ, the luckiest is taken; `n_judged` then helps.

    Parameters
    ----------
    alpha : float
        The share of worst cases that counts, above 0; 1 is the expected utility.
    n_samples : int, default=None
    error : float, default=0.02
    confidence : float, default=0.95
        As for `Expected`.
    n_thresholds : int, default=12
        How many thresholds are tried, at most; each takes as long as a selection.
    n_judged : int, default=None
        How many other samples selections are judged by, with numbers that are common to records
        of one place in the order of choice. By default they are judged by those that they were
        chosen by.

    References
    ----------
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, equation 3 and
    algorithm 2. Zhou and Tokekar, Risk-aware submodular optimization, 2022.

    Examples
    --------
    >>> CVaR(0.2).alpha
    0.2
    """

    alpha: float
    n_samples: int | None = None
    error: float = 0.02
    confidence: float = 0.95
    n_thresholds: int = 12
    n_judged: int | None = None

    def __post_init__(self) -> None:
        is_number = isinstance(self.alpha, int | float | np.integer | np.floating)
        if not is_number or isinstance(self.alpha, bool) or not 0 < self.alpha <= 1:
            raise InvalidParameterError(
                f"alpha={shorten(self.alpha)}; expected a share of cases above 0, to 1; pass 0.2 "
                "for the worst fifth"
            )
        check_samples(self.n_samples, self.error, self.confidence)
        _check_count(self.n_thresholds, "n_thresholds")
        if self.n_judged is not None:
            _check_count(self.n_judged, "n_judged")

    def samples_needed(self) -> int:
        """Return how many samples are drawn."""
        return Expected(self.n_samples, self.error, self.confidence).samples_needed()

    def n_worst(self) -> float:
        """Return how many samples the result is a mean of."""
        return self.alpha * (self.n_judged or self.samples_needed())

    def solve(self, task: Task) -> Solution:
        """Choose the records of the largest utility in the worst cases, greedily."""
        n_samples = self.samples_needed()
        best: list[tuple[float, Choice, Floats]] = []
        evaluations = 0

        def attempt(threshold: float | None) -> float:
            nonlocal evaluations
            function = sampled(task, n_samples, threshold, self.alpha)
            objective: SetFunction = function
            if threshold is None and self.n_judged is not None:
                objective = Expected(n_samples).function(task)  # exact where that can be
            chosen = task.choose(objective)
            evaluations += objective.n_evaluations
            values = function.values if self.n_judged is None else self._judge(task, chosen)
            worth = cvar(values, self.alpha)
            if not best or worth > best[0][0]:
                best[:] = [(worth, chosen, values)]
            return -function.value

        attempt(None)
        low, high = self._thresholds(best[0][2])
        if low < high and self.n_judged is None:
            minimize_scalar(
                attempt, bounds=(low, high), method="bounded",
                options={"maxiter": self.n_thresholds},
            )  # fmt: skip
        elif low < high:
            for threshold in np.linspace(low, high, self.n_thresholds + 2)[1:-1].tolist():
                attempt(threshold)
        worth, chosen, values = best[0]
        return Solution(chosen, worth, error_of_cvar(values, self.alpha), evaluations)

    def _judge(self, task: Task, chosen: Choice) -> Floats:
        """Return the utility of who stays in other samples, at most so many at a time."""
        assert self.n_judged is not None
        n_samples, values = min(self.n_judged, self.samples_needed()), []
        for part in range(-(-self.n_judged // n_samples)):
            sampler = Sampler(task.bound, n_samples, [task.seed, part], by_order=True)
            samples = task.problem.samples(n_samples, task.most)
            function = SampledFunction(samples, sampler, task.problem.n)
            for j in [*task.held.tolist(), *(j for j, _ in chosen)]:
                function.add(j)
            values.append(function.values)
        return np.concatenate(values)[: self.n_judged]

    def _thresholds(self, values: Floats) -> tuple[float, float]:
        """Return between what the best threshold lies: the quantile alpha of the best selection.

        It is no less than the mean below it, and that no less than the one of the selection for
        the expected utility, whose values are given. The mean of all is the mean below it times
        alpha and at least the quantile times the rest, and no more than that selection's.
        """
        worst, mean = cvar(values, self.alpha), float(values.mean())
        if self.alpha == 1:
            return worst, worst
        return worst, (mean - self.alpha * worst) / (1 - self.alpha)


def sampled(
    task: Task, n_samples: int, threshold: float | None = None, alpha: float = 1.0
) -> SampledFunction:
    """Return an objective by samples; those of one task are drawn alike."""
    sampler = Sampler(task.bound, n_samples, task.seed)
    samples = task.problem.samples(n_samples, task.most)
    return SampledFunction(samples, sampler, task.problem.n, threshold=threshold, alpha=alpha)


def check_objective(given: Any) -> Expected | CVaR:
    """Return an objective, by default the expected utility.

    Raises
    ------
    InvalidParameterError
        It is none.
    """
    if given is None:
        return Expected()
    if not isinstance(given, Expected | CVaR):
        raise InvalidParameterError(
            f"objective={shorten(given)}; expected Expected() or CVaR(alpha); pass one"
        )
    return given


def check_samples(n_samples: Any, error: Any, confidence: Any) -> None:
    """Refuse what says no number of samples."""
    if n_samples is not None:
        _check_count(n_samples, "n_samples")
    for name, value in (("error", error), ("confidence", confidence)):
        if not isinstance(value, float | np.floating) or not 0 < value < 1:
            raise InvalidParameterError(
                f"{name}={shorten(value)}; expected a number between 0 and 1; pass 0.02 for an "
                "error of two hundredths, 0.95 for a confidence"
            )


def _check_count(value: Any, name: str) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 2:
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected an integer of 2 or more; pass 1000"
        )

"""The objective `CVaR`: the utility in the worst cases, by samples and thresholds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_number
from erasable.selection._functions import SetFunction
from erasable.selection._objectives import (
    Expected,
    SelectionResult,
    SelectionTask,
    check_count,
    check_samples,
    sampled,
)
from erasable.selection._optimizers import Choice
from erasable.selection._sampled import SampledFunction, cvar, error_of_cvar
from erasable.selection.staying._model import Sampler


@dataclass(frozen=True)
class CVaR:
    """The utility that is expected in the worst cases: the conditional value at risk.

    For several thresholds tau, near the quantile alpha of the utility of the selection for the
    expected utility, records are chosen greedily (section 4.3). That selection is a candidate, too.

    On the samples that it was chosen by, a selection looks better than it is, and so does the best
    of many on the samples that judged them. So there are three sets of samples: the first makes
    selections, the second finds the best of them, and the third estimates its value.

    Its error is unreliable where the worst cases are few: draw so many samples that alpha of them
    are 100 or more. With fewer than 10 there is a `SelectionWarning`. It is 0.0 where all of the
    worst cases in the samples are equal, and the value is not exact then.

    Parameters
    ----------
    alpha : float
        The share of worst cases that counts, above 0; 1 is the expected utility.
    n_samples : int, default=None
    error : float, default=0.02
    confidence : float, default=0.95
        As for `Expected`.
    n_thresholds : int, default=12
        The largest number of thresholds to try; each takes as long as a selection.
    n_judged : int, default=None
        Number of samples that judge selections, and of those that estimate the value of the best;
        their random numbers are common to records of one place in the order of choice. By default
        as many as make selections. 0: the samples that made a selection judge it and estimate its
        value, and thresholds are searched by Brent's method, as in the paper; the value is then too
        good.

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
        if not is_number(self.alpha) or not 0 < self.alpha <= 1:
            raise InvalidParameterError(
                f"alpha={shorten(self.alpha)}; expected a share of cases above 0, to 1; pass 0.2 "
                "for the worst fifth"
            )
        check_samples(self.n_samples, self.error, self.confidence)
        check_count(self.n_thresholds, "n_thresholds")
        if self.n_judged is not None and not (type(self.n_judged) is int and self.n_judged == 0):
            check_count(self.n_judged, "n_judged")

    def mean(self) -> Expected:
        """Return the objective `Expected` by as many samples."""
        return Expected(self.n_samples, self.error, self.confidence)

    def samples_needed(self) -> int:
        """Return the number of samples that make selections."""
        return self.mean().samples_needed()

    def n_valued(self) -> int:
        """Return the number of samples that estimate the value of the result."""
        return self.n_judged or self.samples_needed()

    def n_worst(self) -> float:
        """Return the number of samples of which the result is the mean."""
        return self.alpha * self.n_valued()

    def solve(self, task: SelectionTask) -> SelectionResult:
        """Choose the records of the largest utility in the worst cases, greedily."""
        if task.bound.is_certain:
            return self.mean().solve(task)
        found = (
            _SameSampleSearch(self, task) if self.n_judged == 0 else _NewSampleSearch(self, task)
        )
        found.attempt(None)
        low, high = self._thresholds(found.values)
        if low < high:
            found.search(low, high)
        values = found.reported()
        return SelectionResult(
            found.chosen, cvar(values, self.alpha), error_of_cvar(values, self.alpha),
            False, found.n_evaluations,
        )  # fmt: skip

    def _thresholds(self, values: Floats) -> tuple[float, float]:
        """Return an interval of the best threshold: the quantile alpha of the best selection.

        It is no less than the mean below it, and that mean is no less than that of the selection
        for the expected utility, whose values are given. The mean of all values is at least the
        mean below the quantile times alpha plus the quantile times the rest, and at most the mean
        of that selection.
        """
        worst, mean = cvar(values, self.alpha), float(values.mean())
        if self.alpha == 1:
            return worst, worst
        return worst, (mean - self.alpha * worst) / (1 - self.alpha)


class _Search(ABC):
    """A search for a selection for the worst cases, by thresholds, and the best one so far.

    `values` has the utility of those who stay of the best, in the samples that judged it.
    """

    def __init__(self, goal: CVaR, task: SelectionTask) -> None:
        self.goal, self.task = goal, task
        self.chosen: Choice = []
        self.values = np.zeros(0)
        self.n_evaluations = 0

    def attempt(self, threshold: float | None) -> float:
        """Choose records for a threshold, or for the expected utility; return the loss."""
        found = self.task.choose(lambda: self.function(threshold))
        assert found.function is not None
        self.n_evaluations += found.n_evaluations
        values = self.judge(found.chosen, found.function)
        alpha = self.goal.alpha
        if not len(self.values) or cvar(values, alpha) > cvar(self.values, alpha):
            self.chosen, self.values = found.chosen, values
        return -found.function.value

    def function(self, threshold: float | None) -> SetFunction:
        """Return the function that is maximised."""
        return sampled(self.task, self.goal.samples_needed(), threshold, self.goal.alpha)

    @abstractmethod
    def judge(self, chosen: Choice, function: SetFunction) -> Floats:
        """Return the utility in the samples that judge a selection."""

    @abstractmethod
    def search(self, low: float, high: float) -> None:
        """Attempt thresholds."""

    @abstractmethod
    def reported(self) -> Floats:
        """Return the utility of the best, in the samples from which its value is reported."""


class _SameSampleSearch(_Search):
    """A search that judges selections by the samples that made them, as in the paper."""

    def judge(self, chosen: Choice, function: SetFunction) -> Floats:
        assert isinstance(function, SampledFunction)
        return function.values

    def search(self, low: float, high: float) -> None:
        minimize_scalar(
            self.attempt, bounds=(low, high), method="bounded",
            options={"maxiter": self.goal.n_thresholds},
        )  # fmt: skip

    def reported(self) -> Floats:
        return self.values


class _NewSampleSearch(_Search):
    """A search that judges selections by new samples, and values the best by new ones again."""

    def function(self, threshold: float | None) -> SetFunction:
        if threshold is None:  # exact where that can be
            return Expected(self.goal.samples_needed()).function(self.task)
        return super().function(threshold)

    def judge(self, chosen: Choice, function: SetFunction) -> Floats:
        return self._draw(chosen, 0)

    def search(self, low: float, high: float) -> None:
        # Not by Brent's method: the judged value jumps from one selection to the next.
        for threshold in np.linspace(low, high, self.goal.n_thresholds + 2)[1:-1].tolist():
            self.attempt(threshold)

    def reported(self) -> Floats:
        return self._draw(self.chosen, 1)

    def _draw(self, chosen: Choice, stream: int) -> Floats:
        """Return the utility in other samples, drawn in parts of a limited size."""
        task, n_judged, values = self.task, self.goal.n_valued(), []
        n_samples = min(n_judged, self.goal.samples_needed())
        for part in range(-(-n_judged // n_samples)):
            # From 1: NumPy takes [seed, 0] for seed, by which selections are made.
            seed = [task.seed, part + 1, stream]
            sampler = Sampler(task.bound, n_samples, seed, by_order=True)
            function = SampledFunction(task.samples(n_samples), sampler, task.problem.n)
            for j in [*task.held.tolist(), *(j for j, _ in chosen)]:
                function.add(j)
            values.append(function.values)
        return np.concatenate(values)[:n_judged]


def check_objective(given: Any) -> Expected | CVaR:
    """Return an objective, by default the expected utility."""
    if given is None:
        return Expected()
    if not isinstance(given, Expected | CVaR):
        raise InvalidParameterError(
            f"objective={shorten(given)}; expected Expected() or CVaR(alpha); pass one"
        )
    return given

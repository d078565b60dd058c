"""Tasks and results of a selection, and the objective `Expected`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection._functions import SetFunction
from erasable.selection._knapsack import Best, best_of_enumeration, best_of_greedy
from erasable.selection._optimizers import Choice, CostBudget
from erasable.selection._sampled import SampledFunction, Samples
from erasable.selection.staying._model import Bound, Sampler
from erasable.selection.utilities._utility import Problem


@dataclass(frozen=True)
class SelectionTask:
    """The inputs of a selection."""

    problem: Problem
    bound: Bound
    held: Ints  # records that are held already, and may be deleted as well
    items: Ints  # records to choose from
    budget: CostBudget
    optimizer: str
    seed: int
    most: int  # the largest number of records that can be held in the end
    by_enumeration: bool = False  # whether selections start from every set of three records
    n_jobs: int | None = None
    keys: Any = None  # shape (n,), uint64: by which records are drawn; by default their rows

    def samples(self, n_samples: int) -> Samples:
        """Return the utility in samples, with as many threads as the task has."""
        samples = self.problem.samples(n_samples, self.most)
        samples.n_jobs = self.n_jobs
        return samples

    def choose(self, make: Callable[[], SetFunction]) -> Best:
        """Choose records for a function; `make` returns one to which no record was added."""

        def held() -> SetFunction:
            function = make()
            function.fill(self.held)
            return function

        best_of = best_of_enumeration if self.by_enumeration else best_of_greedy
        return best_of(held, self.items, self.budget, self.optimizer, self.seed)


@dataclass(frozen=True)
class SelectionResult:
    """A selection and its value."""

    chosen: Choice  # in the order of choice, with what each record added to the objective
    value: float  # of the objective, with what was held
    standard_error: float
    exact: bool  # whether the value is exact; otherwise it is a mean of samples
    n_evaluations: int  # number of marginal gains that were computed


@dataclass(frozen=True)
class Expected:
    """The utility that is expected after deletions.

    It is exact where the utility has a closed form for the staying model, and a sample average
    elsewhere.

    Parameters
    ----------
    n_samples : int, default=None
        Number of samples of who stays, if any are drawn. By default as many as keep a marginal gain
        within `error` with probability `confidence`.
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

    def solve(self, task: SelectionTask) -> SelectionResult:
        """Choose the records of the largest expected utility, greedily."""
        best = task.choose(lambda: self.function(task))
        function = best.function
        assert function is not None
        error = function.standard_error if isinstance(function, SampledFunction) else 0.0
        exact = is_exact(function, task.bound)
        return SelectionResult(best.chosen, function.value, error, exact, best.n_evaluations)

    def function(self, task: SelectionTask) -> SetFunction:
        """Return the expected utility as a function of the records, none of them chosen yet."""
        exact = task.problem.expected(task.bound, task.most)
        if exact is not None:
            return exact
        return sampled(task, self.samples_needed())


def sampled(
    task: SelectionTask, n_samples: int, threshold: float | None = None, alpha: float = 1.0
) -> SampledFunction:
    """Return an objective by samples; those of one task are drawn alike."""
    sampler = Sampler(task.bound, n_samples, task.seed, keys=task.keys)
    return SampledFunction(
        task.samples(n_samples), sampler, task.problem.n, threshold=threshold, alpha=alpha
    )


def is_exact(function: SetFunction, bound: Bound) -> bool:
    """Tell whether a value is exact: by a closed form, or because everybody stays."""
    return bound.is_certain or not isinstance(function, SampledFunction)


def check_samples(n_samples: Any, error: Any, confidence: Any) -> None:
    """Refuse parameters that give no number of samples."""
    if n_samples is not None:
        check_count(n_samples, "n_samples")
    for name, value in (("error", error), ("confidence", confidence)):
        if not isinstance(value, float | np.floating) or not 0 < value < 1:
            raise InvalidParameterError(
                f"{name}={shorten(value)}; expected a number between 0 and 1; pass 0.02 for an "
                "error of two hundredths, 0.95 for a confidence"
            )


def check_count(value: Any, name: str) -> None:
    """Refuse what is no number of samples."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 2:
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected an integer of 2 or more; pass 1000"
        )

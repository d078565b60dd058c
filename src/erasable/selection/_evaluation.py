"""Utility of a selection after deletions: its expectation and its distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import erasable.selection._records as _records
from erasable.core.seeds import seed_from
from erasable.selection._functions import SetFunction
from erasable.selection._objectives import Expected, SelectionTask, is_exact, sampled
from erasable.selection._optimizers import CostBudget
from erasable.selection._sampled import SampledFunction, cvar, error_of_cvar
from erasable.selection._worst_cases import CVaR, check_objective
from erasable.selection.staying._independent import as_staying
from erasable.selection.utilities._utility import Problem, Utility, check_utility

F = TypeVar("F", bound=SetFunction)


@dataclass(frozen=True)
class ExpectedUtility:
    """A value, and how exact it is.

    Attributes
    ----------
    value : float
    standard_error : float
        0.0 where the value is exact, and where all samples that count are equal.
    exact : bool
        Whether it is the sum over all who may stay, to rounding; otherwise samples were drawn.

    Examples
    --------
    >>> float(ExpectedUtility(1.25, 0.0, True))
    1.25
    """

    value: float
    standard_error: float
    exact: bool

    def __float__(self) -> float:
        return self.value


def expected_utility(
    selected: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    rows: Any = None,
    utility: Utility,
    staying: Any = 1.0,
    objective: Expected | CVaR | None = None,
    ids: Any = None,
    random_state: Any = None,
) -> ExpectedUtility:
    """Compute the utility of some records after deletions.

    Parameters
    ----------
    selected : array-like of ids, default=None
        The records that are held.
    X, y, ids
        All the records, as for `SubsetSelector.fit`.
    rows : array-like of int, or boolean mask of shape (n_records,), default=None
        The positions of the records that are held, in place of `selected`.
    utility : Utility
    staying : staying model, float, mapping or array-like, default=1.0
    objective : Expected or CVaR, default=Expected()
    random_state : int, RandomState or None, default=None

    Returns
    -------
    ExpectedUtility

    Raises
    ------
    InvalidInputError, InvalidParameterError

    See Also
    --------
    SubsetSelector.value : The same for the records that a selector chose.

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor
    >>> similarity = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> expected_utility([0, 1], similarity, utility=NearestNeighbor("precomputed"), staying=0.5)
    ExpectedUtility(value=1.25, standard_error=0.0, exact=True)
    """
    goal = check_objective(objective)
    task = _task(selected, X, y, rows, utility, staying, ids, random_state)
    return worth_of(task, goal)


def worth_of(task: SelectionTask, goal: Expected | CVaR) -> ExpectedUtility:
    """Return the value of what is held in a task."""
    if isinstance(goal, CVaR):
        if not task.bound.is_certain:
            values = values_of(task, goal.samples_needed())
            error = error_of_cvar(values, goal.alpha)
            return ExpectedUtility(cvar(values, goal.alpha), error, exact=False)
        goal = goal.mean()
    function = _filled(goal.function(task), task)
    error = function.standard_error if isinstance(function, SampledFunction) else 0.0
    return ExpectedUtility(function.value, error, is_exact(function, task.bound))


def utility_distribution(
    selected: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    rows: Any = None,
    utility: Utility,
    staying: Any = 1.0,
    n_samples: int = 1000,
    ids: Any = None,
    random_state: Any = None,
) -> NDArray[np.float64]:
    """Return samples of the utility of some records after deletions.

    Parameters
    ----------
    n_samples : int, default=1000
    selected, X, y, rows, utility, staying, ids, random_state
        As for `expected_utility`.

    Returns
    -------
    ndarray of shape (n_samples,), float64

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor, PointMass
    >>> utility_distribution([0, 1], np.eye(2), utility=NearestNeighbor("precomputed"),
    ...                      staying=PointMass(1), n_samples=3)
    array([1., 1., 1.])
    """
    task = _task(selected, X, y, rows, utility, staying, ids, random_state)
    return values_of(task, Expected(n_samples).samples_needed())


def _task(
    selected: Any,
    X: Any,
    y: Any,
    rows: Any,
    utility: Utility,
    staying: Any,
    ids: Any,
    random_state: Any,
) -> SelectionTask:
    X, names = _records.read_ids(X, ids, y=y, staying=staying)
    held = _records.read_selection(selected, rows, names)
    problem = check_utility(utility).problem(X, y)
    return task_of(problem, held, staying, y, int(seed_from(random_state)), names)


def task_of(
    problem: Problem,
    held: NDArray[np.int64],
    staying: Any,
    y: Any,
    seed: int,
    names: NDArray[Any],
) -> SelectionTask:
    """Return the task in which some records are held, and none is chosen."""
    bound = problem.bind(as_staying(staying), len(held), y)
    none = np.zeros(0, dtype=np.int64)
    return SelectionTask(
        problem, bound, held, none, CostBudget(0), "lazy", seed, len(held),
        keys=_records.keys_of(names),
    )  # fmt: skip


def values_of(task: SelectionTask, n_samples: int) -> NDArray[np.float64]:
    """Return the utility of those held who stay, in each sample."""
    if task.bound.is_certain:
        value = _filled(Expected(n_samples).function(task), task).value
        return np.full(n_samples, value)
    return _filled(sampled(task, n_samples), task).values


def _filled(function: F, task: SelectionTask) -> F:
    """Return a function with the records that are held."""
    function.fill(task.held)
    return function

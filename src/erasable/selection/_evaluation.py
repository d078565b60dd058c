"""What a selection is worth after deletions: its expectation, and how it varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.seeds import seed_from
from erasable.selection import _records
from erasable.selection._objectives import CVaR, Expected, Task, check_objective, sampled
from erasable.selection._optimizers import Budget
from erasable.selection._sampled import SampledFunction, cvar, error_of_cvar
from erasable.selection.staying import as_staying
from erasable.selection.utilities import Utility
from erasable.selection.utilities._base import check_utility

__all__ = ["ExpectedUtility", "expected_utility", "utility_distribution"]


@dataclass(frozen=True)
class ExpectedUtility:
    """A value, and how exact it is.

    Attributes
    ----------
    value : float
    standard_error : float
        0.0 where the value is exact.

    Examples
    --------
    >>> float(ExpectedUtility(1.25, 0.0))
    1.25
    """

    value: float
    standard_error: float

    def __float__(self) -> float:
        return self.value


def expected_utility(
    selected: Any,
    X: Any,
    y: Any = None,
    *,
    utility: Utility,
    staying: Any = 1.0,
    objective: Expected | CVaR | None = None,
    ids: Any = None,
    random_state: Any = None,
) -> ExpectedUtility:
    """Compute what some records are worth after deletions.

    Parameters
    ----------
    selected : array-like of ids
        The records that are held, in the order of their choice.
    X, y, ids
        All the records, as for `SubsetSelector.fit`.
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

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor
    >>> similarity = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> expected_utility([0, 1], similarity, utility=NearestNeighbor("precomputed"), staying=0.5)
    ExpectedUtility(value=1.25, standard_error=0.0)
    """
    goal = check_objective(objective)
    task = _task(selected, X, y, utility, staying, ids, random_state)
    if isinstance(goal, CVaR):
        values = _values(task, goal.samples_needed())
        return ExpectedUtility(cvar(values, goal.alpha), error_of_cvar(values, goal.alpha))
    function = goal.function(task)
    for j in task.held.tolist():
        function.add(j)
    error = function.standard_error if isinstance(function, SampledFunction) else 0.0
    return ExpectedUtility(function.value, error)


def utility_distribution(
    selected: Any,
    X: Any,
    y: Any = None,
    *,
    utility: Utility,
    staying: Any = 1.0,
    n_samples: int = 1000,
    ids: Any = None,
    random_state: Any = None,
) -> NDArray[np.float64]:
    """Draw who stays of some records, and return what is left of their utility, each time.

    Parameters
    ----------
    n_samples : int, default=1000
    selected, X, y, utility, staying, ids, random_state
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
    task = _task(selected, X, y, utility, staying, ids, random_state)
    return _values(task, Expected(n_samples).samples_needed())


def _task(
    selected: Any, X: Any, y: Any, utility: Utility, staying: Any, ids: Any, random_state: Any
) -> Task:
    X, names = _records.read_ids(X, ids, y=y, staying=staying)
    problem = check_utility(utility).problem(X, y)
    rows = _records.places_of(selected, names)
    bound = as_staying(staying).bind(problem.n, k=len(rows), labels=y)
    none = np.zeros(0, dtype=np.int64)
    seed = int(seed_from(random_state))
    return Task(problem, bound, rows, none, Budget(0), "lazy", seed, len(rows))


def _values(task: Task, n_samples: int) -> NDArray[np.float64]:
    function = sampled(task, n_samples)
    for j in task.held.tolist():
        function.add(j)
    return function.values

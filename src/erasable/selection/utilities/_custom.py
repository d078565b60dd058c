"""A utility of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.selection._functions import SetFunction
from erasable.selection._records import n_rows
from erasable.selection._sampled import Samples
from erasable.selection.staying import Bound
from erasable.selection.utilities._base import Problem, Utility

__all__ = ["Custom"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Custom(Utility):
    """A utility that you write: what a record adds to those that are there.

    Without deletions it is used as it is; with them its expectation is sampled, with one state for
    each sample.

    Parameters
    ----------
    start : callable
        ``start(X, y)`` returns a state of no records, with two methods: ``gain(j)`` returns what
        record j would add, a float, and changes nothing; ``add(j)`` adds it. The lazy optimiser
        trusts that gains do not grow when records are added (submodularity); take ``greedy`` where
        they may, and ``random-greedy`` where they may be below 0.

    Examples
    --------
    >>> class Cities:
    ...     def __init__(self, X, y):
    ...         self.X, self.seen = X, set()
    ...     def gain(self, j):
    ...         return float(self.X[j] not in self.seen)
    ...     def add(self, j):
    ...         self.seen.add(self.X[j])
    >>> Custom(Cities).problem(["Rome", "Rome", "Oslo"]).value([0, 1, 2])
    2.0
    """

    def __init__(self, start: Callable[[Any, Any], Any]) -> None:
        self.start = start

    def problem(self, X: Any, y: Any = None) -> CustomProblem:
        if not callable(self.start):
            raise InvalidParameterError(
                f"start={shorten(self.start)}; expected a function of (X, y); pass one that "
                "returns an object with gain(j) and add(j)"
            )
        return CustomProblem(lambda: self.start(X, y), n_rows(X))


class CustomProblem(Problem):
    """How a state is made, and of how many records."""

    def __init__(self, start: Callable[[], Any], n: int) -> None:
        self.start, self.n = start, n
        state = start()
        missing = [name for name in ("gain", "add") if not callable(getattr(state, name, None))]
        if missing:
            raise InvalidParameterError(
                f"start returned a {type(state).__name__} without {' and '.join(missing)}; "
                "expected methods gain(j) and add(j); write them"
            )

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        return _Plain(self.start(), self.n) if bound.is_certain else None

    def samples(self, n_samples: int, k: int) -> Samples:
        return _States([self.start() for _ in range(n_samples)])

    def value(self, chosen: Any) -> float:
        function = _Plain(self.start(), self.n)
        for j in chosen:
            function.add(int(j))
        return function.value


class _Plain(SetFunction):
    """Without deletions."""

    def __init__(self, state: Any, n: int) -> None:
        self.state, self.n, self.value = state, n, 0.0

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        return np.array([float(self.state.gain(int(j))) for j in items])

    def add(self, j: int, gain: float | None = None) -> None:
        self.value += float(self.state.gain(j)) if gain is None else gain
        self.state.add(j)


class _States(Samples):
    """One state for each sample."""

    is_monotone = False  # nobody knows

    def __init__(self, states: list[Any]) -> None:
        self.states = states

    def gains(self, j: int) -> Floats:
        return np.array([float(state.gain(j)) for state in self.states])

    def add(self, j: int, stays: NDArray[np.bool_]) -> None:
        for state, stay in zip(self.states, stays, strict=True):
            if stay:
                state.add(j)

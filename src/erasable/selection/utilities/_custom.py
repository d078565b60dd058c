"""A utility given by a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.messages import refuse_signature
from erasable.selection._functions import SetFunction
from erasable.selection._records import n_rows
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._utility import Problem, Utility


class Custom(Utility):
    """A utility given by a function: what a record adds to those chosen before.

    Without deletions it is used as it is; with them its expectation is sampled, with one state for
    each sample.

    Parameters
    ----------
    start : callable
        ``start(X, y)`` returns a state of no records, with two methods: ``gain(j)`` returns what
        record j would add, a float, and changes nothing; ``add(j)`` adds it. By default every
        gain is computed in each round. If gains never grow when records are added
        (submodularity), ``optimizer="lazy"`` makes the same choice, faster; where they may be below
        0, take ``random-greedy``.

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
        refuse_signature(self.start, "start", "X, y")
        return CustomProblem(lambda: self.start(X, y), n_rows(X))


class CustomProblem(Problem):
    """The states and records of a custom utility."""

    def __init__(self, start: Callable[[], Any], n: int) -> None:
        self.start, self.n = start, n
        state = start()
        missing = [name for name in ("gain", "add") if not callable(getattr(state, name, None))]
        if missing:
            raise InvalidParameterError(
                f"start returned a {type(state).__name__} without {' and '.join(missing)}; "
                "expected methods gain(j) and add(j); write them"
            )
        refuse_signature(state.gain, "gain", "j")
        refuse_signature(state.add, "add", "j")
        if start() is state:
            raise InvalidParameterError(
                f"start returned the same {type(state).__name__} twice; expected a new state of no "
                "records each time"
            )

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        return _CustomFunction(self.start(), self.n) if bound.is_certain else None

    def samples(self, n_samples: int, k: int) -> Samples:
        return _CustomSamples([self.start() for _ in range(n_samples)])

    def value(self, chosen: Any) -> float:
        function = _CustomFunction(self.start(), self.n)
        for j in chosen:
            function.add(int(j))
        return function.value


class _CustomFunction(SetFunction):
    """A custom utility without deletions."""

    def __init__(self, state: Any, n: int) -> None:
        self.state, self.n, self.value = state, n, 0.0

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        return np.array([_gain(self.state, int(j)) for j in items])

    def add(self, j: int, gain: float | None = None) -> None:
        self.value += _gain(self.state, j) if gain is None else gain
        self.state.add(j)


class _CustomSamples(Samples):
    """A custom utility in samples, with one state for each."""

    is_monotone = False  # it is not known

    def __init__(self, states: list[Any]) -> None:
        self.states = states

    def gains(self, j: int) -> Floats:
        return np.array([_gain(state, j) for state in self.states])

    def add(self, j: int, stays: Flags) -> None:
        for state, stay in zip(self.states, stays, strict=True):
            if stay:
                state.add(j)


def _gain(state: Any, j: int) -> float:
    """Return the gain of a record by a state; a number that is not finite is refused."""
    value = state.gain(j)
    try:
        gain = None if isinstance(value, str | bytes) else float(value)
    except (OverflowError, TypeError, ValueError):
        gain = None
    if gain is None or not np.isfinite(gain):
        raise InvalidInputError(
            f"gain({j}) returned {shorten(value)}; expected a finite number, what record {j} adds"
        )
    return gain

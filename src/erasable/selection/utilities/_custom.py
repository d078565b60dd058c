"""Utilities given by states of the user: what a record adds to those chosen before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.messages import refuse_signature
from erasable.selection._functions import SetFunction
from erasable.selection._records import as_reals, n_rows
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._utility import Problem, Utility

_AT_ONCE = 2**22  # gains, of a record in a sample, that are kept


class StateUtility(Utility):
    """Base of utilities by states: a subclass has a method `start`, as `Custom` has a function.

    Set `is_submodular` where a record never adds more to more records, and never less than 0: then
    the lazy optimiser is used.

    Examples
    --------
    >>> class Seen:
    ...     def __init__(self, X):
    ...         self.X, self.seen = X, set()
    ...     def gain(self, j):
    ...         return float(self.X[j] not in self.seen)
    ...     def add(self, j):
    ...         self.seen.add(self.X[j])
    >>> class Variety(StateUtility):
    ...     is_submodular = True
    ...     def start(self, X, y):
    ...         return Seen(X)
    >>> Variety().problem(["Rome", "Rome", "Oslo"]).value([0, 1, 2])
    2.0
    """

    @abstractmethod
    def start(self, X: Any, y: Any) -> Any:
        """Return a new state of no records.

        Its methods are:

        - ``add(j)`` adds record j.
        - ``gain(j)`` returns what record j would add, a float, and changes nothing; or, in its
          place, ``gains(rows)`` returns that of several records, an array of shape (n_rows,).
        - ``batch(n)``, where there is one, returns n states of no records as one object, with
          ``gains(rows)``, of shape (n, n_rows), and ``add(j, stays)``, which adds record j to the
          states in which the mask `stays`, of shape (n,), is true. It serves the samples of who
          stays, which otherwise have a state each.

        Parameters
        ----------
        X, y
            As they were given.
        """

    def problem(self, X: Any, y: Any = None) -> CustomProblem:
        if not callable(self.start):
            raise InvalidParameterError(
                f"start={shorten(self.start)}; expected a function of (X, y); pass one that "
                "returns an object with gain(j) and add(j)"
            )
        refuse_signature(self.start, "start", "X, y")
        return CustomProblem(lambda: self.start(X, y), n_rows(X))


class Custom(StateUtility):
    """A utility given by a function: what a record adds to those chosen before.

    Without deletions it is used as it is; with them its expectation is sampled, with one state for
    each sample, or a batch of states.

    Parameters
    ----------
    start : callable
        ``start(X, y)`` returns a state of no records, with two methods: ``gain(j)`` returns what
        record j would add, a float, and changes nothing; ``add(j)`` adds it. Faster are
        ``gains(rows)`` of several records, and ``batch(n)`` of several states; see
        `StateUtility.start`. By default every gain is computed in each round. If gains never grow
        when records are added (submodularity), ``optimizer="lazy"`` makes the same choice, faster;
        where they may be below 0, take ``random-greedy``.

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

    start: Any = None  # the parameter stands in for the method of the base

    def __init__(self, start: Callable[[Any, Any], Any]) -> None:
        self.start = start


class CustomProblem(Problem):
    """The states and records of a custom utility."""

    def __init__(self, start: Callable[[], Any], n: int) -> None:
        self.start, self.n = start, n
        state = start()
        ways = [name for name in ("gain", "gains") if _has(state, name)]
        missing = [*([] if ways else ["gain"]), *([] if _has(state, "add") else ["add"])]
        if missing:
            raise InvalidParameterError(
                f"start returned a {type(state).__name__} without {' and '.join(missing)}; "
                "expected methods gain(j) and add(j); write them"
            )
        for name, argument in (("gain", "j"), ("gains", "rows"), ("add", "j"), ("batch", "n")):
            if _has(state, name):
                refuse_signature(getattr(state, name), name, argument)
        self.has_batch = _has(state, "batch")
        if start() is state:
            raise InvalidParameterError(
                f"start returned the same {type(state).__name__} twice; expected a new state of no "
                "records each time"
            )

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        return _CustomFunction(self.start(), self.n) if bound.is_certain else None

    def samples(self, n_samples: int, k: int) -> Samples:
        if not self.has_batch:
            return _StateSamples([self.start() for _ in range(n_samples)])
        return _BatchSamples(self.start().batch(n_samples), n_samples)

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
        return _gains(self.state, items)

    def add(self, j: int, gain: float | None = None) -> None:
        self.value += float(_gains(self.state, np.array([j]))[0]) if gain is None else gain
        self.state.add(j)


class _AheadSamples(Samples):
    """A custom utility in samples; gains are computed of several records at a time, and kept."""

    is_monotone = False  # it is not known

    def __init__(self, n_samples: int) -> None:
        self.n_samples = n_samples
        self._ahead = np.zeros(0, dtype=np.int64)  # records whose gains are asked for next
        self._next = 0  # the first of them that was not computed
        self._known: dict[int, Floats] = {}

    def prepare(self, items: Ints) -> None:
        self._ahead, self._next = items, 0

    def gains(self, j: int) -> Floats:
        if j not in self._known:
            rows = self._ahead[self._next :][: max(1, _AT_ONCE // self.n_samples)]
            if rows.size and rows[0] == j:
                self._next += rows.size
            else:
                rows = np.array([j])
            self._known = dict(zip(rows.tolist(), self.gains_of(rows).T, strict=True))
        return self._known[j]

    def add(self, j: int, stays: Flags) -> None:
        self._known = {}
        self.add_to(j, stays)

    @abstractmethod
    def gains_of(self, rows: Ints) -> Floats:
        """Return what each of some records would add, shape (n_samples, n_rows)."""

    @abstractmethod
    def add_to(self, j: int, stays: Flags) -> None:
        """Add a record to the states in which it stays."""


class _StateSamples(_AheadSamples):
    """Samples with one state for each."""

    def __init__(self, states: list[Any]) -> None:
        super().__init__(len(states))
        self.states = states

    def gains_of(self, rows: Ints) -> Floats:
        return np.array([_gains(state, rows) for state in self.states])

    def add_to(self, j: int, stays: Flags) -> None:
        for state, stay in zip(self.states, stays, strict=True):
            if stay:
                state.add(j)


class _BatchSamples(_AheadSamples):
    """Samples with one object for all."""

    def __init__(self, batch: Any, n_samples: int) -> None:
        super().__init__(n_samples)
        missing = [name for name in ("gains", "add") if not _has(batch, name)]
        if missing:
            raise InvalidParameterError(
                f"batch returned a {type(batch).__name__} without {' and '.join(missing)}; "
                "expected methods gains(rows) and add(j, stays); write them"
            )
        refuse_signature(batch.gains, "gains", "rows")
        refuse_signature(batch.add, "add", "j, stays")
        self.batch = batch

    def gains_of(self, rows: Ints) -> Floats:
        return _checked(self.batch.gains(rows), (self.n_samples, len(rows)))

    def add_to(self, j: int, stays: Flags) -> None:
        self.batch.add(j, stays)


def _has(state: Any, name: str) -> bool:
    return callable(getattr(state, name, None))


def _gains(state: Any, rows: Ints) -> Floats:
    """Return the gains of some records by a state: of all at once, if it can."""
    if _has(state, "gains"):
        return _checked(state.gains(rows), (len(rows),))
    return np.array([_gain(state, int(j)) for j in rows])


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


def _checked(given: Any, shape: tuple[int, ...]) -> Floats:
    """Return gains as an array; another shape, or what is not finite, is refused."""
    try:
        found = as_reals(given)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != shape or not np.isfinite(found).all():
        raise InvalidInputError(
            f"gains returned {shorten(given)}; expected finite numbers of shape {shape}, what "
            "records add"
        )
    return found

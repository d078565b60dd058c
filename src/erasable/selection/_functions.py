"""Set functions that optimisers maximise, and queues of records by marginal gain."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod

import numpy as np

from erasable.core.arrays import Floats, Ints


class SetFunction(ABC):
    """The objective's value of what was chosen so far, and what each further record would add.

    A subclass has `gains`, and `_add`, which updates what gains are computed from; it counts gains
    in `n_evaluations`.

    Attributes
    ----------
    n : int
        How many records there are.
    value : float
        Of the records added so far.
    n_evaluations : int
        How many marginal gains were computed.

    Examples
    --------
    >>> class Size(SetFunction):
    ...     n = 3
    ...     def gains(self, items):
    ...         return np.ones(len(items))
    ...     def _add(self, j):
    ...         pass
    >>> size = Size()
    >>> size.add(2)
    >>> size.value
    1.0
    """

    n: int
    value: float = 0.0
    n_evaluations: int = 0
    sweeps = False

    @abstractmethod
    def gains(self, items: Ints) -> Floats:
        """Return what each of some records would add, shape (n_items,)."""

    def add(self, j: int, gain: float | None = None) -> None:
        """Choose a record; `gain` is what it adds, where that was computed already."""
        if gain is None:
            (gain,) = self.gains(np.array([j])).tolist()
        self._add(j)
        self.value += float(gain)

    def fill(self, items: Ints) -> None:
        """Choose several records, in this order, without computing their gains first."""
        for j in items.tolist():
            self.add(j)

    def _add(self, j: int) -> None:
        """Update what gains are computed from after a choice."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _add()")

    def queue(self, items: Ints, weights: Floats | None = None) -> Queue:
        """Return the records by gain times weight, for a lazy greedy choice."""
        return (Sweep if self.sweeps else Queue)(self, items, weights)


class Queue:
    """Records by marginal gain; gains that are out of date serve as bounds (Minoux 1978).

    With a submodular function this chooses as if every gain were computed; with another one it may
    not. Ties go to the record that comes first.
    """

    def __init__(self, function: SetFunction, items: Ints, weights: Floats | None = None) -> None:
        self.function, self.round = function, 0
        self.weights = np.ones(function.n) if weights is None else weights
        gains = function.gains(items) * self.weights[items]
        self.heap = [(-gain, int(j), 0) for gain, j in zip(gains.tolist(), items, strict=True)]
        heapq.heapify(self.heap)

    def pop(self) -> tuple[int, float]:
        """Take out the record of the largest weighted gain; return it and its gain."""
        while True:
            bound, j, then = self.heap[0]
            if then == self.round:
                heapq.heappop(self.heap)
                weight = float(self.weights[j])
                return j, -bound / weight if weight else 0.0
            (gain,) = self.function.gains(np.array([j])) * self.weights[j]
            heapq.heapreplace(self.heap, (-float(gain), j, self.round))

    def next_round(self) -> None:
        """Mark all gains as out of date, after a record was added."""
        self.round += 1

    def __len__(self) -> int:
        return len(self.heap)


class Sweep(Queue):
    """Records by marginal gain, all computed in each round; ties go to the first record."""

    def __init__(self, function: SetFunction, items: Ints, weights: Floats | None = None) -> None:
        self.function, self.items = function, np.sort(items)
        self.weights = np.ones(len(items)) if weights is None else weights[self.items]
        self.left = np.ones(len(items), dtype=bool)
        self.gains: Floats | None = None

    def pop(self) -> tuple[int, float]:
        if self.gains is None:
            self.gains = self.function.gains(self.items)
            self.worth = np.where(self.left, self.gains * self.weights, -np.inf)
        at = int(np.argmax(self.worth))
        self.left[at] = False
        self.worth[at] = -np.inf
        return int(self.items[at]), float(self.gains[at])

    def next_round(self) -> None:
        self.gains = None

    def __len__(self) -> int:
        return int(self.left.sum())

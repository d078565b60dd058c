"""Weights as whole numbers, and their sums by class.

The law it keeps: weights are rounded once to 26 bits below the largest that is left, a grid that
is a function of the live records alone; from there on they are whole numbers, and all sums exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from erasable.core._grid_kernels import MAX_TOP
from erasable.core._magnitudes import LiveRows, TopGrid
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.classes import Classes
from erasable.core.errors import MagnitudeError

LEAST_WEIGHT = 2.0**-507
"""Weights up to this count as 0, whatever the others are."""


@dataclass(eq=False, slots=True)
class WeightUnits:
    """Weights of records, in quanta.

    Attributes
    ----------
    weights : ndarray of shape (n_rows,), float64
        The records' own; empty where these are not at hand.
    grid : TopGrid
        Of the weights, as of one column.

    Examples
    --------
    >>> weights = WeightUnits.of(np.array([1.0, 0.0, 3.0]), np.arange(3))
    >>> weights.units(np.arange(3)) * weights.quantum, weights.counted(np.arange(3))
    (array([1., 0., 3.]), array([0, 2]))
    """

    weights: Floats
    grid: TopGrid

    @classmethod
    def of(cls, weights: Floats, live: Ints) -> Self:
        """Round the weights of the live rows.

        Raises
        ------
        MagnitudeError
            If a weight exceeds ``2**480``.
        """
        _refuse_huge(weights[live])
        return cls(weights, TopGrid.fit(weights[:, np.newaxis], live))

    @property
    def quantum(self) -> float:
        """What a sum of 1 means."""
        return float(self.grid.quantum[0])

    def units(self, rows: Ints) -> Ints:
        """Return the weights of rows, in quanta."""
        units: Ints = np.rint(self.weights[rows] * self.grid.per_quantum[0]).astype(np.int64)
        return units

    def counted(self, rows: Ints) -> Ints:
        """Return those of some rows whose weight does not count as 0."""
        return rows[self.weights[rows] > LEAST_WEIGHT]

    def arrive(self, weights: Floats, rows: Ints) -> bool:
        """Take rows in; true if the quantum has changed.

        `weights` are those of all rows, perhaps in another array than before.
        """
        _refuse_huge(weights[rows])
        self.weights = weights
        return self.grid.add(weights[:, np.newaxis], rows) is not None

    def leave(self, rows: Ints, live_rows: LiveRows) -> bool:
        """Take rows out; true if the quantum may have changed."""
        return self.grid.remove(self.weights[:, np.newaxis], rows, live_rows) is not None


@dataclass(eq=False, slots=True)
class ClassWeights(WeightUnits):
    """Sums of weights, a number for each class.

    Attributes
    ----------
    sums : ndarray of shape (n_classes,), int64
        Exact, in quanta.

    Examples
    --------
    >>> weights = np.array([1.0, 0.5, 3.0])
    >>> classes = Classes.fit(np.array(["a", "b", "b"], dtype=object), np.arange(3))
    >>> of_classes = ClassWeights.fit(weights, np.arange(3), classes)
    >>> of_classes.sums * of_classes.quantum
    array([1. , 3.5])
    >>> of_classes.remove(np.array([2]), classes.codes, lambda: np.arange(2))
    True
    """

    sums: Ints

    @classmethod
    def fit(cls, weights: Floats, live: Ints, classes: Classes) -> Self:
        """Sum the weights of the live rows; raise MagnitudeError for one above ``2**480``."""
        units = WeightUnits.of(weights, live)
        made = cls(weights, units.grid, np.empty(0, dtype=np.int64))
        made.add_up(live, classes)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild them from what `state` returned."""
        return cls(np.empty(0), TopGrid.from_top(state["top"]), state["sums"])

    def state(self) -> dict[str, Any]:
        """Return the exponent of the grid, and the sums in quanta."""
        return {"top": self.grid.top, "sums": self.sums}

    def add_up(self, live: Ints, classes: Classes) -> None:
        """Sum the weights of the live rows on the grid as it is."""
        self.sums = np.zeros(classes.labels.size, dtype=np.int64)
        np.add.at(self.sums, classes.codes[live], self.units(live))

    def add(self, weights: Floats, rows: Ints, codes: Ints32) -> bool:
        """Take rows into the sums; true if the grid has changed, and all is to be summed anew.

        `weights` are those of all rows, perhaps in another array than before.
        """
        if self.arrive(weights, rows):
            return True
        np.add.at(self.sums, codes[rows], self.units(rows))
        return False

    def remove(self, rows: Ints, codes: Ints32, live_rows: LiveRows) -> bool:
        """Take rows out of the sums; true if the grid has changed, and all is to be summed anew."""
        np.subtract.at(self.sums, codes[rows], self.units(rows))
        return self.leave(rows, live_rows)

    def keep(self, kept: Flags) -> None:
        """Drop classes that are gone."""
        self.sums = self.sums[kept]


def _refuse_huge(weights: Floats) -> None:
    huge = int(np.count_nonzero(weights > 2.0**MAX_TOP))
    if huge:
        raise MagnitudeError(
            f"sample_weight is beyond 2**{MAX_TOP} for {huge} records; exact sums need "
            "smaller weights; divide all of them by a constant"
        )

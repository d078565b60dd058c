"""Sums of the records' weights by class.

The law it keeps: weights are rounded once to 26 bits below the largest that is left, a grid that
is a function of the live records alone; from there on they are whole numbers, and all sums exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from erasable.core._grid_kernels import MAX_TOP
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.classes import Classes
from erasable.core.errors import MagnitudeError
from erasable.naive_bayes._magnitudes import LiveRows, TopGrid

LEAST_WEIGHT = 2.0**-507
"""Weights up to this count as 0, whatever the others are."""


@dataclass(eq=False, slots=True)
class ClassWeights:
    """Sums of weights, a number for each class.

    Attributes
    ----------
    weights : ndarray of shape (n_rows,), float64
        The records' own; empty where these are not at hand.
    grid : TopGrid
        Of the weights, as of one column.
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

    weights: Floats
    grid: TopGrid
    sums: Ints

    @classmethod
    def fit(cls, weights: Floats, live: Ints, classes: Classes) -> Self:
        """Sum the weights of the live rows; raise MagnitudeError for one above ``2**480``."""
        _refuse_huge(weights[live])
        made = cls(weights, TopGrid.fit(weights[:, np.newaxis], live), np.empty(0, dtype=np.int64))
        made.add_up(live, classes)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild them from what `state` returned."""
        return cls(np.empty(0), TopGrid.from_top(state["top"]), state["sums"])

    def state(self) -> dict[str, Any]:
        """Return the exponent of the grid, and the sums in quanta."""
        return {"top": self.grid.top, "sums": self.sums}

    @property
    def quantum(self) -> float:
        """What a sum of 1 means."""
        return float(self.grid.quantum[0])

    def units(self, rows: Ints) -> Ints:
        """Return the weights of rows, in quanta."""
        units: Ints = np.rint(self.weights[rows] * self.grid.per_quantum[0]).astype(np.int64)
        return units

    def add_up(self, live: Ints, classes: Classes) -> None:
        """Sum the weights of the live rows on the grid as it is."""
        self.sums = np.zeros(classes.labels.size, dtype=np.int64)
        np.add.at(self.sums, classes.codes[live], self.units(live))

    def add(self, weights: Floats, rows: Ints, codes: Ints32) -> bool:
        """Take rows into the sums; true if the grid has changed, and all is to be summed anew.

        `weights` are those of all rows, perhaps in another array than before.
        """
        _refuse_huge(weights[rows])
        self.weights = weights
        if self.grid.add(weights[:, np.newaxis], rows) is not None:
            return True
        np.add.at(self.sums, codes[rows], self.units(rows))
        return False

    def remove(self, rows: Ints, codes: Ints32, live_rows: LiveRows) -> bool:
        """Take rows out of the sums; true if the grid has changed, and all is to be summed anew."""
        np.subtract.at(self.sums, codes[rows], self.units(rows))
        return self.grid.remove(self.weights[:, np.newaxis], rows, live_rows) is not None

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

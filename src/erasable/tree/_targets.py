"""Targets of trees: classes, or numbers on a grid.

Trees see whole numbers, the place of a class among the sorted labels or a target in quanta of its
grid; both are functions of the live records alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import Fields, classes, grid
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import Attachment
from erasable.core.classes import Classes
from erasable.core.grid import Grid
from erasable.core.row_arrays import padded
from erasable.core.tables import Table


class TreeTargets(Protocol):
    """What a kind of target has to be able to do."""

    schema: ClassVar[Fields]
    """What `state` returns, in a file."""

    @classmethod
    def fit(cls, held: Attachment, settings: Mapping[str, Any]) -> Self:
        """Read the targets of the live records; `settings` are the parameters of the model."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any], settings: Mapping[str, Any]) -> Self:
        """Restore what `state` returned, but none of the records."""

    @property
    def n_stats(self) -> int:
        """Numbers that a leaf holds."""

    @property
    def quantum(self) -> float:
        """How much 1 of `values` stands for."""

    @property
    def class_weight(self) -> Floats:
        """Factor of each class; empty where there are none."""

    def values(self, n_rows: int) -> Ints:
        """Return the targets as trees see them; anything for rows that are not live."""

    def of(self, rows: Ints) -> Ints:
        """Return the targets of live rows as trees see them."""

    def add(self, held: Attachment, rows: Ints) -> bool:
        """Take rows in, live now; true if trees see those of others otherwise."""

    def remove(self, held: Attachment, rows: Ints) -> bool:
        """Forget rows that are no longer live; true if trees see those of others otherwise."""

    def kept(self) -> NDArray[np.bool_] | None:
        """Return which classes the last deletion has left, or None if all of them."""

    def state(self) -> dict[str, Any]:
        """Return what is not derivable."""


@dataclass(eq=False, slots=True)
class ClassTargets:
    """Classes, and what each weighs."""

    schema: ClassVar[Fields] = Fields({"classes": classes()})
    classes: Classes  # without codes where the records are not at hand
    given: Any  # the parameter `class_weight`
    _kept: NDArray[np.bool_] | None = None

    @classmethod
    def fit(cls, held: Attachment, settings: Mapping[str, Any]) -> Self:
        """See `TreeTargets`."""
        assert held.records.y is not None
        return cls(Classes.fit(held.records.y, held.live_rows()), settings["class_weight"])

    @classmethod
    def from_state(cls, state: Mapping[str, Any], settings: Mapping[str, Any]) -> Self:
        """See `TreeTargets`."""
        found, none = state["classes"], np.empty(0, dtype=np.int32)
        known = Classes(found["labels"], found["counts"], none, False)
        return cls(known, settings["class_weight"])

    @property
    def n_stats(self) -> int:
        """Number of classes."""
        return int(self.classes.labels.size)

    @property
    def quantum(self) -> float:
        """Ints32 have no unit."""
        return 1.0

    @property
    def class_weight(self) -> Floats:
        """Factor of each class; empty where there are none."""
        labels, counts = self.classes.labels, self.classes.counts
        if self.given is None:
            return np.empty(0)
        if isinstance(self.given, str):
            balanced: Floats = counts.sum() / (labels.size * counts.astype(np.float64))
            return balanced
        return np.array([float(self.given.get(label, 1.0)) for label in labels.tolist()])

    def values(self, n_rows: int) -> Ints:
        """Return the class of every row."""
        return np.maximum(self.classes.codes, 0).astype(np.int64)

    def of(self, rows: Ints) -> Ints:
        """Return the classes of live rows."""
        return self.classes.codes[rows].astype(np.int64)

    def add(self, held: Attachment, rows: Ints) -> bool:
        """Take rows in; a class may be new, and balanced weights change with every row."""
        assert held.records.y is not None
        return not self.classes.add(held.records.y, rows) or isinstance(self.given, str)

    def remove(self, held: Attachment, rows: Ints) -> bool:
        """Forget rows; balanced weights change with every one of them."""
        self._kept = self.classes.remove(rows)
        return isinstance(self.given, str)

    def kept(self) -> NDArray[np.bool_] | None:
        """Return which classes the last deletion has left, or None if all of them."""
        return self._kept

    def state(self) -> dict[str, Any]:
        """Return the labels and how many records have each."""
        return {"classes": {"labels": self.classes.labels, "counts": self.classes.counts}}

    def shares(self, leaves: Ints) -> Floats:
        """Turn the weights in leaves into probabilities."""
        weights = leaves * self.class_weight if self.given is not None else leaves * 1.0
        totals = weights.sum(axis=1, keepdims=True)
        # Where all classes of a leaf have the weight 0, the records count as they are.
        lost = totals[:, 0] == 0.0
        weights[lost] = leaves[lost]
        totals[lost] = leaves[lost].sum(axis=1, keepdims=True)
        shares: Floats = weights / totals
        return shares


@dataclass(eq=False, slots=True)
class NumberTargets:
    """Numbers, rounded to a grid once."""

    schema: ClassVar[Fields] = Fields({"target": grid(1)})
    grid: Grid  # of one column
    # (n_rows,); in quanta above the origin; empty where the records are not at hand
    numbers: Ints

    @classmethod
    def fit(cls, held: Attachment, settings: Mapping[str, Any]) -> Self:
        """See `TreeTargets`."""
        live, column = held.live_rows(), _column(held)
        grid = Grid.fit(column, live, names=["y"])
        numbers = np.zeros(column.shape[0], dtype=np.int64)
        numbers[live] = (grid.apply(column, live) / grid.quantum)[:, 0]
        return cls(grid, numbers)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], settings: Mapping[str, Any]) -> Self:
        """See `TreeTargets`."""
        return cls(Grid.from_state(state["target"]), np.empty(0, dtype=np.int64))

    @property
    def n_stats(self) -> int:
        """A weight and a sum."""
        return 2

    @property
    def quantum(self) -> float:
        """Distance of two neighbours on the grid."""
        return float(self.grid.quantum[0])

    @property
    def class_weight(self) -> Floats:
        """There are none."""
        return np.empty(0)

    def values(self, n_rows: int) -> Ints:
        """Return the targets in quanta."""
        return self.numbers[:n_rows].copy()

    def of(self, rows: Ints) -> Ints:
        """Return the targets of live rows in quanta."""
        return self.numbers[rows]

    def add(self, held: Attachment, rows: Ints) -> bool:
        """Take rows in; tell whether the grid is another."""
        column = _column(held)
        change = self.grid.add(Table(column, held.live_rows), rows)
        self.numbers = padded(self.numbers, column.shape[0])
        self.numbers[rows] = (self.grid.apply(column, rows) / self.grid.quantum)[:, 0]
        return change.exponents

    def remove(self, held: Attachment, rows: Ints) -> bool:
        """Forget rows; tell whether the grid is another."""
        change = self.grid.subtract(Table(_column(held), held.live_rows), rows)
        self.numbers[rows] = 0
        return change.exponents

    def kept(self) -> NDArray[np.bool_] | None:
        """There are no classes."""
        return None

    def state(self) -> dict[str, Any]:
        """Return the grid."""
        return {"target": self.grid.state()}

    def means(self, leaves: Ints) -> Floats:
        """Turn weights and sums in leaves into means."""
        means: Floats = self.grid.origin[0] + leaves[:, 1] / leaves[:, 0] * self.quantum
        return means


def _column(held: Attachment) -> NDArray[np.float64]:
    assert held.records.y is not None
    return np.asarray(held.records.y, dtype=np.float64).reshape(-1, 1)

"""Training classes of a logistic regression: the records used, their classes, and weights.

A record of weight 0 is held and not used; nor is one whose class has the weight 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.attachment import Attachment
from erasable.core.classes import GONE, Classes
from erasable.core.errors import MagnitudeError
from erasable.core.row_arrays import padded

WEIGHTS = 2.0**-480, 2.0**480
"""Least and largest weight, so that no sum, ratio or product of two ever overflows."""


class TrainingClasses:
    """The classes of the live records, and those of them with records of positive weight."""

    def __init__(self, held: Attachment, fixed: Any, class_weight: Any) -> None:
        records = held.records
        assert records.y is not None
        self._held = held
        _refuse_absurd(records.weights, held.live)
        self.classes = Classes.fit(records.y, held.live_rows(), fixed)
        self._given = class_weight
        self._weights: Floats | None = records.weights
        self.used = held.live.copy()  # of each row: is it live, with a positive weight?
        if records.weights is not None:
            self.used &= records.weights > 0
        given = self._given_weights()
        if not given.all():
            self.used &= (given > 0)[self.classes.codes]  # GONE is the last, and not live
        every = self._weights is None and bool(given.all())
        # `counts`: how many used records each class has
        self.counts = self.classes.counts.copy() if every else self._count(self.rows())

    def rows(self) -> Ints:
        """Positions of the records that are used."""
        return np.flatnonzero(self.used)

    def _count(self, rows: Ints) -> Ints:
        codes = self.classes.codes[rows]
        return np.bincount(codes, minlength=self.classes.labels.size).astype(np.int64)

    @property
    def is_weighted(self) -> bool:
        """Whether records may weigh other than 1."""
        return self._weights is not None or self._given is not None

    @property
    def n_used(self) -> int:
        """Number of classes with used records."""
        return int(np.count_nonzero(self.counts))

    @property
    def labels(self) -> list[Any]:
        """Labels of the classes with used records."""
        known: list[Any] = self.classes.labels[self.counts > 0].tolist()
        return known

    def left(self, rows: Ints) -> int:
        """Count the classes that would have used records without some rows."""
        gone = self._count(rows[self.used[rows]])
        return int(np.count_nonzero(self.counts - gone))

    def take_arrays(self) -> None:
        """Refer to the arrays of the records, which have room for others now."""
        n = self._held.records.n_rows
        self._weights = self._held.records.weights
        self.used = padded(self.used, n)
        self.classes.codes = padded(self.classes.codes, n, GONE)

    def add(self, rows: Ints) -> bool:
        """Take live rows in; false, with nothing changed, if one has an unknown class."""
        records = self._held.records
        assert records.y is not None
        _refuse_absurd(records.weights, self._held.live)
        if not self.classes.add(records.y, rows):
            return False
        used = np.ones(rows.size, dtype=np.bool_)
        if records.weights is not None:
            used &= records.weights[rows] > 0
        used &= (self._given_weights() > 0)[self.classes.codes[rows]]
        self.used[rows] = used
        self.counts = self.counts + self._count(rows[used])
        return True

    def remove(self, rows: Ints) -> bool:
        """Forget rows; tell whether there are other classes now."""
        before = self.classes.labels.size, self.n_used
        self.counts = self.counts - self._count(rows[self.used[rows]])
        self.used[rows] = False
        kept = self.classes.remove(rows)
        if kept is not None:
            self.counts = self.counts[kept]
        return before != (self.classes.labels.size, self.n_used)

    def _given_weights(self) -> Floats:
        """Weights of the classes as they are given; 1 where they depend on the records."""
        labels = self.classes.labels.tolist()
        if not isinstance(self._given, Mapping):
            return np.ones(len(labels))
        return np.array([float(self._given.get(label, 1.0)) for label in labels])

    def class_weights(self) -> Floats:
        """Return the weight of each class."""
        given = self._given_weights()
        if self._given == "balanced":
            totals = self._totals()
            used = totals > 0
            given[used] = math.fsum(totals) / (int(used.sum()) * totals[used])
        return given

    def _totals(self) -> Floats:
        if self._weights is None:
            return self.classes.counts.astype(np.float64)
        codes, weights = self.classes.codes, self._weights
        each = [math.fsum(weights[codes == code]) for code in range(self.classes.labels.size)]
        return np.array(each)

    def record_weights(self) -> Floats:
        """Return the weight of every row, 0 for those that are not used."""
        class_weights = self.class_weights()
        weights = self.used.astype(np.float64)
        if self._weights is not None:
            weights *= self._weights
        if not (class_weights == 1.0).all():
            weights *= class_weights[self.classes.codes]
        return weights


def _refuse_absurd(weights: Floats | None, live: Flags) -> None:
    if weights is None:
        return
    absurd = live & (weights > 0) & ((weights < WEIGHTS[0]) | (weights > WEIGHTS[1]))
    if absurd.any():
        raise MagnitudeError(
            f"sample_weight= holds {int(absurd.sum())} weights beyond 2**480 or, but for 0, below "
            "2**-480; sums of such weights overflow; divide all weights by a constant"
        )


def power_near_sum(weights: Floats) -> float:
    """Return a power of two near the sum of weights, the same in any order of these.

    >>> power_near_sum(np.array([1.0, 2.0, 3.0]))
    4.0
    """
    total = float(weights.sum())
    if math.frexp(0.999 * total)[1] != math.frexp(1.001 * total)[1]:
        total = math.fsum(weights)
    return math.ldexp(0.5, math.frexp(total)[1])

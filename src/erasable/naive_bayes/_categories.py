"""Counts of categories by class, whose number follows the records.

The law it keeps: how many categories a column has is a function of the live rows (and of the
least number that was asked for): one more than the highest that is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from erasable.core import _class_kernels as kernels
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.class_moments import LabelledRows
from erasable.core.errors import InvalidDataError, MagnitudeError
from erasable.core.ids import name_some
from erasable.core.passes import Block, Pass, run

MOST_COUNTS = 2**27
"""Most counts there can be: a GiB of them."""


@dataclass(eq=False, slots=True)
class CategoryCounts:
    """How often the categories of every column occur in each class.

    Attributes
    ----------
    least : ndarray of shape (n_features,), int64
        Least number of categories of each column, 1 or more.
    n_categories : ndarray of shape (n_features,), int64
    counts : ndarray of shape (n_classes, n_categories.sum()), int64
        Those of the first column, then those of the next, ...; quanta, where records have weights.
    present : ndarray of shape (n_classes or 1, n_categories.sum()), int64
        How many records have each category; `counts` itself, where these have no weights.
    starts : ndarray of shape (n_features,), int64
        Where those of each column begin.

    Examples
    --------
    >>> rows = np.array([[0.0, 2.0], [1.0, 0.0], [1.0, 1.0]])
    >>> every = np.arange(3)
    >>> from erasable.core.classes import Classes
    >>> classes = Classes.fit(np.array([5, 5, 6]), every)
    >>> table = LabelledRows(rows, classes, lambda: np.flatnonzero(classes.codes >= 0))
    >>> least = np.ones(2, dtype=np.int64)
    >>> counts = CategoryCounts.fit(table, least, survey(rows, every))
    >>> counts.counts.tolist()
    [[1, 1, 1, 0, 1], [0, 1, 0, 1, 0]]
    >>> gone = np.array([0])
    >>> counts.remove(table, gone)
    >>> counts.settle(table, gone)
    1
    >>> counts.n_categories, counts.counts.tolist()
    (array([2, 2]), [[0, 1, 1, 0], [0, 1, 0, 1]])
    """

    least: Ints
    n_categories: Ints
    counts: Ints
    present: Ints
    starts: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Find the columns."""
        self.starts = np.cumsum(self.n_categories) - self.n_categories

    @classmethod
    def fit(cls, table: LabelledRows, least: Ints, largest: Floats) -> Self:
        """Count the live rows, of which `survey` has found the largest categories."""
        n_classes, names = table.classes.labels.size, table.names
        sizes = np.maximum(largest + 1.0, least)
        if n_classes * sizes.sum() > MOST_COUNTS:
            widest = np.argsort(-sizes)[:3].tolist()
            told = name_some(widest if names is None else [str(names[j]) for j in widest])
            raise MagnitudeError(
                f"the categories of {sizes.size} columns (most in {told}) and {n_classes} classes "
                f"make more than {MOST_COUNTS} counts; expected categories numbered 0, 1, ... "
                "without gaps; encode them with OrdinalEncoder"
            )
        n_categories = sizes.astype(np.int64)
        counts = np.zeros((n_classes, int(n_categories.sum())), dtype=np.int64)
        weighted = table.weights is not None
        present = np.zeros((1, counts.shape[1]), dtype=np.int64) if weighted else counts
        made = cls(least, n_categories, counts, present)
        made._add(table, table.live_rows(), 1)
        return made

    def state(self) -> dict[str, Any]:
        """Return the counts and how they belong to columns."""
        state = {"n_categories": self.n_categories, "categories": self.counts}
        return state if self.present is self.counts else {**state, "present": self.present}

    def remove(self, table: LabelledRows, rows: Ints) -> None:
        """Take rows out of the counts."""
        self._add(table, rows, -1)

    def keep(self, kept: Flags) -> None:
        """Drop classes that are gone."""
        self._cut(kept, np.ones(self.counts.shape[1], dtype=np.bool_))

    def settle(self, table: LabelledRows, rows: Ints) -> int:
        """Drop the highest categories that no row has any more; count the columns they are of."""
        starts = self.starts
        highest = self.present[:, starts + self.n_categories - 1]
        shrinking = ~highest.any(axis=0) & (self.n_categories > self.least)
        if not shrinking.any():
            return 0
        occurs: Flags = np.asarray(self.present.any(axis=0))
        n_categories = self.n_categories.copy()
        kept = np.ones(occurs.size, dtype=np.bool_)
        for j in np.flatnonzero(shrinking).tolist():
            end = starts[j] + n_categories[j]
            present = np.flatnonzero(occurs[starts[j] : end])
            n_categories[j] = max(int(self.least[j]), int(present[-1]) + 1 if present.size else 1)
            kept[starts[j] + n_categories[j] : end] = False
        self.n_categories = n_categories
        self._cut(np.ones(self.counts.shape[0], dtype=np.bool_), kept)
        self.starts = np.cumsum(n_categories) - n_categories
        return int(shrinking.sum())

    def arrive(self, table: LabelledRows, rows: Ints) -> int | None:
        """Take rows into the counts; None if one has a category beyond those that there are."""
        if (survey(table.matrix[rows], np.arange(rows.size)) >= self.n_categories).any():
            return None
        self._add(table, rows, 1)
        return 0

    def _cut(self, classes: Flags, categories: Flags) -> None:
        weighted = self.present is not self.counts
        self.counts = self.counts[classes][:, categories]
        self.present = self.present[:, categories] if weighted else self.counts

    def _add(self, table: LabelledRows, rows: Ints, sign: int) -> None:
        table.add(_count, rows, self.counts, self.starts, sign, few=sign < 0)
        if table.weights is not None:
            table.add(_count_all, rows, self.present, self.starts, sign, few=sign < 0)


def _count(
    matrix: Any, own: Ints, codes: Ints32, units: Ints, counts: Ints, starts: Ints, sign: int
) -> None:
    kernels.count_categories(matrix, own, codes, units, starts, sign, counts)


def _count_all(
    matrix: Any, own: Ints, codes: Ints32, units: Ints, present: Ints, starts: Ints, sign: int
) -> None:
    one, once = np.zeros_like(codes), np.ones_like(units)
    kernels.count_categories(matrix, own, one, once, starts, sign, present)


class _Survey(Pass[tuple[Floats, Ints]]):
    """Find the largest category of each column, and count what is no category."""

    def of_block(self, block: Block) -> tuple[Floats, Ints]:
        largest = np.zeros(block.matrix.shape[1])
        wrong = np.zeros((2, largest.size), dtype=np.int64)
        kernels.survey_categories(block.matrix, block.positions, largest, wrong)
        return largest, wrong

    def merge(self, one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
        return np.maximum(one[0], other[0]), one[1] + other[1]


def survey(matrix: Any, rows: Ints) -> Floats:
    """Find the largest category of each column; raise InvalidDataError if a value is no category.

    >>> survey(np.array([[0.0, 2.0], [1.0, 0.0]]), np.arange(2))
    array([1., 2.])
    """
    largest, wrong = run(_Survey(), matrix, rows)
    negative, broken = wrong.sum(axis=1).tolist()
    if negative:
        raise InvalidDataError(
            f"Negative values in data passed to CategoricalNB: {negative} of them; expected "
            "categories numbered 0, 1, ...; encode them with OrdinalEncoder"
        )
    if broken:
        raise InvalidDataError(
            f"X holds {broken} values that are no whole numbers; expected categories numbered "
            "0, 1, ...; encode them with OrdinalEncoder, or cut numbers into classes"
        )
    return largest

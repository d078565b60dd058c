"""Categories of the columns of a stored table, found and counted where its blocks are.

Here is how often each category comes, and nothing for each record: what category a record has that
leaves is read with its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Ints
from erasable.core.passes import Block, Pass, Stored, run
from erasable.preprocessing._categories import UNKNOWN, Categories, distinct, find, has_gap, starts
from erasable.preprocessing._sparse_fills import gaps_in

Counts = list[dict[Any, int]]
"""How often each column has each label; that of gaps is None."""


class StoredCategories(Categories):
    """The categories of live rows of a stored table; `codes` are not kept.

    Parameters
    ----------
    matrix : Stored
    live_rows : ndarray of int64
    fixed : sequence of ndarray, default=None
        The categories of each column, whether records have them or not.
    names : sequence of str, default=None
        Names of the columns, for messages.
    marker : number, str or NaN
        What a gap is marked with, besides NaN.

    Attributes
    ----------
    unknown : ndarray of shape (n_features,), int64
        How many values were none of the fixed categories.
    """

    __slots__ = ("matrix", "unknown")

    def __init__(
        self,
        matrix: Stored,
        live_rows: Ints,
        fixed: Sequence[NDArray[Any]] | None = None,
        names: Sequence[str] | None = None,
        marker: Any = np.nan,
    ) -> None:
        self.matrix = matrix
        if fixed is None:
            counted = run(_Distinct(names, marker, matrix.shape[1]), matrix, live_rows)
            labels = [_labels(column) for column in counted]
            counts = [
                [column[None if label != label else label] for label in known.tolist()]
                for known, column in zip(labels, counted, strict=True)
            ]
            self.unknown = np.zeros(len(labels), dtype=np.int64)
        else:
            labels = list(fixed)
            found = run(_Known(labels), matrix, live_rows)
            counts = [column[:-1].tolist() for column in found]
            self.unknown = np.array([column[-1] for column in found])
        every = np.array([number for column in counts for number in column], dtype=np.int64)
        no_codes = np.empty((0, len(labels)), dtype=np.int32)
        super().__init__(labels, every, starts(labels), no_codes, fixed is not None)

    def codes_of(self, rows: Ints) -> Any:
        """Return the codes of rows, which are read."""
        return _codes(self.labels, self.matrix[rows])

    def remove(self, rows: Ints) -> dict[int, Flags]:
        """See `Categories`."""
        codes = self.codes_of(rows)
        np.subtract.at(self.counts, (codes + self.start[:-1])[codes >= 0], 1)
        return {} if self.fixed or self.counts.all() else self._drop_empty()


class _Distinct(Pass[Counts]):
    """Count the labels of each column."""

    takes_gaps = True

    def __init__(self, names: Sequence[str] | None, marker: Any, n_columns: int) -> None:
        self._names = None if names is None else list(names)
        self._marker, self._n_columns = marker, n_columns

    def of_block(self, block: Block) -> Counts:
        found: Counts = []
        for j in range(self._n_columns):
            column = block.matrix[block.positions, j]
            if self._marker == self._marker:
                column = np.where(gaps_in(column, self._marker), np.nan, column)
            labels, codes = distinct(column, j if self._names is None else self._names[j])
            counts = np.bincount(codes, minlength=labels.size).tolist()
            keys = [None if label != label else label for label in labels.tolist()]
            found.append(dict(zip(keys, counts, strict=True)))
        return found

    def merge(self, one: Counts, other: Counts) -> Counts:
        for mine, theirs in zip(one, other, strict=True):
            for label, number in theirs.items():
                mine[label] = mine.get(label, 0) + number
        return one


class _Known(Pass[list[Ints]]):
    """Count the labels of each column that are known, and all others."""

    takes_gaps = True

    def __init__(self, labels: list[NDArray[Any]]) -> None:
        self._labels = labels

    def of_block(self, block: Block) -> list[Ints]:
        found = []
        for j, labels in enumerate(self._labels):
            codes = find(labels, block.matrix[block.positions, j])
            places = np.where(codes == UNKNOWN, labels.size, codes)
            found.append(np.bincount(places, minlength=labels.size + 1).astype(np.int64))
        return found

    def merge(self, one: list[Ints], other: list[Ints]) -> list[Ints]:
        return [mine + theirs for mine, theirs in zip(one, other, strict=True)]


def _labels(counts: dict[Any, int]) -> NDArray[Any]:
    """Return the labels of a column in their order, a gap last."""
    known = sorted(label for label in counts if label is not None)
    gap = [np.nan] if None in counts else []
    if known and isinstance(known[0], str):
        made: NDArray[Any] = np.array([*known, *gap, None], dtype=object)[:-1].copy()
        return made
    return np.array([*known, *gap], dtype=np.float64)


def _codes(labels: Sequence[NDArray[Any]], matrix: Any) -> Any:
    codes = np.zeros(matrix.shape, dtype=np.int32, order="F")
    for j, known in enumerate(labels):
        codes[:, j] = find(known, matrix[:, j])
    return codes


class StoredModes:
    """The most frequent value of each column of a stored table; see `Modes`."""

    def __init__(
        self, matrix: Stored, live_rows: Ints, marker: Any, names: Any, *, objects: bool
    ) -> None:
        self._categories = StoredCategories(matrix, live_rows, None, names, marker)
        self._objects, self._marker = objects, marker

    def remove(self, matrix: Any, rows: Ints, live_rows: Any) -> int:
        """See `Fill`."""
        categories = self._categories
        values = matrix[rows]
        codes = _codes(categories.labels, values)
        for j in range(codes.shape[1] if self._marker == self._marker else 0):
            gaps = gaps_in(values[:, j], self._marker)
            codes[gaps, j] = categories.labels[j].size - 1  # a gap is the last
        np.subtract.at(categories.counts, codes + categories.start[:-1], 1)
        if not categories.counts.all():
            categories._drop_empty()
        return 0

    def statistics(self) -> NDArray[Any]:
        """See `Fill`."""
        d = len(self._categories.labels)
        modes: NDArray[Any] = np.zeros(d, dtype=object if self._objects else np.float64)
        for j, labels in enumerate(self._categories.labels):
            counts = self._categories.count(j)
            if has_gap(labels):
                labels, counts = labels[:-1], counts[:-1]
            modes[j] = labels[[np.argmax(counts)]].tolist()[0] if counts.any() else np.nan
        return modes

    def state(self) -> dict[str, Any]:
        """See `Fill`."""
        return {"statistics": self.statistics()}

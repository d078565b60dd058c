"""Categories of columns, how many live records have each, and which one each record has.

The law kept here: the categories are a function of the live records alone, unless the user has
fixed them. A category whose last record goes disappears.

A column holds text, or numbers, and besides gaps, which are a category of their own, the last.
Numbers are read as floats, in a table of objects as in one of numbers: 1, 1.0 and True are one
category.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Ints, Ints32, of_objects
from erasable.core.errors import InvalidTypeError, MagnitudeError

GONE, UNKNOWN = -1, -2
"""Codes of a record that is not live, and of a value that is none of the categories."""


@dataclass(eq=False, slots=True)
class Categories:
    """Labels of each column's categories, their counts, and the code of each record in each.

    Attributes
    ----------
    labels : list of ndarray of shape (n_categories,), float64, or object where they are text
        Sorted, a gap (NaN) last; or as the user has fixed them.
    counts : ndarray of shape (n_categories of all columns,), int64
        How many live records have each; 0 is possible only where the labels are fixed.
    start : ndarray of shape (n_features + 1,), int64
        Where the categories of each column begin in `counts`.
    codes : ndarray of shape (n_rows, n_features), int32
        Position of each record's category in the column's labels, `GONE` or `UNKNOWN`.
    fixed : bool
        Whether the user has said which categories there are.

    Examples
    --------
    >>> table = np.array([["a", 1], ["b", 2], ["a", 3]], dtype=object)
    >>> categories = Categories.fit(table, np.arange(3))
    >>> [labels.tolist() for labels in categories.labels], categories.counts
    ([['a', 'b'], [1.0, 2.0, 3.0]], array([2, 1, 1, 1, 1]))
    >>> categories.remove(np.array([1]))
    {0: array([ True, False]), 1: array([ True, False,  True])}
    >>> [labels.tolist() for labels in categories.labels]
    [['a'], [1.0, 3.0]]
    """

    labels: list[NDArray[Any]]
    counts: Ints
    start: Ints
    codes: Ints32
    fixed: bool

    @classmethod
    def fit(
        cls,
        matrix: NDArray[Any],
        live_rows: Ints,
        fixed: Sequence[NDArray[Any]] | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Find the categories of the live rows, which are distinct.

        `fixed` are the categories of each column, also those that no record has. Raise
        InvalidTypeError for a column of text and numbers, MagnitudeError for a whole number that is
        no float.
        """
        n_features = matrix.shape[1]
        whole = live_rows.size == matrix.shape[0]
        codes = np.full(matrix.shape, GONE, dtype=np.int32, order="F")
        labels: list[NDArray[Any]] = []
        counts: list[Ints] = []
        for j in range(n_features):
            column = matrix[:, j] if whole else matrix[live_rows, j]
            if fixed is not None:
                found, known = find(fixed[j], column), fixed[j]
            else:
                known, found = distinct(column, j if names is None else names[j])
            labels.append(known)
            codes[live_rows, j] = found
            counts.append(np.bincount(found[found >= 0], minlength=known.size))
        every = np.concatenate(counts).astype(np.int64)
        return cls(labels, every, starts(labels), codes, fixed is not None)

    def count(self, column: int) -> Ints:
        """Return how many live records have each category of a column; a view."""
        return self.counts[self.start[column] : self.start[column + 1]]

    def add(self, table: NDArray[Any], rows: Ints, n_rows: int) -> dict[int, Flags] | None:
        """Take rows in, which were not live before; there are `n_rows` rows now.

        Return, for each column with new categories, which of those it has now are new. Return None
        where a column holds values of another kind: fit again.
        """
        if self.codes.shape[0] < n_rows:
            codes = np.full((n_rows + n_rows // 8, len(self.labels)), GONE, np.int32, order="F")
            codes[: self.codes.shape[0]] = self.codes
            self.codes = codes
        if rows.size == 1 and (codes_of_row := self._known(table)) is not None:
            self.codes[rows] = codes_of_row
            self.counts[self.start[:-1] + codes_of_row] += 1
            return {}
        gained: dict[int, Flags] = {}
        for j, labels in enumerate(self.labels):
            found = find(labels, table[:, j])
            strange = table[found == UNKNOWN, j]
            if strange.size and not self.fixed:
                joined = _joined(labels, strange)
                if joined is None:
                    return None
                gained[j] = self._insert(j, joined)
                found = find(self.labels[j], table[:, j])
            self.codes[rows, j] = found
            known = found[found >= 0]
            self.count(j)[:] += np.bincount(known, minlength=self.labels[j].size)
        return gained

    def _known(self, table: NDArray[Any]) -> Ints32 | None:
        """Return the codes of a row of numbers, if all are known: what `find` does, sooner."""
        if table.dtype == object:
            return None
        codes = np.empty(len(self.labels), dtype=np.int32)
        for j, (labels, value) in enumerate(zip(self.labels, table[0].tolist(), strict=True)):
            if labels.dtype == object:
                return None
            place = labels.searchsorted(value)
            if place == labels.size or labels[place] != value:
                return None
            codes[j] = place
        return codes

    def _insert(self, j: int, labels: NDArray[Any]) -> Flags:
        """Have more labels in a column; return which are new."""
        place = find(labels, self.labels[j])
        new = np.ones(labels.size, dtype=np.bool_)
        new[place] = False
        counts = np.zeros(labels.size, dtype=np.int64)
        counts[place] = self.count(j)
        first, after = self.start[j], self.start[j + 1]
        self.counts = np.concatenate([self.counts[:first], counts, self.counts[after:]])
        self.codes[:, j] = np.append(place, [UNKNOWN, GONE]).astype(np.int32)[self.codes[:, j]]
        self.labels[j] = labels
        self.start = starts(self.labels)
        return new

    def remove(self, rows: Ints) -> dict[int, Flags]:
        """Forget distinct live rows; return which categories are left, where a column lost some."""
        codes = self.codes[rows]
        np.subtract.at(self.counts, (codes + self.start[:-1])[codes >= 0], 1)
        self.codes[rows] = GONE
        return {} if self.fixed or self.counts.all() else self._drop_empty()

    def _drop_empty(self) -> dict[int, Flags]:
        empty = np.flatnonzero(self.counts == 0)
        lost: dict[int, Flags] = {}
        for j in np.unique(np.searchsorted(self.start, empty, side="right") - 1).tolist():
            kept = self.count(j) > 0
            place = np.full(kept.size + 1, GONE, dtype=np.int32)  # the last one is the code GONE
            place[:-1][kept] = np.arange(int(kept.sum()))
            if len(self.codes):
                self.codes[:, j] = place[self.codes[:, j]]
            labels = self.labels[j][kept]
            only_gaps = labels.size == 1 and has_gap(labels)
            self.labels[j] = labels.astype(np.float64) if only_gaps else labels
            lost[j] = kept
        self.counts = self.counts[self.counts > 0]
        self.start = starts(self.labels)
        return lost


def find(labels: NDArray[Any], column: NDArray[Any]) -> Ints32:
    """Return the position of each value of a column among labels, or `UNKNOWN`.

    >>> find(np.array([1.0, 2.0, np.nan]), np.array([2.0, np.nan, 7.0]))
    array([ 1,  2, -2], dtype=int32)
    >>> find(np.array([1.0, 2.0]), np.array([True, "a", 2], dtype=object))
    array([ 0, -2,  1], dtype=int32)
    """
    if labels.dtype != object:
        values, strange = column, np.zeros(column.shape, dtype=np.bool_)
        if column.dtype == object:
            others = [type(cell) is str or _is_no_float(cell) for cell in column.tolist()]
            strange = np.array(others, dtype=np.bool_)
            values = np.where(strange, 0.0, column).astype(np.float64)
        places = np.searchsorted(labels, values)
        places[places == labels.size] = 0
        same = labels[places] == values if labels.size else np.zeros(values.shape, dtype=np.bool_)
        if has_gap(labels):
            same |= np.isnan(values)
            places[np.isnan(values)] = labels.size - 1
        return np.where(same & ~strange, places, UNKNOWN).astype(np.int32)
    cells = column.tolist()
    place = {label: code for code, label in enumerate(labels.tolist())}
    codes = np.fromiter(map(place.get, cells, repeat(UNKNOWN)), np.int32, len(cells))
    if has_gap(labels):
        for at in np.flatnonzero(codes == UNKNOWN).tolist():
            if cells[at] != cells[at]:
                codes[at] = labels.size - 1
    return codes


def _joined(labels: NDArray[Any], strange: NDArray[Any]) -> NDArray[Any] | None:
    """Return labels with those of other values; None where they are of another kind."""
    cells = strange.tolist()
    texts = {cell for cell in cells if type(cell) is str}
    gaps = [cell for cell in cells if cell != cell]
    if labels.dtype == object:
        known = labels[:-1].tolist() if has_gap(labels) else labels.tolist()
        if any(type(cell) is not str and cell == cell for cell in cells):
            return None
        tail = [np.nan] if gaps or has_gap(labels) else []
        return of_objects([*sorted({*known, *texts}), *tail])
    if texts or any(map(_is_no_float, cells)):
        return None
    joined = np.unique(np.append(labels, strange.astype(np.float64)))
    joined[np.isnan(joined)] = np.nan
    return joined


def has_gap(labels: NDArray[Any]) -> bool:
    """Tell whether the last of the labels is a gap."""
    return bool(labels.size and labels[-1] != labels[-1])


def name_of(label: Any) -> str:
    """Write a label as part of a column's name; whole numbers without a point.

    >>> name_of(3.0), name_of("blue"), name_of(np.nan)
    ('3', 'blue', 'nan')
    """
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def starts(labels: Iterable[NDArray[Any]]) -> Ints:
    """Return where the categories of each column begin, and their number."""
    return np.cumsum([0, *(known.size for known in labels)], dtype=np.int64)


def distinct(column: NDArray[Any], name: int | str) -> tuple[NDArray[Any], Ints32]:
    """Return the labels of a column, and the code of each of its values."""
    if column.dtype == object:
        cells = column.tolist()
        # The code of a text is how many others came before its first.
        place: defaultdict[Any, int] = defaultdict(count().__next__)
        codes = np.fromiter(map(place.__getitem__, cells), np.int32, len(cells))
        texts = sorted(value for value in place if type(value) is str)
        if texts:
            gaps = [value for value in place if value != value]
            if len(texts) + len(gaps) < len(place):
                raise _mixed(cells, name)
            labels = np.array([*texts, *[np.nan] * bool(gaps), None], dtype=object)[:-1].copy()
            order = np.full(len(place), len(texts), dtype=np.int32)
            order[[place[text] for text in texts]] = np.arange(len(texts))
            return labels, order[codes]
        if any(map(_is_no_float, place)):
            raise MagnitudeError(
                f"column {name!r} holds whole numbers beyond 2**53 that no float has; expected "
                "numbers that can be told apart; make text of them, or floats"
            )
        column = column.astype(np.float64)
    labels = np.unique(column).astype(np.float64)
    labels[np.isnan(labels)] = np.nan  # whatever bits it came with
    return labels, find(labels, column)


def _is_no_float(cell: Any) -> bool:
    """Tell whether a cell is a whole number that no float has: another may be read as the same."""
    return type(cell) is int and (cell.bit_length() > 1023 or int(float(cell)) != cell)


def _mixed(cells: list[Any], name: int | str) -> InvalidTypeError:
    texts = sum(type(cell) is str for cell in cells)
    numbers = sum(type(cell) is not str and cell == cell for cell in cells)
    return InvalidTypeError(
        f"column {name!r} holds text in {texts} records and numbers in {numbers}; Encoders require "
        "their input argument must be uniformly strings or numbers; convert its values to one of "
        "the two"
    )

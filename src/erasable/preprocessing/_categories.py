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
from erasable.core.errors import InvalidInputError, InvalidTypeError, MagnitudeError
from erasable.core.passes import Block, Pass, Stored, run
from erasable.core.tables import Table
from erasable.preprocessing._sparse_fills import gaps_in

GONE, UNKNOWN = -1, -2
"""Codes of a record that is not live, and of a value outside the categories."""


@dataclass(eq=False, slots=True)
class Categories:
    """Labels of each column's categories, their counts, and the code of each record in each."""

    # of each column: float64, or object for text; sorted, a gap (NaN) last; or as fixed
    labels: list[NDArray[Any]]
    counts: Ints  # live records of each, column after column; 0 only where labels are fixed
    start: Ints  # where the categories of each column begin in `counts`, n_features + 1
    codes: Ints32  # place of each record's category in its column's labels, `GONE` or `UNKNOWN`
    fixed: bool  # has the user said which categories there are?

    @classmethod
    def fit(
        cls,
        matrix: NDArray[Any],
        live_rows: Ints,
        fixed: Sequence[NDArray[Any]] | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Find the categories of the live rows, which are distinct, or count the `fixed` ones.

        Raise InvalidTypeError for a column of text and numbers, MagnitudeError for a whole number
        that is no float.
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
        """Take live rows in; there are `n_rows` rows now.

        Return which categories are new, for each column with new ones; None where a column holds
        values of another kind: fit again.
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
    """Return the position of each value of a column among labels, or `UNKNOWN`."""
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
    """Write a label as part of a column's name; whole numbers without a point."""
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
    labels[np.isnan(labels)] = np.nan  # with the same bits everywhere
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


def plain(value: Any) -> Any:
    """Turn a value that a user has named into what a table of objects would hold."""
    if isinstance(value, np.generic):
        value = value.item()
    gap = value is None or type(value).__name__ == "NAType"
    gap = gap or (isinstance(value, float) and value != value)
    return np.nan if gap else value


def fixed_labels(
    categories: Sequence[Any], matrix: NDArray[Any], names: list[str]
) -> list[NDArray[Any]]:
    """Read the categories of each column, as float64, or as objects if they are text.

    Raise InvalidInputError if there is not one list for each column, or if one is empty, repeats
    itself, has a gap elsewhere than at its end, or has numbers that are not sorted.
    """
    if len(categories) != matrix.shape[1]:
        raise InvalidInputError(
            "Shape mismatch: if categories is an array, it has to be of shape (n_features,); got "
            f"{len(categories)} lists for {matrix.shape[1]} columns; pass one for each column"
        )
    return [
        _read(given, matrix.dtype == object, f"categories of column {name!r}")
        for given, name in zip(categories, names, strict=True)
    ]


def _read(given: Any, objects: bool, what: str) -> NDArray[Any]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise InvalidInputError(
            f"the {what} are a {type(given).__name__}; expected a list; name every category once"
        )
    values = [plain(value) for value in given]
    odd = [value for value in values if not _is_value(value)]
    texts = [value for value in values if isinstance(value, str)]
    numbers = len(values) - len(texts) - sum(value != value for value in values)
    if not values or odd or (texts and (numbers or not objects)):
        expected = "text or numbers" if objects else "numbers, as those of the records are"
        raise InvalidInputError(
            f"the {what} are {len(values)} values, {len(texts)} of them text and {len(odd)} of "
            f"other types; expected {expected}; name every category once"
        )
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    if not texts:
        labels = labels.astype(np.float64)
    inner = labels[:-1] if has_gap(labels) else labels
    if (inner != inner).any():
        raise InvalidInputError(
            f"Nan should be the last element in user provided categories: it is not in the {what}; "
            "expected a gap once, at the end; move it there"
        )
    repeats = inner.size - len(set(inner.tolist()))
    if repeats:
        raise InvalidInputError(
            f"the {what}: the predefined categories contain duplicate elements ({repeats}); "
            "expected each once; leave out the repeats"
        )
    if not texts and (np.diff(inner) < 0).any():
        raise InvalidInputError(
            f"Unsorted categories are not supported for numerical categories: the {what} do not "
            "ascend; expected ascending numbers; sort them"
        )
    return labels


def _is_value(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= 1023  # of the numbers that a float reaches
    return isinstance(value, str | float) and value not in (np.inf, -np.inf)


Counts = list[dict[Any, int]]
"""Counts of labels, by column; the label of gaps is None."""


class StoredCategories(Categories):
    """The categories of live rows of a stored table; `codes` are not kept.

    `marker` marks gaps, besides NaN.
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

    def __init__(self, table: Table, marker: Any, *, objects: bool) -> None:
        self._categories = StoredCategories(
            table.matrix, table.live_rows(), None, table.names, marker
        )
        self._objects, self._marker = objects, marker

    def add(self, table: Table, rows: Ints) -> None:
        """See `Fill`; return None: learn again."""

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Fill`."""
        categories = self._categories
        values = table.matrix[rows]
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

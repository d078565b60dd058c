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
from dataclasses import dataclass, field
from itertools import count, repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Ints, Ints32
from erasable.core.changes import Delta
from erasable.core.errors import InvalidInputError, InvalidTypeError, MagnitudeError
from erasable.core.passes import Block, Pass
from erasable.core.summaries import Mergeable, Summary
from erasable.core.tables import Table
from erasable.preprocessing._sparse_fills import gaps_in

GONE, UNKNOWN = -1, -2
"""Codes of a record that is not live, and of a value outside the categories."""


@dataclass(eq=False, slots=True)
class Categories(Mergeable):
    """Labels of each column's categories, their counts, and the code of each record in each."""

    # of each column: float64, or object for text; sorted, a gap (NaN) last; or as fixed
    labels: list[NDArray[Any]]
    counts: Ints  # live records of each, column after column; 0 only where labels are fixed
    start: Ints  # where the categories of each column begin in `counts`, n_features + 1
    # place of each record's category in its column's labels, `GONE` or `UNKNOWN`; None where
    # records are stored
    codes: Ints32 | None
    fixed: bool  # has the user said which categories there are?
    marker: Any  # marks gaps, besides NaN
    # of columns whose labels the last change has changed: the former place of each, or `UNKNOWN`
    moved: dict[int, Ints] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, table: Table, fixed: Sequence[NDArray[Any]] | None = None, marker: Any = np.nan
    ) -> Categories:
        """Find the categories of the rows that count, or count the `fixed` ones.

        Raise InvalidTypeError for a column of text and numbers, MagnitudeError for a whole number
        that is no float.
        """
        counting = _Counting(fixed, marker, table.names)
        if table.is_stored:
            return table.run(counting)
        rows, shape = table.live_rows(), table.matrix.shape
        codes = np.full(shape, GONE, dtype=np.int32, order="F")
        return counting.of_rows(table.matrix, None if rows.size == shape[0] else rows, codes)

    def count(self, column: int) -> Ints:
        """Return how many live records have each category of a column; a view."""
        return self.counts[self.start[column] : self.start[column + 1]]

    def known(self) -> Ints:
        """Return how many live records have one of the categories of each column."""
        known: Ints = np.diff(np.append(0, np.cumsum(self.counts))[self.start])
        return known

    def update(self, table: Table, delta: Delta) -> int | None:
        """See `Summary`; `moved` says what it has changed in all."""
        self.moved = {}
        return Summary.update(self, table, delta)  # slots take `super` away

    def _note(self, j: int, former: Ints) -> None:
        """Note the former positions of the labels of a column, UNKNOWN for new ones."""
        if (before := self.moved.get(j)) is not None:
            former = np.append(before, [UNKNOWN, UNKNOWN])[former]  # UNKNOWN is -2
        self.moved[j] = former

    def add(self, table: Table, rows: Ints) -> int | None:
        """See `Summary`; None where a column has values of another kind."""
        near, places = table.in_memory(rows)
        n_rows = table.matrix.shape[0]
        if self.codes is not None and self.codes.shape[0] < n_rows:
            codes = np.full((n_rows + n_rows // 8, len(self.labels)), GONE, np.int32, order="F")
            codes[: self.codes.shape[0]] = self.codes
            self.codes = codes
        if rows.size == 1 and (codes_of_row := self._known(near, places)) is not None:
            if self.codes is not None:
                self.codes[rows] = codes_of_row
            self.counts[self.start[:-1] + codes_of_row] += 1
            return 0
        for j in range(len(self.labels)):
            values = seen(near[places, j], self.marker)
            found = find(self.labels[j], values)
            strange = values[found == UNKNOWN]
            if strange.size and not self.fixed:
                if not self._admit(j, strange):
                    return None
                found = find(self.labels[j], values)
            if self.codes is not None:
                self.codes[rows, j] = found
            self.count(j)[:] += np.bincount(found[found >= 0], minlength=self.labels[j].size)
        return 0

    def merge(self, other: Self) -> None:
        """See `Mergeable`; codes are read from then on."""
        self.codes = None
        for j, labels in enumerate(other.labels):
            places = self._insert(j, labels) if not self.fixed else slice(None)
            if places is None:
                raise InvalidTypeError(f"column {j} holds text and numbers; expected one of them")
            self.count(j)[places] += other.count(j)

    def _known(self, matrix: Any, rows: Ints) -> Ints32 | None:
        """Return the codes of a row of numbers, if all are known: what `find` does, sooner."""
        if matrix.dtype == object:
            return None
        codes = np.empty(len(self.labels), dtype=np.int32)
        values = seen(matrix[rows[0]], self.marker).tolist()
        for j, (labels, value) in enumerate(zip(self.labels, values, strict=True)):
            if labels.dtype == object:
                return None
            place = labels.searchsorted(value)
            if place == labels.size or labels[place] != value:
                return None
            codes[j] = place
        return codes

    def _admit(self, j: int, values: NDArray[Any]) -> bool:
        """Make labels of values; return False where they are of another kind."""
        try:
            return self._insert(j, distinct(values, j)[0]) is not None
        except (InvalidTypeError, MagnitudeError):
            return False

    def _insert(self, j: int, labels: NDArray[Any]) -> Ints | None:
        """Insert sorted labels into those of a column; return the places of all of them.

        None, and nothing is inserted, where some are text and others numbers.
        """
        mine = self.labels[j]
        own, others = mine[: mine.size - has_gap(mine)], labels[: labels.size - has_gap(labels)]
        if own.size and others.size and own.dtype != others.dtype:
            return None
        if not own.size:
            own = others[:0]
        at = np.searchsorted(own, others) if others.size else np.empty(0, dtype=np.int64)
        new = at == own.size
        new[~new] = own[at[~new]] != others[~new]
        places: Ints = at + np.cumsum(new) - new
        if has_gap(labels):
            places = np.append(places, own.size + np.count_nonzero(new))
        gaps = has_gap(mine) or has_gap(labels)
        if not new.any() and gaps == has_gap(mine):
            return places
        joined = np.insert(own, at[new], others[new])
        self.labels[j] = np.append(joined, np.nan) if gaps else joined
        was = np.arange(mine.size)
        was += np.searchsorted(at[new], was, side="right")
        size = self.labels[j].size
        counts, former = np.zeros(size, dtype=np.int64), np.full(size, UNKNOWN)
        counts[was], former[was] = self.count(j), np.arange(mine.size)
        first, after = self.start[j], self.start[j + 1]
        self.counts = np.concatenate([self.counts[:first], counts, self.counts[after:]])
        if self.codes is not None:
            was = np.append(was, [UNKNOWN, GONE]).astype(np.int32)
            self.codes[:, j] = was[self.codes[:, j]]
        self._note(j, former)
        self.start = starts(self.labels)
        return places

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`; categories go with their last rows."""
        codes = self._codes_of(table, rows)
        places = codes + self.start[:-1]
        np.subtract.at(self.counts, places[codes >= 0] if self.fixed else places, 1)
        if self.codes is not None:
            self.codes[rows] = GONE
        if not (self.fixed or self.counts.all()):
            self._drop_empty()
        return 0

    def _codes_of(self, table: Table, rows: Ints) -> Ints32:
        """Return the codes of rows that are in it; those of stored records are read."""
        if self.codes is not None:
            return self.codes[rows]
        near, places = table.in_memory(rows)
        found = [
            find(labels, seen(near[places, j], self.marker)) for j, labels in enumerate(self.labels)
        ]
        return np.stack(found, axis=1)

    def state(self) -> dict[str, Any]:
        """See `Summary`."""
        return state_of(self.labels, self.counts)

    def _drop_empty(self) -> None:
        empty = np.flatnonzero(self.counts == 0)
        for j in np.unique(np.searchsorted(self.start, empty, side="right") - 1).tolist():
            kept = self.count(j) > 0
            if self.codes is not None:
                place = np.full(kept.size + 1, GONE, dtype=np.int32)  # the last: the code GONE
                place[:-1][kept] = np.arange(int(kept.sum()))
                self.codes[:, j] = place[self.codes[:, j]]
            self._note(j, np.flatnonzero(kept))
            labels = self.labels[j][kept]
            only_gaps = labels.size == 1 and has_gap(labels)
            self.labels[j] = labels.astype(np.float64) if only_gaps else labels
        self.counts = self.counts[self.counts > 0]
        self.start = starts(self.labels)


class _Counting(Pass[Categories]):
    """Count the categories of each column: those that there are, or `fixed` ones."""

    takes_gaps = True

    def __init__(
        self, fixed: Sequence[NDArray[Any]] | None, marker: Any, names: Sequence[str] | None
    ) -> None:
        self._fixed = None if fixed is None else list(fixed)
        self._marker, self._names = marker, None if names is None else list(names)

    def of_rows(self, matrix: Any, rows: Ints | None, codes: Ints32 | None = None) -> Categories:
        """Count rows, by default all, and write their codes."""
        labels: list[NDArray[Any]] = []
        counts: list[Ints] = []
        chosen = slice(None) if rows is None else rows
        for j in range(matrix.shape[1]):
            column = seen(matrix[chosen, j], self._marker)
            if self._fixed is not None:
                found, known = find(self._fixed[j], column), self._fixed[j]
            else:
                known, found = distinct(column, j if self._names is None else self._names[j])
            labels.append(known)
            if codes is not None:
                codes[chosen, j] = found
            counts.append(np.bincount(found[found >= 0], minlength=known.size))
        every, fixed = np.concatenate(counts).astype(np.int64), self._fixed is not None
        return Categories(labels, every, starts(labels), codes, fixed, self._marker)

    def of_block(self, block: Block) -> Categories:
        return self.of_rows(block.matrix, None if block.every else block.rows)

    def merge(self, one: Categories, other: Categories) -> Categories:
        one.merge(other)
        return one


def state_of(labels: list[NDArray[Any]], counts: Ints) -> dict[str, Any]:
    """Return what a model keeps of categories."""
    return {
        "categories": np.concatenate(labels),
        "counts": counts,
        "is_text": np.array([known.dtype == object for known in labels]),
        "sizes": np.array([known.size for known in labels], dtype=np.int64),
    }


def seen(values: NDArray[Any], marker: Any) -> NDArray[Any]:
    """Return values with NaN for those that equal the marker of gaps."""
    return values if marker != marker else np.where(gaps_in(values, marker), np.nan, values)


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
    categories: Sequence[Any], names: list[str], *, objects: bool
) -> list[NDArray[Any]]:
    """Read the categories of each column, as float64, or as objects if they are text.

    Raise InvalidInputError if there is not one list for each column, or if one is empty, repeats
    itself, has a gap elsewhere than at its end, or has numbers that are not sorted.
    """
    if len(categories) != len(names):
        raise InvalidInputError(
            "Shape mismatch: if categories is an array, it has to be of shape (n_features,); got "
            f"{len(categories)} lists for {len(names)} columns; pass one for each column"
        )
    return [
        _read(given, objects, f"categories of column {name!r}")
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

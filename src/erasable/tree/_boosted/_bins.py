"""The features of records as codes between edges.

The edges of a feature are the distinct values with the lowest hashes among the records that trees
learn from; all values, if there are no more than edges. Codes follow from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints, Words
from erasable.core.errors import InvalidDataError
from erasable.core.ids import shorten
from erasable.core.passes import Block, Pass, run
from erasable.core.row_arrays import PerLiveRow, Written, padded
from erasable.core.tape import Tape
from erasable.tree._boosted._bin_kernels import (
    copy_columns,
    find_codes,
    find_edges,
    gain,
    hash_edges,
    lose,
)
from erasable.tree._boosted._layout import Bins

_TOGETHER = 8
_NOT_COUNTED: Ints = np.empty(0, dtype=np.int64)


class Features(NamedTuple):
    """What the columns of a table are, and how their cells are read as numbers.

    >>> features = Features(["dose", "city"], np.array([False, True]))
    >>> features.numbers(np.array([["0.5", "7"], [2, np.nan]], dtype=object))
    array([[0.5, 7. ],
           [2. , nan]])
    """

    names: list[Any]
    categorical: Flags  # (n_features,)

    def numbers(self, table: Any) -> Floats:
        """Read an ndarray or `Mixed` of all columns."""
        if isinstance(table, np.ndarray) and table.dtype != object:
            return np.ascontiguousarray(table, dtype=np.float64)
        columns = [self.column(table[:, f], f) for f in range(len(self.names))]
        return np.ascontiguousarray(np.column_stack(columns))

    def column(self, column: NDArray[Any], feature: int) -> Floats:
        """Read a column, each cell on its own."""
        if column.dtype != object:
            return column.astype(np.float64)
        if self.categorical[feature]:
            cells = column.tolist()
            known = {cell: _category(cell) for cell in set(cells)}
            return np.fromiter(map(known.__getitem__, cells), np.float64, len(cells))
        try:
            numbers = column.astype(np.float64)
            if np.isinf(numbers).any():
                raise ValueError
        except (ValueError, OverflowError):
            raise InvalidDataError(
                f"column {shorten(self.names[feature])} holds text; expected numbers where "
                "categorical_features= has no categories; add the column to these, encode or drop "
                "it"
            ) from None
        return numbers


def _category(cell: Any) -> float:
    """Return a number for a category, another one for every text.

    Text that is a whole number, in its shortest form, is the same category as the number. Others
    are hashes from 2**52 on, which floats hold.

    >>> _category("7"), _category("07") == _category("7"), _category("07") >= 2**52
    (7.0, False, True)
    """
    if type(cell) is not str:
        return float(cell)
    if len(cell) < 16 and cell.isascii() and cell.isdigit() and (cell[0] != "0" or cell == "0"):
        return float(cell)
    word = int.from_bytes(blake2b(cell.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    return float((word >> 12) | 2**52)


def _columns(block: Block, features: Sequence[int], kinds: Features) -> Iterator[Floats]:
    """Yield the values of the rows that count, one feature after the other.

    A category below 0 is a gap, as in scikit-learn.
    """
    places = np.array([block.place(f) for f in features])
    if block.matrix.dtype == object:
        for f, place in zip(features, places.tolist(), strict=True):
            column = kinds.column(block.matrix[block.positions, place], f)
            yield without_negative(column) if kinds.categorical[f] else column
        return
    for start in range(0, places.size, _TOGETHER):
        some = places[start : start + _TOGETHER]
        columns = np.empty((some.size, block.size))
        copy_columns(block.matrix, block.rows, block.every, some, columns)
        coded = kinds.categorical[list(features)[start : start + _TOGETHER]]
        columns[coded] = without_negative(columns[coded])
        yield from columns


def without_negative(codes: Floats) -> Floats:
    """Return codes of categories with gaps for those below 0."""
    return np.where(codes < 0, np.nan, codes)


class Edges(Pass[list[Floats]]):
    """Find the distinct values with the lowest hashes, ascending, of some features."""

    takes_gaps = True
    finds_records = True

    def __init__(self, features: list[int], keys: Words, most: int, kinds: Features) -> None:
        self._features, self._keys, self._most = features, keys, most
        self._kinds = kinds

    def _lowest(self, f: int, values: Floats) -> Floats:
        found = np.empty(self._most)
        return found[: find_edges(values, self._keys[f], self._most, found)].copy()

    def of_block(self, block: Block) -> list[Floats]:
        """See `Pass`."""
        columns = _columns(block, self._features, self._kinds)
        return [self._lowest(f, column) for f, column in zip(self._features, columns, strict=True)]

    def merge(self, one: list[Floats], other: list[Floats]) -> list[Floats]:
        """See `Pass`."""
        return [
            self._lowest(f, np.concatenate(both))
            for f, *both in zip(self._features, one, other, strict=True)
        ]


class BinCodes(Pass[Ints]):
    """Write the codes of some features; count the records whose value is an edge."""

    takes_gaps = True
    finds_records = True

    def __init__(
        self,
        features: list[int],
        edges: list[Floats],
        kinds: Features,
        most: int,
        learned: Flags,
        codes: NDArray[np.uint8],
    ) -> None:
        self._features, self._edges, self._most = features, edges, most
        self._kinds = kinds
        self._learned, self._codes = PerLiveRow(learned), Written(codes)

    def of_block(self, block: Block) -> Ints:
        """See `Pass`."""
        counts = np.zeros((len(self._features), self._most), dtype=np.int64)
        learned, codes = self._learned.of(block), self._codes.of(block)
        own, others = np.flatnonzero(learned), np.flatnonzero(~learned)
        for place, column in enumerate(_columns(block, self._features, self._kinds)):
            edges = self._edges[place]
            arguments = edges, bool(self._kinds.categorical[self._features[place]]), place, codes
            counted = counts[place, : edges.size]
            find_codes(column[own] if others.size else column, own, *arguments, counted)
            if others.size:
                find_codes(column[others], others, *arguments, _NOT_COUNTED)
        return counts

    def merge(self, one: Ints, other: Ints) -> Ints:
        """See `Pass`."""
        return one + other


@dataclass(eq=False, slots=True)
class Binned:
    """Edges and codes, an accelerator.

    >>> X = np.array([[0.5], [7.0], [0.5], [np.nan]])
    >>> learned = np.array([True, True, True, False])
    >>> kinds = Features(["height"], np.array([False]))
    >>> found = Binned.fit(X, learned, ~learned, kinds, 255, Tape(0))
    >>> found.edges[0, :2], found.bins.codes[:, 0]
    (array([0.5, 7. ]), array([  0,   1,   0, 255], dtype=uint8))
    >>> found.remove(X[[0]]), found.remove(X[[1]])
    (array([], dtype=int64), array([0]))
    """

    bins: Bins
    edges: Floats  # (n_features, n_edges_at_most)
    # (n_features, n_edges_at_most); how many records that are learned from have an edge as their
    # value
    counts: Ints
    keys: Words  # (n_features,); of the features, by their names
    kinds: Features

    @classmethod
    def fit(
        cls,
        matrix: Any,
        learned: Flags,
        others: Flags,
        kinds: Features,
        max_bins: int,
        tape: Tape,
    ) -> Self:
        """Find the edges among the rows `learned`, and the codes of these and of `others`."""
        n_rows, d = matrix.shape
        bins = Bins(
            codes=np.zeros((n_rows, d), dtype=np.uint8),
            sizes=np.zeros(d, dtype=np.int64),
            hashes=np.zeros((d, max_bins), dtype=np.uint64),
            categorical=kinds.categorical,
        )
        own = tape.child("feature")
        keys = np.array([own.key_of(name) for name in kinds.names], dtype=np.uint64)
        shape = d, max_bins - 1
        found = cls(bins, np.zeros(shape), np.zeros(shape, np.int64), keys, kinds)
        bins.hashes[:, -1] = keys
        found.find(matrix, learned, others, np.arange(d))
        return found

    def find(self, matrix: Any, learned: Flags, others: Flags, features: Ints) -> None:
        """Find the edges and codes of some features, in two passes over these."""
        if not features.size:
            return
        bins, most, some = self.bins, self.edges.shape[1], features.tolist()
        own, rows = np.flatnonzero(learned), np.flatnonzero(learned | others)
        found = run(Edges(some, self.keys, most, self.kinds), matrix, own, columns=some)
        every = rows.size == matrix.shape[0] and features.size == matrix.shape[1]
        codes = bins.codes if every else np.empty((rows.size, features.size), dtype=np.uint8)
        pass_ = BinCodes(some, found, self.kinds, most, learned[rows], codes)
        counts = run(pass_, matrix, rows, columns=some)
        if not every:
            bins.codes[rows[:, np.newaxis], features] = codes
        self.counts[features] = counts
        for f, edges in zip(some, found, strict=True):
            size = bins.sizes[f] = edges.size
            self.edges[f, :size] = edges
            # Of an edge that is lost nothing stays.
            self.edges[f, size:], bins.hashes[f, size:-1] = 0.0, 0
            hash_edges(edges, self.keys[f], bins.hashes[f])

    def make_room(self, n_rows: int) -> None:
        """Have a line of codes for so many rows."""
        self.bins = self.bins._replace(codes=padded(self.bins.codes, n_rows))

    def add(self, values: Any, rows: Ints, learned: Flags) -> Ints:
        """Code rows by their values, and count the `learned`; return the features to find again."""
        bins, numbers = self.bins, self.kinds.numbers(values)
        gained = np.zeros(bins.sizes.size, dtype=np.bool_)
        coded = bins.categorical
        numbers = np.where(coded, without_negative(numbers), numbers)
        gain(numbers[learned], self.edges, bins.hashes, bins.sizes, self.keys, gained)
        for f, size in enumerate(bins.sizes.tolist()):
            for some, counts in ((learned, self.counts[f, :size]), (~learned, _NOT_COUNTED)):
                find_codes(
                    numbers[some, f], rows[some], self.edges[f, :size], bool(coded[f]), f,
                    bins.codes, counts,
                )  # fmt: skip
        return np.flatnonzero(gained)

    def remove(self, values: Any) -> Ints:
        """Forget rows that were learned from, by values; return the features that lose an edge."""
        lost = np.zeros(self.bins.sizes.size, dtype=np.bool_)
        lose(self.kinds.numbers(values), self.edges, self.bins.sizes, self.counts, lost)
        return np.flatnonzero(lost)

    def erase(self, rows: Ints) -> None:
        """Overwrite the codes of rows."""
        self.bins.codes[rows] = 0

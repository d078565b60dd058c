"""Passes that find edges, and codes between them: over records in memory, in files, on workers.

The law kept here: the edges of all blocks are those of one. A value that has one of the lowest
hashes among all has one of the lowest in its block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints, Words
from erasable.core.passes import Block, Pass
from erasable.core.row_arrays import PerLiveRow, Written
from erasable.ensemble._boosting._bin_kernels import copy_columns, find_codes, find_edges

_TOGETHER = 8
_NOT_COUNTED: Ints = np.empty(0, dtype=np.int64)


def _columns(block: Block, features: Sequence[int], categorical: Flags) -> Iterator[Floats]:
    """Yield the values of the rows that count, one feature after the other.

    A category below 0 is a gap, as in scikit-learn.
    """
    places = np.array([block.place(f) for f in features])
    for start in range(0, places.size, _TOGETHER):
        some = places[start : start + _TOGETHER]
        columns = np.empty((some.size, block.size))
        copy_columns(block.matrix, block.rows, block.every, some, columns)
        kinds = categorical[list(features)[start : start + _TOGETHER]]
        columns[kinds] = without_negative(columns[kinds])
        yield from columns


def without_negative(codes: Floats) -> Floats:
    """Return codes of categories with gaps for those below 0."""
    return np.where(codes < 0, np.nan, codes)


class Edges(Pass[list[Floats]]):
    """Find the distinct values with the lowest hashes, ascending, of some features.

    Parameters
    ----------
    features : list of int
    keys : ndarray of shape (n_features,), uint64
        Of all features.
    most : int
        How many values, at most.
    categorical : ndarray of shape (n_features,), bool
    """

    takes_gaps = True
    finds_records = True

    def __init__(self, features: list[int], keys: Words, most: int, categorical: Flags) -> None:
        self._features, self._keys, self._most = features, keys, most
        self._categorical = categorical

    def _lowest(self, f: int, values: Floats) -> Floats:
        found = np.empty(self._most)
        return found[: find_edges(values, self._keys[f], self._most, found)].copy()

    def of_block(self, block: Block) -> list[Floats]:
        """See `Pass`."""
        columns = _columns(block, self._features, self._categorical)
        return [self._lowest(f, column) for f, column in zip(self._features, columns, strict=True)]

    def merge(self, one: list[Floats], other: list[Floats]) -> list[Floats]:
        """See `Pass`."""
        return [
            self._lowest(f, np.concatenate(both))
            for f, *both in zip(self._features, one, other, strict=True)
        ]


class Codes(Pass[Ints]):
    """Write the codes of some features; count the records whose value is an edge.

    Parameters
    ----------
    features : list of int
    edges : list of ndarray
        Of each of these features.
    categorical : ndarray of shape (n_features,), bool
    most : int
        How many edges a feature may have.
    learned : ndarray of shape (n_rows_that_count,), bool
        Whether records are counted.
    codes : ndarray of shape (n_rows_that_count, len(features)), uint8
    """

    takes_gaps = True
    finds_records = True

    def __init__(
        self,
        features: list[int],
        edges: list[Floats],
        categorical: Flags,
        most: int,
        learned: Flags,
        codes: NDArray[np.uint8],
    ) -> None:
        self._features, self._edges, self._most = features, edges, most
        self._categorical = categorical
        self._learned, self._codes = PerLiveRow(learned), Written(codes)

    def of_block(self, block: Block) -> Ints:
        """See `Pass`."""
        counts = np.zeros((len(self._features), self._most), dtype=np.int64)
        learned, codes = self._learned.of(block), self._codes.of(block)
        own, others = np.flatnonzero(learned), np.flatnonzero(~learned)
        for place, column in enumerate(_columns(block, self._features, self._categorical)):
            edges = self._edges[place]
            told = edges, bool(self._categorical[self._features[place]]), place, codes
            counted = counts[place, : edges.size]
            find_codes(column[own] if others.size else column, own, *told, counted)
            if others.size:
                find_codes(column[others], others, *told, _NOT_COUNTED)
        return counts

    def merge(self, one: Ints, other: Ints) -> Ints:
        """See `Pass`."""
        return one + other

"""The features of records as codes between edges.

The law it keeps: the edges of a feature are the distinct values with the lowest hashes of those
records that trees learn from; of fewer values than there may be edges, all. Codes follow from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints, Words
from erasable.core.tape import Tape
from erasable.ensemble._boosting._bin_kernels import find_codes, find_edges, hash_edges, lose
from erasable.ensemble._boosting._layout import Bins
from erasable.tree._columns import turn

_TOGETHER = 8
_NOT_COUNTED: Ints = np.empty(0, dtype=np.int64)


@dataclass(eq=False, slots=True)
class Binned:
    """Edges and codes, an accelerator.

    Attributes
    ----------
    bins : Bins
    edges : ndarray of shape (n_features, n_edges_at_most), float64
    counts : ndarray of shape (n_features, n_edges_at_most), int64
        How many records that are learned from have an edge as their value.
    keys : ndarray of shape (n_features,), uint64
        Of the features, by their names.

    Examples
    --------
    >>> X = np.array([[0.5], [7.0], [0.5], [np.nan]])
    >>> told = np.arange(3), np.arange(3, 4)
    >>> found = Binned.fit(X, *told, ["height"], np.array([False]), 255, Tape(0))
    >>> found.edges[0, :2], found.bins.codes[:, 0]
    (array([0.5, 7. ]), array([  0,   1,   0, 255], dtype=uint8))
    >>> found.remove(X, np.array([0])), found.remove(X, np.array([1]))
    (array([], dtype=int64), array([0]))
    """

    bins: Bins
    edges: Floats
    counts: Ints
    keys: Words

    @classmethod
    def fit(
        cls,
        matrix: Any,
        learned: Ints,
        others: Ints,
        names: Sequence[str],
        categorical: Flags,
        max_bins: int,
        tape: Tape,
    ) -> Self:
        """Find the edges among the rows `learned`, and the codes of these and of `others`."""
        n_rows, d = matrix.shape
        bins = Bins(
            codes=np.zeros((n_rows, d), dtype=np.uint8),
            sizes=np.zeros(d, dtype=np.int64),
            hashes=np.zeros((d, max_bins), dtype=np.uint64),
            categorical=categorical,
        )
        keys = np.array([tape.child("feature").key_of(name) for name in names], dtype=np.uint64)
        found = cls(bins, np.zeros((d, max_bins - 1)), np.zeros((d, max_bins - 1), np.int64), keys)
        bins.hashes[:, -1] = keys
        found.find(matrix, learned, others, np.arange(d))
        return found

    def find(self, matrix: Any, learned: Ints, others: Ints, features: Ints) -> None:
        """Find the edges and codes of some features."""
        for start in range(0, features.size, _TOGETHER):
            some = features[start : start + _TOGETHER]
            columns = np.empty((some.size, matrix.shape[0]))
            turn(np.ascontiguousarray(matrix[:, some]), columns)
            for f, column in zip(some.tolist(), columns, strict=True):
                self._find(f, column, learned, others)

    def _find(self, f: int, column: Floats, learned: Ints, others: Ints) -> None:
        bins, most = self.bins, self.edges.shape[1]
        own = column if learned.size == column.size else column[learned]
        size = find_edges(own, self.keys[f], most, self.edges[f])
        edges, counts = self.edges[f, :size], self.counts[f, :size]
        bins.sizes[f] = size
        counts[:] = 0
        # Of an edge that is lost nothing stays.
        self.edges[f, size:], self.counts[f, size:], bins.hashes[f, size:-1] = 0.0, 0, 0
        hash_edges(edges, self.keys[f], bins.hashes[f])
        codes, categorical = bins.codes, bool(bins.categorical[f])
        find_codes(own, learned, edges, categorical, f, codes, counts)
        find_codes(column[others], others, edges, categorical, f, codes, _NOT_COUNTED)

    def remove(self, matrix: Any, rows: Ints) -> Ints:
        """Forget rows that were learned from; return the features that lose an edge."""
        lost = np.zeros(self.bins.sizes.size, dtype=np.bool_)
        values = np.asarray(matrix[rows], dtype=np.float64)
        lose(values, self.edges, self.bins.sizes, self.counts, lost)
        return np.flatnonzero(lost)

    def erase(self, rows: Ints) -> None:
        """Overwrite the codes of rows."""
        self.bins.codes[rows] = 0

"""The features of records as codes between edges.

The law it keeps: the edges of a feature are the distinct values with the lowest hashes of those
records that trees learn from; of fewer values than there may be edges, all. Codes follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints, Words
from erasable.core.passes import run
from erasable.core.tape import Tape
from erasable.ensemble._boosting._bin_kernels import hash_edges, lose
from erasable.ensemble._boosting._bin_passes import Codes, Edges, Features
from erasable.ensemble._boosting._layout import Bins


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
    kinds : Features

    Examples
    --------
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
    edges: Floats
    counts: Ints
    keys: Words
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
        room = d, max_bins - 1
        found = cls(bins, np.zeros(room), np.zeros(room, np.int64), keys, kinds)
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
        pass_ = Codes(some, found, self.kinds, most, learned[rows], codes)
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

    def remove(self, values: Any) -> Ints:
        """Forget rows that were learned from, by values; return the features that lose an edge."""
        lost = np.zeros(self.bins.sizes.size, dtype=np.bool_)
        lose(self.kinds.numbers(values), self.edges, self.bins.sizes, self.counts, lost)
        return np.flatnonzero(lost)

    def erase(self, rows: Ints) -> None:
        """Overwrite the codes of rows."""
        self.bins.codes[rows] = 0

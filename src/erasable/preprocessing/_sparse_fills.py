"""Sparse tables with gaps: how they are filled, and their most frequent values.

A value that is not stored is 0, and not a gap. Statistics are those of the same values in a dense
table, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from erasable.core._mixed import Mixed
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError
from erasable.core.sparse import canonical
from erasable.core.summaries import Summary
from erasable.core.tables import Table


def is_gap(values: NDArray[Any], marker: float) -> Flags:
    """Tell which of some numbers are gaps."""
    if marker != marker:
        return np.asarray(values != values, dtype=np.bool_)
    return np.asarray(values == np.float64(marker), dtype=np.bool_)  # 0.1 is not a float32


def gaps_in(matrix: Any, marker: Any) -> Flags:
    """Tell which cells are gaps: those that equal a marker, or are NaN where the marker is."""
    if isinstance(matrix, Mixed):
        matrix = matrix.objects()
    if matrix.dtype != object and isinstance(marker, str):
        return np.zeros(matrix.shape, dtype=np.bool_)
    if matrix.dtype != object or marker != marker:
        return is_gap(matrix, marker)
    return np.asarray(matrix == marker, dtype=np.bool_)


class SparseModes(Summary):
    """The most frequent value of each column of a CSR matrix; of several, the smallest.

    It keeps the distinct values of every column, without 0, and how many rows have each.
    """

    def __init__(self, table: Table, marker: float) -> None:
        self._marker = marker
        d = table.n_features
        self._zeros = np.zeros(d, dtype=np.int64)
        columns, values = self._read(table.matrix, table.live_rows(), 1)
        self._count(columns, values, np.ones(values.size, dtype=np.int64))
        # The most frequent of the values that are stored, and how many have it.
        self._most, self._often = np.full(d, np.nan), np.zeros(d, dtype=np.int64)
        self._find(np.arange(d))

    def _count(self, columns: Ints, values: Floats, counts: Ints) -> None:
        """Keep the distinct values of every column, and how many rows have each."""
        order = np.lexsort((values, columns))
        columns, values, counts = columns[order], values[order], counts[order]
        new = np.ones(values.size, dtype=np.bool_)
        new[1:] = (np.diff(columns) != 0) | (np.diff(values) != 0)
        first = np.flatnonzero(new)
        self._columns, self._values = columns[first], values[first]
        self._counts = np.add.reduceat(counts, first) if first.size else counts

    def add(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        columns, values = self._read(table.matrix, rows, 1)
        self._count(
            np.append(self._columns, columns),
            np.append(self._values, values),
            np.append(self._counts, np.ones(values.size, dtype=np.int64)),
        )
        self._find(np.unique(columns))
        return 0

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`."""
        columns, values = self._read(table.matrix, rows, -1)
        starts = np.searchsorted(self._columns, columns)
        ends = np.searchsorted(self._columns, columns, side="right")
        for value, start, end in zip(values, starts.tolist(), ends.tolist(), strict=True):
            self._counts[start + np.searchsorted(self._values[start:end], value)] -= 1
        left = self._counts > 0
        if not left.all():
            self._columns, self._values = self._columns[left], self._values[left]
            self._counts = self._counts[left]
        self._find(np.unique(columns))
        return 0

    def statistics(self) -> Floats:
        """Return what is most frequent; NaN where nothing is observed."""
        by_zero = (self._zeros > self._often) | (
            (self._zeros == self._often) & (self._zeros > 0) & (self._most > 0)
        )
        return np.where(by_zero, 0.0, self._most)

    def state(self) -> dict[str, Any]:
        """See `Summary`."""
        return {"statistics": self.statistics()}

    def _read(self, matrix: csr_array, rows: Ints, sign: int) -> tuple[Ints, Floats]:
        """Return columns and values of what is stored and no gap; count the zeros."""
        chosen = matrix[rows]
        stored = np.bincount(chosen.indices, minlength=matrix.shape[1])
        self._zeros += sign * (rows.size - stored)
        observed = ~is_gap(chosen.data, self._marker)
        return chosen.indices[observed].astype(np.int64), chosen.data[observed].astype(np.float64)

    def _find(self, columns: Ints) -> None:
        starts = np.searchsorted(self._columns, columns)
        ends = np.searchsorted(self._columns, columns, side="right")
        for j, start, end in zip(columns.tolist(), starts.tolist(), ends.tolist(), strict=True):
            self._most[j], self._often[j] = np.nan, 0
            if start < end:
                at = start + int(np.argmax(self._counts[start:end]))
                self._most[j], self._often[j] = self._values[at], self._counts[at]


def fill_sparse(
    matrix: csr_array, marker: float, statistics: Floats, kept: Ints, marked: Ints
) -> csr_array:
    """Fill the gaps of some columns, and append indicators of the gaps of others."""
    refuse_zeros_as_gaps(marker)
    gaps = is_gap(matrix.data, marker)
    data = matrix.data.copy()
    data[gaps] = statistics[matrix.indices[gaps]]
    filled = csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)[:, kept]
    if marked.size:
        indicators = (gaps.astype(data.dtype), matrix.indices, matrix.indptr)
        marks = csr_array(indicators, shape=matrix.shape)[:, marked]
        filled = hstack([filled, marks], format="csr")
    return canonical(filled)


def refuse_zeros_as_gaps(marker: Any) -> None:
    """Raise InvalidInputError where every value that is not stored would be a gap."""
    if marker == 0:
        raise InvalidInputError(
            "Imputation not possible when missing_values == 0 and input is sparse: gaps would be "
            "everywhere; expected a dense array; pass X.toarray()"
        )

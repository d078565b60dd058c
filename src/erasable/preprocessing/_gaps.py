"""Which cells of a table are gaps, and in which rows a column has any."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.preprocessing._fills import Flags, Ints, gaps_in

__all__ = ["Gaps"]


class Gaps:
    """The gaps of the live rows of a table, of which rows can be forgotten.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_features)
    live_rows : ndarray of int64
        Distinct positions of the rows that count.
    marker : number, str or NaN
        What a gap is marked with.

    Attributes
    ----------
    n_values : ndarray of shape (n_features,), int64
        How many live values each column has, gaps left out.

    Examples
    --------
    >>> gaps = Gaps(np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 4.0]]), np.arange(3), np.nan)
    >>> gaps.n_values, gaps.rows(np.array([True, False]))
    (array([2, 2]), array([1]))
    """

    def __init__(self, matrix: NDArray[Any], live_rows: Ints, marker: Any) -> None:
        n_rows = matrix.shape[0]
        whole = live_rows.size == n_rows
        gaps = gaps_in(matrix if whole else matrix[live_rows], marker)
        counts = np.count_nonzero(gaps, axis=0)
        self.n_values: Ints = live_rows.size - counts.astype(np.int64)
        self._marker = marker
        self._columns = np.flatnonzero(counts)
        self._mask = np.zeros((self._columns.size, n_rows), dtype=np.bool_)
        self._mask[:, live_rows] = gaps[:, self._columns].T

    def remove(self, matrix: NDArray[Any], rows: Ints) -> None:
        """Forget rows, which can still be read."""
        self.n_values -= np.count_nonzero(~gaps_in(matrix[rows], self._marker), axis=0)
        self._mask[:, rows] = False

    def rows(self, columns: Flags) -> Ints:
        """Return the positions of the live rows that have gaps in some columns."""
        chosen = self._mask[columns[self._columns]]
        return np.flatnonzero(chosen.any(axis=0))

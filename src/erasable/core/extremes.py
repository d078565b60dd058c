"""The extremes of every column, and how many live values reach them.

The law it keeps: extremes are a function of the live rows alone. Counting the values at an
extreme tells when the last one goes; only then is the column scanned again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _grid_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Block, Pass, at_hand, run

__all__ = ["Extremes"]


@dataclass(eq=False, slots=True)
class Extremes:
    """Lowest and highest live value of each column.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,), float64
        Extremes; 0 where there are no rows, and never -0.0.
    counts : ndarray of shape (2, n_features), int64
        How many live values equal `low`, and how many equal `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.extremes import Extremes
    >>> rows = np.array([[1.0, 8.0], [1.0, 9.0], [5.0, 9.0]])
    >>> extremes = Extremes.fit(rows)
    >>> extremes.low, extremes.high, extremes.counts.tolist()
    (array([1., 8.]), array([5., 9.]), [[2, 1], [1, 2]])
    >>> extremes.remove(rows, np.array([2]), lambda: np.array([0, 1]))
    array([ True, False])
    >>> extremes.high
    array([1., 9.])
    """

    low: Floats
    high: Floats
    counts: Ints

    @classmethod
    def fit(cls, matrix: Any, live_rows: Ints | None = None, *, n_jobs: int | None = None) -> Self:
        """Find the extremes of the live rows.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_features), float64 or float32, C-contiguous; or Stored
            Finite values.
        live_rows : ndarray of int64, optional
            Distinct positions of the rows that count; all of them by default.
        n_jobs : int or None
            Threads.

        Returns
        -------
        Extremes
        """
        low, high, counts = run(_Find(), matrix, live_rows, n_jobs=n_jobs)
        some = low <= high
        return cls(np.where(some, low, 0.0), np.where(some, high, 0.0), counts)

    def remove(
        self, matrix: Any, rows: Ints, live_rows: Callable[[], Ints]
    ) -> NDArray[np.bool_] | None:
        """Forget rows, in O(n_features) a row while no extreme goes with them.

        Parameters
        ----------
        matrix : ndarray or Stored, of shape (n_rows, n_features), float64 or float32
            The matrix of `fit`, in which the rows can still be read.
        rows : ndarray of int64
            Distinct positions of the rows to forget, all of them live until now.
        live_rows : callable
            Returns the positions of the rows that are left; called only if needed.

        Returns
        -------
        ndarray of shape (n_features,), bool, or None
            The columns in which an extreme changed; None if none did.
        """
        if not kernels.forget_reached(*at_hand(matrix, rows), self.low, self.high, self.counts):
            return None
        changed: NDArray[np.bool_] = (self.counts == 0).any(axis=0)
        columns = np.flatnonzero(changed).tolist()
        low, high, counts = run(_FindAgain(columns), matrix, live_rows(), columns=columns)
        some = low <= high
        self.low[columns] = np.where(some, low, 0.0)
        self.high[columns] = np.where(some, high, 0.0)
        self.counts[:, columns] = counts
        return changed


_Found = tuple[Floats, Floats, Ints]


class _FindAgain(Pass[_Found]):
    """Find lowest and highest values of some columns, and how many reach them.

    Without rows these are inf, -inf and 0.
    """

    def __init__(self, columns: list[int]) -> None:
        self._columns = columns

    def of_block(self, block: Block) -> _Found:
        low, high = np.full((2, len(self._columns)), np.inf)
        high *= -1.0
        counts = np.zeros((2, low.size), dtype=np.int64)
        if block.size:
            rows = block.positions
            for k, column in enumerate(self._columns):
                found = kernels.rescan(block.matrix, rows, block.place(column))
                low[k], high[k], *counts[:, k] = found
        return low, high, counts

    def merge(self, one: _Found, other: _Found) -> _Found:
        low, high = np.minimum(one[0], other[0]), np.maximum(one[1], other[1])
        counts = sum(
            np.stack([(found[0] == low) * found[2][0], (found[1] == high) * found[2][1]])
            for found in (one, other)
        )
        return low, high, np.asarray(counts)


class _Find(_FindAgain):
    """Do the same for all columns, faster."""

    def __init__(self) -> None:
        super().__init__([])

    def of_block(self, block: Block) -> _Found:
        d = block.matrix.shape[1]
        counts = np.zeros((2, d), dtype=np.int64)
        bounds = np.full(d, np.inf), np.full(d, -np.inf)
        if block.size == 0:
            return *bounds, counts
        matrix, rows, every, *_ = block
        lowest, highest = [], []
        for part, (low, high), _ in kernels.long_rows(matrix, every, bounds, None):
            lows, highs = low.copy(), high.copy()
            kernels.extremes(part, rows, every, lows, highs)
            lowest.append(lows.reshape(-1, d).min(axis=0))
            highest.append(highs.reshape(-1, d).max(axis=0))
        # Adding 0.0 makes -0.0 into 0.0: which of the two came first is no business of ours.
        found = np.min(lowest, axis=0) + 0.0, np.max(highest, axis=0) + 0.0
        for part, (low, high), _ in kernels.long_rows(matrix, every, found, None):
            reached = np.zeros(part.shape[1], dtype=np.int64)
            kernels.count_reached(part, rows, every, low, high, reached)
            counts += kernels.unpack(reached, d)
        return *found, counts

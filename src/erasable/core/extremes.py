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
from erasable.core._grid_passes import Find, FindAgain, Found
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import at_hand, run

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
        return cls.of(run(Find(), matrix, live_rows, n_jobs=n_jobs))

    @classmethod
    def of(cls, found: Found) -> Self:
        """Return what `Find` or `FindAgain` has found; 0 where there were no rows."""
        low, high, counts = found
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
        found = self.of(run(FindAgain(columns), matrix, live_rows(), columns=columns))
        self.low[columns], self.high[columns] = found.low, found.high
        self.counts[:, columns] = found.counts
        return changed

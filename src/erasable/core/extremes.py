"""Extremes of every column, and the numbers of live values that reach them.

The law kept here: extremes are a function of the live rows alone. The count of the values at an
extreme tells when the last one is deleted; only then is the column scanned again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _grid_kernels as kernels
from erasable.core._grid_passes import Find, FindAgain, Found
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import run
from erasable.core.tables import Table

__all__ = ["Extremes"]

_OFTEN = 64
"""Deletions within which a column loses the same extreme twice, to keep values near it."""
_NEAR = 256
_MOST = 8


@dataclass(eq=False, slots=True)
class Extremes:
    """Lowest and highest live value of each column.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,), float64
        Extremes; 0 where there are no rows, and never -0.0.
    counts : ndarray of shape (2, n_features), int64
        How many live values equal `low`, and how many equal `high`.
    near : dict of int to list of float
        Of sides of columns that have lost extremes often, of late: the live values nearest to the
        extreme, from there on; of highest values their negatives. A window over timestamps loses
        the first of them with every step. The key of the lower side of column j is j, and that of
        the upper side ``n_features + j``.
    ends : dict of int to float
        All values before this one are near.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.extremes import Extremes
    >>> rows = np.array([[1.0, 8.0], [1.0, 9.0], [5.0, 9.0]])
    >>> extremes = Extremes.fit(rows)
    >>> extremes.low, extremes.high, extremes.counts.tolist()
    (array([1., 8.]), array([5., 9.]), [[2, 1], [1, 2]])
    >>> table = Table(rows, lambda: np.array([0, 1]))
    >>> extremes.subtract(table, np.array([2]))
    array([ True, False])
    >>> extremes.high
    array([1., 9.])
    """

    low: Floats
    high: Floats
    counts: Ints
    near: dict[int, list[float]] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    _clock: int = 0
    _lost: dict[int, int] = field(default_factory=dict)

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
        """Return the result of `Find` or `FindAgain`; 0 where there were no rows."""
        low, high, counts = found
        some = low <= high
        return cls(np.where(some, low, 0.0), np.where(some, high, 0.0), counts)

    def add(self, table: Table, rows: Ints) -> NDArray[np.bool_] | None:
        """Add rows.

        Parameters
        ----------
        table : Table
            May have another matrix than that of `fit`.
        rows : ndarray of int64
            Distinct positions of the rows, none of them live until now.

        Returns
        -------
        ndarray of shape (n_features,), bool, or None
            The columns in which an extreme changed; None if none did.
        """
        changed: NDArray[np.bool_] = np.zeros(self.low.size, dtype=np.bool_)
        for key, value in self._values_near(table.matrix, rows):
            insort(self.near[key], value)
        if kernels.reach(*table.in_memory(rows), self.low, self.high, self.counts, changed):
            return changed
        return None

    def subtract(self, table: Table, rows: Ints) -> NDArray[np.bool_] | None:
        """Subtract rows, in O(n_features) a row unless an extreme is among them.

        Parameters
        ----------
        table : Table
            With the matrix of `fit`, in which the rows can still be read. The rows that count are
            those that are left; they are looked up only if needed.
        rows : ndarray of int64
            Distinct positions of the rows to subtract, all of them live until now.

        Returns
        -------
        ndarray of shape (n_features,), bool, or None
            The columns in which an extreme changed; None if none did.
        """
        self._clock += 1
        for key, value in self._values_near(table.matrix, rows):
            del self.near[key][bisect_left(self.near[key], value)]
        if not kernels.forget_reached(*table.in_memory(rows), self.low, self.high, self.counts):
            return None
        lost = self.counts == 0
        changed: NDArray[np.bool_] = lost.any(axis=0)
        keys = np.flatnonzero(lost.ravel()).tolist()
        unknown = [key for key in keys if not self._find_near(key)]
        if not unknown:
            return changed
        columns = sorted({key % self.low.size for key in unknown})
        live = table.live_rows()
        found = self.of(run(FindAgain(columns), table.matrix, live, columns=columns))
        self.low[columns], self.high[columns] = found.low, found.high
        self.counts[:, columns] = found.counts
        for key in unknown:
            if self._clock - self._lost.get(key, -_OFTEN) < _OFTEN:
                self._keep_near(key, table, live)
            self._lost[key] = self._clock
        return changed

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle functions of the rows; the values kept near depend on former deletions."""
        return type(self), (self.low, self.high, self.counts)

    # -- values near extremes ------------------------------------------------------------------

    def _values_near(self, matrix: Any, rows: Ints) -> Iterator[tuple[int, float]]:
        """Yield the values of rows that belong to those near an extreme."""
        d = self.low.size
        for key, end in self.ends.items():
            for row in rows.tolist():
                value = float(matrix[row, key % d]) + 0.0
                value = value if key < d else -value + 0.0
                if value < end:
                    yield key, value

    def _find_near(self, key: int) -> bool:
        """Find an extreme that was lost among the values near it, if there are any."""
        near, d = self.near.get(key), self.low.size
        if not near:
            self.near.pop(key, None)
            self.ends.pop(key, None)
            return False
        side = self.low if key < d else self.high
        side[key % d] = near[0] if key < d else -near[0] + 0.0
        self.counts[key // d, key % d] = bisect_right(near, near[0])
        return True

    def _keep_near(self, key: int, table: Table, live_rows: Ints) -> None:
        if table.is_stored:
            return
        if len(self.near) >= _MOST:
            self.near.clear()
            self.ends.clear()
        d = self.low.size
        values = table.matrix[live_rows, key % d].astype(np.float64) + 0.0
        if key >= d:
            values = -values + 0.0
        end = np.inf
        if values.size > _NEAR:
            end = float(np.partition(values, _NEAR)[_NEAR])
            values = values[values < end]
        self.near[key], self.ends[key] = np.sort(values).tolist(), end

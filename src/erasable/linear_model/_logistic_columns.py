"""Origins and units of the columns: which powers of two bound the records that are learned from.

The law kept here: they are a function of these records alone, and a deletion looks at a column
again only where its last extreme has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core._grid_kernels import BITS, MAX_TOP, brackets
from erasable.core._grid_passes import sampled_values, skewed_columns
from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Indices, Ints
from erasable.core.errors import MagnitudeError
from erasable.core.extremes import Extremes
from erasable.core.grid import warn_of_skew
from erasable.core.sparse import SparseGrid, parts, tops


class LogisticColumns:
    """Origin and top exponent of every column: ``|x - origin| <= 2**top``.

    Parameters
    ----------
    matrix : ndarray of shape (n, d) or csr_array
    rows : ndarray of int64
        Rows that are learned from.
    free : bool
        Whether there is an intercept, which makes up for any origin.
    n_jobs : int or None
        Threads.

    Attributes
    ----------
    origin : ndarray of shape (d,), float64
    top : ndarray of shape (d,), int64
        Both since `settle`.
    """

    def __init__(self, matrix: Any, rows: Ints, free: bool, n_jobs: int | None = None) -> None:
        self._free = free
        self._bounds: Extremes | SparseGrid
        if issparse(matrix):
            self._bounds = SparseGrid.fit(matrix, rows)
        else:
            self._bounds = Extremes.fit(matrix, rows, n_jobs=n_jobs)
            _refuse_huge(self._bounds)
        self._told = self._grid()[1]

    def _grid(self) -> tuple[Floats, Ints]:
        """Return origins and exponents as they follow from the extremes alone."""
        bounds = self._bounds
        if isinstance(bounds, SparseGrid):
            return np.zeros(bounds.top.size), bounds.top.copy()
        origin, top = np.zeros(bounds.low.size), np.zeros(bounds.low.size, dtype=np.int64)
        if not self._free:
            return origin, tops(np.maximum(np.abs(bounds.low), np.abs(bounds.high)))
        brackets(bounds.low, bounds.high, origin, top, np.zeros(top.size))
        return origin, top

    def warn(
        self,
        matrix: Any,
        rows: Callable[[], Ints],
        names: Sequence[str] | None,
        *,
        grown: bool = False,
    ) -> None:
        """Warn of columns in which many small values become 0; or of those that have `grown`."""
        origin, top = self._grid()
        asked = top > self._told if grown else np.ones(top.size, dtype=np.bool_)
        self._told = top
        if asked.any():
            sampled = sampled_values(matrix, rows(), origin, np.ldexp(1.0, top - BITS))
            skewed = skewed_columns(sampled)
            warn_of_skew(skewed[asked[skewed]], names)

    def add(self, matrix: Any, rows: Ints, live_rows: Callable[[], Ints]) -> None:
        """Take rows in."""
        if isinstance(self._bounds, SparseGrid):
            self._bounds.add(matrix, rows, live_rows)
        elif self._bounds.add(matrix, rows) is not None:
            _refuse_huge(self._bounds)

    def remove(self, matrix: Any, rows: Ints, live_rows: Callable[[], Ints]) -> int:
        """Forget rows; return how many columns were scanned again."""
        if isinstance(self._bounds, SparseGrid):
            return int(self._bounds.remove(matrix, rows, live_rows).extremes.sum())
        scanned = self._bounds.remove(matrix, rows, live_rows)
        return 0 if scanned is None else int(scanned.sum())

    def settle(self, matrix: Any, rows: Callable[[], Ints], shift: Floats | None) -> None:
        """Derive origins and exponents from the extremes.

        `shift` is what the steps of a pipeline before the model subtract: without an intercept
        it must be the origin.
        """
        bounds = self._bounds
        if isinstance(bounds, SparseGrid):
            self.origin, self.top = np.zeros(bounds.top.size), bounds.top.copy()
            full = bounds.counts[1] == bounds.n_rows
            if self._free and full.any():
                self._center(full, matrix, rows())
            elif not self._free and shift is not None and shift.any():
                self._shift(shift, full, matrix, rows())
        elif self._free:
            self.origin, self.top = self._grid()
        else:
            self.origin = np.zeros(bounds.low.size) if shift is None else shift.copy()
            low, high = np.abs(bounds.low - self.origin), np.abs(bounds.high - self.origin)
            self.top = tops(np.maximum(low, high))

    def _center(self, full: Flags, matrix: Any, rows: Ints) -> None:
        """Give columns of a sparse matrix the origins they would have in a dense one.

        Only a column in which no record has a 0 can have one, so nothing becomes dense.
        """
        low, high = np.full(full.size, np.inf), np.full(full.size, -np.inf)
        _widen(*parts(matrix), rows, low, high)
        origin, top = np.zeros(int(full.sum())), np.zeros(int(full.sum()), dtype=np.int64)
        brackets(low[full], high[full], origin, top, np.zeros(origin.size))
        self.origin[full], self.top[full] = origin, top

    def _shift(self, shift: Floats, full: Flags, matrix: Any, rows: Ints) -> None:
        """Put the origins where the steps before put them, also of columns with zeros."""
        moved = shift != 0
        low, high = np.full(full.size, np.inf), np.full(full.size, -np.inf)
        _widen(*parts(matrix), rows, low, high)
        low[~full], high[~full] = np.minimum(low[~full], 0.0), np.maximum(high[~full], 0.0)
        self.origin[moved] = shift[moved]
        farthest = np.maximum(np.abs(low - shift), np.abs(high - shift))
        self.top[moved] = tops(farthest[moved])

    @property
    def unit(self) -> Floats:
        """``2**-top``."""
        return np.ldexp(1.0, -self.top)


@kernel
def _widen(
    data: Floats, indices: Indices, indptr: Indices, rows: Ints, low: Floats, high: Floats
) -> None:
    """Widen `low` and `high` to the extremes of the values that are stored."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            value, j = np.float64(data[e]), indices[e]
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]


def _refuse_huge(bounds: Extremes) -> None:
    huge = np.maximum(np.abs(bounds.low), np.abs(bounds.high)) > 2.0**MAX_TOP
    if huge.any():
        raise MagnitudeError(
            f"{int(huge.sum())} columns hold values beyond 2**{MAX_TOP}; products of such values "
            "overflow; divide these columns by a constant"
        )

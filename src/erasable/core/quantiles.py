"""Exact quantiles of columns, of which values can be deleted.

The law kept here: a quantile is a function of the live values alone: of their number, and of the
two at the ranks on either side of it. A window of sorted values around these ranks holds the values
there after a deletion; when deletions have moved the ranks out of it, the column is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core import _quantile_kernels as kernels
from erasable.core._grid_passes import RemoteColumns, Window
from erasable.core.arrays import Floats, Ints, Matrix

__all__ = ["Quantiles"]

_NEAREST, _FARTHEST, _PART = 64, 512, 128
Reader: TypeAlias = "Callable[[int], Floats] | RemoteColumns"
_NOTHING: Window = np.empty(0), np.empty(0, dtype=np.int64), 0


@dataclass(eq=False, slots=True)
class Quantiles:
    """Chosen quantiles of every column.

    Attributes
    ----------
    shares : ndarray of shape (n_shares,), float64
        Which quantiles, from 0 to 1.
    n_values : ndarray of shape (n_features,), int64
        How many live values each column has.
    sizes : ndarray of shape (n_features, n_shares), int64
        How many distinct values each window holds.
    cursors : ndarray of shape (n_features, n_shares), int64
        Place in the window of the value that was last found.
    before : ndarray of shape (n_features, n_shares), int64
        How many live values of the column are smaller than that.
    runs : ndarray of shape (n_features, n_shares, n_slots), float64
        Distinct values of each window, ascending.
    counts : ndarray of shape (n_features, n_shares, n_slots), int64
        How many live values equal each.
    bounds : ndarray of shape (2, n_features, n_shares), float64
        Values at the ranks below and above each quantile; NaN where there are no values.
    weights : ndarray of shape (n_features, n_shares), float64
        Where the quantile is between the two, from 0 to 1.

    Notes
    -----
    A deletion costs O(n_features) while no window runs out. A window reaches n / 128 ranks to
    either side, but at least 64 and at most 512, so that it takes as many deletions on one side
    of a quantile, or about the square of that many at random, until a column is read again.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 8.0], [2.0, 9.0], [5.0, 7.0]])
    >>> quantiles = Quantiles.fit(lambda j: rows[:, j].copy(), 2, [0.25, 0.5])
    >>> quantiles.linear()
    array([[1.5, 7.5],
           [2. , 8. ]])
    >>> quantiles.subtract_all([rows[2:]], lambda j: rows[:2, j].copy())
    0
    >>> quantiles.linear()
    array([[1.25, 8.25],
           [1.5 , 8.5 ]])
    """

    shares: Floats
    n_values: Ints
    sizes: Ints
    cursors: Ints
    before: Ints
    runs: Floats
    counts: Ints
    bounds: Floats
    weights: Floats

    @classmethod
    def fit(
        cls,
        read: Reader,
        n_features: int,
        shares: Sequence[float] | Floats,
    ) -> Self:
        """Find the quantiles of the live values.

        Parameters
        ----------
        read : callable
            Returns the live values of a column, by its position, in any order: an array of
            float64 without NaN, which is reordered in place. Or the columns, where rows are
            elsewhere.
        n_features : int
        shares : sequence of float
            Which quantiles, from 0 to 1.

        Returns
        -------
        Quantiles
        """
        shares = np.asarray(shares, dtype=np.float64)
        shape = (n_features, shares.size)
        sizes, cursors, before = np.zeros((3, *shape), dtype=np.int64)
        quantiles = cls(
            shares=shares,
            n_values=np.zeros(n_features, dtype=np.int64),
            sizes=sizes,
            cursors=cursors,
            before=before,
            runs=np.zeros((*shape, 0)),
            counts=np.zeros((*shape, 0), dtype=np.int64),
            bounds=np.full((2, *shape), np.nan),
            weights=np.zeros(shape),
        )
        quantiles._open_all(range(n_features), read)
        quantiles._find()
        return quantiles

    def subtract_all(self, tables: Iterable[Matrix], read: Reader) -> int:
        """Subtract rows of values.

        Parameters
        ----------
        tables : iterable of ndarray of shape (n_rows, n_features), float64 or float32
            Values of the rows; NaN where a row has none. Pass all rows that leave together in one
            call: `read` returns columns without any of them.
        read : callable
            As in `fit`, for the values that are left; called only for columns whose window has
            run out.

        Returns
        -------
        int
            How many columns were read again.
        """
        return self._change(kernels.forget, tables, read)

    def add_all(self, tables: Iterable[Matrix], read: Reader) -> int:
        """Add rows of values, which `read` returns, too; see :meth:`subtract_all`."""
        return self._change(kernels.learn, tables, read)

    def _change(self, change: Callable[..., None], tables: Iterable[Matrix], read: Reader) -> int:
        for taken in tables:
            change(
                taken, self.n_values, self.sizes, self.cursors, self.before, self.runs, self.counts
            )
        short = self._find()
        if short is None:
            return 0
        columns = np.flatnonzero(short).tolist()
        self._open_all(columns, read)
        self._find()
        return len(columns)

    def linear(self) -> Floats:
        """Return the quantiles between two values by proportion, as `numpy.percentile` does.

        Returns
        -------
        ndarray of shape (n_shares, n_features), float64
            Bit for bit those of NumPy; NaN in columns without values.
        """
        out = np.zeros(self.weights.shape[::-1])
        kernels.interpolate(self.bounds, self.weights, out)
        return out

    def middle(self, share: int) -> Floats:
        """Return one of the quantiles, halfway between two values, as `numpy.median` does.

        Where their sum overflows, that is the middle all the same.

        Parameters
        ----------
        share : int
            Position of 0.5 in `shares`.

        Returns
        -------
        ndarray of shape (n_features,), float64
        """
        low, high = self.bounds[:, :, share]
        out = np.zeros(low.size)
        kernels.halve(low, high, self.weights[:, share], out)
        return out

    def _find(self) -> NDArray[np.bool_] | None:
        """Find the quantiles; return the columns that have to be read again."""
        short = np.zeros(self.n_values.size, dtype=np.bool_)
        missed = kernels.find(
            self.shares,
            self.n_values,
            self.sizes,
            self.cursors,
            self.before,
            self.runs,
            self.counts,
            self.bounds,
            self.weights,
            short,
        )
        return short if missed else None

    def _open_all(self, columns: Sequence[int], read: Reader) -> None:
        """Open the windows of columns around the wanted ranks."""
        if isinstance(read, RemoteColumns):
            found = read.windows(columns, self._limits)
            for j, (n, windows) in zip(columns, found, strict=True):
                self._put(j, n, windows or [_NOTHING] * self.shares.size)
            return
        for j in columns:
            column = read(j)
            first, last = self._limits(column.size)
            if column.size and first.size:
                column.partition(np.unique(np.concatenate([first, last])))
            pairs = zip(first.tolist(), last.tolist(), strict=True)
            self._put(j, column.size, [_window(column, *pair) for pair in pairs])

    def _limits(self, n: int) -> tuple[Ints, Ints]:
        """Return the first and the last ranks of the windows of a column of so many values."""
        reach = min(max(n // _PART, _NEAREST), _FARTHEST)
        ranks = np.floor((n - 1) * self.shares).astype(np.int64)
        return np.maximum(ranks - reach, 0), np.minimum(ranks + reach + 1, n - 1)

    def _put(self, j: int, n: int, windows: Sequence[Window]) -> None:
        """Keep the windows of a column."""
        self.n_values[j] = n
        for w, (values, counts, before) in enumerate(windows):
            size = values.size
            self._make_room(size)
            self.runs[j, w, size:], self.counts[j, w, size:] = 0.0, 0
            self.runs[j, w, :size], self.counts[j, w, :size] = values, counts
            self.sizes[j, w], self.cursors[j, w], self.before[j, w] = size, 0, before

    def _make_room(self, slots: int) -> None:
        wanted = slots - self.runs.shape[2]
        if wanted > 0:
            more = ((0, 0), (0, 0), (0, wanted))
            self.runs, self.counts = np.pad(self.runs, more), np.pad(self.counts, more)


def _window(column: Floats, first: int, last: int) -> tuple[Floats, Ints, int]:
    """Return the distinct values between two ranks, their counts, and the number of smaller values.

    `column` is partitioned at both ranks.
    """
    values, counts = np.unique(column[first : last + 1], return_counts=True)
    if values.size == 0:
        return values, counts, 0
    # Values equal to the outermost ones may be outside.
    smaller = int(np.count_nonzero(column[:first] < values[0]))
    counts[0] += first - smaller
    counts[-1] += np.count_nonzero(column[last + 1 :] == values[-1])
    return values, counts, smaller

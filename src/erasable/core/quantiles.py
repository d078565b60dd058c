"""Exact quantiles of columns, of which values can be deleted.

The law kept here: a quantile is a function of the live values alone: of their number, and of the
two at the ranks on either side of it. A window of sorted values around these ranks holds the values
there after a deletion; when deletions have moved the ranks out of it, the column is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from erasable.core import _quantile_kernels as kernels
from erasable.core._grid_passes import RemoteColumns, Window
from erasable.core.arrays import Floats, Ints
from erasable.core.summaries import Summary
from erasable.core.tables import Table

__all__ = ["Quantiles"]

_NEAREST, _FARTHEST, _PART = 64, 512, 128
_NOTHING: Window = np.empty(0), np.empty(0, dtype=np.int64), 0


@dataclass(eq=False, slots=True)
class Quantiles(Summary):
    """Chosen quantiles of every column.

    Attributes
    ----------
    shares : ndarray of shape (n_shares,), float64
        Which quantiles, from 0 to 1.
    marker : float or None
        What marks gaps, besides NaN; None where there are no gaps.
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
    >>> quantiles = Quantiles.fit(Table(rows), [0.25, 0.5])
    >>> quantiles.linear()
    array([[1.5, 7.5],
           [2. , 8. ]])
    >>> quantiles.subtract(Table(rows, lambda: np.array([0, 1])), np.array([2]))
    0
    >>> quantiles.linear()
    array([[1.25, 8.25],
           [1.5 , 8.5 ]])
    """

    shares: Floats
    marker: float | None
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
        cls, table: Table, shares: Sequence[float] | Floats, marker: float | None = None
    ) -> Self:
        """Find the quantiles of the rows that count.

        Parameters
        ----------
        table : Table
        shares : sequence of float
            Which quantiles, from 0 to 1.
        marker : float, optional
            What marks gaps, besides NaN; by default, there are no gaps.

        Returns
        -------
        Quantiles
        """
        n_features = table.n_features
        shares = np.asarray(shares, dtype=np.float64)
        shape = (n_features, shares.size)
        sizes, cursors, before = np.zeros((3, *shape), dtype=np.int64)
        quantiles = cls(
            shares=shares,
            marker=marker,
            n_values=np.zeros(n_features, dtype=np.int64),
            sizes=sizes,
            cursors=cursors,
            before=before,
            runs=np.zeros((*shape, 0)),
            counts=np.zeros((*shape, 0), dtype=np.int64),
            bounds=np.full((2, *shape), np.nan),
            weights=np.zeros(shape),
        )
        quantiles._open_all(range(n_features), table)
        quantiles._find()
        return quantiles

    def subtract(self, table: Table, rows: Ints) -> int:
        """See `Summary`; pass all rows that leave together: a column is read without any of them.

        A column is read again where its window has run out.
        """
        return self._change(kernels.forget, table, rows)

    def add(self, table: Table, rows: Ints) -> int:
        """See `subtract`."""
        return self._change(kernels.learn, table, rows)

    def state(self) -> dict[str, Any]:
        """See `Summary`."""
        return {"quantiles": self.linear()}

    def _change(self, change: Callable[..., None], table: Table, rows: Ints) -> int:
        for near, at in table.dense_blocks(rows):
            taken = near[at]
            if self.marker is not None:
                taken = taken.astype(np.float64)
                taken[taken == self.marker] = np.nan
            change(
                taken, self.n_values, self.sizes, self.cursors, self.before, self.runs, self.counts
            )
        short = self._find()
        if short is None:
            return 0
        columns = np.flatnonzero(short).tolist()
        self._open_all(columns, table)
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

    def _open_all(self, columns: Sequence[int], table: Table) -> None:
        """Open the windows of columns around the wanted ranks."""
        read = table.reader(self.marker)
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

"""A forget set and a retain set, with the exact moments of both.

A moment is a function of the set of rows alone: values are rounded once to a grid that both sets
share, and sums of gridded values are exact, so any order of the rows and any sharding gives the
same bits. The grid and the sums are those of `erasable.core`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core import _grid_kernels as grid_kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.sparse_grid import SparseGrid, tops
from erasable.core.tables import RecordRows, Table
from erasable.core.tape import Tape
from erasable.removal._passes import DistancesTo, ProductsWith, run_row_pass

_HALF = 2.0**13  # as in `Moments`
_COARSE = 2.0**6  # quanta of the grid: what varies by less has a variance that is coarse
_VANISH = (
    "more than 1 % of their nonzero values are below 2**-27 of the largest magnitude and count as "
    "0; take a logarithm of them"
)
_OFFSET = (
    "sparse, they vary by less than 2**-20 of their magnitude, and their moments and distances are "
    "coarse; subtract what they have in common, or pass dense rows"
)


class Sets:
    """The two sets that scores contrast, or the forget set alone: `retain` may be None.

    Attributes
    ----------
    forget, retain : ndarray or csr_array of shape (n_records, n_features), float64 or float32
        Checked rows; for a score that takes stored records `erasable.core.tables.RecordRows`.
    ids : ndarray of shape (n_forget,)
        Ids of the rows of forget; by default 0..n-1.
    present : tuple
        Those of both that were given.
    coarse : dict of str to set of int
        Columns in which float64 or the grid of the sums loses precision, as far as noticed.

    Examples
    --------
    >>> sets = Sets(np.array([[0.0], [4.0]]), np.array([[1.0], [3.0], [5.0]]))
    >>> sets.forget_moments.mean(), sets.retain_moments.mean()
    (array([2.]), array([3.]))
    """

    def __init__(self, forget: Any, retain: Any, ids: Any = None) -> None:
        self.forget, self.retain = forget, retain
        self.ids = np.arange(forget.shape[0]) if ids is None else ids
        self.present = (forget,) if retain is None else (forget, retain)
        self.coarse: dict[str, set[int]] = {}

    @property
    def sparse(self) -> bool:
        """Whether the rows are sparse."""
        return bool(issparse(self.forget))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.forget.shape[1])

    @cached_property
    def grid(self) -> Grid | SparseGrid:
        """The grid of the union of both sets."""
        if self.sparse:
            peaks = [SparseGrid.fit(X, np.arange(X.shape[0])).peak for X in self.present]
            sparse = SparseGrid.from_state({"top": tops(np.max(peaks, axis=0))})
            for X in self.present:
                self.note(_VANISH, _vanishing(sparse, X))
            return sparse
        tables = [Table.over(X) for X in self.present]
        grids = [Grid.fit(each.matrix, each.live_rows(), warn=False) for each in tables]
        d = self.n_features
        origin, top, magic = np.empty(d), np.empty(d, dtype=np.int64), np.empty(d)
        low = np.min([grid.low for grid in grids], axis=0)
        high = np.max([grid.high for grid in grids], axis=0)
        grid_kernels.brackets(low, high, origin, top, magic)
        dense = Grid.from_state({"top": top, "origin": origin})
        for each in tables:
            self.note(_VANISH, dense.skewed(each.matrix, each.live_rows()))
        return dense

    def note(self, what: str, columns: Ints) -> None:
        """Record columns in which precision is lost, for a later warning."""
        if columns.size:
            self.coarse.setdefault(what, set()).update(columns.tolist())

    def note_offsets(self) -> None:
        """Note the columns of sparse rows that vary little beside their magnitude.

        Dense ones have an origin on the grid; with one, zeros that are not stored would be lost.
        """
        if not self.sparse:
            return
        moments = [self.forget_moments]
        if self.retain is not None:
            moments.append(self.retain_moments)
        n = sum(each.n_rows for each in moments)
        variance = np.sum([each.n_rows * each.variance() for each in moments], axis=0) / n
        narrow = np.flatnonzero(np.sqrt(variance) < _COARSE * self.grid.quantum)
        vary = np.zeros(narrow.size, dtype=np.bool_)
        for X in self.present if narrow.size else ():
            part = X[:, narrow]
            vary |= np.asarray((part.min(axis=0) != part.max(axis=0)).todense()).ravel()
        self.note(_OFFSET, narrow[vary])

    @cached_property
    def forget_moments(self) -> Moments:
        """Exact sums of the forget set."""
        return self._moments(self.forget)

    @cached_property
    def retain_moments(self) -> Moments:
        """Exact sums of the retain set."""
        return self._moments(self.retain)

    def _moments(self, matrix: Any) -> Moments:
        return Moments.fit(self.grid, Table.over(matrix))

    def drawn(self, seed: int) -> Ints:
        """Return the rows of forget in a random order that depends on their ids alone.

        The relative order of two records depends neither on the order of the rows nor on the other
        records.
        """
        keys = Tape(seed).child("removal").record_keys(self.ids)
        return np.argsort(keys, kind="stable")

    def part(self, forget_rows: Ints, retain_rows: Ints) -> Sets:
        """Copy some rows of both sets."""
        return Sets(self.forget[forget_rows], self.retain[retain_rows], self.ids[forget_rows])


def _vanishing(grid: SparseGrid, matrix: Any) -> Ints:
    """Return the columns in which many stored values become 0 on the grid."""
    here, d = matrix.indices, matrix.shape[1]
    stored = np.bincount(here, minlength=d)
    small = np.abs(matrix.data) <= grid.quantum[here] / 2
    return np.flatnonzero(np.bincount(here[small], minlength=d) > 0.01 * stored)


def some_of(rows: Any, places: Ints) -> Any:
    """Return rows at some ascending places: a copy, unless rows are stored."""
    return rows.some(places) if isinstance(rows, RecordRows) else rows[places]


def distances_to(centre: Floats, rows: Any) -> Floats:
    """Return the squared Euclidean distance of each row to a centre."""
    return run_row_pass(rows, DistancesTo(centre, rows.shape[0]))


def products_with(centre: Floats, rows: Any) -> Floats:
    """Return the scalar product of each row with a centre."""
    return run_row_pass(rows, ProductsWith(centre, rows.shape[0]))

"""Grid of a matrix: every column rounded once to fixed point, where sums do not depend on order.

The law kept here: the grid is a function of the live rows alone. A gridded value is an integer of
at most 26 bits and a sign, times the column's quantum ``2**(top - 26)``, so any sum of up to
``2**27`` of them is exact in float64, in any order and any sharding, and subtracting a row undoes
adding it. After any sequence of deletions a grid equals the grid of what is left.

`top` and `origin` depend on the extremes of a column only through coarse brackets: they depend on
no single record, except where an extreme is alone in its power of two.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from erasable.core import _grid_kernels as kernels
from erasable.core._grid_kernels import MAX_ROWS, NO_ROWS
from erasable.core._grid_passes import (
    SAMPLE,
    CountAtExtremes,
    Find,
    Regrid,
    Regridded,
    sampled_values,
    skewed_columns,
)
from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.errors import PrecisionWarning
from erasable.core.extremes import Extremes
from erasable.core.matrices import contiguous
from erasable.core.messages import (
    name_columns,
    refuse_huge_columns,
    refuse_many_rows,
    refuse_no_columns,
)
from erasable.core.passes import Pass, Together, run, storage
from erasable.core.tables import Table

__all__ = ["MAX_ROWS", "Grid", "GridChange", "PrecisionWarning", "warn_of_skew"]


@dataclass(frozen=True, slots=True)
class GridChange:
    """Changes of a grid in a deletion.

    Attributes
    ----------
    exponents : bool
        Did the top exponent or the origin of some column change?
    columns : ndarray of shape (n_features,), bool
        The columns whose top exponent or origin changed.
    values : ndarray of shape (n_features,), bool
        The columns in which the gridded value of some live row changed.
    extremes : ndarray of shape (n_features,), bool
        The columns whose lowest or highest live value changed.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.grid import Grid
    >>> rows = np.array([[1.0, 8.0], [2.0, 9.0], [30.0, 9.0]])
    >>> table = Table(rows, lambda: np.array([0, 1]))
    >>> change = Grid.fit(rows).subtract(table, np.array([2]))
    >>> change.exponents, change.columns.tolist(), change.values.any()
    (True, [True, False], np.False_)
    """

    exponents: bool
    columns: NDArray[np.bool_]
    values: NDArray[np.bool_]
    extremes: NDArray[np.bool_]

    @classmethod
    def none(cls, n_features: int) -> Self:
        """Return the result of a change of rows that changed nothing, cached for each width."""
        if n_features not in _STILL:
            still = np.zeros(n_features, dtype=np.bool_)
            still.flags.writeable = False
            _STILL[n_features] = cls(False, still, still, still)
        made: Self = _STILL[n_features]
        return made

    @property
    def is_none(self) -> bool:
        """Whether nothing changed at all."""
        return self.extremes is self.values and not self.exponents


_STILL: dict[int, Any] = {}


@dataclass(eq=False, slots=True)
class Grid:
    """Fixed-point grid of the columns of a matrix.

    Make one with :meth:`fit`, or with :meth:`from_state` where the rows are not at hand.

    Attributes
    ----------
    extremes : Extremes
        Lowest and highest live value of each column, and how many values reach them; also to
        be had as `low`, `high`, `n_low` and `n_high`.
    origin : ndarray of shape (n_features,), float64
        What is subtracted before rounding: 0 unless that saves 4 bits or more (timestamps), or
        the value itself in a constant column.
    top : ndarray of shape (n_features,), int64
        Exponents: ``|x - origin| <= 2**top`` for every live value, and a gridded value is a
        multiple of ``2**(top - 26)``.
    coarse : ndarray of shape (2, n_features), int64
        How many live values are off the grid, and how many do not fit float32.
    magic : ndarray of shape (n_features,), float64
        ``2**(top + 26)``, what the kernels round with.
    n_rows : int
        Number of live rows.
    told : tuple of a list of str, or None
        Where additions are to warn as `fit` does: names of the columns, if they have any.

    Notes
    -----
    Values up to ``2**480`` in magnitude (about 3e144) are taken, so that squares and their sums
    stay finite; a column whose values are all below ``2**-507`` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.grid import Grid
    >>> rows = np.array([[0.1, 1.7e9], [0.2, 1.7e9 + 40.0], [0.3, 1.7e9 + 90.5]])
    >>> grid = Grid.fit(rows)
    >>> grid.top, grid.origin
    (array([-1,  7]), array([0.0e+00, 1.7e+09]))
    >>> gridded = grid.apply(rows)
    >>> gridded.sum(axis=0) - gridded[2] == gridded[:2].sum(axis=0)
    array([ True,  True])
    >>> grid.subtract(Table(rows, lambda: np.array([0, 1])), np.array([2])).columns
    array([ True,  True])
    """

    extremes: Extremes
    origin: Floats
    top: Ints
    coarse: Ints
    magic: Floats
    n_rows: int
    told: tuple[list[str]] | None = None

    @classmethod
    def fit(
        cls,
        matrix: Any,
        live_rows: Ints | None = None,
        *,
        names: Sequence[str] | None = None,
        warn: bool = True,
        n_jobs: int | None = None,
    ) -> Self:
        """Derive the grid from the live rows of a matrix.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_features), float64 or float32; or Stored
            Finite values.
        live_rows : ndarray of int64, optional
            Distinct positions of the rows that count; all of them by default.
        names : sequence of str, optional
            Names of the columns, for messages.
        warn : bool, default=True
            Warn of columns in which many small values become 0?
        n_jobs : int or None
            Threads.

        Returns
        -------
        Grid

        Raises
        ------
        MagnitudeError
            If a value exceeds ``2**480`` in magnitude, or there are more than ``2**27`` rows.
        InvalidDataError
            If there are no columns.
        """
        return cls.fit_with(None, matrix, live_rows, names=names, warn=warn, n_jobs=n_jobs)[0]

    @classmethod
    def fit_with(
        cls,
        further: Callable[[Self], Pass[Any]] | None,
        matrix: Any,
        live_rows: Ints | None = None,
        *,
        names: Sequence[str] | None = None,
        warn: bool = True,
        n_jobs: int | None = None,
    ) -> tuple[Self, Any]:
        """Derive the grid as `fit` does, and read the rows for something else in the same pass.

        Parameters
        ----------
        further : callable or None
            Makes a pass of the grid, whose `coarse` is not counted yet.
        matrix, live_rows, names, warn, n_jobs
            See `fit`.

        Returns
        -------
        grid : Grid
        found
            By the pass; None without one.
        """
        n_rows = matrix.shape[0] if live_rows is None else int(live_rows.size)
        refuse_many_rows(n_rows, MAX_ROWS)
        refuse_no_columns(matrix, "a Grid")
        matrix = contiguous(matrix)
        step = max(1, -(-n_rows // SAMPLE)) if warn else 0

        def passes(grid: Self) -> list[Pass[Any]]:
            counting = CountAtExtremes(grid.origin, grid.top, step)
            return [counting, *([] if further is None else [further(grid)])]

        # Files may state their extremes. If these are right, one pass suffices.
        extremes: Extremes | None = None
        found: Any = None
        guess = storage(matrix).bounds()
        if guess is not None and not _huge(*guess).any():
            grid = cls._between(Extremes(*guess, np.zeros((2, guess[0].size), np.int64)), n_rows)
            first, *found = run(Together(Find(), *passes(grid)), matrix, live_rows, n_jobs=n_jobs)
            extremes = Extremes.of(first)
            if not all(map(np.array_equal, guess, (extremes.low, extremes.high))):
                found = None
        if extremes is None:
            extremes = Extremes.fit(matrix, live_rows, n_jobs=n_jobs)
        refuse_huge_columns(
            _huge(extremes.low, extremes.high), f"2**{kernels.MAX_TOP}", names=names
        )
        grid = cls._between(extremes, n_rows)
        if found is None:
            found = run(Together(*passes(grid)), matrix, live_rows, n_jobs=n_jobs)
        (grid.coarse, sampled), *others = found
        if warn and not grid.lossless:
            warn_of_skew(skewed_columns(sampled), names)
        if warn:
            grid.told = ([] if names is None else list(names),)
        return grid, others[0] if others else None

    @classmethod
    def _between(cls, extremes: Extremes, n_rows: int) -> Self:
        """Return the grid of columns with these extremes, without counts."""
        d = extremes.low.size
        grid = cls(
            extremes=extremes,
            origin=np.empty(d),
            top=np.empty(d, dtype=np.int64),
            coarse=np.zeros((2, d), dtype=np.int64),
            magic=np.empty(d),
            n_rows=n_rows,
        )
        kernels.brackets(extremes.low, extremes.high, grid.origin, grid.top, grid.magic)
        return grid

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> Self:
        """Rebuild a grid of its state that can :meth:`apply`, and has no rows."""
        top = np.array(state["top"], dtype=np.int64)
        origin = np.array(state["origin"], dtype=np.float64)
        return cls(
            extremes=Extremes.fit(np.empty((0, top.size))),
            origin=origin,
            top=top,
            coarse=np.zeros((2, top.size), dtype=np.int64),
            magic=np.ldexp(1.0, top + kernels.BITS),
            n_rows=0,
        )

    @property
    def low(self) -> Floats:
        """Lowest live value, a float64 per column."""
        return self.extremes.low

    @property
    def high(self) -> Floats:
        """Highest live value, a float64 per column."""
        return self.extremes.high

    @property
    def n_low(self) -> Ints:
        """Live values equal to `low`, an int64 per column."""
        counts: Ints = self.extremes.counts[0]
        return counts

    @property
    def n_high(self) -> Ints:
        """Live values equal to `high`, an int64 per column."""
        counts: Ints = self.extremes.counts[1]
        return counts

    @property
    def lossless(self) -> bool:
        """True if every live value is on the grid, ``gridded + origin == original``."""
        return not self.coarse[0].any()

    @property
    def narrow(self) -> bool:
        """True if, besides, every live gridded value fits float32 exactly.

        That is a matter of storage alone: arithmetic on narrow values must still be float64.
        """
        return not self.coarse.any()

    @property
    def quantum(self) -> Floats:
        """Distance of two neighbours on the grid, ``2**(top - 26)``, a float64 per column."""
        return np.ldexp(1.0, self.top - kernels.BITS)

    def apply(
        self,
        matrix: Matrix,
        rows: Ints | None = None,
        *,
        dtype: DTypeLike = np.float64,
        out: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Round rows to the grid, relative to the origin; new data as well as training rows.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_features), float64 or float32
            Finite. Values outside the range of the training rows have the same quantum.
        rows : ndarray of int64, optional
            Positions of the rows to round; all of them by default.
        dtype : float64 or float32, default=float64
            Of the result, which is written to `out`; float32 is exact for live rows where `narrow`.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            ``rint((x - origin) / quantum) * quantum``, never ``-0.0``.
        """
        matrix = contiguous(matrix)
        every, chosen = rows is None, NO_ROWS if rows is None else rows
        n = matrix.shape[0] if rows is None else rows.size
        out = np.empty((n, matrix.shape[1]), dtype=dtype) if out is None else out
        for part, (origin, magic), target in kernels.long_rows(
            matrix, every, (self.origin, self.magic), out
        ):
            kernels.to_grid(part, chosen, every, origin, magic, target)
        return out

    def add(self, table: Table, rows: Ints) -> GridChange:
        """Add rows, in O(n_features) a row while they are within the range of the others.

        The matrix may be another than that of `fit`, with the same rows that were live; `rows` are
        distinct and new, and count in the table. Of no use after a MagnitudeError, which is raised
        as by `fit`.
        """
        refuse_many_rows(self.n_rows + rows.size, MAX_ROWS)
        self.n_rows += rows.size
        extremes = self.extremes.add(table, rows)
        if extremes is not None:
            refuse_huge_columns(_huge(self.low, self.high), f"2**{kernels.MAX_TOP}")
        kernels.meet_coarse(*table.in_memory(rows), self.origin, self.magic, self.coarse)
        top = None if extremes is None else self.top.copy()
        change = self._derive_changed(extremes, table)
        told = getattr(self, "told", None)  # old files have none
        if top is not None and told is not None and (self.top > top).any():
            sampled = sampled_values(table.matrix, table.live_rows(), self.origin, self.quantum)
            skewed = skewed_columns(sampled)
            warn_of_skew(skewed[self.top[skewed] > top[skewed]], told[0] or None)
        return change

    def subtract(self, table: Table, rows: Ints) -> GridChange:
        """Subtract rows, in O(n_features) a row unless an extreme is among them.

        A column that loses its last value at an extreme is scanned again.

        Parameters
        ----------
        table : Table
            With the matrix of `fit`, in which the rows can still be read. The rows that count are
            those that are left; they are looked up only if needed.
        rows : ndarray of int64
            Distinct positions of the rows to subtract, all of them live until now.

        Returns
        -------
        GridChange
            What changed.
        """
        self.n_rows -= rows.size
        kernels.forget_coarse(*table.in_memory(rows), self.origin, self.magic, self.coarse)
        return self._derive_changed(self.extremes.subtract(table, rows), table)

    def _derive_changed(self, extremes: NDArray[np.bool_] | None, table: Table) -> GridChange:
        """Derive the columns again whose extremes have changed."""
        if extremes is None:
            return GridChange.none(self.top.size)
        columns, values = np.zeros((2, self.top.size), dtype=np.bool_)
        moved: list[Regridded] = []
        for j in np.flatnonzero(extremes).tolist():
            origin, top = kernels.bracket(self.low[j], self.high[j])
            if origin == self.origin[j] and top == self.top[j]:
                continue
            columns[j] = True
            before, after = (self.origin[j], self.magic[j]), (origin, 2.0 ** (top + kernels.BITS))
            moved.append(Regridded(j, before, after))
            self.origin[j], self.magic[j] = after
            self.top[j] = top
        if moved:
            chosen = [each.column for each in moved]
            found = run(Regrid(moved), table.matrix, table.live_rows(), columns=chosen)
            self.coarse[:, chosen], values[chosen] = found[:, :2].T, found[:, 2] > 0
        return GridChange(bool(columns.any()), columns, values, extremes)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return copies of what a model must keep: ``top`` (int64) and ``origin`` (float64)."""
        return {"top": self.top.copy(), "origin": self.origin.copy()}

    def skewed(self, matrix: Any, live_rows: Ints | None = None) -> Ints:
        """Return the columns in which many small values become 0, by a sample of the rows.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_features), float64 or float32; or Stored
        live_rows : ndarray of int64, optional

        Returns
        -------
        ndarray of int64
            Those in which more than 1 % of the values that are not at the origin are within half
            a quantum of it.
        """
        n_rows = matrix.shape[0] if live_rows is None else live_rows.size
        step = max(1, -(-n_rows // SAMPLE))
        counting = CountAtExtremes(self.origin, self.top, step)
        return skewed_columns(run(counting, matrix, live_rows)[1])


def warn_of_skew(skewed: Ints, names: Sequence[str] | None) -> None:
    """Warn of columns in which many small values become 0.

    Examples
    --------
    >>> warn_of_skew(np.array([], dtype=np.int64), None)
    """
    if skewed.size:
        named = name_columns(skewed, names)
        warnings.warn(
            f"{skewed.size} skewed columns ({named}): more than 1 % of their nonzero values "
            "are below 2**-27 of the largest magnitude and count as 0; "
            "correct what is wrong by orders of magnitude, or take a logarithm of such columns.",
            PrecisionWarning,
            stacklevel=4,
        )


def _huge(low: Floats, high: Floats) -> NDArray[np.bool_]:
    limit = 2.0**kernels.MAX_TOP
    return (low < -limit) | (high > limit)

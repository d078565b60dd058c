"""Rows of a matrix in portions, for sums that are rounded: in memory, or block by block.

The law kept here: in memory, where portions begin depends on the number of rows alone; of a stored
matrix they are its blocks. So what is rounded in each of them differs between the two, and counts
only where the result does not depend on it. Where it does, rows are read `InOrder`: then the
portion is all rows, in memory and out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.passes import Stored
from erasable.core.threads import in_threads, over_rows

__all__ = ["InOrder", "Portion", "over_portions"]

Made = TypeVar("Made")

_AT_ONCE = 2**26
"""Bytes of the rows that are read at a time in another order than that of their files."""


class Portion(NamedTuple):
    """Rows that are worked on at a time.

    Attributes
    ----------
    rows : slice
        Their positions among all rows.
    matrix : ndarray, csr_array or InOrder
        What has them.
    first : int
        Position of its first row.

    Examples
    --------
    >>> portion = Portion(slice(4, 6), np.arange(12.0).reshape(6, 2)[4:], 4)
    >>> portion.of(slice(5, 6))
    array([[10., 11.]])
    """

    rows: slice
    matrix: Any
    first: int

    def of(self, part: slice) -> Any:
        """Return some of its rows, by their positions among all rows."""
        return self.matrix[part.start - self.first : part.stop - self.first]

    def at(self, rows: Ints) -> Any:
        """Copy some of its rows, by their positions among all rows."""
        return self.matrix[rows - self.first]


def over_portions(
    function: Callable[[Portion], Made],
    matrix: Any,
    weights: Floats,
    n_jobs: int | None,
    size: int | None = None,
) -> Iterator[Made]:
    """Call a function with portions of a matrix; yield what it returns, in their order.

    Parameters
    ----------
    function : callable
        It changes nothing that another call reads.
    matrix : ndarray, csr_array, Stored or InOrder
    weights : ndarray of shape (n_rows,)
        Blocks of a stored matrix in which all are 0 are not read.
    n_jobs : int or None
        Threads; see `erasable.core.threads.N_JOBS`.
    size : int or None
        Rows of a portion of a matrix that is not stored; see `erasable.core.threads.over_rows`.

    Examples
    --------
    >>> matrix = np.arange(6.0).reshape(3, 2)
    >>> list(over_portions(lambda p: float(p.of(p.rows).sum()), matrix, np.ones(3), None, 2))
    [6.0, 9.0]
    """
    if not isinstance(matrix, Stored):
        return over_rows(
            lambda rows: function(Portion(rows, matrix, 0)), matrix.shape[0], n_jobs, size
        )
    starts: list[int] = matrix.starts.tolist()

    def of_block(number: int) -> Made:
        first, stop = starts[number : number + 2]
        return function(Portion(slice(first, stop), matrix.block(number), first))

    numbers = (at for at in range(len(starts) - 1) if weights[starts[at] : starts[at + 1]].any())
    return in_threads(of_block, numbers, n_jobs)


class InOrder:
    """Rows of a stored matrix in some order, of which a part at a time is in memory.

    All blocks are read for each part: it is for sums whose order counts, and which are seldom
    needed.

    Parameters
    ----------
    matrix : Stored
    rows : ndarray of int64
        Positions, in the order in which they will be read.

    Examples
    --------
    >>> class Whole(Stored):
    ...     shape, dtype, starts = (3, 1), np.dtype(float), np.array([0, 3])
    ...     def __getitem__(self, rows):
    ...         return np.array([[5.0], [6.0], [7.0]])[rows]
    >>> ordered = InOrder(Whole(), np.array([2, 0, 1]))
    >>> ordered[0:2].tolist(), ordered[np.array([2])].tolist()
    ([[7.0], [5.0]], [[6.0]])
    """

    def __init__(self, matrix: Stored, rows: Ints) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape, self.dtype = (rows.size, matrix.shape[1]), matrix.dtype
        self._step = max(1, _AT_ONCE // max(1, self.shape[1] * self.dtype.itemsize))
        self._start = 0
        self._part: Matrix = np.empty((0, self.shape[1]), self.dtype)

    def __getitem__(self, rows: slice | Ints) -> Matrix:
        """Return rows that follow each other: positions in the order."""
        if isinstance(rows, slice):
            start, stop = rows.start, rows.stop
        else:
            start, stop = int(rows[0]), int(rows[-1]) + 1
        if not self._start <= start <= stop <= self._start + len(self._part):
            end = min(max(stop, start + self._step), len(self._rows))
            self._part = np.empty((0, self.shape[1]), self.dtype)  # first, to save memory
            self._start, self._part = start, self._matrix[self._rows[start:end]]
            self._matrix.drop_copies()
        own = self._part[start - self._start : stop - self._start]
        return own if isinstance(rows, slice) else own[rows - start]

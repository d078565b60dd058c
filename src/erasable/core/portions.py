"""Portions of the rows of a matrix, for sums that are rounded: in memory, or block by block.

The law kept here: in memory, portions depend on the number of rows alone; of a stored matrix they
are its blocks. So rounding in portions differs between the two, and is allowed only where the
result does not depend on it. Otherwise rows are read `InOrder`: then the portion is all rows, in
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.passes import Stored
from erasable.core.threads import in_threads, over_rows

__all__ = ["InOrder", "Portion", "in_order", "over_portions"]

Made = TypeVar("Made")

_AT_ONCE = 2**26
"""Bytes of rows read at a time, when they are not read in the order of their files."""


class Portion(NamedTuple):
    """Rows processed at a time."""

    rows: slice  # positions among all rows
    matrix: Any
    first: int  # position of the first row of `matrix`

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
    """Call a function with portions of a matrix; yield its results, in their order.

    `function` changes nothing that another call reads. Blocks of a stored matrix in which all
    weights are 0 are not read. `size` is the number of rows of a portion in memory; see
    `over_rows`.
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
    """Rows of a stored matrix at the positions `rows`, in this order, of which a part is in memory.

    All blocks are read for each part: this is for rarely needed sums whose order counts.
    """

    def __init__(self, matrix: Stored, rows: Ints) -> None:
        self._matrix, self._rows = matrix, rows
        self.shape, self.dtype = (rows.size, matrix.shape[1]), matrix.dtype
        self._step = max(1, _AT_ONCE // max(1, self.shape[1] * self.dtype.itemsize))
        self._start = 0
        self._part: Matrix = np.empty((0, self.shape[1]), self.dtype)

    def __getitem__(self, rows: slice | Ints) -> Matrix:
        """Return consecutive rows of the order."""
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


def in_order(matrix: Any, rows: Ints) -> Any:
    """Return rows in an order of their own: copied in memory, or read as they are needed."""
    return InOrder(matrix, rows) if isinstance(matrix, Stored) else matrix[rows]

"""What a pass looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from erasable.core.arrays import Ints, Matrix


class Block(NamedTuple):
    """Rows that a pass looks at, in memory.

    Attributes
    ----------
    matrix : ndarray of shape (n_rows, n_features)
        Contiguous, or of shape (n_rows, n_columns) where the pass needs few of stored columns.
    rows : ndarray of int64
        Positions in `matrix` of the rows that count, where not `every` one does.
    every : bool
    first : int
        Position of the first row of `matrix` among all rows.
    rank : int
        How many rows that count are in blocks before this.
    columns : tuple of int, or None
        Which columns `matrix` has; None for all.
    parts : mapping of str to ndarray, or None
        The parts of row arrays, by their names, where nothing else is at hand of them.

    Examples
    --------
    >>> block = Block(np.zeros((3, 2)), np.array([0, 2]), False, first=10)
    >>> block.size, block.positions.tolist()
    (2, [0, 2])
    """

    matrix: Matrix
    rows: Ints
    every: bool
    first: int = 0
    rank: int = 0
    columns: tuple[int, ...] | None = None
    parts: Mapping[str, Any] | None = None

    @property
    def size(self) -> int:
        """How many rows count."""
        return int(self.matrix.shape[0] if self.every else self.rows.size)

    @property
    def positions(self) -> Ints:
        """Positions in `matrix` of the rows that count, whether or not all do."""
        return np.arange(self.matrix.shape[0]) if self.every else self.rows

    def of(self, column: Any) -> Any:
        """Return the part of an array of all rows that belongs to the rows of `matrix`."""
        return column[self.first : self.first + self.matrix.shape[0]]

    def place(self, column: int) -> int:
        """Return where a column is in `matrix`."""
        return column if self.columns is None else self.columns.index(column)

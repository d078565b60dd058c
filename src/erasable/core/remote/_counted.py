"""Which rows count in a pass, block by block."""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Flags, Ints
from erasable.core.passes import Block


class Counted:
    """Which rows count in a pass.

    Attributes
    ----------
    mask : ndarray of shape (n_rows,), bool
    blocks : list of int
        Those in which rows count.
    alone : ndarray of int64, or None
        The rows that count, where these are fewer than what changes of those that blocks know.
    """

    def __init__(self, live_rows: Ints | None, starts: Ints, said: Flags) -> None:
        n = int(starts[-1])
        self._starts = starts
        self.mask: Flags = np.ones(n, dtype=np.bool_)
        self.alone: Ints | None = None
        bounds = starts
        if live_rows is not None:
            bounds = np.searchsorted(live_rows, starts)
            self.mask[:] = False
            self.mask[live_rows] = True
            if live_rows.size < np.count_nonzero(self.mask != said):
                self.alone = live_rows
        self._ranks, self.sizes = bounds[:-1], np.diff(bounds)
        self.blocks: list[int] = np.flatnonzero(self.sizes).tolist()

    def block(self, number: int) -> Block:
        """Return a block without values, of which row arrays can be cut."""
        first, stop = self._starts[number : number + 2].tolist()
        size = int(self.sizes[number])
        every = size == stop - first
        rows = NO_ROWS if every else np.broadcast_to(np.int64(0), size)
        matrix = np.broadcast_to(np.float64(0.0), (stop - first, 1))
        return Block(matrix, rows, every, first, int(self._ranks[number]))

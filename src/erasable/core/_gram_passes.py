"""Products of all pairs of gridded columns, summed in passes over the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from erasable.core import _gram_kernels as kernels
from erasable.core._blas import add_square
from erasable.core._grid_kernels import NO_ROWS
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.passes import Block, Pass
from erasable.core.row_arrays import PerLiveRow, PerRow, RowArray

_BLOCK = 2**15  # values of a block: with its halves and what they give, it stays in cache


class Multiply(Pass[tuple[Floats, Floats]]):
    """Multiply blocks of rows by BLAS: those of h and of l, side by side, by themselves.

    It finds the upper triangle of products, of shape (2 p, 2 p), and the sums of the columns.
    """

    def __init__(self, columns: Floats, targets: Floats) -> None:
        self._columns, self._targets = columns, PerRow(targets)

    def of_block(self, block: Block) -> tuple[Floats, Floats]:
        p = self._columns.shape[1]
        square, sums = np.zeros((2 * p, 2 * p), order="F"), np.zeros(p)
        for part in self._halves(block, sums):
            add_square(part, square)
        return square, sums

    def merge(
        self, one: tuple[Floats, Floats], other: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        for left, right in zip(one, other, strict=True):
            left += right
        return one

    def _halves(self, block: Block, sums: Floats) -> Iterator[Floats]:
        """Yield h and l, side by side, of some rows at a time, in one array; add up `sums`."""
        p, n, rows = sums.size, block.size, block.rows
        # Rows that follow each other need not be looked up.
        through = block.every or bool(np.all(rows[1:] - rows[:-1] == 1))
        begin = int(rows[0]) if rows.size else 0
        targets = self._targets.of(block)
        size = min(max(_BLOCK // max(p, 1), 64), n)
        halves = np.zeros((size, 2 * p))
        for start in range(0, n, max(size, 1)):
            part = halves[: min(size, n - start)]
            chosen = NO_ROWS if through else rows[start : start + size]
            kernels.cut_block(
                block.matrix, targets, chosen, begin + start, self._columns, sums, part
            )
            yield part


class MultiplyEach(Pass[list[tuple[Floats, Floats]]]):
    """Multiply the rows of each of several parts: for each what `Multiply` finds.

    Parameters
    ----------
    columns, targets
        See `Multiply`.
    labels : ndarray of shape (n_live,), int32
        The part of each row that counts.
    n_parts : int
    """

    def __init__(self, columns: Floats, targets: Floats, labels: Ints32, n_parts: int) -> None:
        self._multiply = Multiply(columns, targets)
        self._labels, self._n_parts = PerLiveRow(labels), n_parts

    def row_arrays(self) -> list[RowArray]:
        return [*self._multiply.row_arrays(), self._labels]

    def of_block(self, block: Block) -> list[tuple[Floats, Floats]]:
        positions, labels = block.positions, self._labels.of(block)
        own = (positions[labels == part] for part in range(self._n_parts))
        return [self._multiply.of_block(block._replace(rows=rows, every=False)) for rows in own]

    def merge(
        self, one: list[tuple[Floats, Floats]], other: list[tuple[Floats, Floats]]
    ) -> list[tuple[Floats, Floats]]:
        return [self._multiply.merge(*pair) for pair in zip(one, other, strict=True)]


class MultiplyColumns(Multiply):
    """Multiply some columns by all: products of shape (3, n_columns, p), and all sums."""

    def __init__(self, columns: Floats, targets: Floats, chosen: Ints) -> None:
        super().__init__(columns, targets)
        self._chosen = chosen

    def of_block(self, block: Block) -> tuple[Floats, Floats]:
        chosen, p = self._chosen, self._columns.shape[1]
        sums, found = np.zeros(p), np.zeros((3, chosen.size, p))
        for part in self._halves(block, sums):
            h, lower = part[:, :p], part[:, p:]
            h_chosen, l_chosen = h[:, chosen].T, lower[:, chosen].T
            found[0] += h_chosen @ h
            found[1] += h_chosen @ lower
            found[1] += l_chosen @ h
            found[2] += l_chosen @ lower
        return found, sums

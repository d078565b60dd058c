"""Passes that compute numbers for each row, and rows read in the order of a ranking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

import erasable.removal._row_kernels as kernels
from erasable.core.arrays import Floats, Ints, Matrix
from erasable.core.passes import Block, Pass
from erasable.core.row_arrays import Written
from erasable.core.sparse import parts
from erasable.core.tables import RecordRows, Table

_AT_HAND = 2**24  # values that are read here at a time: 128 MiB


class RowPass(Pass[None]):
    """A pass that computes numbers for each row, from this row alone, into an array."""

    def __init__(self, *shape: int) -> None:
        self.found = Written(np.empty(shape))

    @abstractmethod
    def fill(self, rows: Any, out: Floats) -> None:
        """Fill `out` with the numbers of some rows."""

    def of_block(self, block: Block) -> None:
        """Write the numbers of a block."""
        if block.size:
            self.fill(rows_of(block), self.found.of(block))

    def merge(self, one: None, other: None) -> None:
        """Do nothing: results are written in place."""


class DistancesTo(RowPass):
    """The squared Euclidean distance to a centre."""

    def __init__(self, centre: Floats, n_rows: int) -> None:
        super().__init__(n_rows)
        self._centre = centre

    def fill(self, rows: Any, out: Floats) -> None:
        if issparse(rows):
            kernels.sparse_distances(*parts(rows), self._centre, out)
        else:
            kernels.distances(rows, self._centre, out)


class ProductsWith(RowPass):
    """The scalar product with a centre."""

    def __init__(self, centre: Floats, n_rows: int) -> None:
        super().__init__(n_rows)
        self._centre = centre

    def fill(self, rows: Any, out: Floats) -> None:
        if issparse(rows):
            kernels.sparse_products(*parts(rows), self._centre, out)
        else:
            kernels.products(rows, self._centre, out)


def run_row_pass(rows: Any, pass_: RowPass) -> Floats:
    """Run a pass over a matrix or rows of records, and return the numbers that it wrote."""
    Table.over(rows).run(pass_)
    found: Floats = pass_.found.values
    return found


def rows_of(block: Block) -> Matrix:
    """Return the rows of a block that count, as a matrix of their own."""
    return block.matrix if block.every else block.matrix[block.rows]


def in_order(rows: Any, order: Ints, step: int) -> Iterator[Any]:
    """Yield rows in an order, `step` at a time; the last part may have fewer, or none.

    Stored rows are read many at a time.
    """
    many = step
    if isinstance(rows, RecordRows):
        many *= max(1, _AT_HAND // max(1, step * rows.shape[1]))
    for start in range(0, order.size + 1, many):
        part = rows[order[start : start + many]]
        whole = start + many <= order.size
        for place in range(0, many if whole else order.size - start + 1, step):
            yield part[place : place + step]

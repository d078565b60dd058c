"""Rows and columns of sparse and stored tables as dense ones, a part at a time.

Those of dense tables are taken as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core._quantile_passes import Elsewhere
from erasable.core._sparse_kernels import column_values
from erasable.core.arrays import Floats, Ints
from erasable.core.passes import Remote, Stored, at_hand, each_block
from erasable.core.sparse import parts
from erasable.preprocessing._sparse_fills import is_gap

_BLOCK = 2**20  # values that are written out at once


def blocks(matrix: Any, rows: Ints) -> Iterator[tuple[NDArray[Any], Ints]]:
    """Yield rows as dense tables, and the positions in these: a dense one at once, as it is.

    >>> from scipy.sparse import csr_array
    >>> [(table.tolist(), at) for table, at in blocks(csr_array([[0.0], [3.0]]), np.array([1]))]
    [([[3.0]], array([0]))]
    """
    if not issparse(matrix):
        yield at_hand(matrix, rows)
        return
    step = max(1, _BLOCK // matrix.shape[1])
    for start in range(0, rows.size, step):
        table = matrix[rows[start : start + step]].toarray()
        yield table, np.arange(table.shape[0])


def column_of(matrix: Any, rows: Ints, j: int) -> tuple[NDArray[Any], Ints]:
    """Return a column as a dense table, and the positions of rows in it."""
    if not issparse(matrix):
        return matrix[:, j : j + 1], rows
    column = np.zeros((rows.size, 1))
    column_values(*parts(matrix), rows, j, column[:, 0])
    return column, np.arange(rows.size)


def columns_of(
    matrix: Any, rows: Callable[[], Ints], *, gaps: bool = False
) -> Callable[[int], Floats]:
    """Return a function that copies a column of rows; what it needs, it makes when first called."""
    by_column: list[Any] = []

    def read(j: int) -> Floats:
        if isinstance(matrix, Stored):
            parts_of_it = each_block(matrix, rows(), [j], gaps=gaps)
            return np.concatenate([part.matrix[part.positions, 0] for part in parts_of_it]).astype(
                np.float64, copy=False
            )
        if not issparse(matrix):
            live = rows()
            values: Floats = matrix[:, j] if live.size == len(matrix) else matrix[live, j]
            return values.astype(np.float64)
        if not by_column:
            by_column.append(matrix[rows()].tocsc())
        data, indices, indptr = parts(by_column[0])
        column = np.zeros(by_column[0].shape[0])
        column[indices[indptr[j] : indptr[j + 1]]] = data[indptr[j] : indptr[j + 1]]
        return column

    return read


def values_of(
    matrix: Any, rows: Callable[[], Ints], marker: float | None = None
) -> Callable[[int], Floats] | Elsewhere:
    """Return how `Quantiles` read the values of rows.

    Where there is a marker, it and NaN are gaps.
    """
    if isinstance(matrix, Remote):
        return Elsewhere(matrix, rows, np.nan if marker is None else marker)
    columns = columns_of(matrix, rows, gaps=marker is not None)
    if marker is None:
        return columns

    def read(j: int) -> Floats:
        column = columns(j)
        return column[~is_gap(column, marker)]

    return read

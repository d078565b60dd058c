"""Kernels over rows: distances, products and norms, and rows as whole numbers.

The law they keep: what a row gives is a function of that row alone, bit for bit, wherever it
stands. Sums run in eight lanes in a fixed order: equal rows have equal scores, and ties are ties.
"""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import Floats, Matrix
from erasable.core._jit import kernel
from erasable.core._sparse_kernels import Indices

__all__ = ["cut", "distances", "products", "sparse_distances", "sparse_products"]

_LANES = 8


@kernel
def distances(matrix: Matrix, centre: Floats, out: Floats) -> None:
    """Fill `out` with the squared Euclidean distance of each row to a centre."""
    lanes = np.zeros(_LANES)
    d = centre.size
    whole = d - d % _LANES
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for k in range(_LANES):
            lanes[k] = 0.0
        for j in range(0, whole, _LANES):
            for k in range(_LANES):
                difference = np.float64(row[j + k]) - centre[j + k]
                lanes[k] += difference * difference
        for j in range(whole, d):
            difference = np.float64(row[j]) - centre[j]
            lanes[j - whole] += difference * difference
        out[i] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
            (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        )


@kernel
def products(matrix: Matrix, centre: Floats, out: Floats) -> None:
    """Fill `out` with the scalar product of each row and a centre."""
    lanes = np.zeros(_LANES)
    d = centre.size
    whole = d - d % _LANES
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for k in range(_LANES):
            lanes[k] = 0.0
        for j in range(0, whole, _LANES):
            for k in range(_LANES):
                lanes[k] += np.float64(row[j + k]) * centre[j + k]
        for j in range(whole, d):
            lanes[j - whole] += np.float64(row[j]) * centre[j]
        out[i] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + (
            (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
        )


@kernel
def sparse_products(
    data: Matrix, indices: Indices, indptr: Indices, centre: Floats, out: Floats
) -> None:
    """Fill `out` with the scalar product of each sparse row and a centre."""
    for i in range(out.size):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[e]) * centre[indices[e]]
        out[i] = total


@kernel
def sparse_distances(
    data: Matrix, indices: Indices, indptr: Indices, centre: Floats, out: Floats
) -> None:
    """Fill `out` with squared distances to a centre.

    Columns where nothing is stored add what is left of the centre's square: nothing at all, where
    the row is the centre, because both squares are summed in one order.
    """
    norm = 0.0
    for j in range(centre.size):
        norm += centre[j] * centre[j]
    for i in range(out.size):
        near = covered = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            here = centre[indices[e]]
            difference = np.float64(data[e]) - here
            near += difference * difference
            covered += here * here
        out[i] = near + max(norm - covered, 0.0)


@kernel
def cut(matrix: Matrix, origin: Floats, per_unit: Floats, out: Floats) -> None:
    """Fill `out` with the rows in whole quanta, ``rint((x - origin) * per_unit)``."""
    for i in range(matrix.shape[0]):
        row, target = matrix[i], out[i]
        for j in range(row.size):
            target[j] = np.rint((np.float64(row[j]) - origin[j]) * per_unit[j])

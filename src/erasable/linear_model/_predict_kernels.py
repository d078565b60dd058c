"""Kernels that predict: every row by a fixed formula of that row alone."""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Indices, Matrix


@subroutine
def predict_row(row: Matrix, middle: Floats, slope: Floats, base: Floats, out: Floats) -> None:
    """Write ``base + slope (row - middle)`` to `out`, in eight sums, for each target."""
    d = row.size
    whole = d - d % 8
    for i in range(base.size):
        s = slope[i]
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        for j in range(0, whole, 8):
            a0 += (np.float64(row[j]) - middle[j]) * s[j]
            a1 += (np.float64(row[j + 1]) - middle[j + 1]) * s[j + 1]
            a2 += (np.float64(row[j + 2]) - middle[j + 2]) * s[j + 2]
            a3 += (np.float64(row[j + 3]) - middle[j + 3]) * s[j + 3]
            a4 += (np.float64(row[j + 4]) - middle[j + 4]) * s[j + 4]
            a5 += (np.float64(row[j + 5]) - middle[j + 5]) * s[j + 5]
            a6 += (np.float64(row[j + 6]) - middle[j + 6]) * s[j + 6]
            a7 += (np.float64(row[j + 7]) - middle[j + 7]) * s[j + 7]
        for j in range(whole, d):
            a0 += (np.float64(row[j]) - middle[j]) * s[j]
        out[i] = base[i] + (((a0 + a4) + (a2 + a6)) + ((a1 + a5) + (a3 + a7)))


@kernel
def predict(matrix: Matrix, middle: Floats, slope: Floats, base: Floats, out: Floats) -> None:
    """Predict every row."""
    for r in range(matrix.shape[0]):
        predict_row(matrix[r], middle, slope, base, out[r])


@kernel
def predict_sparse(
    data: Matrix, indices: Indices, indptr: Indices, slope: Floats, constant: Floats, out: Floats
) -> None:
    """Predict every row, given by its entries, as ``constant + slope row``."""
    for r in range(out.shape[0]):
        for i in range(constant.size):
            total = 0.0
            for e in range(indptr[r], indptr[r + 1]):
                total += np.float64(data[e]) * slope[i, indices[e]]
            out[r, i] = constant[i] + total

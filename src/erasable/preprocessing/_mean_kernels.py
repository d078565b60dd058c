"""Kernels of means over the observed values of a table with gaps.

NaN is a gap, and so is `gap`, which is NaN where nothing else is. Sums are of gridded values, in
quanta: integers, exact in any order (see `erasable.core.grid`).
"""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import quantise
from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import divide, two_sum
from erasable.core.arrays import Floats, Ints, Matrix

Grid = tuple[Floats, Floats, Floats]
"""Origins, magic numbers and quanta in one, of every column."""
Bounds = tuple[Floats, Floats]
"""Lowest and highest value of every column."""


@subroutine
def observed(value: float, gap: float) -> bool:
    """Tell whether a value is none of the gaps."""
    return value == value and value != gap


@kernel
def extremes(
    matrix: Matrix, rows: Ints, gap: float, low: Floats, high: Floats, reached: Ints
) -> None:
    """Widen `low` and `high` to the observed extremes of every column.

    `reached` counts the values that equal them, and in its third line all that are observed.
    """
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            if not observed(value, gap):
                continue
            reached[2, j] += 1
            if value <= low[j]:
                reached[0, j] = reached[0, j] + 1 if value == low[j] else 1
                low[j] = value
            if value >= high[j]:
                reached[1, j] = reached[1, j] + 1 if value == high[j] else 1
                high[j] = value


@kernel
def add(matrix: Matrix, rows: Ints, gap: float, grid: Grid, sums: Floats) -> None:
    """Add the gridded values of rows to the sums of every column."""
    origin, magic, per_quantum = grid
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            if observed(value, gap):
                sums[j] += quantise(value - origin[j], magic[j]) * per_quantum[j]


@kernel
def forget(
    matrix: Matrix, rows: Ints, gap: float, grid: Grid, bounds: Bounds, reached: Ints, sums: Floats
) -> bool:
    """Take rows out of sums and counts; true if a column has lost the last value at an extreme."""
    origin, magic, per_quantum = grid
    low, high = bounds
    gone = False
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            if not observed(value, gap):
                continue
            sums[j] -= quantise(value - origin[j], magic[j]) * per_quantum[j]
            reached[2, j] -= 1
            reached[0, j] -= value == low[j]
            reached[1, j] -= value == high[j]
            gone |= reached[0, j] == 0 or reached[1, j] == 0
    return gone


@kernel
def means(n_values: Ints, sums: Floats, origin: Floats, quantum: Floats, out: Floats) -> None:
    """Write the mean of every column, rounded once; NaN where nothing is observed."""
    for j in range(out.size):
        if n_values[j] == 0:
            out[j] = np.nan
            continue
        high, low = divide(sums[j], 0.0, float(n_values[j]))
        total, error = two_sum(origin[j], high * quantum[j])
        out[j] = total + (error + low * quantum[j])

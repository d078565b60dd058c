"""Kernels of sums and counts by class: one pass over the rows, each added to the line of its class.

`codes` holds the line of each row of the matrix. All terms are integers, so that the results do not
depend on the order of the rows. `sign` is 1 to add rows and -1 to subtract them. `units` are the
weights of `rows`, whole numbers of at most 26 bits.
"""

from __future__ import annotations

import math

import numpy as np

from erasable.core._grid_kernels import ceil_log2, quantise
from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Flags, Floats, Indices, Ints, Ints32, Matrix


@inlined
def _raise_top(value: float, j: int, half: Floats, counts: Ints) -> None:
    """Raise the bound of a column to that of `value`, and count it if it is above `half`."""
    if value > 2.0 * half[j]:
        half[j] = math.ldexp(0.5, ceil_log2(value))
        counts[j] = 0
    counts[j] += value > half[j]


@kernel
def find_tops(matrix: Matrix, rows: Ints, half: Floats, counts: Ints) -> None:
    """Find the smallest powers of two that bound non-negative columns, and count values near them.

    `half` becomes half of that bound, `counts` the number of values above `half`. Both are
    initialised: half of the least possible bound, and 0.
    """
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            _raise_top(np.float64(row[j]), j, half, counts)


@kernel
def find_tops_sparse(
    data: Matrix, indices: Indices, indptr: Indices, rows: Ints, half: Floats, counts: Ints
) -> None:
    """Do as `find_tops` does, for a CSR matrix; columns whose `half` is inf are skipped."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            _raise_top(np.float64(data[e]), indices[e], half, counts)


@kernel
def find_top(matrix: Matrix, rows: Ints, j: int, half: Floats, counts: Ints) -> None:
    """Do as `find_tops` does, for one column."""
    for i in range(rows.size):
        _raise_top(np.float64(matrix[rows[i], j]), j, half, counts)


@kernel
def forget_tops(matrix: Matrix, rows: Ints, half: Floats, counts: Ints) -> bool:
    """Subtract rows from the counts of `find_tops`; return True if one of these drops to 0."""
    gone = False
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            if np.float64(row[j]) > half[j]:
                counts[j] -= 1
                gone |= counts[j] == 0
    return gone


@kernel
def forget_tops_sparse(
    data: Matrix, indices: Indices, indptr: Indices, rows: Ints, half: Floats, counts: Ints
) -> bool:
    """Do as `forget_tops` does, for a CSR matrix."""
    gone = False
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if np.float64(data[e]) > half[j]:
                counts[j] -= 1
                gone |= counts[j] == 0
    return gone


@kernel
def add_rows(
    matrix: Matrix,
    rows: Ints,
    codes: Ints32,
    magic: Floats,
    per_quantum: Floats,
    sign: float,
    sums: Floats,
) -> None:
    """Add the gridded values of rows, in quanta, to the sums of their classes."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        target = sums[codes[rows[i]]]
        for j in range(row.size):
            target[j] += sign * (quantise(np.float64(row[j]), magic[j]) * per_quantum[j])


@kernel
def add_column(
    matrix: Matrix,
    rows: Ints,
    codes: Ints32,
    j: int,
    magic: float,
    per_quantum: float,
    sums: Floats,
) -> None:
    """Add the gridded values of rows in one column, in quanta, to ``sums[:, j]``."""
    for i in range(rows.size):
        value = quantise(np.float64(matrix[rows[i], j]), magic)
        sums[codes[rows[i]], j] += value * per_quantum


@kernel
def add_columns_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    codes: Ints32,
    wanted: Flags,
    magic: Floats,
    per_quantum: Floats,
    sums: Floats,
) -> None:
    """Do as `add_column` does, for some columns of a CSR matrix."""
    for i in range(rows.size):
        target = sums[codes[rows[i]]]
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if wanted[j]:
                target[j] += quantise(np.float64(data[e]), magic[j]) * per_quantum[j]


@kernel
def count_above(
    matrix: Matrix,
    rows: Ints,
    codes: Ints32,
    units: Ints,
    threshold: float,
    sign: int,
    counts: Ints,
) -> None:
    """Count the values above a threshold."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        target = counts[codes[rows[i]]]
        step = sign * units[i]
        for j in range(row.size):
            target[j] += step if np.float64(row[j]) > threshold else 0


@kernel
def count_above_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    codes: Ints32,
    units: Ints,
    threshold: float,
    sign: int,
    counts: Ints,
) -> None:
    """Count the values above a threshold, which is 0 or more, in rows of a CSR matrix."""
    for i in range(rows.size):
        target = counts[codes[rows[i]]]
        step = sign * units[i]
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if np.float64(data[e]) > threshold:
                target[indices[e]] += step


@kernel
def survey_categories(matrix: Matrix, rows: Ints, largest: Floats, wrong: Ints) -> None:
    """Find the largest value of every column; count the negative ones, and those not whole.

    `wrong` has shape (2, n_features); both start at 0.
    """
    for i in range(rows.size):
        row = matrix[rows[i]]
        for j in range(row.size):
            value = np.float64(row[j])
            largest[j] = value if value > largest[j] else largest[j]
            wrong[0, j] += value < 0.0
            wrong[1, j] += value != np.floor(value)


@kernel
def count_categories(
    matrix: Matrix, rows: Ints, codes: Ints32, units: Ints, starts: Ints, sign: int, counts: Ints
) -> None:
    """Count the categories 0, 1, ... of every column; those of column j begin at ``starts[j]``."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        target = counts[codes[rows[i]]]
        step = sign * units[i]
        for j in range(row.size):
            target[starts[j] + np.int64(row[j])] += step


@kernel
def add_looked_up(matrix: Matrix, starts: Ints, table: Floats, out: Floats) -> None:
    """Add to every row of `out` the lines of `table` that the categories of a row point to."""
    for i in range(matrix.shape[0]):
        row, target = matrix[i], out[i]
        for j in range(row.size):
            line = table[starts[j] + np.int64(row[j])]
            for c in range(target.size):
                target[c] += line[c]

"""Kernels over rows of compressed sparse row matrices: one pass each, in the order of the rows.

A matrix comes as (data, indices, indptr). Row i holds the entries ``indptr[i]`` to
``indptr[i + 1]``; an erased row keeps its place with zeros in it, which every kernel passes over.
"""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import quantise
from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Flags, Floats, Indices, Ints, Ints32, Matrix


@kernel
def erase(data: Matrix, indices: Indices, indptr: Indices, rows: Ints) -> None:
    """Overwrite rows: values and column indices."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            data[e] = 0.0
            indices[e] = 0


@inlined
def _raise_peak(size: float, j: int, peak: Floats, counts: Ints) -> None:
    """Raise the peak of a column to `size`, or count a value that equals it."""
    if size > peak[j]:
        peak[j] = size
        counts[0, j] = 1
    elif size == peak[j]:
        counts[0, j] += 1


@kernel
def peaks(
    data: Matrix, indices: Indices, indptr: Indices, rows: Ints, peak: Floats, counts: Ints
) -> None:
    """Find the largest magnitude of every column, how many values reach it, and how many are not 0.

    `peak` starts at 0 and `counts`, of shape (2, n_features), at 0.
    """
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            size, j = abs(np.float64(data[e])), indices[e]
            if size == 0.0:
                continue
            counts[1, j] += 1
            _raise_peak(size, j, peak, counts)


@kernel
def forget_peaks(
    data: Matrix, indices: Indices, indptr: Indices, rows: Ints, peak: Floats, counts: Ints
) -> bool:
    """Subtract rows from the counts; return True if a column loses the last value at its peak."""
    gone = False
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            size, j = abs(np.float64(data[e])), indices[e]
            if size == 0.0:
                continue
            counts[1, j] -= 1
            if size == peak[j]:
                counts[0, j] -= 1
                gone |= counts[0, j] == 0
    return gone


@kernel
def rescan_peaks(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    wanted: Flags,
    peak: Floats,
    counts: Ints,
) -> None:
    """Find the peaks of some columns again; `peak` and ``counts[0]`` of these start at 0."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if not wanted[j]:
                continue
            size = abs(np.float64(data[e]))
            if size == 0.0:
                continue
            _raise_peak(size, j, peak, counts)


@kernel
def moved(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    before: Floats,
    after: Floats,
    values: Flags,
) -> None:
    """Flag the columns in which some gridded value differs between two grids (magic numbers)."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if before[j] != after[j] and not values[j]:
                value = np.float64(data[e])
                values[j] = quantise(value, before[j]) != quantise(value, after[j])


@kernel
def to_grid(
    data: Matrix, indices: Indices, indptr: Indices, rows: Ints, magic: Floats, out: Floats
) -> None:
    """Write the gridded values of rows to `out`, one row's entries after the other's."""
    place = 0
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            out[place] = quantise(np.float64(data[e]), magic[indices[e]])
            place += 1


@kernel
def add_to_groups(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    codes: Ints32,
    magic: Floats,
    per_quantum: Floats,
    sign: float,
    sums: Floats,
) -> None:
    """Add the gridded values of rows, in quanta, to the sums of their groups; or subtract them.

    `codes` holds the line of `sums` of each row of the matrix. The terms are integers: exact in any
    order.
    """
    for i in range(rows.size):
        target = sums[codes[rows[i]]]
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            target[j] += sign * (quantise(np.float64(data[e]), magic[j]) * per_quantum[j])


@kernel
def column_values(
    data: Matrix, indices: Indices, indptr: Indices, rows: Ints, j: int, out: Floats
) -> None:
    """Write the values of one column in some rows to `out`, which is 0 before."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if indices[e] == j:
                out[i] = np.float64(data[e])


@kernel
def project_sparse(
    data: Matrix, indices: Indices, indptr: Indices, basis: Floats, out: Floats
) -> None:
    """Add ``rows @ basis`` to `out`, as `project` in `core._eigen_kernels` does for dense rows."""
    for i in range(out.shape[0]):
        target = out[i]
        for e in range(indptr[i], indptr[i + 1]):
            value, line = np.float64(data[e]), basis[indices[e]]
            for k in range(target.size):
                target[k] += value * line[k]

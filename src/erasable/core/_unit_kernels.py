"""Kernels of weighted sums by class: products of whole numbers, cut into limbs of 26 bits.

A gridded value is a whole number m of quanta, ``|m| <= 2**26``, and a row counts ``units`` times, a
whole number of at most 26 bits. The limbs of ``u m`` and ``u m m`` are integers: sums of ``2**27``
of them are below ``2**63``, exact in any order. `sign` is 1 to add rows and -1 to subtract them; a
row is cut first and then given its sign, so that it subtracts exactly what it added.
"""

from __future__ import annotations

import numpy as np

from erasable.core._grid_kernels import BITS, quantise
from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Flags, Floats, Indices, Ints, Ints32, Matrix

LIMB = 2**BITS
_MASK = LIMB - 1


@inlined
def _add_product(m: np.int64, unit: int, sign: int, sums: Ints, line: int, j: int) -> None:
    """Add the two limbs of ``unit m``."""
    product = unit * m
    sums[0, line, j] += sign * (product >> BITS)
    sums[1, line, j] += sign * (product & _MASK)


@inlined
def _add_square(m: np.int64, unit: int, sign: int, sums: Ints, line: int, j: int) -> None:
    """Add the three limbs of ``unit m m``."""
    square = m * m
    low = unit * (square & _MASK)
    high = unit * (square >> BITS) + (low >> BITS)
    sums[2, line, j] += sign * (high >> BITS)
    sums[3, line, j] += sign * (high & _MASK)
    sums[4, line, j] += sign * (low & _MASK)


@kernel
def add_rows(
    matrix: Matrix,
    rows: Ints,
    codes: Ints32,
    units: Ints,
    wanted: Flags,
    magic: Floats,
    per_quantum: Floats,
    sign: int,
    sums: Ints,
) -> None:
    """Add the products ``u m`` of some columns to `sums`, of shape (2, n_classes, n_features)."""
    for i in range(rows.size):
        row = matrix[rows[i]]
        line = codes[rows[i]]
        for j in range(row.size):
            if wanted[j]:
                m = np.int64(quantise(np.float64(row[j]), magic[j]) * per_quantum[j])
                _add_product(m, units[i], sign, sums, line, j)


@kernel
def add_rows_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    codes: Ints32,
    units: Ints,
    wanted: Flags,
    magic: Floats,
    per_quantum: Floats,
    sign: int,
    sums: Ints,
) -> None:
    """Do the same as `add_rows`, for a CSR matrix."""
    for i in range(rows.size):
        line = codes[rows[i]]
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if wanted[j]:
                m = np.int64(quantise(np.float64(data[e]), magic[j]) * per_quantum[j])
                _add_product(m, units[i], sign, sums, line, j)


@kernel
def add_moments(
    matrix: Matrix,
    rows: Ints,
    codes: Ints32,
    units: Ints,
    wanted: Flags,
    origin: Floats,
    magic: Floats,
    per_quantum: Floats,
    sign: int,
    sums: Ints,
) -> None:
    """Add ``u m`` (two limbs) and ``u m m`` (three) to `sums`, of shape (5, n_classes, n_features).

    Limbs go from high to low; the highest bears the sign, the others are 0 or more.
    """
    for i in range(rows.size):
        row = matrix[rows[i]]
        line = codes[rows[i]]
        for j in range(row.size):
            if not wanted[j]:
                continue
            m = np.int64(quantise(np.float64(row[j]) - origin[j], magic[j]) * per_quantum[j])
            _add_product(m, units[i], sign, sums, line, j)
            _add_square(m, units[i], sign, sums, line, j)


@kernel
def add_moments_sparse(
    data: Matrix,
    indices: Indices,
    indptr: Indices,
    rows: Ints,
    units: Ints,
    wanted: Flags,
    magic: Floats,
    per_quantum: Floats,
    sign: int,
    sums: Ints,
) -> None:
    """Do as `add_moments` does, for a CSR matrix of one class: zeros add nothing."""
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[e]
            if not wanted[j]:
                continue
            m = np.int64(quantise(np.float64(data[e]), magic[j]) * per_quantum[j])
            _add_product(m, units[i], sign, sums, 0, j)
            _add_square(m, units[i], sign, sums, 0, j)

"""Kernels of random waves: drawn from the tape, and read off at rows.

A value is a fixed left-to-right formula of one row and one wave. The loops run across waves, which
is what lets the compiler vectorise them, and never along a row.
"""

from __future__ import annotations

import numpy as np

from erasable.core._function_kernels import cos_turns
from erasable.core._jit import kernel
from erasable.core._tape_kernels import draw2, to_unit
from erasable.core.arrays import Csr, Floats, Ints, Matrix

_CACHE = 2**15  # frequencies that stay in cache while rows go by
_LEAST = 16


@kernel
def draw_uniforms(seed: np.uint64, key: np.uint64, stream: np.uint32, out: Floats) -> None:
    """Draw ``out[i]``, uniform between 0 and 1, for step i of a key."""
    for i in range(out.size):
        out[i] = to_unit(draw2(seed, key, stream, np.uint32(i))[0])


@kernel
def waves_at(matrix: Matrix, rows: Ints, frequencies: Floats, phases: Floats, out: Floats) -> None:
    """Write ``cos(2 pi (phase + x frequency))`` of every wave at every row to `out`."""
    d, n_waves = frequencies.shape
    whole = d - d % 4
    width = max(_CACHE // max(d, 1), _LEAST)
    for first in range(0, n_waves, width):
        last = min(first + width, n_waves)
        some = frequencies[:, first:last]
        for r in range(rows.size):
            x, t = matrix[rows[r]], out[r, first:last]
            for i in range(t.size):
                t[i] = phases[first + i]
            for j in range(0, whole, 4):
                x0, x1 = np.float64(x[j]), np.float64(x[j + 1])
                x2, x3 = np.float64(x[j + 2]), np.float64(x[j + 3])
                f0, f1, f2, f3 = some[j], some[j + 1], some[j + 2], some[j + 3]
                for i in range(t.size):
                    t[i] = (((t[i] + x0 * f0[i]) + x1 * f1[i]) + x2 * f2[i]) + x3 * f3[i]
            for j in range(whole, d):
                x0, f0 = np.float64(x[j]), some[j]
                for i in range(t.size):
                    t[i] += x0 * f0[i]
            for i in range(t.size):
                t[i] = cos_turns(t[i])


@kernel
def waves_at_sparse(
    matrix: Csr, rows: Ints, frequencies: Floats, phases: Floats, out: Floats
) -> None:
    """Do the same for rows given by their entries; a zero adds nothing, so the bits are equal."""
    data, indices, indptr = matrix
    for r in range(rows.size):
        t = out[r]
        for i in range(t.size):
            t[i] = phases[i]
        for e in range(indptr[rows[r]], indptr[rows[r] + 1]):
            x, f = np.float64(data[e]), frequencies[indices[e]]
            for i in range(t.size):
                t[i] += x * f[i]
        for i in range(t.size):
            t[i] = cos_turns(t[i])

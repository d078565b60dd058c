"""Kernels of random waves: drawn from the tape, and read off at rows.

A value is a fixed left-to-right formula of one row and one wave. The loops run across waves, which
is what lets the compiler vectorise them, and never along a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core._tape_kernels import draw2, log, to_unit
from erasable.core.arrays import Csr, Floats, Ints, Matrix

_ROUND = np.float64(1.5 * 2.0**52)  # adding it leaves no digits behind the point
_KNOWN = np.float64(2.0**51)
_EIGHTH, _QUARTER, _THREE = np.float64(0.125), np.float64(0.25), np.float64(0.375)
_HALF, _ONE = np.float64(0.5), np.float64(1.0)

_C0 = np.float64(19.739208802178716)  # (2 pi)**2 / 2
_C1 = np.float64(64.9393940226682)
_C2 = np.float64(-85.45681720660279)
_C3 = np.float64(60.2446413424593)
_C4 = np.float64(-26.426252110769937)
_C5 = np.float64(7.90314500414306)
_C6 = np.float64(-1.697786258825899)

_S0 = np.float64(6.283185307179586)  # 2 pi, and what that lacks
_S0_LOW = np.float64(2.4492935982947064e-16)
_S1 = np.float64(-41.34170224039968)
_S2 = np.float64(81.60524927596886)
_S3 = np.float64(-76.7058597089433)
_S4 = np.float64(42.05868552483791)
_S5 = np.float64(-15.093830287058815)
_S6 = np.float64(3.7813859205893228)


@subroutine
def cos_turns(t: np.float64) -> np.float64:
    """Compute ``cos(2 pi t)``, with an error below 2 units in the last place.

    It is exact at multiples of a quarter, and 0 for NaN and beyond ``2**51`` turns.
    """
    turns = np.float64(t)
    away = abs(turns - ((turns + _ROUND) - _ROUND))
    a = away if abs(turns) <= _KNOWN else _QUARTER
    upright = (a > _EIGHTH) & (a < _THREE)
    near = a if a <= _EIGHTH else _HALF - a
    s = _QUARTER - a if upright else near
    z = s * s
    h = _C0 * z
    w = _ONE - h
    even = z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6)))))
    cosine = w + (((_ONE - w) - h) + even)
    odd = z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
    sine = s * _S0 + s * (_S0_LOW + odd)
    signed = cosine if a <= _EIGHTH else -cosine
    return sine if upright else signed


_CACHE = 2**15  # frequencies that stay in cache while rows go by
_LEAST = 16


@kernel
def draw_normals(seed: np.uint64, keys: NDArray[np.uint64], stream: np.uint32, out: Floats) -> None:
    """Draw ``out[j, i]``, normal of variance 1, for key j and step i: by Box and Muller."""
    for j in range(out.shape[0]):
        for i in range(out.shape[1]):
            radius, angle = draw2(seed, keys[j], stream, np.uint32(i))
            out[j, i] = np.sqrt(-2.0 * log(to_unit(radius))) * cos_turns(to_unit(angle))


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

"""The exponential, the cosine and normal numbers by fixed formulas, the same bits on every machine.

They call no library, whose last bits differ between machines and whose errors are not known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core._tape_kernels import draw2, log, to_unit
from erasable.core.arrays import Floats, Ints

EXP_ERROR = 4 * 2.0**-53
"""Bound of the relative error of `expose`: reduction 0.6, the last two sums 2.1 and the tail 0.3
units, at a result of 0.7 or more. 1.2 were seen."""

LIMIT = 700.0
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # fdlibm's
_TO_INTEGER = 1.5 * 2.0**52
_BIAS, _SHIFT = np.int64(1023), np.int64(52)


@subroutine
def expose(values: Floats, bits: Ints) -> None:
    """Replace numbers by their exponentials; below -700 and above 700 by those of the limits.

    `bits` is scratch space of the same size. ``x = k ln 2 + r``, a Taylor polynomial in r, and k
    put into the exponent: loops without a branch, which the compiler vectorises.
    """
    powers = bits.view(np.float64)
    for i in range(values.size):
        x = values[i]
        x = x if x < LIMIT else LIMIT
        x = x if x > -LIMIT else -LIMIT
        k = x * _LOG2_E + _TO_INTEGER
        powers[i] = k
        k -= _TO_INTEGER
        r = (x - k * _LN2_HIGH) - k * _LN2_LOW
        tail = 1.0 / 6227020800.0
        tail = tail * r + 1.0 / 479001600.0
        tail = tail * r + 1.0 / 39916800.0
        tail = tail * r + 1.0 / 3628800.0
        tail = tail * r + 1.0 / 362880.0
        tail = tail * r + 1.0 / 40320.0
        tail = tail * r + 1.0 / 5040.0
        tail = tail * r + 1.0 / 720.0
        tail = tail * r + 1.0 / 120.0
        tail = tail * r + 1.0 / 24.0
        tail = tail * r + 1.0 / 6.0
        tail = tail * r + 0.5
        values[i] = 1.0 + (r + r * r * tail)
    for i in range(values.size):
        bits[i] = (bits[i] + _BIAS) << _SHIFT
    for i in range(values.size):
        values[i] *= powers[i]


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


@kernel
def draw_normals(seed: np.uint64, keys: NDArray[np.uint64], stream: np.uint32, out: Floats) -> None:
    """Draw ``out[j, i]``, normal of variance 1, for key j and step i: by Box and Muller."""
    for j in range(out.shape[0]):
        for i in range(out.shape[1]):
            radius, angle = draw2(seed, keys[j], stream, np.uint32(i))
            out[j, i] = np.sqrt(-2.0 * log(to_unit(radius))) * cos_turns(to_unit(angle))

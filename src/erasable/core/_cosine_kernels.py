"""The cosine of an angle in turns, by a fixed formula of our own: the same bits on every machine.

In turns an angle loses its whole turns exactly, whatever its size; in radians that would take
many digits of pi. Only +, - and * of IEEE arithmetic are used, and choices between two results, so
that the loops of callers vectorise. The method is fdlibm's, ``k_cos.c`` and ``k_sin.c``, with
the coefficients of its polynomials multiplied by powers of 2 pi.
"""

from __future__ import annotations

import numpy as np

from erasable.core._jit import subroutine

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
    """Compute ``cos(2 pi t)``.

    Parameters
    ----------
    t : float64
        Angle in turns.

    Returns
    -------
    float64
        From -1 to 1, with an error below 2 units in the last place; exact at multiples of a
        quarter. 0 where the angle is not known: beyond ``2**51`` turns, or NaN.
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

"""Double-double arithmetic: about 100 bits, whatever cancels.

A number is the unevaluated sum of two floats (Dekker 1971).
"""

from __future__ import annotations

import math

import numpy as np

from erasable.core._centring_kernels import add as add_double
from erasable.core._centring_kernels import multiply as times_double
from erasable.core._function_kernels import LIMIT
from erasable.core._jit import kernel, subroutine
from erasable.core._moment_kernels import two_sum
from erasable.core.arrays import Floats, Ints

# ln 2 in three parts, of which the first two have 40 bits: an exponent times these is exact.
_LN2_A, _LN2_B, _LN2_C = 0.6931471805601177, -1.7239444525610826e-13, -4.00865610552017e-26
# 1/3!, 1/4! and 1/5!
_THIRD, _THIRD_LOW = 0.16666666666666666, 9.25185853854297e-18
_FOURTH, _FOURTH_LOW = 0.041666666666666664, 2.3129646346357427e-18
_FIFTH, _FIFTH_LOW = 0.008333333333333333, 1.1564823173178714e-19
_SQUARINGS = 9
_LEAST_POWER = -1011
_POWERS = np.ldexp(1.0, np.arange(_LEAST_POWER, 1))


@subroutine
def divide_double(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """Return ``(a + b) / (c + d)``."""
    first = a / c
    high, low = times_double(first, 0.0, c, d)
    high, low = add_double(a, b, -high, -low)
    second = high / c
    again, lower = times_double(second, 0.0, c, d)
    high, low = add_double(high, low, -again, -lower)
    total, error = two_sum(first, second)
    return two_sum(total, error + high / c)


@subroutine
def exp_doubles(highs: Floats, lows: Floats, powers: Ints) -> None:
    """Put exponentials, to ``2**-98`` of themselves or ``2**-1060``, in the place of numbers.

    These are 0 or less; at -700 and below it is the one of -700. Reduced to ``|r| < 0.35 / 512``,
    eight terms of Taylor's series of ``exp(r) - 1``, the last of them in doubles, and nine times
    ``2 y + y**2``, which is ``(1 + y)**2 - 1``. Every loop is one that compilers vectorise.
    `powers` is overwritten.
    """
    small = math.ldexp(1.0, -_SQUARINGS)
    for i in range(highs.size):
        high, low = highs[i], lows[i]
        within = high > -LIMIT
        high, low = (high if within else -LIMIT), (low if within else 0.0)
        k = np.rint(high * 1.4426950408889634)
        powers[i] = np.int64(k)
        a, b = two_sum(high, -k * _LN2_A)
        a, b = add_double(a, b, low, 0.0)
        a, b = add_double(a, b, -k * _LN2_B, -k * _LN2_C)
        a, b = a * small, b * small
        y = ((a / 40320.0 + 1.0 / 5040.0) * a + 1.0 / 720.0) * a
        y, z = add_double(_FIFTH, _FIFTH_LOW, y, 0.0)
        y, z = times_double(y, z, a, b)
        y, z = add_double(_FOURTH, _FOURTH_LOW, y, z)
        y, z = times_double(y, z, a, b)
        y, z = add_double(_THIRD, _THIRD_LOW, y, z)
        y, z = times_double(y, z, a, b)
        y, z = add_double(0.5, 0.0, y, z)
        y, z = times_double(y, z, a, b)
        y, z = add_double(1.0, 0.0, y, z)
        highs[i], lows[i] = times_double(y, z, a, b)
    for _ in range(_SQUARINGS):
        for i in range(highs.size):
            y, z = highs[i], lows[i]
            s, t = times_double(y, z, y, z)
            highs[i], lows[i] = add_double(2.0 * y, 2.0 * z, s, t)
    for i in range(highs.size):
        y, z = add_double(1.0, 0.0, highs[i], lows[i])
        scale = _POWERS[powers[i] - _LEAST_POWER]
        highs[i], lows[i] = y * scale, z * scale


@kernel
def add_products(
    rows: Floats,
    rows_low: Floats,
    coefficients: Floats,
    coefficients_low: Floats,
    out: Floats,
    out_low: Floats,
) -> None:
    """Add to ``out + out_low``, shape (m, D, m, D), the products of rows with themselves.

    `coefficients`, shape (n, m, m), say how often for each pair of logits.
    """
    n, width = rows.shape
    m = coefficients.shape[1]
    for i in range(n):
        for j in range(width):
            for h in range(j + 1):
                a, b = times_double(rows[i, j], rows_low[i, j], rows[i, h], rows_low[i, h])
                if a == 0.0:
                    continue
                for k in range(m):
                    for g in range(m):
                        c, d = times_double(a, b, coefficients[i, k, g], coefficients_low[i, k, g])
                        out[k, j, g, h], out_low[k, j, g, h] = add_double(
                            out[k, j, g, h], out_low[k, j, g, h], c, d
                        )

"""The lattice on which an optimum is published: multiples of 2**-20 in units of the columns.

The optimum of strictly convex training is a function of the records alone, so the point of a
lattice that is nearest to it is one, too, and can be found from any approximation that is known to
be near enough. Numbers near a boundary come as sums of two floats (high, low).
"""

from __future__ import annotations

import numpy as np

from erasable.core.arrays import Floats

Pair = tuple[Floats, Floats]

STEP = 2.0**-20
TIE = 2.0**-60
"""Numbers nearer than this, in steps, to a boundary count as on it: they go to the even multiple.

So there are two kinds of places, and what is certain is so for every interval around the optimum:
which kind it is in is a function of the optimum alone.
"""

_HOPELESS = 16.0
_SPLITTER = 2.0**27 + 1.0


def round_intervals(high: Floats, low: Floats, half: Floats) -> tuple[Floats, bool]:
    """Round intervals to multiples of `STEP`; tell whether the result is certain.

    Their middles are ``high + low``, `half` is half their widths. The result is certain if each
    interval lies within a cell of the lattice, or within `TIE` of a boundary; otherwise it is of no
    use.

    >>> import numpy as np
    >>> round_intervals(np.array([3.2 * STEP]), np.zeros(1), np.array([0.2 * STEP]))[0] / STEP
    array([3.])
    >>> round_intervals(np.array([3.2 * STEP]), np.zeros(1), np.array([0.4 * STEP]))[1]
    False
    """
    # With so wide intervals one of them is over a boundary: do not look for it.
    if not (float(half.max()) < 0.5 * STEP and float(half.sum()) < _HOPELESS * STEP):
        return high, False
    scaled = high / STEP
    nearest = np.rint(scaled)
    # The difference to a neighbour, and to the boundary next to it, is exact, so that what is left
    # to the boundary is rounded relative to itself, however little it is.
    offset = scaled - nearest
    side = np.where((offset > 0) | ((offset == 0) & (low > 0)), 1.0, -1.0)
    left = (0.5 - side * offset) - side * (low / STEP)
    neighbour = nearest + side
    wide = half / STEP * (1.0 + 2.0**-20) + 2.0**-50 * np.abs(left)
    tied = np.abs(left) + wide < TIE
    clear = np.abs(left) - wide > TIE
    even = np.where(np.fmod(nearest, 2.0) == 0.0, nearest, neighbour)
    values = np.where(tied, even, np.where(left < 0, neighbour, nearest)) * STEP + 0.0
    return values, bool((tied | clear).all())


def pair_sum(a: Pair, b: Pair) -> Pair:
    """Return ``a + b``."""
    total, error = two_sum(a[0], b[0])
    low, lower = two_sum(a[1], b[1])
    total, error = two_sum(total, error + low)
    return two_sum(total, error + lower)


def pair_times(a: Pair, factor: Floats | float) -> Pair:
    """Return ``a * factor``."""
    product = a[0] * factor
    a_high, a_low = _split(a[0])
    b_high, b_low = _split(np.asarray(factor, dtype=np.float64))
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return two_sum(product, error + a[1] * factor)


def pair_divide(a: Pair, divisor: float) -> Pair:
    """Return ``a / divisor``."""
    quotient = a[0] / divisor
    high, low = pair_times((quotient, np.zeros_like(quotient)), -divisor)
    rest = ((a[0] + high) + low + a[1]) / divisor
    return two_sum(quotient, rest)


def two_sum(a: Floats, b: Floats) -> Pair:
    """Return ``a + b`` without error: Knuth's two-sum."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _split(a: Floats) -> Pair:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high

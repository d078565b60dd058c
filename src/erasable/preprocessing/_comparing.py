"""Comparisons of numbers and elements now with those before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Ints


def places_before(before: Ints, now: Ints) -> Ints:
    """Return where each of some ascending numbers was among others; -1 if it was not there."""
    places = np.searchsorted(before, now)
    found = np.isin(now, before)
    return np.where(found, places, -1)


def differ(one: NDArray[Any], two: NDArray[Any]) -> Flags:
    """Tell which elements differ in value or type; NaN does not differ from NaN."""
    if one.dtype == two.dtype != object:
        return np.asarray((one != two) & ((one == one) | (two == two)), dtype=np.bool_)
    pairs = zip(one.tolist(), two.tolist(), strict=True)
    return np.array(
        [type(a) is not type(b) or (a != b and not (a != a and b != b)) for a, b in pairs],
        dtype=np.bool_,
    )

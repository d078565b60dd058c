"""Seeds: integers of 64 bits, made of what users pass as `random_state`."""

from __future__ import annotations

import secrets
from numbers import Integral
from typing import cast

import numpy as np
from sklearn.utils._param_validation import Interval

from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten

BELOW_SEED = 2**64
"""Seeds are non-negative integers below this."""

SEEDS = [
    None,
    Interval(Integral, 0, BELOW_SEED - 1, closed="both"),
    np.random.RandomState,
    np.random.Generator,
]
"""Constraints of a parameter `random_state`, for scikit-learn's validation of parameters."""


def draw_seed() -> int:
    """Draw a seed from the operating system."""
    return secrets.randbits(64)


def seed_from(
    random_state: int | np.integer | np.random.RandomState | np.random.Generator | None,
) -> int:
    """Turn a `random_state` into a seed; a NumPy generator gives 64 bits and moves on."""
    if random_state is None:
        return draw_seed()
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        return int.from_bytes(random_state.bytes(8), "little")
    seed = integer_below(random_state, BELOW_SEED)
    if seed is None:
        raise InvalidInputError(
            f"random_state={shorten(random_state)}; expected None, an integer from 0 to 2**64 - 1, "
            "or a NumPy RandomState or Generator; pass None to draw a seed from the system"
        )
    return seed


def is_integer(kind: type) -> bool:
    """Tell whether values of this type are integers; booleans and time spans are not."""
    return issubclass(kind, int | np.integer) and not issubclass(kind, bool | np.timedelta64)


def is_number(value: object) -> bool:
    """Tell whether a value is a real number; booleans are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def integer_below(value: object, limit: int) -> int | None:
    """Return `value` as an int if it is a non-negative integer below `limit`, else None."""
    if not is_integer(type(value)):
        return None
    number = int(cast(int, value))
    return number if 0 <= number < limit else None

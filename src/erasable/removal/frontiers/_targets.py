"""Removal that is asked for: one number, or many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._reading import as_array

__all__ = ["read_targets"]

_LARGEST = 1e300


def read_targets(alpha: Any) -> NDArray[np.float64]:
    """Return alpha as an array of float64 of its own shape.

    Raises
    ------
    InvalidParameterError
        Something that is no number from 0 on, or too large to compute with.
    """
    given = as_array(alpha)
    plain = given.dtype.kind in "iuf"
    targets = given.astype(np.float64) if plain else np.zeros(0)
    if not plain or not ((targets >= 0) & (targets <= _LARGEST)).all():
        raise InvalidParameterError(
            f"alpha={shorten(alpha)}; expected finite numbers from 0 on, up to {_LARGEST:g} nats; "
            "pass how far from the unwanted domain the edited data are to be"
        )
    return targets

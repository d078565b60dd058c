"""Probabilities of classes, as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidParameterError

__all__ = ["read_prior"]


def read_prior(given: Any, name: str) -> NDArray[np.float64] | None:
    """Read the parameter `name`, which holds a probability for each class, or None.

    Raises
    ------
    InvalidParameterError

    Examples
    --------
    >>> read_prior([0.25, 0.75], "priors")
    array([0.25, 0.75])
    """
    if given is None:
        return None
    try:
        prior = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        prior = np.empty((0, 0))
    if prior.ndim != 1 or not (np.isfinite(prior) & (prior >= 0)).all() or not prior.any():
        raise InvalidParameterError(
            f"{name}= is a {type(given).__name__} that is no list of "
            "probabilities; expected a number for each class, none of them negative, not all "
            "of them 0 (Priors must be non-negative.); pass one for each of the sorted classes"
        )
    return prior

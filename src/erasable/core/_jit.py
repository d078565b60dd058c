"""How kernels are compiled: cached, strict IEEE arithmetic, no parallel reductions.

Neither ``fastmath`` nor ``parallel`` may ever appear here: both let the compiler reorder a
floating-point sum, and then a deletion no longer equals a refit bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with numba, cached on disk, keeping its Python type.

    Parameters
    ----------
    function : callable
        Plain function over NumPy arrays and scalars.

    Returns
    -------
    callable
        The compiled function; the first call of a new combination of types compiles it.
    """
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))

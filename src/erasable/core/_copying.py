"""Copies of arrays inside of kernels."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ._jit import subroutine


@subroutine
def copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Write `source` into an array of its shape, or into the beginning of a longer row.

    An assignment of slices does the same, and numba compiles for it what it would say of shapes
    that differ, for seconds in every kernel and with every number of dimensions. Here nothing is
    said of them: both arrays are to be contiguous, and `target` is to have room.
    """
    for i in range(source.size):
        target.flat[i] = source.flat[i]

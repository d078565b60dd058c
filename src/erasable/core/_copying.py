"""Copies of arrays inside of kernels."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ._jit import subroutine


@subroutine
def copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Write `source` into an array of its shape, or into the beginning of a longer row.

    Both are contiguous, and `target` has room: neither is checked. An assignment of slices checks
    shapes, and numba compiles that check for seconds in every kernel.
    """
    for i in range(source.size):
        target.flat[i] = source.flat[i]

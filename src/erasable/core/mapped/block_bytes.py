"""The bytes that a stored matrix would have in memory, for a file that is to hold a copy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core.passes import Stored

__all__ = ["BlockBytes"]


class BlockBytes:
    """Slices of the memory of a matrix, which is read block by block; forgotten rows are 0.

    Attributes
    ----------
    size : int
        Bytes.
    """

    def __init__(self, matrix: Stored) -> None:
        self._matrix = matrix
        self._width = matrix.shape[1] * matrix.dtype.itemsize
        self.size = matrix.shape[0] * self._width
        self._last: tuple[int, NDArray[np.uint8]] | None = None

    def __getitem__(self, at: slice) -> NDArray[np.uint8]:
        """Copy some bytes, from `start` to `stop`, of as many blocks as these lie in."""
        starts = self._matrix.starts * self._width
        out = np.empty(at.stop - at.start, np.uint8)
        number = int(np.searchsorted(starts, at.start, side="right")) - 1
        done = 0
        while done < out.size:
            low = at.start + done - int(starts[number])
            part = self._block(number)[low : low + out.size - done]
            out[done : done + part.size] = part
            done += part.size
            number += 1
        return out

    def _block(self, number: int) -> NDArray[np.uint8]:
        if self._last is None or self._last[0] != number:
            matrix = self._matrix
            first, stop = matrix.starts[number : number + 2].tolist()
            values = (
                matrix.block(number, gaps=True) if stop > first else np.empty((0, 0), matrix.dtype)
            )
            if matrix.gone is not None:
                values[matrix.gone[first:stop]] = 0.0
            self._last = number, values.ravel().view(np.uint8)
        return self._last[1]

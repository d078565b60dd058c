"""Names of the types of arrays, and arrays of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Csr", "Flags", "Floats", "Indices", "Ints", "Ints32", "Matrix", "Words", "of_objects"
]  # fmt: skip

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Words = NDArray[np.uint64]
Matrix = NDArray[np.float64] | NDArray[np.float32]
Indices = NDArray[np.int32] | NDArray[np.int64]
Csr = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Values, columns and starts of the rows of a sparse matrix, see `erasable.core.sparse.parts`."""


def of_objects(cells: Sequence[Any]) -> NDArray[Any]:
    """Make an array of objects, of one dimension whatever they are.

    Examples
    --------
    >>> of_objects([[1, 2], [3, 4]]).shape
    (2,)
    """
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array

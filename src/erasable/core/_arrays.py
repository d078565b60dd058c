"""Names of the types of arrays, and arrays of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Matrix = NDArray[np.float64] | NDArray[np.float32]
Words = NDArray[np.uint64]


def of_objects(cells: Sequence[Any]) -> NDArray[Any]:
    """Make an array of objects, of one dimension whatever they are."""
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array

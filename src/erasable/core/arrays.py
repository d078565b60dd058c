"""Types of arrays, and arrays of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Words = NDArray[np.uint64]
Matrix = NDArray[np.float64] | NDArray[np.float32]
Indices = NDArray[np.int32] | NDArray[np.int64]
Values: TypeAlias = Any
"""The values of X: an ndarray, or a csr_array, which has no types."""
Csr = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Values, columns and starts of the rows of a sparse matrix, see `erasable.core.sparse.parts`."""


def of_objects(cells: Sequence[Any]) -> NDArray[Any]:
    """Make a 1-dimensional array of objects, which may be sequences themselves."""
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def numpy_of(column: Any) -> NDArray[Any]:
    """Make an array of a column of a frame, or of an Arrow array."""
    array: NDArray[Any]
    array = column.to_numpy(zero_copy_only=False) if is_arrow_array(column) else column.to_numpy()
    return array


def is_arrow_array(values: Any) -> bool:
    """Tell whether values are an Arrow array in one piece, which narwhals does not take."""
    kind = type(values)
    is_array = kind.__name__.endswith("Array") and kind.__name__ != "ChunkedArray"
    return is_array and kind.__module__.partition(".")[0] == "pyarrow"

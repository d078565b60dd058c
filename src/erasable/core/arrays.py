"""Names of the types of arrays, and arrays of objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Csr", "Flags", "Floats", "Indices", "Ints", "Ints32", "Matrix", "Words",
    "is_arrow_array", "numpy_of", "of_objects",
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


def numpy_of(column: Any) -> NDArray[Any]:
    """Make an array of a column of a frame, or an array of Arrow, which copies nothing unasked.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numpy_of(pa.array(["a", None, "b"]))
    array(['a', None, 'b'], dtype=object)
    """
    array: NDArray[Any]
    array = column.to_numpy(zero_copy_only=False) if is_arrow_array(column) else column.to_numpy()
    return array


def is_arrow_array(values: Any) -> bool:
    """Tell whether values are an array of Arrow in one piece, which narwhals does not take.

    Examples
    --------
    >>> import pyarrow as pa
    >>> is_arrow_array(pa.array([1, 2])), is_arrow_array(pa.chunked_array([[1, 2]]))
    (True, False)
    """
    kind = type(values)
    is_array = kind.__name__.endswith("Array") and kind.__name__ != "ChunkedArray"
    return is_array and kind.__module__.partition(".")[0] == "pyarrow"

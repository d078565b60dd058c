"""Names for types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Csr", "Flags", "Floats", "Indices", "Ints"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int32]
Indices = NDArray[np.int32] | NDArray[np.int64]
Csr = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Values, columns and starts of the rows of a sparse matrix, see `erasable.core.sparse.parts`."""

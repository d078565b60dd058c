"""Names for types of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Flags", "Floats", "Indices", "Ints"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int32]
Indices = NDArray[np.int32] | NDArray[np.int64]

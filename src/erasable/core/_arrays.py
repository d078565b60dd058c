"""Names of the types of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Matrix = NDArray[np.float64] | NDArray[np.float32]
Words = NDArray[np.uint64]

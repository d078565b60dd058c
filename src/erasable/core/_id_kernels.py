"""The hash of a set of integer ids in one call: a deletion of one record asks for it every time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._tape_kernels import siphash24_integers

__all__ = ["sum_integer_keys"]


@kernel
def sum_integer_keys(
    seeds: NDArray[np.uint64],
    purpose: np.uint64,
    tag: np.uint64,
    values: NDArray[np.int64],
    sums: NDArray[np.uint64],
) -> None:
    """Add to `sums` the keys of integer ids under each of the seeds, modulo ``2**64``."""
    keys = np.empty(values.size, dtype=np.uint64)
    for t in range(seeds.size):
        siphash24_integers(seeds[t], purpose, tag, values.view(np.uint64), keys)
        for i in range(keys.size):
            sums[t] += keys[i]

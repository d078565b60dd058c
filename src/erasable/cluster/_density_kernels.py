"""Kernels of density clustering: sums of weights of near records, and connected records."""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Ints, Ints32


@kernel
def add_weights(starts: Ints, counts: Ints, near: Ints32, weights: Floats, sums: Floats) -> None:
    """Write the sum of the weights of the rows near each row."""
    for row in range(sums.size):
        total = 0.0
        for i in range(starts[row], starts[row] + counts[row]):
            total += weights[near[i]]
        sums[row] = total


@kernel
def label(order: Ints, core: Flags, starts: Ints, counts: Ints, near: Ints32, labels: Ints) -> None:
    """Label the rows of clusters, which are numbered by their first core rows in `order`.

    `labels` is -1 everywhere; a row near core rows of several clusters gets the first of them.
    """
    waiting = np.zeros(core.size, np.int64)
    cluster = 0
    for first in order:
        if not core[first] or labels[first] != -1:
            continue
        labels[first] = cluster
        waiting[0], n = first, 1
        while n:
            n -= 1
            row = waiting[n]
            for i in range(starts[row], starts[row] + counts[row]):
                other = near[i]
                if labels[other] == -1:
                    labels[other] = cluster
                    if core[other]:
                        waiting[n] = other
                        n += 1
        cluster += 1

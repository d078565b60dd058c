"""Kernels of the lists of near records: copied, and left by rows that are deleted."""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel
from erasable.core.arrays import Ints, Ints32


@kernel
def copy_lists(starts: Ints, counts: Ints, rows: Ints32, begins: Ints, out: Ints32) -> None:
    """Copy the list of each row to where it begins in `out`."""
    for row in range(starts.size):
        for i in range(counts[row]):
            out[begins[row] + i] = rows[starts[row] + i]


@kernel
def leave_lists(leaving: Ints, starts: Ints, counts: Ints, rows: Ints32) -> None:
    """Empty the lists of some rows, and take the rows out of the lists of others."""
    gone, done = np.zeros(starts.size, np.bool_), np.zeros(starts.size, np.bool_)
    for row in leaving:
        gone[row] = done[row] = True
    for row in leaving:
        for i in range(starts[row], starts[row] + counts[row]):
            other = rows[i]
            rows[i] = -1
            if done[other]:
                continue
            done[other] = True
            place = starts[other]
            end = place + counts[other]
            for j in range(place, end):
                if not gone[rows[j]]:
                    rows[place] = rows[j]
                    place += 1
            rows[place:end] = -1
            counts[other] = place - starts[other]
        counts[row] = 0

"""Scales and centres on a random lattice, which few deletions move.

The logarithm that decides is the tape's own: a value rounded the other way by another library
would be another model.
"""

from __future__ import annotations

import numpy as np

from erasable.core._jit import kernel
from erasable.core._tape_kernels import log
from erasable.core.arrays import Floats
from erasable.core.tape import Stream, Tape

__all__ = ["draw_phases", "lattice_center", "lattice_scale"]


_PER_LOG2 = 1.4426950408889634  # 1 / log(2)
_STEP = 4.0  # of the centres' lattice, in scales


def draw_phases(tape: Tape, names: list[str]) -> tuple[Floats, Floats]:
    """Draw the phases of the two lattices of each column, by its name, from 0 to 1."""
    own = tape.child("StandardScaler")
    keys = np.array([own.key_of(name) for name in names], dtype=np.uint64)
    return own.uniform(keys, Stream.PHASE, 0), own.uniform(keys, Stream.PHASE, 1)


def lattice_scale(variance: Floats, phase: Floats) -> Floats:
    """Return ``2**floor(log2(deviation) + phase)`` of each column, 1 where the variance is 0.

    The deviation is from half to twice the scale.
    """
    mantissa, exponent = np.frexp(variance)
    logs = np.zeros_like(variance)
    _fill_log(mantissa, logs)
    steps = np.floor((exponent + logs * _PER_LOG2) / 2.0 + phase)
    return np.where(variance > 0.0, np.ldexp(1.0, steps.astype(np.int64)), 1.0)


def lattice_center(mean: Floats, scale: Floats, phase: Floats) -> Floats:
    """Return the point of a lattice of four scales that is nearest to the mean."""
    step = _STEP * scale
    center: Floats = (np.rint(mean / step - phase) + phase) * step
    return center


@kernel
def _fill_log(values: Floats, out: Floats) -> None:
    """Write the natural logarithm of every positive value."""
    for j in range(values.size):
        if values[j] > 0.0:
            out[j] = log(values[j])

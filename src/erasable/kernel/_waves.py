"""Random Fourier features: cosine waves whose products have a kernel for their mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from erasable.core.arrays import Floats, Ints
from erasable.core.passes import each_block, rows_in_memory
from erasable.core.sparse import parts
from erasable.core.tape import Stream, Tape

from . import _wave_kernels as kernels

_PER_TURN = 0.15915494309189535  # 1 / (2 pi)
_BLOCK = 2**19  # values that are made at once
_LEAST = 1024  # rows at least, because every block of them costs a sum of matrices


@dataclass(frozen=True, slots=True)
class Waves:
    """Waves ``cos(2 pi (phase + x frequency))``, functions of a row x."""

    frequencies: Floats  # turns for each unit of a feature, shape (n_features, n_waves)
    phases: Floats  # turns where all features are 0

    @classmethod
    def draw(cls, tape: Tape, names: Sequence[str], n_waves: int, gamma: float) -> Self:
        """Draw waves for the kernel ``exp(-gamma |x - x'|**2)``: by feature name and wave.

        A feature's draw does not depend on its place or on the other features, nor a wave on their
        number.
        """
        own = tape.child("random Fourier features")
        seed, stream = np.uint64(own.seed), np.uint32(Stream.PHASE)
        keys = np.array([own.key_of(name) for name in names], dtype=np.uint64)
        frequencies, phases = np.zeros((len(names), n_waves)), np.zeros(n_waves)
        of_waves = own.child("phases")
        kernels.draw_normals(seed, keys, stream, frequencies)
        kernels.draw_uniforms(np.uint64(of_waves.seed), np.uint64(0), stream, phases)
        frequencies *= np.sqrt(2.0 * gamma) * _PER_TURN
        return cls(frequencies, phases)

    @property
    def n_waves(self) -> int:
        """How many there are."""
        return int(self.phases.size)

    def at(self, matrix: Any, rows: Ints) -> Floats:
        """Return the waves, from -1 to 1, at rows of a matrix; each depends on its row alone."""
        out = np.zeros((rows.size, self.n_waves))
        if issparse(matrix):
            kernels.waves_at_sparse(parts(matrix), rows, self.frequencies, self.phases, out)
        else:
            kernels.waves_at(*rows_in_memory(matrix, rows), self.frequencies, self.phases, out)
        return out

    def blocks(self, matrix: Any, rows: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield some rows at a time, and the waves at them."""
        for block in each_block(matrix, rows):
            for some in self.portions(block.positions):
                yield block.first + some, self.at(block.matrix, some)

    def portions(self, rows: Ints) -> list[Ints]:
        """Cut rows into portions whose waves are made at once."""
        size = max(_LEAST, _BLOCK // self.n_waves)
        return [rows[start : start + size] for start in range(0, rows.size, size)]

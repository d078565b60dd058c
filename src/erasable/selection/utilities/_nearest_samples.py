"""The nearest neighbour utility in many samples of who stays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import borrowing, kernel
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.utilities._dense_kernels import nearer
from erasable.selection.utilities._similarities import ClassBlock, places_of


class NearestSamples(Samples):
    """The largest similarity of each target to who stays, in each sample.

    Parameters
    ----------
    blocks : list of ClassBlock
    n_samples : int
    """

    def __init__(self, blocks: list[ClassBlock], n_samples: int) -> None:
        n_targets = sum(block.n_targets for block in blocks)
        check_memory(
            float(max(block.dense.itemsize for block in blocks)) * n_targets * n_samples,
            f"the nearest who stay of {n_targets:,} targets in {n_samples:,} samples",
            "draw fewer samples, or choose from fewer records",
        )
        self.blocks, self.n_samples = blocks, n_samples
        # The largest of some numbers is one of them: their type holds it.
        self.best = [np.zeros((n_samples, b.n_targets), dtype=b.dense.dtype) for b in blocks]
        self.is_empty = [True] * len(blocks)
        self.room = np.zeros(32)
        self.part_of, self.place_of = places_of(blocks)

    def gains(self, j: int) -> Floats:
        return self.gains_in(j, np.arange(self.n_samples))

    def gains_in(self, j: int, which: Ints) -> Floats:
        out = np.empty(len(which))
        part = self.part_of[j]
        if self.is_empty[part]:  # then all samples are alike
            _gains(*self._row(j), self.best[part], which[:1], self.room, out[:1])
            out[1:] = out[:1].sum()
        else:
            _gains(*self._row(j), self.best[part], which, self.room, out)
        return out

    def add(self, j: int, stays: Flags) -> None:
        _add(*self._row(j), self.best[self.part_of[j]], stays)
        self.is_empty[self.part_of[j]] = False

    def _row(self, j: int) -> tuple[Any, Any]:
        """Return the targets that a record is similar to (none for all), and how similar."""
        block, place = self.blocks[self.part_of[j]], self.place_of[j]
        if not len(block.starts):
            return block.targets, block.dense[place]
        part = slice(block.starts[place], block.starts[place + 1])
        return block.targets[part], block.values[part]


@borrowing
def _gains(
    targets: Ints32,
    row: NDArray[np.floating],
    best: NDArray[np.floating],
    which: Ints,
    room: Floats,
    out: Floats,
) -> None:
    for e in range(len(which)):
        of_sample = best[which[e]]
        if len(targets) == 0:
            out[e] = nearer(row, of_sample, room)
            continue
        total = 0.0
        for i in range(len(targets)):
            total += max(np.float64(row[i]) - np.float64(of_sample[targets[i]]), 0.0)
        out[e] = total


@kernel
def _add(
    targets: Ints32,
    row: NDArray[np.floating],
    best: NDArray[np.floating],
    stays: Flags,
) -> None:
    for s in range(len(best)):
        if stays[s]:
            for e in range(len(row)):
                i = targets[e] if len(targets) > 0 else e
                best[s, i] = max(best[s, i], row[e])

"""The nearest neighbour utility in many samples of who stays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.utilities._similarities import Block

__all__ = ["NearestSamples"]

Floats = NDArray[np.float64]


class NearestSamples(Samples):
    """The largest similarity of each target to who stays, in each sample.

    Parameters
    ----------
    blocks : list of Block
    n_samples : int
    """

    def __init__(self, blocks: list[Block], n_samples: int) -> None:
        n_targets = sum(block.n_targets for block in blocks)
        check_memory(
            8.0 * n_targets * n_samples,
            f"the nearest who stay of {n_targets:,} targets in {n_samples:,} samples",
            "draw fewer samples, or choose from fewer records",
        )
        self.blocks, self.n_samples = blocks, n_samples
        self.best = [np.zeros((n_samples, block.n_targets)) for block in blocks]
        n = sum(len(block.records) for block in blocks)
        self.part_of, self.place_of = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        for number, block in enumerate(blocks):
            self.part_of[block.records] = number
            self.place_of[block.records] = np.arange(len(block.records))

    def gains(self, j: int) -> Floats:
        out = np.empty(self.n_samples)
        _gains(*self._row(j), self.best[self.part_of[j]], out)
        return out

    def add(self, j: int, stays: NDArray[np.bool_]) -> None:
        _add(*self._row(j), self.best[self.part_of[j]], stays)

    def _row(self, j: int) -> tuple[Any, Any]:
        """Return the targets that a record is similar to (none for all), and how similar."""
        block, place = self.blocks[self.part_of[j]], self.place_of[j]
        if not len(block.starts):
            return block.targets, block.dense[place]
        part = slice(block.starts[place], block.starts[place + 1])
        return block.targets[part], block.values[part]


@kernel
def _gains(
    targets: NDArray[np.int32], row: NDArray[np.floating], best: Floats, out: Floats
) -> None:
    for s in range(len(best)):
        total = 0.0
        if len(targets) > 0:
            for e in range(len(targets)):
                total += max(row[e] - best[s, targets[e]], 0.0)
        else:
            for i in range(len(row)):
                total += max(row[i] - best[s, i], 0.0)
        out[s] = total


@kernel
def _add(
    targets: NDArray[np.int32],
    row: NDArray[np.floating],
    best: Floats,
    stays: NDArray[np.bool_],
) -> None:
    for s in range(len(best)):
        if stays[s]:
            for e in range(len(row)):
                i = targets[e] if len(targets) > 0 else e
                best[s, i] = max(best[s, i], row[e])

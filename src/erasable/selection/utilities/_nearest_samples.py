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
        self.is_empty = [True] * len(blocks)
        n = sum(len(block.records) for block in blocks)
        self.part_of, self.place_of = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        for number, block in enumerate(blocks):
            self.part_of[block.records] = number
            self.place_of[block.records] = np.arange(len(block.records))

    def gains(self, j: int) -> Floats:
        out = np.empty(self.n_samples)
        part = self.part_of[j]
        if self.is_empty[part]:  # then all samples are alike
            _gains(*self._row(j), self.best[part][:1], out[:1])
            out[1:] = out[0]
        else:
            _gains(*self._row(j), self.best[part], out)
        return out

    def add(self, j: int, stays: NDArray[np.bool_]) -> None:
        _add(*self._row(j), self.best[self.part_of[j]], stays)
        self.is_empty[self.part_of[j]] = False

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
    n = len(row)
    whole = n - n % 8
    for s in range(len(best)):
        total = 0.0
        if len(targets) > 0:
            for e in range(n):
                total += max(row[e] - best[s, targets[e]], 0.0)
        else:
            # Eight sums at a time let the processor work on several numbers at a time.
            here = best[s]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
            for i in range(0, whole, 8):
                s0 += max(row[i] - here[i], 0.0)
                s1 += max(row[i + 1] - here[i + 1], 0.0)
                s2 += max(row[i + 2] - here[i + 2], 0.0)
                s3 += max(row[i + 3] - here[i + 3], 0.0)
                s4 += max(row[i + 4] - here[i + 4], 0.0)
                s5 += max(row[i + 5] - here[i + 5], 0.0)
                s6 += max(row[i + 6] - here[i + 6], 0.0)
                s7 += max(row[i + 7] - here[i + 7], 0.0)
            total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
            for i in range(whole, n):
                total += max(row[i] - here[i], 0.0)
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

"""Passes over records that stay where they are, for the nearest of those chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from erasable.core.arrays import Floats, Ints32
from erasable.core.passes import Block, Pass
from erasable.core.row_arrays import PerRow, Scratch
from erasable.selection.utilities import _stored_kernels as kernels
from erasable.selection.utilities._stored_kernels import Points, Targets

_TILE = 128  # points whose columns stay in a fast cache while rows pass by
_NO_CODES: Ints32 = np.zeros(0, dtype=np.int32)


class Measure(NamedTuple):
    """How distances are measured.

    Attributes
    ----------
    kind : int
        Euclidean, squared or of cosines.
    per_unit : float
        Units of a distance of 1.
    """

    kind: int
    per_unit: float


def as_points(rows: Any, codes: Ints32 | None) -> Points:
    """Return records as points that distances are measured to."""
    columns = np.ascontiguousarray(np.asarray(rows, dtype=np.float64).T)
    sizes = np.empty(columns.shape[1])
    kernels.norms(columns, sizes)
    return Points(columns, sizes, _NO_CODES if codes is None else codes)


class _OfTargets(Pass[Floats]):
    """A pass that adds up whole numbers."""

    def __init__(self, measure: Measure, codes: PerRow | None) -> None:
        self._measure, self._codes = measure, codes

    def _targets(self, block: Block) -> Targets:
        codes = _NO_CODES if self._codes is None else self._codes.of(block)
        return Targets(block.matrix, block.positions, codes)

    def merge(self, one: Floats, other: Floats) -> Floats:
        """Add."""
        one += other
        return one


class Distances(_OfTargets):
    """Sums, numbers and largest of the distances to each of some points, as of `add_distances`."""

    def __init__(self, measure: Measure, codes: PerRow | None, points: Points) -> None:
        super().__init__(measure, codes)
        self._points = points

    def of_block(self, block: Block) -> Floats:
        targets = self._targets(block)
        found = np.zeros((3, self._points.norms.size))
        for part, tile in _tiles(self._points):
            own = np.zeros((3, tile.norms.size))
            kernels.add_distances(targets, tile, *self._measure, own)
            found[:, part] = own
        return found

    def merge(self, one: Floats, other: Floats) -> Floats:
        """Add the sums and the numbers."""
        one[:2] += other[:2]
        np.maximum(one[2], other[2], out=one[2])
        return one


class _OfChosen(_OfTargets):
    """A pass that follows what was chosen since the last one.

    What a row has of it says how many of the chosen it has seen: so it may be done twice, and is
    done from the beginning where a block was lost.
    """

    def __init__(
        self, measure: Measure, codes: PerRow | None, chosen: Points, farthest: float,
        nearest: Scratch,
    ) -> None:  # fmt: skip
        super().__init__(measure, codes)
        self._chosen, self._farthest, self._nearest = chosen, farthest, nearest

    def _followed(self, targets: Targets, block: Block) -> Floats:
        nearest: Floats = self._nearest.of(block)
        kernels.follow(targets, self._chosen, *self._measure, self._farthest, nearest)
        return nearest


class Gains(_OfChosen):
    """What each of some points would add, by rank: of shape (n_points, n_ranks)."""

    def __init__(self, *followed: Any, points: Points, n_ranks: int) -> None:
        super().__init__(*followed)
        self._points, self._n_ranks = points, n_ranks

    def of_block(self, block: Block) -> Floats:
        targets = self._targets(block)
        nearest = self._followed(targets, block)
        found = np.zeros((self._points.norms.size, self._n_ranks))
        for part, tile in _tiles(self._points):
            own = np.zeros((tile.norms.size, self._n_ranks))
            kernels.add_gains(targets, tile, *self._measure, nearest, own)
            found[part] = own
        return found


class Totals(_OfChosen):
    """What the chosen are worth, by class and rank: of shape (n_classes, n_ranks)."""

    def __init__(self, *followed: Any, shape: tuple[int, int]) -> None:
        super().__init__(*followed)
        self._shape = shape

    def of_block(self, block: Block) -> Floats:
        targets = self._targets(block)
        totals = np.zeros(self._shape)
        kernels.add_totals(targets, self._farthest, self._followed(targets, block), totals)
        return totals


def _tiles(points: Points) -> Iterator[tuple[slice, Points]]:
    for start in range(0, points.norms.size, _TILE):
        part = slice(start, start + _TILE)
        columns = np.ascontiguousarray(points.columns[:, part])
        yield part, Points(columns, points.norms[part], points.codes[part])

"""Distances of records to centroids, with the same bits however they are batched.

The squared distance of a record to a centroid is one fixed left-to-right sum over the features.
Records are transposed into tiles of `TILE` so that the processor's vector lanes run *across
records*, never across the features of one record: a record's result depends neither on the
tile it happens to sit in nor on the records beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Words

TILE = 64
"""Records a tile holds: two or three tiles of 784 features fit the second-level cache."""

_FAR = 1e300  # finite, so that what is computed from it is too
_PAD = 8  # keeps the tile's stride off a power of two, which would crowd a few cache sets


class Points(NamedTuple):
    """The points of one k-means problem."""

    X: NDArray[Any]  # (n_rows, n_features); gridded values; rows outside `rows` are never read
    keys: Words  # (n_rows,); record keys; empty where nothing is drawn
    rows: Ints  # (m,); which rows of `X` belong to the problem; a *position* indexes this array
    # (m,), or empty; integer weights of the positions, 0 or more; empty means one each
    mass: Floats = np.empty(0)

    @classmethod
    def queries(cls, X: NDArray[Any]) -> Points:
        """Return points that are compared with centroids, and nothing else."""
        return cls(X, np.empty(0, np.uint64), np.arange(X.shape[0]))

    def values(self, positions: Ints) -> Floats:
        """Return the gridded values at `positions` as float64."""
        return self.X[self.rows[positions]].astype(np.float64)


class DistanceScratch(NamedTuple):
    """Scratch space: a tile of records, and their distances to centroids."""

    tile: Floats
    distances: Floats


def new_scratch(n_features: int, n_centers: int) -> DistanceScratch:
    """Return room for a tile, shape (n_features, TILE + padding), and for its distances."""
    return DistanceScratch(np.zeros((n_features, TILE + _PAD)), np.zeros((n_centers, TILE)))


@subroutine
def load_tile(X: Floats, rows: Ints, picks: Ints, start: int, m: int, tile: Floats) -> None:
    """Transpose the records ``rows[picks[start : start + m]]`` of `X` into `tile`."""
    d = X.shape[1]
    whole = m // 8 * 8
    for r in range(0, whole, 8):
        x0 = X[rows[picks[start + r]]]
        x1 = X[rows[picks[start + r + 1]]]
        x2 = X[rows[picks[start + r + 2]]]
        x3 = X[rows[picks[start + r + 3]]]
        x4 = X[rows[picks[start + r + 4]]]
        x5 = X[rows[picks[start + r + 5]]]
        x6 = X[rows[picks[start + r + 6]]]
        x7 = X[rows[picks[start + r + 7]]]
        for f in range(d):
            out = tile[f]
            out[r] = x0[f]
            out[r + 1] = x1[f]
            out[r + 2] = x2[f]
            out[r + 3] = x3[f]
            out[r + 4] = x4[f]
            out[r + 5] = x5[f]
            out[r + 6] = x6[f]
            out[r + 7] = x7[f]
    for r in range(whole, m):
        x = X[rows[picks[start + r]]]
        for f in range(d):
            tile[f, r] = x[f]


@subroutine
def tile_distances(tile: Floats, m: int, centers: Floats, weights: Floats, out: Floats) -> None:
    """Write the squared distances of a tile's `m` records to every centroid into ``out[c, r]``.

    `weights` has one entry per feature, or none at all for the Euclidean metric.
    """
    k, d = centers.shape
    weighted = weights.size > 0
    for c in range(k):
        total = out[c]
        for r in range(m):
            total[r] = 0.0
        # Four features at a time: the running sum stays in a register between them.
        for g in range(d // 4):
            f = 4 * g
            c0 = centers[c, f]
            c1 = centers[c, f + 1]
            c2 = centers[c, f + 2]
            c3 = centers[c, f + 3]
            x0 = tile[f]
            x1 = tile[f + 1]
            x2 = tile[f + 2]
            x3 = tile[f + 3]
            if weighted:
                w0 = weights[f]
                w1 = weights[f + 1]
                w2 = weights[f + 2]
                w3 = weights[f + 3]
                for r in range(m):
                    s = total[r]
                    t = x0[r] - c0
                    s += t * t * w0
                    t = x1[r] - c1
                    s += t * t * w1
                    t = x2[r] - c2
                    s += t * t * w2
                    t = x3[r] - c3
                    s += t * t * w3
                    total[r] = s
            else:
                for r in range(m):
                    s = total[r]
                    t = x0[r] - c0
                    s += t * t
                    t = x1[r] - c1
                    s += t * t
                    t = x2[r] - c2
                    s += t * t
                    t = x3[r] - c3
                    s += t * t
                    total[r] = s
        for f in range(d // 4 * 4, d):
            cf = centers[c, f]
            x = tile[f]
            if weighted:
                wf = weights[f]
                for r in range(m):
                    t = x[r] - cf
                    total[r] += t * t * wf
            else:
                for r in range(m):
                    t = x[r] - cf
                    total[r] += t * t


@subroutine
def rank_nearest(dist: Floats, m: int, near: Floats, who: Ints) -> None:
    """Write the three smallest squared distances of every record, and its two nearest centroids.

    `dist` has shape (k, >= m), `near` (3, >= m) and `who` (2, >= m). Where there are fewer than
    three centroids, distances are 1e300; ties go to the lower index.
    """
    k = dist.shape[0]
    b1 = near[0]
    b2 = near[1]
    b3 = near[2]
    i1 = who[0]
    i2 = who[1]
    first = dist[0]
    for r in range(m):
        b1[r] = first[r]
        b2[r] = _FAR
        b3[r] = _FAR
        i1[r] = 0
        i2[r] = 0
    for c in range(1, k):
        row = dist[c]
        for r in range(m):
            v = row[r]
            p1 = b1[r]
            p2 = b2[r]
            p3 = b3[r]
            q1 = i1[r]
            q2 = i2[r]
            lt1 = v < p1
            lt2 = v < p2
            lt3 = v < p3
            b3[r] = p2 if lt2 else (v if lt3 else p3)
            b2[r] = p1 if lt1 else (v if lt2 else p2)
            i2[r] = q1 if lt1 else (c if lt2 else q2)
            b1[r] = v if lt1 else p1
            i1[r] = c if lt1 else q1


@subroutine
def measure(
    points: Points,
    picks: Ints,
    start: int,
    centers: Floats,
    weights: Floats,
    scratch: DistanceScratch,
) -> int:
    """Fill a tile from ``picks[start]`` on, measure its distances, and count its records."""
    m: int = min(TILE, picks.shape[0] - start)
    load_tile(points.X, points.rows, picks, start, m, scratch.tile)
    tile_distances(scratch.tile, m, centers, weights, scratch.distances)
    return m


@kernel
def distances_to(
    points: Points,
    picks: Ints,
    centers: Floats,
    weights: Floats,
    scratch: DistanceScratch,
    out: Floats,
) -> None:
    """Write the squared distances of some points to `centers` into ``out[pick, center]``."""
    n = picks.shape[0]
    k = centers.shape[0]
    for start in range(0, n, TILE):
        m = measure(points, picks, start, centers, weights, scratch)
        for r in range(m):
            for c in range(k):
                out[start + r, c] = scratch.distances[c, r]

"""Kernels over stored records: distances to candidates and gains, in whole units.

The distance of a record to a candidate is computed from these two alone, column after column, and
rounded to a whole number of units. Sums of whole numbers below ``2**53`` are exact in float64, in
any order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core.arrays import Floats, Ints, Ints32, Matrix

EUCLIDEAN, SQEUCLIDEAN, COSINE = 0, 1, 2
"""Kinds of distances."""


class StoredPoints(NamedTuple):
    """Records to which distances are measured."""

    columns: Floats  # (n_features, n_points)
    norms: Floats  # (n_points,), for cosines
    codes: Ints32  # (n_points,): classes; empty where there is one


class StoredTargets(NamedTuple):
    """Records of a block."""

    matrix: Matrix  # (n_rows, n_features)
    rows: Ints  # positions of those that count
    codes: Ints32  # (n_rows,): classes; empty where there is one


@subroutine
def _cosine(product: float, size: float, per_unit: float) -> float:
    cosine = product / size if size > 0.0 else 0.0
    whole: float = np.rint(min(max(0.5 - 0.5 * cosine, 0.0), 1.0) * per_unit)
    return whole


@subroutine
def _measure(row: Floats, points: StoredPoints, kind: int, per_unit: float, out: Floats) -> None:
    """Fill `out` with distances of a row to all points, in whole units."""
    columns, n = points.columns, points.norms.size
    for b in range(n):
        out[b] = 0.0
    if kind == COSINE:
        square = 0.0
        for j in range(row.size):
            x = np.float64(row[j])
            square += x * x
            for b in range(n):
                out[b] += x * columns[j, b]
        norm = math.sqrt(square)
        for b in range(n):
            out[b] = _cosine(out[b], norm * points.norms[b], per_unit)
        return
    for j in range(row.size):
        x = np.float64(row[j])
        for b in range(n):
            difference = x - columns[j, b]
            out[b] += difference * difference
    if kind == EUCLIDEAN:
        for b in range(n):
            out[b] = np.rint(math.sqrt(out[b]) * per_unit)
    else:
        for b in range(n):
            out[b] = np.rint(out[b] * per_unit)


@subroutine
def _distance(row: Floats, points: StoredPoints, b: int, kind: int, per_unit: float) -> float:
    """Return the distance that `_measure` computes for one of the points."""
    total = square = 0.0
    for j in range(row.size):
        x = np.float64(row[j])
        if kind == COSINE:
            square += x * x
            total += x * points.columns[j, b]
        else:
            difference = x - points.columns[j, b]
            total += difference * difference
    if kind == COSINE:
        return _cosine(total, math.sqrt(square) * points.norms[b], per_unit)
    whole: float = np.rint((math.sqrt(total) if kind == EUCLIDEAN else total) * per_unit)
    return whole


@kernel
def norms(columns: Floats, out: Floats) -> None:
    """Fill `out` with the norms of points, summed in the order of those of targets."""
    for b in range(out.size):
        square = 0.0
        for j in range(columns.shape[0]):
            square += columns[j, b] * columns[j, b]
        out[b] = math.sqrt(square)


@kernel
def add_distances(
    targets: StoredTargets, points: StoredPoints, kind: int, per_unit: float, found: Floats
) -> None:
    """Update, for each point, the sum, number and maximum of distances of targets of its class.

    `found` has the shape (3, n_points) and is changed in place.
    """
    n = points.norms.size
    apart = np.empty(n)
    classes = targets.codes.size > 0
    for i in targets.rows:
        _measure(targets.matrix[i], points, kind, per_unit, apart)
        if not classes:
            for b in range(n):
                found[0, b] += apart[b]
                found[2, b] = max(found[2, b], apart[b])
            continue
        for b in range(n):
            if points.codes[b] == targets.codes[i]:
                found[0, b] += apart[b]
                found[1, b] += 1.0
                found[2, b] = max(found[2, b], apart[b])
    if not classes:
        found[1] += targets.rows.size


@kernel
def update_distances(
    targets: StoredTargets,
    chosen: StoredPoints,
    kind: int,
    per_unit: float,
    farthest: float,
    nearest: Floats,
) -> None:
    """Update the distances of targets to the nearest of the chosen.

    `nearest` has the shape (n_rows, n_ranks + 1): ascending distances, filled up with `farthest`,
    and the number of chosen records that were looked at; infinity where nothing was done yet.
    """
    n, last = chosen.norms.size, nearest.shape[1] - 1
    classes = targets.codes.size > 0
    for i in targets.rows:
        own = nearest[i]
        if own[last] == np.inf:
            own[:last] = farthest
            own[last] = 0.0
        start = int(own[last])
        for s in range(start, n):
            if classes and chosen.codes[s] != targets.codes[i]:
                continue
            apart = _distance(targets.matrix[i], chosen, s, kind, per_unit)
            r = last
            while r > 0 and own[r - 1] > apart:
                r -= 1
            if r < last:
                for later in range(last - 1, r, -1):
                    own[later] = own[later - 1]
                own[r] = apart
        own[last] = float(n)


@kernel
def add_gains(
    targets: StoredTargets,
    points: StoredPoints,
    kind: int,
    per_unit: float,
    nearest: Floats,
    gains: Floats,
) -> None:
    """Add to `gains`, of shape (n_points, n_ranks), by how much points would lower each rank."""
    n, n_ranks = gains.shape
    apart = np.empty(n)
    classes = targets.codes.size > 0
    for i in targets.rows:
        own = nearest[i]
        _measure(targets.matrix[i], points, kind, per_unit, apart)
        if n_ranks == 1 and not classes:
            best = own[0]
            for b in range(n):
                gains[b, 0] += max(best - apart[b], 0.0)
            continue
        for b in range(n):
            if classes and points.codes[b] != targets.codes[i]:
                continue
            r = n_ranks
            while r > 0 and own[r - 1] > apart[b]:
                r -= 1
            if r < n_ranks:
                gains[b, r] += own[r] - apart[b]
                for later in range(r + 1, n_ranks):
                    gains[b, later] += own[later] - own[later - 1]


@kernel
def add_totals(targets: StoredTargets, farthest: float, nearest: Floats, totals: Floats) -> None:
    """Add to `totals`, of shape (n_classes, n_ranks), how much nearer than `farthest` ranks are."""
    classes = targets.codes.size > 0
    for i in targets.rows:
        label = targets.codes[i] if classes else 0
        for r in range(totals.shape[1]):
            totals[label, r] += farthest - nearest[i, r]

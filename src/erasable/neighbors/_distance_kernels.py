"""Distances of records to a query, with the same bits wherever the records lie.

A record's distance is one fixed left-to-right formula over the features of that record and of the
query. Blocks hold the records feature by feature, so that the processor's vector lanes run across
records. Every step of the formula is monotone, rounding included: a number that is not larger
does not give a larger result. So the same formula, applied to the gaps between the query and a box,
never exceeds the distance of a record in the box, and what it excludes is excluded exactly.

What is computed is the square of the Euclidean distance, and other distances themselves.
"""

from __future__ import annotations

from erasable.core._jit import subroutine
from erasable.core.arrays import Floats, Ints

EUCLIDEAN, MANHATTAN, CHEBYSHEV = 0, 1, 2
PORTION = 8  # features after which it is checked whether any record is still near enough


@subroutine
def block_distances(
    block: Floats, query: Floats, inverse: Floats, metric: int, worst: float, out: Floats
) -> int:
    """Write the distances of a block's records to a query; count those that are `worst` at most.

    Once no record can be, the rest of the features is skipped, and `out` means nothing.

    `block` has shape (n_features, n_records), and infinity where there is no record. Differences
    are multiplied by `inverse`, unless it is empty. `worst` is finite.
    """
    d, m = block.shape
    scaled = inverse.size > 0
    near = 0
    for r in range(m):
        out[r] = 0.0
    f = 0
    while f < d:
        if metric == EUCLIDEAN and f + 4 <= d:
            # Four features at a time: the running sum stays in a register between them.
            x0, x1, x2, x3 = block[f], block[f + 1], block[f + 2], block[f + 3]
            q0, q1, q2, q3 = query[f], query[f + 1], query[f + 2], query[f + 3]
            if scaled:
                s0, s1, s2, s3 = inverse[f], inverse[f + 1], inverse[f + 2], inverse[f + 3]
                for r in range(m):
                    t0, t1 = (x0[r] - q0) * s0, (x1[r] - q1) * s1
                    t2, t3 = (x2[r] - q2) * s2, (x3[r] - q3) * s3
                    out[r] = (((out[r] + t0 * t0) + t1 * t1) + t2 * t2) + t3 * t3
            else:
                for r in range(m):
                    t0, t1 = x0[r] - q0, x1[r] - q1
                    t2, t3 = x2[r] - q2, x3[r] - q3
                    out[r] = (((out[r] + t0 * t0) + t1 * t1) + t2 * t2) + t3 * t3
            f += 4
        else:
            x, q = block[f], query[f]
            s = inverse[f] if scaled else 1.0
            if metric == EUCLIDEAN:
                for r in range(m):
                    t = (x[r] - q) * s
                    out[r] += t * t
            elif metric == MANHATTAN:
                for r in range(m):
                    out[r] += abs((x[r] - q) * s)
            else:
                for r in range(m):
                    t = abs((x[r] - q) * s)
                    out[r] = t if t > out[r] else out[r]
            f += 1
        if f % PORTION == 0 or f == d:
            near = 0
            for r in range(m):
                near += out[r] <= worst
            if near == 0:
                return 0
    return near


@subroutine
def box_distance(
    lower: Floats, upper: Floats, query: Floats, inverse: Floats, metric: int
) -> float:
    """Return what no record between `lower` and `upper` is nearer than; infinity if there is none.

    Where nothing lies in a box, `lower` is infinity and `upper` minus infinity.
    """
    total = 0.0
    scaled = inverse.size > 0
    for f in range(query.size):
        q = query[f]
        gap = 0.0
        if q < lower[f]:
            gap = lower[f] - q
        elif q > upper[f]:
            gap = q - upper[f]
        if scaled:
            gap *= inverse[f]
        if metric == EUCLIDEAN:
            total += gap * gap
        elif metric == MANHATTAN:
            total += gap
        elif gap > total:
            total = gap
    return total


@subroutine
def insert(distance: float, rank: int, distances: Floats, ranks: Ints) -> None:
    """Put a record where it belongs among the nearest, by distance and then by rank.

    The last one falls out; nothing happens where the record itself would.
    """
    i = distances.size - 1
    if distance > distances[i] or (distance == distances[i] and rank > ranks[i]):
        return
    while i > 0 and (
        distance < distances[i - 1] or (distance == distances[i - 1] and rank < ranks[i - 1])
    ):
        distances[i], ranks[i] = distances[i - 1], ranks[i - 1]
        i -= 1
    distances[i], ranks[i] = distance, rank

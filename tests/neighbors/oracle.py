"""Who the nearest are, by rational arithmetic and by plain loops, from the definition alone."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from erasable.core.tape import Tape

TAPES = Tape(0x3C6EF372FE94F82B), Tape(0xA54FF53A5F1D36F1)
"""Fractional parts of the square roots of 5 and 7, as in SHA-512: they order records."""


def order_of(ids: Any) -> list[tuple[int, int]]:
    """What decides among records at the same distance: two hashes of the id."""
    first, second = (tape.record_keys(np.asarray(ids)).tolist() for tape in TAPES)
    return list(zip(first, second, strict=True))


def exact_distance(x: Any, q: Any, metric: str) -> Fraction:
    """A distance without rounding; of Euclidean ones the square."""
    gaps = [abs(Fraction(float(a)) - Fraction(float(b))) for a, b in zip(x, q, strict=True)]
    if metric == "euclidean":
        return sum((gap * gap for gap in gaps), Fraction(0))
    return sum(gaps, Fraction(0)) if metric == "manhattan" else max(gaps)


def exact_neighbors(X: Any, ids: Any, query: Any, k: int, metric: str = "euclidean") -> list[int]:
    """Rows of the nearest, by distance and then by the hashes of their ids."""
    keys = order_of(ids)
    ranked = sorted(range(len(X)), key=lambda i: (exact_distance(X[i], query, metric), keys[i]))
    return ranked[:k]


def plain_distance(x: Any, q: Any, inverse: Any, metric: str) -> float:
    """A distance as the kernels define it: from left to right, every step rounded."""
    total = 0.0
    for f in range(len(q)):
        t = abs(float(x[f]) - float(q[f])) * float(inverse[f])
        if metric == "euclidean":
            total += t * t
        else:
            total = total + t if metric == "manhattan" else max(total, t)
    return total


def plain_neighbors(
    X: Any, rows: list[int], query: Any, k: int, inverse: Any, metric: str
) -> list[tuple[float, int]]:
    """Distances and rows of the nearest; of several as near, those that come first in `rows`."""
    told = [(plain_distance(X[r], query, inverse, metric), i, r) for i, r in enumerate(rows)]
    return [(distance, row) for distance, _, row in sorted(told)[:k]]

"""Queries far from all records, where squared distances tie by rounding, and then overflow.

Records lie within ``2**top`` of the grid's origin in every column, so none of them is ever far,
and their labels come from the same kernel wherever they are asked for. For a query ``x`` beyond,
centroids are compared by

    |x - a|**2 - |x - b|**2 = (b - a) . (2 x - a - b)

in floats with a bound on the error, and in rational numbers where that bound does not tell.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from erasable.core.arrays import Floats, Ints

_BEYOND = 8
"""Octaves beyond the records at which a query is far; before, rounding leaves 40 bits or more."""

_TINY = 2.0**-900  # differences below it may have suffered from underflow


def far_from(gridded: Floats, top: Ints) -> Ints:
    """Return which rows lie beyond 256 times the range of the records in some column.

    `gridded` is relative to the grid's origin; the records lie within ``2**top`` of it.
    """
    limit = np.ldexp(1.0, top + _BEYOND)
    if gridded.shape[0] == 0:
        return np.empty(0, np.int64)
    if ((gridded.max(axis=0) <= limit) & (gridded.min(axis=0) >= -limit)).all():
        return np.empty(0, np.int64)
    return np.flatnonzero((np.abs(gridded) > limit).any(axis=1))


def nearest_to_far(X: Floats, origin: Floats, centers: Floats, weights: Floats) -> Ints:
    """Return the nearest centroid of every far query, exactly; ties go to the lower index.

    `centers` are relative to `origin`, `X` is not; `weights` is empty for the Euclidean metric.
    """
    first = np.sort(np.unique(centers, axis=0, return_index=True)[1])
    centers = centers[first]
    metric = weights if weights.size else np.ones(X.shape[1])
    # Powers of two are taken out, so that no product overflows.
    apart, scale = _scaled(X - origin, axis=1)
    lead = _product(centers - centers[0], metric)
    offsets = _shrunk((centers + centers[0])[None], scale[:, None, None]) * lead
    gain = 2.0 * apart @ lead.T - offsets.sum(axis=2)
    size = 2.0 * np.abs(apart) @ np.abs(lead).T + np.abs(offsets).sum(axis=2)
    error = (X.shape[1] + 16) * 2.0**-50 * size + _TINY
    best = gain.argmax(axis=1)
    least = (gain - error)[np.arange(best.size), best]
    rivals = gain + error >= least[:, None]
    for row in np.flatnonzero(rivals.sum(axis=1) > 1).tolist():
        found = np.flatnonzero(rivals[row])
        best[row] = found[_nearest_exactly(X[row], origin, centers[found], metric)]
    nearest: Ints = first[best]
    return nearest


def far_distances(X: Floats, origin: Floats, centers: Floats, weights: Floats) -> Floats:
    """Return the distances of far queries to all centroids, finite wherever they can be."""
    roots = np.sqrt(weights) if weights.size else np.ones(X.shape[1])
    apart, scale = _scaled(X - origin, axis=1)
    out = np.empty((X.shape[0], centers.shape[0]))
    for c, center in enumerate(centers):
        terms, again = _scaled((apart - _shrunk(center[None], scale[:, None])) * roots, axis=1)
        with np.errstate(over="ignore"):
            out[:, c] = np.ldexp(np.sqrt((terms * terms).sum(axis=1)), scale + again)
    return out


def _scaled(table: Floats, axis: int) -> tuple[Floats, Ints]:
    """Scale along an axis to magnitudes below 1; return the exponents that were taken out."""
    exponents = np.frexp(np.abs(table).max(axis=axis, keepdims=True))[1].astype(np.int64)
    return _shrunk(table, exponents), np.ravel(exponents)


def _shrunk(table: Floats, exponents: Ints) -> Floats:
    """Divide by ``2**exponents``, which itself need not be a float."""
    half = exponents // 2
    shrunk: Floats = np.ldexp(np.ldexp(table, -half), half - exponents)
    return shrunk


def _product(a: Floats, b: Floats) -> Floats:
    """Multiply, and scale the result to magnitudes of at most 1."""
    (x, i), (y, j) = np.frexp(a), np.frexp(b)
    exponents = i.astype(np.int64) + j
    largest = exponents.max(where=x * y != 0.0, initial=-5000)
    product: Floats = np.ldexp(x * y, np.maximum(exponents - largest, -2000))
    return product


def _nearest_exactly(x: Floats, origin: Floats, centers: Floats, metric: Floats) -> int:
    """Return the nearest of a few centroids, by rational numbers."""
    at = [Fraction(a) - Fraction(b) for a, b in zip(x.tolist(), origin.tolist(), strict=True)]
    table = [[Fraction(value) for value in center] for center in centers.tolist()]
    features = list(zip(map(Fraction, metric.tolist()), table[0], at, strict=True))
    gains = [
        sum(
            (w * (c - a) * (2 * y - c - a) for (w, a, y), c in zip(features, center, strict=True)),
            start=Fraction(0),
        )
        for center in table
    ]
    return gains.index(max(gains))

"""Removal and preservation where a Gaussian's mean and covariance are refitted at every budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core._grid_kernels import Floats, Ints
from erasable.removal import _refit_kernels as kernels
from erasable.removal._covariance import Metric
from erasable.removal._sets import Sets

__all__ = ["diagonal_refits", "full_refits"]

_AFRESH = 256  # deletions after which the inverse is made again, so that errors do not grow


def full_refits(sets: Sets, order: Ints, metric: Metric) -> tuple[Floats, Floats]:
    """Return alpha and epsilon at every budget, with full covariances.

    Computed in coordinates in which the covariance within the sets is the identity, which changes
    no divergence; towards it all covariances are shrunk, as by `n_features` more records.
    """
    centre = sets.retain_moments.mean()[metric.columns]
    d = metric.columns.size
    if d == 0:
        return np.zeros(order.size + 1), np.zeros(order.size + 1)
    prior = float(d)
    white = [
        np.ascontiguousarray((X[:, metric.columns].astype(np.float64) - centre) @ metric.weights.T)
        for X in (sets.forget, sets.retain)
    ]
    means = np.array([rows.mean(axis=0) for rows in white])
    covariances = np.array([_shrunk(rows - m, prior) for rows, m in zip(white, means, strict=True)])
    determinants = np.linalg.slogdet(covariances)[1]
    n1, n2 = (float(len(rows)) for rows in white)
    forget = white[0][order]
    total = forget.sum(axis=0) + white[1].sum(axis=0)
    products = forget.T @ forget + white[1].T @ white[1] + prior * np.eye(d)
    found = np.empty((2, len(forget) + 1))
    for start in range(0, len(forget) + 1, _AFRESH):
        part = forget[start : start + _AFRESH]
        last = start + len(part) == len(forget) and len(part) < _AFRESH
        # After the last deletion there is a budget more, whose row is not deleted.
        rows = np.concatenate([part, np.zeros((1, d))]) if last else part
        out = np.empty((2, len(rows)))
        kernels.refits(
            rows, np.linalg.inv(products), np.linalg.slogdet(products)[1], total.copy(),
            n1 + n2 - start, prior, means, covariances, determinants, out,
        )  # fmt: skip
        found[:, start : start + len(rows)] = out
        total = total - part.sum(axis=0)
        products = products - part.T @ part
    return found[0], found[1]


def _shrunk(deviations: Floats, prior: float) -> Floats:
    d = deviations.shape[1]
    covariance: Floats = (deviations.T @ deviations + prior * np.eye(d)) / (len(deviations) + prior)
    return covariance


def diagonal_refits(sets: Sets, order: Ints, columns: Ints, scale: Floats) -> tuple[Floats, Floats]:
    """Return alpha and epsilon at every budget, with a variance for each column.

    Variances are shrunk towards that within the sets, as by one more record.
    """
    n1, n2 = sets.forget.shape[0], sets.retain.shape[0]
    moments = (sets.forget_moments, sets.retain_moments)
    centre = moments[1].mean()[columns]
    means = np.array([(m.mean()[columns] - centre) * scale for m in moments])
    spreads = np.array([m.variance()[columns] * scale**2 for m in moments])
    sizes = np.array([[float(n1)], [float(n2)]])
    total = (sizes * means).sum(axis=0)
    squares = (sizes * (spreads + means**2)).sum(axis=0)
    variances = (sizes * spreads + 1.0) / (sizes + 1.0)
    found = np.empty((2, n1 + 1))
    size = max(1, min(_AFRESH, 2**21 // max(1, columns.size)))
    for start in range(0, n1 + 1, size):
        rows = _some(sets.forget, order[start : start + size], columns)
        rows = (rows - centre) * scale
        count = min(size, n1 + 1 - start)
        sums = total - np.concatenate([np.zeros((1, columns.size)), np.cumsum(rows, axis=0)])
        left = squares - np.concatenate([np.zeros((1, columns.size)), np.cumsum(rows**2, axis=0)])
        n = (n1 + n2 - start - np.arange(count))[:, None]
        mean = sums[:count] / n
        variance = (np.maximum(left[:count] - n * mean**2, 0.0) + 1.0) / (n + 1.0)
        for i in range(2):
            ratio = (variances[i] + (mean - means[i]) ** 2) / variance - 1.0
            found[i, start : start + count] = 0.5 * (ratio + np.log(variance / variances[i])).sum(
                axis=1
            )
        total, squares = sums[-1], left[-1]
    return found[0], found[1]


def _some(matrix: Any, rows: Ints, columns: Ints) -> Floats:
    chosen = matrix[rows]
    dense = chosen.toarray() if issparse(chosen) else chosen
    part: Floats = dense[:, columns].astype(np.float64)
    return part

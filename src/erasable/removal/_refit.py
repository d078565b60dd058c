"""Removal and preservation where a Gaussian's mean and covariance are refitted at every budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core.arrays import Floats, Ints
from erasable.removal import _row_kernels as kernels
from erasable.removal._covariance import Metric
from erasable.removal._sets import Sets

_AFRESH = 256  # records after which the inverse is made again, so that errors do not grow


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
    n2 = float(len(white[1]))
    # From the last budget to the first: sums of products that only grow lose nothing, however far
    # apart the sets are, and those from which the larger part is taken away do.
    forget = white[0][order[::-1]]
    total = white[1].sum(axis=0)
    products = white[1].T @ white[1] + prior * np.eye(d)
    found = np.empty((2, len(forget) + 1))
    for start in range(0, len(forget) + 1, _AFRESH):
        part = forget[start : start + _AFRESH]
        last = start + len(part) == len(forget) and len(part) < _AFRESH
        # After the last record there is a budget more, to which none is added.
        rows = np.concatenate([part, np.zeros((1, d))]) if last else part
        out = np.empty((2, len(rows)))
        kernels.refits(
            rows, np.linalg.inv(products), np.linalg.slogdet(products)[1], total.copy(),
            n2 + start, prior, means, covariances, determinants, out,
        )  # fmt: skip
        found[:, start : start + len(rows)] = out
        total = total + part.sum(axis=0)
        products = products + part.T @ part
    alpha, epsilon = found[:, ::-1].copy()
    return alpha, epsilon


def _shrunk(deviations: Floats, prior: float) -> Floats:
    d = deviations.shape[1]
    return (deviations.T @ deviations + prior * np.eye(d)) / (len(deviations) + prior)


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
    variances = (sizes * spreads + 1.0) / (sizes + 1.0)
    # From the last budget to the first, as in `full_refits`.
    total = n2 * means[1]
    squares = n2 * (spreads[1] + means[1] ** 2)
    forget = order[::-1]
    found = np.empty((2, n1 + 1))
    size = max(1, min(_AFRESH, 2**21 // max(1, columns.size)))
    for start in range(0, n1 + 1, size):
        rows = (_some(sets.forget, forget[start : start + size], columns) - centre) * scale
        count = min(size, n1 + 1 - start)
        sums = np.cumsum(np.concatenate([total[None, :], rows]), axis=0)
        held = np.cumsum(np.concatenate([squares[None, :], rows**2]), axis=0)
        n = (n2 + start + np.arange(count))[:, None]
        mean = sums[:count] / n
        variance = (np.maximum(held[:count] - n * mean**2, 0.0) + 1.0) / (n + 1.0)
        for i in range(2):
            ratio = (variances[i] + (mean - means[i]) ** 2) / variance - 1.0
            found[i, start : start + count] = 0.5 * (ratio + np.log(variance / variances[i])).sum(
                axis=1
            )
        total, squares = sums[-1], held[-1]
    alpha, epsilon = found[:, ::-1].copy()
    return alpha, epsilon


def _some(matrix: Any, rows: Ints, columns: Ints) -> Floats:
    chosen = matrix[rows]
    dense = chosen.toarray() if issparse(chosen) else chosen
    part: Floats = dense[:, columns].astype(np.float64)
    return part

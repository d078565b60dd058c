"""Removal and preservation where a Gaussian's mean and covariance are refitted at every budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core.arrays import Floats, Ints
from erasable.removal import _row_kernels as kernels
from erasable.removal._covariance import Metric, Scatter
from erasable.removal._passes import in_order
from erasable.removal._sets import Sets

_AFRESH = 256  # records after which the inverse is made again, so that errors do not grow


def full_refits(
    sets: Sets, order: Ints, metric: Metric, scatters: list[Scatter]
) -> tuple[Floats, Floats]:
    """Return alpha and epsilon at every budget, with full covariances.

    Computed in coordinates in which the covariance within the sets is the identity, which changes
    no divergence; towards it all covariances are shrunk, as by `n_features` more records. Values
    are those of the grid of `scatters`, the exact sums of both sets.
    """
    columns, d = metric.columns, metric.columns.size
    if d == 0:
        return np.zeros(order.size + 1), np.zeros(order.size + 1)
    prior = float(d)
    quantum = scatters[1].quantum
    centre, weights = scatters[1].mean[columns], metric.weights * quantum[columns]
    means = np.array([(each.mean[columns] - centre) @ weights.T for each in scatters])
    squares = [
        _white(each.centred()[np.ix_(columns, columns)], metric.weights) for each in scatters
    ]
    sizes = [float(each.n_rows) for each in scatters]
    identity: Floats = prior * np.eye(d)
    covariances = np.array(
        [(s + identity) / (n + prior) for s, n in zip(squares, sizes, strict=True)]
    )
    determinants = np.linalg.slogdet(covariances)[1]
    # From the last budget to the first: sums of products that only grow lose nothing, however far
    # apart the sets are, and those from which the larger part is taken away do.
    total, products = np.zeros(d), squares[1] + identity
    found = np.empty((2, order.size + 1))
    start = 0
    for part in in_order(sets.forget, order[::-1], _AFRESH):
        whole = np.empty(part.shape)
        kernels.cut(part, sets.grid.origin, 1.0 / quantum, whole)
        white = np.ascontiguousarray((whole[:, columns] - centre) @ weights.T)
        last = start + len(white) == order.size and len(white) < _AFRESH
        # After the last record there is a budget more, to which none is added.
        rows = np.concatenate([white, np.zeros((1, d))]) if last else white
        out = np.empty((2, len(rows)))
        kernels.refits(
            rows, np.asarray(np.linalg.inv(products)), np.linalg.slogdet(products)[1], total.copy(),
            sizes[1] + start, prior, means, covariances, determinants, out,
        )  # fmt: skip
        found[:, start : start + len(rows)] = out
        total = total + white.sum(axis=0)
        products = products + white.T @ white
        start += len(white)
    alpha, epsilon = found[:, ::-1].copy()
    return alpha, epsilon


def _white(centred: Floats, weights: Floats) -> Floats:
    """Return sums of products of deviations in the coordinates of a metric, symmetric."""
    found = weights @ centred @ weights.T
    symmetric: Floats = (found + found.T) / 2
    return symmetric


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
    start = 0
    for part in in_order(sets.forget, forget, size):
        rows = (_some(part, columns) - centre) * scale
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
        total, squares, start = sums[-1], held[-1], start + len(rows)
    alpha, epsilon = found[:, ::-1].copy()
    return alpha, epsilon


def _some(chosen: Any, columns: Ints) -> Floats:
    dense = chosen.toarray() if issparse(chosen) else chosen
    part: Floats = dense[:, columns].astype(np.float64)
    return part

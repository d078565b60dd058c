"""Removal and preservation at every budget, by the moments of what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import erasable.removal._row_kernels as kernels
from erasable.core.arrays import Floats, Ints
from erasable.core.matrices import to_dense
from erasable.core.passes import Block, Pass
from erasable.core.tables import Table
from erasable.removal._covariance import (
    BITS,
    BLOCK,
    Metric,
    Scatter,
    shrunk_metric,
    varying,
    whole_blocks,
)
from erasable.removal._passes import in_order, rows_of
from erasable.removal._sets import Sets

_AFRESH = 256  # records after which the inverse is made again, so that errors do not grow


def full_refits(
    sets: Sets, order: Ints, metric: Metric, scatters: list[Scatter]
) -> tuple[Floats, Floats]:
    """Return alpha and epsilon at every budget, with full covariances.

    Computed in coordinates in which the covariance within the sets is the identity, which changes
    no divergence; all covariances are shrunk towards it, as by `n_features` more records. Values
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
    """Return the symmetric sums of products of deviations in the coordinates of a metric."""
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
    dense = to_dense(chosen)
    part: Floats = dense[:, columns].astype(np.float64)
    return part


FULL_COVARIANCE = 512
"""Columns up to which the covariance is full; above, and of sparse rows, its diagonal is used."""

_FLOOR = 1e-6  # of shrinkage: what does not vary within the sets, and does not part them, adds 0


@dataclass(frozen=True)
class Frontier:
    """Removal and shift by deleting the first records of an order, at every budget.

    Attributes
    ----------
    n_deleted : ndarray of shape (n_forget + 1,), int64
        Budgets, 0 to all.
    alpha : ndarray of shape (n_forget + 1,), float64
        Removal ``KL(p1, p)`` in nats, estimated.
    epsilon : ndarray of shape (n_forget + 1,), float64
        Shift of the wanted domain, ``KL(p2, p)`` in nats, estimated.
    share : ndarray of shape (n_forget + 1,), float64
        Share of the total score that has left; where some scores are negative, of their height
        above the least.

    Notes
    -----
    p1, p2 and p are Gaussians with the moments of forget, of retain, and of everything that is
    left. Where the covariance is shared, it is that within the two sets, its correlations shrunk
    (oracle approximating shrinkage): ``alpha = |m - m1|**2 / 2`` in its metric, and a difference in
    spread does not show. Where it is free, each has its own, shrunk to the one within the sets as
    by `n_features` more records. With more than 512 columns, and of sparse rows, correlations count
    as 0. Columns that vary in neither set are left out. Differences in shape do not show.

    The moments are those of the samples, so both are biased upwards, by about ``n_features / 2n``
    where the covariance is shared: in high dimension use `divergence` on held-out data, and
    `certificate` for a bound.

    Examples
    --------
    >>> Frontier(np.arange(2), np.array([0.1, 0.5]), np.array([0.1, 0.0]), np.zeros(2)).alpha[-1]
    np.float64(0.5)
    """

    n_deleted: Ints
    alpha: Floats
    epsilon: Floats
    share: Floats


def trace(sets: Sets, order: Ints, weights: Floats, covariance: str = "shared") -> Frontier:
    """Compute the frontier of an order; `covariance` is "shared" or "free"."""
    full = not sets.sparse and sets.n_features <= FULL_COVARIANCE
    if covariance == "free" and full:
        alpha, epsilon = full_refits(sets, order, *_within(sets))
    elif covariance == "free":
        alpha, epsilon = diagonal_refits(sets, order, *_diagonal(sets))
    elif sets.sparse:
        alpha, epsilon = _sparse(sets, order)
    else:
        alpha, epsilon = _dense(sets, order, full)
    alpha, epsilon = np.maximum(alpha, 0.0), np.maximum(epsilon, 0.0)
    epsilon[-1] = 0.0  # retain alone is left: `MaxShift(0.0)` is not to fail by a rounding
    held = np.concatenate([[0.0], np.cumsum(weights[order])])
    share = held / held[-1] if held[-1] > 0 else np.arange(held.size) / max(order.size, 1)
    return Frontier(np.arange(order.size + 1), alpha, epsilon, share)


def _within(sets: Sets) -> tuple[Metric, list[Scatter]]:
    """Return the metric of the covariance within the sets, and the exact sums of both."""
    scatters = [Scatter.fit(sets, X) for X in (sets.forget, sets.retain)]
    n = max(sets.forget.shape[0] + sets.retain.shape[0] - 2, 1)
    centred = scatters[0].centred() + scatters[1].centred()
    metric = shrunk_metric(centred, n, "auto", "both sets", varying(centred), floor=_FLOOR)
    return metric, scatters


def _dense(sets: Sets, order: Ints, full: bool) -> tuple[Floats, Floats]:
    n1, n2, d = sets.forget.shape[0], sets.retain.shape[0], sets.n_features
    quantum = np.ldexp(1.0, sets.grid.top - BITS)
    if full:
        metric, scatters = _within(sets)
        first, second = (scatter.sums.astype(np.float64) for scatter in scatters)
        columns, weights = metric.columns, metric.weights * quantum[metric.columns]
    else:
        columns, scale = _diagonal(sets)
        weights = scale * quantum[columns]
        first, second = (_sum(sets, X, quantum) for X in (sets.forget, sets.retain))
    total, own, other = (s[columns] for s in (first + second, first, second))
    own, other = own / n1, other / n2
    apart = _whitened(weights, (own - other)[None, :])[0]
    alpha, epsilon = np.empty(n1 + 1), np.empty(n1 + 1)
    left = total.copy()
    place = 0
    # The budget before each block, and all of its rows: whole numbers, so the sums are exact.
    for rows in in_order(sets.forget, order, BLOCK):
        block = np.empty((len(rows), d))
        kernels.cut(rows, sets.grid.origin, 1.0 / quantum, block)
        sums = np.empty((min(BLOCK, n1 + 1 - place), columns.size))
        after = left - np.cumsum(block[:, columns], axis=0)
        sums[0] = left
        sums[1:] = after[: len(sums) - 1]
        n_left = n1 + n2 - np.arange(place, place + len(sums))
        white = _whitened(weights, sums / n_left[:, None] - own)
        stop = place + len(sums)
        alpha[place:stop] = 0.5 * np.einsum("ij,ij->i", white, white)
        white += apart
        epsilon[place:stop] = 0.5 * np.einsum("ij,ij->i", white, white)
        place = stop
        if len(rows):
            left = after[-1]
    return alpha, epsilon


def _whitened(weights: Floats, differences: Floats) -> Floats:
    return differences @ weights.T if weights.ndim == 2 else differences * weights


def _diagonal(sets: Sets) -> tuple[Ints, Floats]:
    n1, n2 = sets.forget.shape[0], sets.retain.shape[0]
    squares = sets.forget_moments.variance() * n1 + sets.retain_moments.variance() * n2
    variance = squares / max(n1 + n2 - 2, 1)
    columns = np.flatnonzero(variance > 0)
    return columns, 1.0 / np.sqrt(variance[columns])


def _sum(sets: Sets, matrix: Any, quantum: Floats) -> Floats:
    return Table.over(matrix).run(_Sum(sets.grid.origin, quantum))


class _Sum(Pass[Floats]):
    """A pass that sums whole values."""

    def __init__(self, origin: Floats, quantum: Floats) -> None:
        self._origin, self._quantum = origin, quantum

    def of_block(self, block: Block) -> Floats:
        total = np.zeros(block.matrix.shape[1])
        for rows in whole_blocks(rows_of(block), self._origin, self._quantum):
            total += rows.sum(axis=0)
        return total

    def merge(self, one: Floats, other: Floats) -> Floats:
        one += other
        return one


def _sparse(sets: Sets, order: Ints) -> tuple[Floats, Floats]:
    n1, n2 = sets.forget.shape[0], sets.retain.shape[0]
    columns, scale = _diagonal(sets)
    weights = np.zeros(sets.n_features)
    weights[columns] = scale**2
    own, other = sets.forget_moments.mean(), sets.retain_moments.mean()
    alpha, epsilon = np.empty(n1 + 1), np.empty(n1 + 1)
    X = sets.forget
    kernels.walk(
        X.data, X.indices, X.indptr, order, n1 * own + n2 * other, float(n1 + n2), weights,
        own, other, alpha, epsilon,
    )  # fmt: skip
    return alpha, epsilon

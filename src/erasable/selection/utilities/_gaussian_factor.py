"""A Gaussian process observed at records that all stay: one Cholesky factor.

The factor of ``K_SS + noise I`` has a row for each chosen record; for every other record the row is
kept that it would get. A choice appends one entry to each of these rows, and subtracts its square
from the variance of the record (Chen, Zhang and Zhou, 2018). So all gains are known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from erasable.core._jit import inlined, kernel
from erasable.core.arrays import Floats, Ints
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory

NOTHING = 2.0**-46  # the share of a sum of squares that is nothing but rounding


_WIDTH = 2048  # records that are dealt with together: their sums fit into the fastest cache


class _Factor(NamedTuple):
    """A Cholesky factor and the remaining variance of each record."""

    K: Floats  # (n_records, n_records)
    noise: float
    Q: Floats  # products of kernels with the targets, summed over these; (0, 0) without targets
    rows: Floats  # (k, n_records): the entry of each record by each choice
    # (k, n_records) or (0, 0): what each choice takes from the products; those of records i and j
    # shrink by ``rows[:, i] sides[:, j] + sides[:, i] rows[:, j]``
    sides: Floats
    variance: Floats  # (n_records,): the remaining variance, without noise
    moved: Floats  # (n_records,) or (0,): remaining squared covariances with the targets, summed


class FactorFunction(SetFunction):
    """The information or variance reduction by the chosen, all of whom stay.

    Without `Q`, the information of the chosen, ``log det(I + K_SS / noise)``; with the products `Q`
    of the records' kernels with targets, the variance that they take from the targets. At most `k`
    records are added.
    """

    sweeps = True

    def __init__(self, K: Floats, noise: float, Q: Floats | None, k: int) -> None:
        n = len(K)
        tables = 1 if Q is None else 2
        check_memory(
            8.0 * tables * n * k, f"factors of {k:,} of {n:,} records", "choose fewer records"
        )
        none = np.zeros((0, 0))
        self.n, self.size, self.most = n, 0, k
        self.factor = _Factor(
            K=K,
            noise=noise,
            Q=none if Q is None else Q,
            rows=np.empty((k, n)),
            sides=none if Q is None else np.empty((k, n)),
            variance=K.diagonal().copy(),
            moved=np.zeros(0) if Q is None else Q.diagonal().copy(),
        )

    def gains(self, items: Ints) -> Floats:
        self.n_evaluations += len(items)
        of = self.factor
        if not len(of.Q):
            return worth(of.variance[items], of.noise)
        return worth(of.variance[items], of.noise, of.moved[items], of.Q[items, items])

    def _add(self, j: int) -> None:
        if self.size == self.most:
            raise IndexError(
                f"{self.most} records were added; expected no more; make the function for a "
                "larger k"
            )
        _append(j, self.size, self.factor)
        self.size += 1


def worth(variance: Floats, noise: float, moved: Floats | None = None, whole: Any = None) -> Floats:
    """Return the gains of records by their remaining variance, which rounding may make negative.

    `moved` is None for information; `whole` is its value before any choice, of which a share
    `NOTHING` is rounding.
    """
    left = np.maximum(variance, 0.0)
    if moved is None:
        return np.asarray(np.log1p(left / noise))
    return np.asarray(np.where(moved > NOTHING * whole, moved, 0.0) / (noise + left))


@inlined
def _subtract(weights: Floats, rows: Floats, out: Floats) -> None:
    """Subtract rows times their weights, four at a time, in their order."""
    whole = len(rows) - len(rows) % 4
    for s in range(0, whole, 4):
        a, b, c, d = rows[s], rows[s + 1], rows[s + 2], rows[s + 3]
        u, v, w, x = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
        for i in range(len(out)):
            out[i] -= (u * a[i] + v * b[i]) + (w * c[i] + x * d[i])
    for s in range(whole, len(rows)):
        a, u = rows[s], weights[s]
        for i in range(len(out)):
            out[i] -= u * a[i]


@inlined
def _subtract_both(
    weights: Floats, others: Floats, rows: Floats, sides: Floats, out: Floats, side: Floats
) -> None:
    """Subtract ``weights @ rows`` from `out`, ``weights @ sides + others @ rows`` from `side`."""
    whole = len(rows) - len(rows) % 2
    for s in range(0, whole, 2):
        a, b, c, d = rows[s], rows[s + 1], sides[s], sides[s + 1]
        u, v, w, x = weights[s], weights[s + 1], others[s], others[s + 1]
        for i in range(len(out)):
            out[i] -= u * a[i] + v * b[i]
            side[i] -= (u * c[i] + w * a[i]) + (v * d[i] + x * b[i])
    for s in range(whole, len(rows)):
        a, c, u, w = rows[s], sides[s], weights[s], others[s]
        for i in range(len(out)):
            out[i] -= u * a[i]
            side[i] -= u * c[i] + w * a[i]


@kernel
def _append(j: int, size: int, of: _Factor) -> None:
    """Choose record j as number `size`: append its entry to the row of every record."""
    squared = of.noise + max(of.variance[j], 0.0)
    deviation = np.sqrt(squared)
    # Copies: a column of these tables has its numbers far apart.
    rows = of.rows[:size, j].copy()
    sides = of.sides[:size, j].copy() if len(of.Q) > 0 else rows
    half = 0.0
    if len(of.Q) > 0 and of.moved[j] > NOTHING * of.Q[j, j]:
        half = 0.5 * of.moved[j] / squared
    for low in range(0, len(of.variance), _WIDTH):
        high = min(low + _WIDTH, len(of.variance))
        entry, variance = of.rows[size, low:high], of.variance[low:high]
        entry[:] = of.K[j, low:high]
        if len(of.Q) > 0:
            side, moved = of.sides[size, low:high], of.moved[low:high]
            side[:] = of.Q[j, low:high]
            _subtract_both(
                rows, sides, of.rows[:size, low:high], of.sides[:size, low:high], entry, side
            )
            for i in range(len(entry)):
                entry[i] /= deviation
                side[i] = side[i] / deviation - entry[i] * half
                moved[i] -= 2.0 * entry[i] * side[i]
        else:
            _subtract(rows, of.rows[:size, low:high], entry)
            for i in range(len(entry)):
                entry[i] /= deviation
        for i in range(len(entry)):
            variance[i] -= entry[i] * entry[i]

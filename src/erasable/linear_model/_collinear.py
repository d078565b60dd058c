"""Collinear features: of all coefficients that fit as well, the shortest.

Combinations of features that vary by no more than rounding say nothing about the targets, and
coefficients may be moved along them at will. As with scikit-learn's `lstsq`, there is to be
nothing of them in the coefficients, in the user's units.
"""

from __future__ import annotations

import numpy as np

from erasable.core.arrays import Flags, Floats
from erasable.linear_model._solve_kernels import (
    ROUNDS,
    LeastSquares,
    Scratch,
    factorise,
    residual,
    size_of,
    substitute,
)

__all__ = ["solve_collinear"]


_LEAST = 2.0**-400  # so that no quotient overflows


def solve_collinear(n_rows: float, problem: LeastSquares, scratch: Scratch) -> int:
    """Fill ``scratch.x`` with coefficients for every target.

    Parameters
    ----------
    n_rows : float
        As many rows have been rounded, each by half a quantum at most.
    problem : LeastSquares
    scratch : Scratch
        With the moments, as `solve` has left them.

    Returns
    -------
    int
        Rank of the features.
    """
    high, low, out, penalties = scratch.high, scratch.low, scratch.x, problem.penalties
    o, d = out.shape
    # What a coefficient is to be multiplied by to have it in the user's units, up to a factor.
    length = problem.scale / problem.unit[:d]
    factor, inverse, silent = np.zeros((d, d)), np.zeros(d), np.zeros((d, d))
    found = factorise(high, np.zeros(d), n_rows, factor, inverse, silent)
    kept = inverse > 0.0
    length = np.maximum(length / length.max(), _LEAST)
    rows = Told(factor, kept, silent[:found], length)
    step, rest = np.zeros((2, d))
    for i in range(o):
        penalty = penalties[i if penalties.shape[0] > 1 else 0]
        if penalty.any() and (i == 0 or penalties.shape[0] > 1):
            moments = high[:d, :d] + rows.charge(penalty)
            moments[~kept] = moments[:, ~kept] = 0.0
            factorise(moments, np.zeros(d), 0.0, factor, inverse, silent)
        x = out[i]
        x[:] = 0.0
        before = np.inf
        for _ in range(ROUNDS):
            residual(high, low, penalty, problem.first_target + i, x, step, rest)
            step[:] = length * rows.keep(step / length)
            step[~kept] = 0.0
            substitute(factor, inverse, step)
            size = size_of(step, high)
            if not size < before / 2:
                break
            before = size
            x += rows.keep(step * length) / length
    return int(np.count_nonzero(kept))


class Told:
    """The coefficients, in the user's units, of which the features tell anything.

    Parameters
    ----------
    factor : ndarray of shape (n_features, n_features)
        Cholesky factor of the moments.
    kept : ndarray of shape (n_features,), bool
        Its rows that are not 0.
    silent : ndarray of shape (n_silent, n_features)
        Combinations of features that do not vary; features of zeros not among them.
    length : ndarray of shape (n_features,)
    """

    def __init__(self, factor: Floats, kept: Flags, silent: Floats, length: Floats) -> None:
        self._length = length
        # Whichever is smaller: what tells something, or what does not.
        self._inside = int(np.count_nonzero(kept)) < silent.shape[0]
        directions = np.triu(factor)[kept] / length if self._inside else silent * length
        directions /= np.sqrt((directions * directions).sum(axis=1))[:, None]
        self._basis = np.zeros((length.size, 0))
        if directions.size:
            self._basis = np.linalg.qr(directions.T)[0]

    def keep(self, values: Floats) -> Floats:
        """Take out of coefficients what nothing tells of."""
        part: Floats = self._basis @ (self._basis.T @ values)
        return part if self._inside else values - part

    def charge(self, penalty: Floats) -> Floats:
        """Return what the coefficients that are kept cost, as a matrix to be added to moments."""
        length = self._length
        scaled = self._basis * (length * np.sqrt(penalty[np.argmax(length)]))[:, None]
        part: Floats = scaled @ scaled.T
        return part if self._inside else np.diag(penalty) - part

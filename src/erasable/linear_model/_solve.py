"""Coefficients from exact moments: the least-squares problem, its units, and its solution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

import erasable.linear_model._predict_kernels as _predict_kernels
import erasable.linear_model._solve_kernels as _solve_kernels
from erasable.core.arrays import Flags, Floats
from erasable.core.gram import Gram
from erasable.core.sparse import parts
from erasable.core.sparse_grid import SparseGrid
from erasable.linear_model._lattice import two_sum
from erasable.linear_model._solve_kernels import (
    ROUNDS,
    LeastSquares,
    SolveScratch,
    factorise,
    residual,
    size_of,
    substitute,
)

_MOST = 2.0**900  # a penalty that leaves nothing, and whose square root is finite


def least_squares(
    gram: Gram,
    origin: Floats | None,
    alpha: Floats,
    intercept: bool,
    affine: tuple[Any, Any] | None,
) -> LeastSquares:
    """State the problem of a model, with penalties `alpha` of squared coefficients.

    `origin` has the origins of features and targets, None without weights; `affine` is a shift and
    a scale.
    """
    d = gram.grid.top.size
    o = gram.target_grid.top.size
    quantum = gram.quantum
    inner = gram.columns[0] / quantum
    shift, scale = np.zeros(d), np.ones(d)
    if affine is not None:
        shift, scale = (np.array(part, dtype=np.float64) for part in affine)
    if origin is None:
        unit, first = quantum, gram.columns[0]
    else:
        o -= 1
        unit, first = quantum / quantum[d], np.insert(origin, d, 0.0)
    away = np.zeros((2, quantum.size))
    away[0] = first
    away[:, :d] = two_sum(first[:d], -shift)
    per_quantum = scale / quantum[:d]
    with np.errstate(over="ignore"):
        penalties = np.minimum(alpha[:, None] * per_quantum * per_quantum, _MOST)
    return LeastSquares(
        n_features=d,
        n_targets=o,
        first_target=d + int(origin is not None),
        weighted=origin is not None,
        intercept=intercept,
        about_mean=intercept and not isinstance(gram.grid, SparseGrid),
        inner=inner,
        offset=away / unit,
        unit=unit,
        shift=shift,
        scale=scale,
        penalties=penalties,
    )


def solve(problem: LeastSquares, gram: Gram) -> Solution:
    """Solve for the sums of some rows, on the grids for which the problem was stated."""
    n_rows = float(gram.n_rows)
    if n_rows == 0:
        done, scratch = True, SolveScratch.of(problem)
    else:
        done, scratch = _solve_kernels.solve_anew(n_rows, gram.sums, gram.products, problem)
    if done:
        rank = int(np.count_nonzero(scratch.high.diagonal()[: problem.n_features]))
    else:  # columns are collinear
        rank = solve_collinear(n_rows, problem, scratch)
        _solve_kernels.finish(problem, scratch)
    return Solution(problem, rank, scratch.slope, scratch.constant, scratch.middle, scratch.base)


@dataclass(slots=True)
class Solution:
    """Coefficients of a problem."""

    problem: LeastSquares
    rank: int  # of the features, as far as they differ from rounding
    slope: Floats  # what a unit of a feature adds, before the map, shape (n_targets, n_features)
    constant: Floats  # predictions where the mapped features are 0
    middle: Floats  # a point before the map
    base: Floats  # predictions at `middle`

    @property
    def coefficients(self) -> Floats:
        """Coefficients of the mapped features, a new array."""
        return self.slope * self.problem.scale

    def predict(self, rows: Any, mapped: bool) -> Floats:
        """Predict rows, which are given as they are after the map or before it."""
        problem = self.problem
        out = np.zeros((rows.shape[0], problem.n_targets))
        slope = self.coefficients if mapped else self.slope
        if issparse(rows):
            constant = self.constant if mapped else self.constant - slope @ problem.shift
            _predict_kernels.predict_sparse(*parts(rows), slope, constant, out)
        else:
            middle = self.middle
            if mapped:
                middle = (middle - problem.shift) / problem.scale
            _predict_kernels.predict(rows, middle, slope, self.base, out)
        return out


_LEAST = 2.0**-400  # so that no quotient overflows


def solve_collinear(n_rows: float, problem: LeastSquares, scratch: SolveScratch) -> int:
    """Fill ``scratch.x`` with the shortest of all coefficients that fit best, for every target.

    Combinations of features that vary by no more than rounding say nothing about the targets, and
    coefficients may be moved along them at will. As with scikit-learn's `lstsq`, there is to be
    nothing of them in the coefficients, in the user's units.

    `scratch` has the moments as `solve` has left them; each of `n_rows` rows was rounded by half a
    quantum at most. Return the rank of the features.
    """
    high, low, out, penalties = scratch.high, scratch.low, scratch.x, problem.penalties
    o, d = out.shape
    # What a coefficient is to be multiplied by to have it in the user's units, up to a factor.
    length = problem.scale / problem.unit[:d]
    factor, inverse, silent = np.zeros((d, d)), np.zeros(d), np.zeros((d, d))
    found = factorise(high, np.zeros(d), n_rows, factor, inverse, silent)
    kept = inverse > 0.0
    length = np.maximum(length / length.max(), _LEAST)
    determined = Determined(factor, kept, silent[:found], length)
    step, rest = np.zeros((2, d))
    for i in range(o):
        penalty = penalties[i if penalties.shape[0] > 1 else 0]
        if penalty.any() and (i == 0 or penalties.shape[0] > 1):
            moments = high[:d, :d] + determined.charge(penalty)
            moments[~kept] = moments[:, ~kept] = 0.0
            factorise(moments, np.zeros(d), 0.0, factor, inverse, silent)
        x = out[i]
        x[:] = 0.0
        before = np.inf
        for _ in range(ROUNDS):
            residual(high, low, penalty, problem.first_target + i, x, step, rest)
            step[:] = length * determined.project(step / length)
            step[~kept] = 0.0
            substitute(factor, inverse, step)
            size = size_of(step, high)
            if not size < before / 2:
                break
            before = size
            x += determined.project(step * length) / length
    return int(np.count_nonzero(kept))


class Determined:
    """The projection to the coefficients, in the user's units, that the features determine.

    `kept` are the rows of the Cholesky `factor` that are not 0; `silent` are combinations of
    features that do not vary, features of zeros not among them.
    """

    def __init__(self, factor: Floats, kept: Flags, silent: Floats, length: Floats) -> None:
        self._length = length
        # The smaller of both bases: of the determined directions, or of the others.
        self._inside = int(np.count_nonzero(kept)) < silent.shape[0]
        directions = np.triu(factor)[kept] / length if self._inside else silent * length
        directions /= np.sqrt((directions * directions).sum(axis=1))[:, None]
        self._basis = np.zeros((length.size, 0))
        if directions.size:
            self._basis = np.linalg.qr(directions.T)[0]

    def project(self, values: Floats) -> Floats:
        """Take out of coefficients the part that the features do not determine."""
        part: Floats = self._basis @ (self._basis.T @ values)
        return part if self._inside else values - part

    def charge(self, penalty: Floats) -> Floats:
        """Return what the coefficients that are kept cost, as a matrix to be added to moments."""
        length = self._length
        scaled = self._basis * (length * np.sqrt(penalty[np.argmax(length)]))[:, None]
        part: Floats = scaled @ scaled.T
        return part if self._inside else np.diag(penalty) - part

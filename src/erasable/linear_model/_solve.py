"""From exact moments to coefficients: what is to be solved, in which units, and the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core._grid_kernels import Floats
from erasable.core.gram import Gram
from erasable.core.sparse import SparseGrid, parts
from erasable.linear_model import _predict_kernels, _solve_kernels
from erasable.linear_model._collinear import solve_collinear

__all__ = ["Problem", "Solution", "Workspace"]

_MOST = 2.0**900  # a penalty that leaves nothing, and whose square root is finite


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything about a least-squares problem but the sums.

    Attributes
    ----------
    n_features, n_targets : int
    weighted : bool
        Is column `n_features` the root of the weights?
    intercept : bool
    about_mean : bool
        Predict relative to the means, and not to 0? Not where rows are sparse.
    inner : ndarray of shape (p,)
        Origins of the grids, in quanta.
    offset : ndarray of shape (2, p)
        What the origins of the data lie above `shift`, as a high and a low part, in `unit`.
    unit : ndarray of shape (p,)
        Powers of two: what 1 is in the columns that are solved.
    shift, scale : ndarray of shape (n_features,)
        The map behind which the model has learned: coefficients are of ``(x - shift) / scale``.
    penalties : ndarray of shape (1 or n_targets, n_features)
        Squared deviations, in quanta, that each coefficient is charged for.
    """

    n_features: int
    n_targets: int
    weighted: bool
    intercept: bool
    about_mean: bool
    inner: Floats
    offset: Floats
    unit: Floats
    shift: Floats
    scale: Floats
    penalties: Floats

    @classmethod
    def of(
        cls,
        gram: Gram,
        origin: Floats | None,
        alpha: Floats,
        intercept: bool,
        affine: tuple[Any, Any] | None,
    ) -> Problem:
        """State the problem of a model.

        Parameters
        ----------
        gram : Gram
        origin : ndarray of shape (n_features + n_targets,) or None
            With weights, the origins of the data.
        alpha : ndarray of shape (1,) or (n_targets,)
            Penalties of squared coefficients.
        intercept : bool
        affine : tuple of (shift, scale), or None
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
        away[:, :d] = _difference(first[:d], shift)
        per_quantum = scale / quantum[:d]
        with np.errstate(over="ignore"):
            penalties = np.minimum(alpha[:, None] * per_quantum * per_quantum, _MOST)
        return cls(
            n_features=d,
            n_targets=o,
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

    def solve(self, gram: Gram) -> Solution:
        """Solve for the sums of some rows, on the grids for which the problem was stated."""
        work = Workspace(self)
        if gram.n_rows == 0 or work.solve(self, gram):
            rank = int(np.count_nonzero(work.high.diagonal()[: self.n_features]))
        else:
            rank = work.solve_collinear(self, gram)
        return Solution(self, rank, work.slope, work.constant, work.middle, work.base)


class Workspace:
    """Arrays in which a problem is solved, once or for many rows."""

    def __init__(self, problem: Problem) -> None:
        d, o, p = problem.n_features, problem.n_targets, problem.unit.size
        self.high, self.low = np.zeros((2, p, p))
        self.mean = np.zeros((2, p))
        self.x, self.slope = np.zeros((2, o, d))
        self.constant, self.base = np.zeros((2, o))
        self.middle = np.zeros(d)

    def solve(self, problem: Problem, gram: Gram) -> bool:
        """Solve by Cholesky; false where coefficients are not determined."""
        return _solve_kernels.solve(
            float(gram.n_rows), gram.sums, gram.products,
            *problem_arguments(problem), *self.arguments(),
        )  # fmt: skip

    def solve_collinear(self, problem: Problem, gram: Gram) -> int:
        """Solve what `solve` has given up, because columns are collinear; return the rank."""
        d = problem.n_features
        first_target = d + problem.weighted
        rank = solve_collinear(
            self.high, self.low, first_target, problem.penalties, float(gram.n_rows),
            problem.scale / problem.unit[:d], self.x,
        )  # fmt: skip
        _solve_kernels.finish(
            self.x, first_target, self.mean, problem.unit, problem.shift, problem.intercept,
            problem.about_mean, self.slope, self.constant, self.middle, self.base,
        )  # fmt: skip
        return rank

    def arguments(self) -> tuple[Floats, ...]:
        """Return the arrays in the order in which the kernels take them."""
        return (
            self.high, self.low, self.mean, self.x,
            self.slope, self.constant, self.middle, self.base,
        )  # fmt: skip


def problem_arguments(problem: Problem) -> tuple[Any, ...]:
    """Return what `solve` takes of a problem, in its order."""
    return (
        problem.n_features, problem.weighted, problem.intercept, problem.about_mean,
        problem.inner, problem.offset, problem.unit, problem.shift, problem.penalties,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Solution:
    """Coefficients of a problem.

    Attributes
    ----------
    problem : Problem
    rank : int
        Of the features, as far as they differ from rounding.
    slope : ndarray of shape (n_targets, n_features)
        What a unit of a feature adds, before the map.
    constant : ndarray of shape (n_targets,)
        Predictions where the mapped features are 0.
    middle : ndarray of shape (n_features,)
    base : ndarray of shape (n_targets,)
        Predictions at `middle`, a point before the map.
    """

    problem: Problem
    rank: int
    slope: Floats
    constant: Floats
    middle: Floats
    base: Floats

    @property
    def coefficients(self) -> Floats:
        """Coefficients of the mapped features, a new array."""
        coefficients: Floats = self.slope * self.problem.scale
        return coefficients

    def predict(self, rows: Any, mapped: bool) -> NDArray[np.float64]:
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


def _difference(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Subtract without error: Knuth's two-sum."""
    total = a - b
    shadow = total - a
    return total, (a - (total - shadow)) - (b + shadow)

"""Newton's method by conjugate gradients: no Hessian, so that there may be many coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Floats
from erasable.linear_model._certificate import distance
from erasable.linear_model._lattice import Pair
from erasable.linear_model._softmax_design import Evaluation
from erasable.linear_model._softmax_problem import SoftmaxProblem
from erasable.linear_model._solver import Move, Solver

_FIRST = 1e-3
_ROUGH = 0.1
_PRICE = 25
"""A dense Hessian takes as long as ``width * (m + 1) / _PRICE`` products with it."""


class ConjugateSolver(Solver):
    """Steps from conjugate gradients, certified by the convexity of the penalty alone.

    One that does not certify gives up after the time of a few dense Hessians: where columns are
    nearly collinear, conjugate gradients take a thousand products for a step.
    """

    def __init__(self, problem: SoftmaxProblem, theta: Floats, *, certifies: bool = True) -> None:
        super().__init__(problem, theta, certifies=certifies)
        self._strengths = np.zeros(0)
        self._rows = 0.0
        self._before = np.inf
        self._chances = np.zeros((0, 0))
        self._scale = np.zeros(0)
        m, width = problem.shape
        self._left = np.inf if certifies else max(100, 3 * width * (m + 1) // _PRICE)

    def take_matrix(self, matrix: Any) -> bool:
        """See `Solver`."""
        self._strengths = np.zeros(0)  # new rows may have no known bound
        return super().take_matrix(matrix)

    @property
    def _gives_up(self) -> bool:
        return self._left <= 0

    def _look(
        self, theta: Pair, found: Evaluation, gradient: Floats, wrong: Floats, count: int
    ) -> Move:
        design, strengths = self.problem.design, self.problem.strengths
        self._chances = design.chances(found.logits)
        if strengths is not self._strengths:
            self._rows = design.squared_rows(strengths[: design.unit.size])
            self._strengths = strengths
        convexity = Convexity(self.problem, self._chances, self._rows)
        noise, size = convexity.norm(found.direct + wrong), convexity.norm(gradient)
        half = convexity.half(size + noise) + 2.0**-100 * np.abs(theta[0]).sum(axis=0)
        return Move(None, size, noise, theta, half)

    def _step(self, gradient: Floats, move: Move, count: int) -> Floats:
        # What a step leaves is the square of what it started from, or `tolerance` of it.
        if not self.certifies:
            return self._direction(self._chances, gradient, _ROUGH)
        share = move.decrement / self._before if count > 0 else np.inf
        self._before = move.decrement
        tolerance = 0.1 * share * share if share < 0.1 else _FIRST
        if move.decrement > 0:
            tolerance = max(tolerance, 0.3 * move.noise / move.decrement, 1e-12)
        return self._direction(self._chances, gradient, tolerance)

    def _direction(self, chances: Floats, gradient: Floats, tolerance: float) -> Floats:
        """Return the Newton step, up to a relative residual of `tolerance`.

        The columns are scaled by the roots of the Hessian's diagonal; a rough solver keeps that of
        its first step.
        """
        design, strengths = self.problem.design, self.problem.strengths
        if self.certifies or self._scale.size == 0:
            diagonal = design.diagonal(chances) + strengths
            self._scale = 1.0 / np.maximum(diagonal, 2.0**-900)
        scale = self._scale
        residual = gradient.copy()
        step = np.zeros_like(gradient)
        direction = scale * residual
        size = float(np.vdot(residual, direction))
        goal = tolerance * tolerance * size
        for _ in range(10 * gradient.size + 10):
            if not size > goal or self._gives_up:
                break
            self._left -= 1
            image = design.multiply(chances, direction) + strengths * direction
            curvature = float(np.vdot(direction, image))
            if not 0.0 < curvature < np.inf:  # beyond the precision of float64
                break
            length = size / curvature
            step += length * direction
            residual -= length * image
            scaled = scale * residual
            size, before = float(np.vdot(residual, scaled)), size
            direction *= size / before
            direction += scaled
        return step


class Convexity:
    """A diagonal lower bound of the Hessian where probabilities are `chances`, shape (n, m).

    The problem is not coupled; `rows` comes from `SoftmaxDesign.squared_rows`.
    """

    def __init__(self, problem: SoftmaxProblem, chances: Floats, rows: float) -> None:
        design = problem.design
        m = design.n_logits
        self._columns = design.unit.size
        self._strengths = problem.strengths[: self._columns]
        self._range = 1.0 if m == 1 else float(np.sqrt(2.0))
        self._rows = 1.001 * rows
        self._intercept = design.intercept
        self._least = np.inf
        if not design.intercept:
            return
        weights = design.weights[:, None]
        each = weights * chances * (1.0 - chances)
        total = (1.0 if m == 1 else 2.0) * float(each.max(axis=1, initial=0.0).sum())
        form = -((weights * chances).T @ chances)
        form[np.arange(m), np.arange(m)] = each.sum(axis=0)
        if not design.reference:
            form += np.trace(form) / m  # on the sums of the classes, which are 0
        values = np.linalg.eigvalsh(form)
        # Of 1 - p, where p is near 1, and of the sums.
        n, unit = weights.size, 2.0**-52
        rounding = unit * (float(weights.sum()) + m * n * float(values[-1]))
        floor = 0.999 * float(values[0]) - 4.0 * rounding
        self._least = max(floor, 0.0) / (1.0 + 2.002 * total * self._rows)

    def norm(self, gradient: Floats) -> float:
        """Return a bound of the dual norm of a gradient."""
        d = self._columns
        square = float((2.0 * gradient[:, :d] ** 2 / self._strengths).sum())
        if self._intercept:
            if not self._least > 0:
                return np.inf
            last = gradient[:, d]
            square += float(last @ last) / self._least
        return 1.001 * float(np.sqrt(square))

    @property
    def reach(self) -> float:
        """Bound of the range of a record's change of logits over the norm of the change."""
        if not self._least > 0:
            return np.inf
        both = np.sqrt(2.0 * self._rows) + 1.0 / np.sqrt(self._least)
        return 1.001 * self._range * float(both)

    def half(self, decrement: float) -> Floats:
        """Return half the widths of the intervals around here, where gradients have that norm."""
        bound = distance(decrement, self.reach)
        if not np.isfinite(bound):
            return np.full(self._columns + self._intercept, np.inf)
        out = bound * np.sqrt(2.0 / self._strengths)
        return np.append(out, bound / np.sqrt(self._least)) if self._intercept else out

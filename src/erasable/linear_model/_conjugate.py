"""Newton's method by conjugate gradients: no Hessian, so that there may be many coefficients."""

from __future__ import annotations

import numpy as np

from erasable.core.arrays import Floats
from erasable.linear_model._convex import Convexity
from erasable.linear_model._lattice import Pair
from erasable.linear_model._softmax_design import Evaluation
from erasable.linear_model._softmax_problem import Problem
from erasable.linear_model._solver import Move, Solver

__all__ = ["ConjugateSolver"]

_FIRST = 1e-3
_ROUGH = 0.1


class ConjugateSolver(Solver):
    """Steps from conjugate gradients, certified by the convexity of the penalty alone."""

    def __init__(self, problem: Problem, theta: Floats, *, certifies: bool = True) -> None:
        super().__init__(problem, theta, certifies=certifies)
        self._strengths = np.zeros(0)
        self._rows = 0.0
        self._before = np.inf
        self._chances = np.zeros((0, 0))
        self._scale = np.zeros(0)

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
        # What a step leaves over is the square of what it came from, or what is asked for here.
        if not self.certifies:
            return self._direction(self._chances, gradient, _ROUGH)
        share = move.decrement / self._before if count > 0 else np.inf
        self._before = move.decrement
        tolerance = 0.1 * share * share if share < 0.1 else _FIRST
        if move.decrement > 0:
            tolerance = max(tolerance, 0.3 * move.noise / move.decrement, 1e-12)
        return self._direction(self._chances, gradient, tolerance)

    def _direction(self, chances: Floats, gradient: Floats, tolerance: float) -> Floats:
        """Return the Newton step, but for a share of the gradient.

        The columns are scaled by the roots of the Hessian's diagonal, if only that of the first
        step where the way is rough.
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
            if not size > goal:
                break
            image = design.multiply(chances, direction) + strengths * direction
            length = size / float(np.vdot(direction, image))
            step += length * direction
            residual -= length * image
            scaled = scale * residual
            size, before = float(np.vdot(residual, scaled)), size
            direction *= size / before
            direction += scaled
        return step

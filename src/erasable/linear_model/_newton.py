"""Newton's method to the lattice: steps until the certificate says which point is the nearest.

A step costs a pass over the records for the gradient; a Hessian costs a few more, so an old one
serves as long as it is good enough. What it lacks (the logits have drifted, weights have changed,
it was rounded) is known, and is part of the certificate; see `_certificate` and `_metric`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from erasable.core.arrays import Floats
from erasable.core.row_arrays import padded
from erasable.linear_model._certificate import compounded, distance_after_step
from erasable.linear_model._lattice import Pair, pair_sum, round_intervals
from erasable.linear_model._metric import InverseHessian, invert, invert_precisely
from erasable.linear_model._softmax_design import UNIT, Evaluation
from erasable.linear_model._softmax_problem import SoftmaxProblem
from erasable.linear_model._solver import Move, Solver

_OFF = 0.5
"""A metric that may be wrong by this much is of no use to the certificate."""


class NewtonSolver(Solver):
    """Newton's method with a dense inverse Hessian, for up to about 1,500 coefficients."""

    def __init__(self, problem: SoftmaxProblem, theta: Floats, *, certifies: bool = True) -> None:
        super().__init__(problem, theta, certifies=certifies)
        self.metric: InverseHessian | None = None
        self._spent = 0.0
        self._before = np.inf

    def take_matrix(self, matrix: Any) -> bool:
        """See `Solver`."""
        metric, before = self.metric, self.problem.design.weights
        if not super().take_matrix(matrix):
            return False
        if metric is not None and not metric.is_guess:
            shared, n = metric.weights is before, matrix.shape[0]
            metric.logits = padded(metric.logits, n)
            metric.weights = self.problem.design.weights if shared else padded(metric.weights, n)
        return True

    def _look(
        self, theta: Pair, found: Evaluation, gradient: Floats, wrong: Floats, count: int
    ) -> Move:
        self._spent += float(count > 0)
        if count == 0:
            self._before = np.inf
        metric, error = self._metric(found, gradient)
        decrement, step, rounding = metric.decrement(gradient)
        self._before = decrement
        summing, moved = metric.noise(found.summing + wrong)
        noise = rounding + summing + 1.25 * found.energy
        if not self.certifies or error >= _OFF:
            return Move(step, decrement, noise, theta, np.full(1, np.inf))
        to = pair_sum(theta, (-step, np.zeros_like(step)))
        middle = self.problem.classes(to)
        design, widths = self.problem.design, self.problem.widths(metric.inverse)
        bound = distance_after_step(decrement, metric.reach(design), error, noise) + rounding
        half = bound * widths + self.problem.spread(moved)
        half += 2.0**-100 * np.abs(theta[0]).sum(axis=0)
        energy = found.energy
        if (
            not round_intervals(*middle, half + 1.25 * energy * widths)[1]
            and round_intervals(*middle, half)[1]
        ):
            energy = min(energy, design.energy(theta[0], found.logits))
        return Move(step, decrement, noise, to, half + 1.25 * energy * widths)

    def _metric(self, found: Evaluation, gradient: Floats) -> tuple[InverseHessian, float]:
        """Return an inverse Hessian that is good enough, and what it is wrong by."""
        if self.metric is not None:
            error = self._error(self.metric, found)
            if not self._worn(self.metric, error, gradient):
                return self.metric, error
        self.metric = self._renewed(found)
        self._spent = 0.0
        return self.metric, self._error(self.metric, found)

    def _worn(self, metric: InverseHessian, error: float, gradient: Floats) -> bool:
        """Tell whether a new Hessian is due: the steps that an old one costs have added up."""
        m, width = self.problem.shape
        if self._spent >= max(3.0, width * (m + 1) / 25):
            return True
        decrement = metric.decrement(gradient)[0]
        # Far from the optimum all that counts is to come nearer, and a Hessian may cost much.
        patient = decrement >= 0.5 and m > 1
        slow = decrement > (0.5 if patient else 0.3) * self._before
        return slow or (decrement < 0.5 and error >= _OFF and self.certifies)

    def _renewed(self, found: Evaluation) -> InverseHessian:
        problem, design = self.problem, self.problem.design
        logits = found.logits
        logits[design.weights == 0] = 0.0
        wrong = 8 * found.logit_error + 64 * UNIT
        metric: InverseHessian | None = invert(
            problem.hessian(logits),
            design.hessian_error + wrong if self.certifies else np.inf, logits,
            design.weights, problem.strengths,
        )  # fmt: skip
        if self.certifies and (metric is None or metric.error >= _OFF):
            metric = invert_precisely(
                problem.hessian_precisely(logits), wrong, logits, design.weights,
                problem.strengths,
            )  # fmt: skip
        return metric or self._blurred(logits)

    def _blurred(self, logits: Floats) -> InverseHessian:
        """Invert the Hessian with so much added that it has an inverse: some way to go on."""
        hessian = self.problem.hessian(logits)
        places = np.arange(hessian.shape[0])
        diagonal = np.maximum(hessian[places, places], 2.0**-900)
        metric, more = None, 2.0**-44
        while metric is None:  # ends at the latest when the diagonal dominates
            blurred = hessian.copy()
            blurred[places, places] = diagonal * (1.0 + more)
            weights = self.problem.design.weights
            metric = invert(blurred, np.inf, logits, weights, self.problem.strengths)
            more *= 8.0
        return metric

    def _error(self, metric: InverseHessian, found: Evaluation) -> float:
        """Bound what the metric is wrong by here and now."""
        problem = self.problem
        if not metric.error < _OFF:
            return np.inf
        drift = metric.drift(problem.design, found.logits) + 2 * found.logit_error
        if drift > 1.0:
            return np.inf
        change = max(
            _change(problem.design.weights, metric.weights),
            _change(problem.strengths, metric.strengths),
        )
        return compounded(metric.error, 1.0001 * math.expm1(drift), change)


def _change(now: Floats, before: Floats) -> float:
    """Bound the largest relative change."""
    if now is before:
        return 0.0
    held = before != 0
    if not np.array_equal(held, now != 0):
        return np.inf
    return float(np.abs(now[held] / before[held] - 1.0).max(initial=0.0)) + 4 * UNIT

"""Newton's method to the lattice: steps until the certificate says which point is the nearest.

A step costs a pass over the records for the gradient; a Hessian costs a few more, so an old one
serves as long as it is good enough. What it lacks (the logits have drifted, weights have changed,
it was rounded) is known, and is part of the certificate; see `_certificate` and `_metric`.
"""

from __future__ import annotations

from dataclasses import dataclass


import numpy as np

from erasable.core.errors import UncertainOptimumError

from ._certificate import distance_after_step
from ._lattice import Pair, pair_sum, settle
from ._metric import Metric, invert
from ._precise import invert_precisely
from ._softmax_design import UNIT, Evaluation
from ._softmax_kernels import Floats
from ._softmax_problem import Problem

__all__ = ["Move", "NewtonSolver", "Solver"]

_OFF = 0.5
"""A metric that may be wrong by this much is of no use to the certificate."""


@dataclass(slots=True)
class Move:
    """A step, and what is known of where it leads.

    Attributes
    ----------
    step : ndarray of shape (m, D), or None
        To be subtracted; None where it is not known yet.
    decrement, noise : float
        Norm of the gradient, and what of it may be rounding.
    to : Pair
        Where the optimum is looked for: behind the step, or here.
    half : ndarray
        Half the width of the interval of every coefficient of `Problem.classes` around there.
    """

    step: Floats | None
    decrement: float
    noise: float
    to: Pair
    half: Floats


@dataclass(frozen=True, slots=True)
class _Line:
    """A step that was taken: from where, how far, and how steep it was."""

    start: Pair
    step: Floats
    descent: float
    length: float

    @classmethod
    def along(cls, start: Pair, step: Floats, gradient: Floats, noise: float) -> _Line:
        """Start a line; where all is noise it is taken to be level."""
        descent = float(np.vdot(gradient, step))
        return cls(start, step, descent if descent > 1e6 * noise * noise else np.inf, 1.0)

    @property
    def end(self) -> Pair:
        """Where the step led."""
        return pair_sum(self.start, (-self.length * self.step, np.zeros_like(self.step)))

    def shortened(self, gradient: Floats) -> _Line | None:
        """Return a shorter line where this one led too far up again.

        The slope along the step grows with its length, because the objective is convex.
        """
        ascent = -float(np.vdot(gradient, self.step))
        if not ascent > 0.5 * self.descent or self.length < 1e-9:
            return None
        share = min(max(self.descent / (self.descent + ascent), 0.1), 0.9)
        return _Line(self.start, self.step, self.descent, self.length * share)


class Solver:
    """Base of both solvers: the loop of steps, line search and certificate.

    Attributes
    ----------
    problem : Problem
    theta : ndarray of shape (m, D)
        Where the last step led.
    """

    def __init__(self, problem: Problem, theta: Floats) -> None:
        self.problem = problem
        self.theta = theta

    _certifies = True

    def settle(self, budget: int) -> Floats:
        """Return the point of the lattice that is nearest to the optimum.

        Returns
        -------
        ndarray
            Coefficients of `Problem.classes`.

        Raises
        ------
        UncertainOptimumError
            If `budget` evaluations of the gradient do not tell.
        """
        theta: Pair = self.theta, np.zeros_like(self.theta)
        precise, stalled, best = False, 0, np.array([np.inf, np.inf])
        line: _Line | None = None
        for count in range(budget):
            found, gradient, wrong = self._evaluate(theta, precise)
            if line is not None and (shorter := line.shortened(gradient)) is not None:
                line, theta = shorter, shorter.end
                continue
            move = self._look(theta, found, gradient, wrong, count)
            values, certain = settle(*self.problem.classes(move.to), move.half)
            self.theta = move.to[0]
            if certain:
                return values
            reached = np.array([float(move.half.max()), move.decrement])
            stalled = 0 if not precise or (reached < 0.9 * best).any() else stalled + 1
            best = np.minimum(reached, best)
            if stalled > 4:
                break
            line = self._line(theta, gradient, move, count)
            theta = line.end
            precise = precise or move.decrement <= 4 * move.noise
            if not precise:
                theta = theta[0], np.zeros_like(theta[0])
        raise UncertainOptimumError(
            f"the optimum is not certain after {count + 1} steps; expected a better conditioned "
            "problem; choose a smaller C, or scale the columns"
        )

    def approach(self, decrement: float, budget: int) -> None:
        """Take steps until the Newton decrement is small, without any certificate."""
        self._certifies = False
        theta: Pair = self.theta, np.zeros_like(self.theta)
        line: _Line | None = None
        for count in range(budget):
            found, gradient, wrong = self._evaluate(theta, False)
            if line is not None and (shorter := line.shortened(gradient)) is not None:
                line, theta = shorter, shorter.end
                continue
            move = self._look(theta, found, gradient, wrong, count)
            line = self._line(theta, gradient, move, count)
            self.theta = line.end[0]
            if move.decrement < decrement:
                return
            theta = self.theta, np.zeros_like(self.theta)

    def _line(self, theta: Pair, gradient: Floats, move: Move, count: int) -> _Line:
        step = self._step(gradient, move, count) if move.step is None else move.step
        return _Line.along(theta, step, gradient, move.noise)

    def _evaluate(self, theta: Pair, precise: bool) -> tuple[Evaluation, Floats, Floats]:
        design = self.problem.design
        if precise:
            found = design.evaluate_exactly(*theta)
        else:
            found = design.evaluate(theta[0])
        return found, *self.problem.gradient(theta, found)

    def _look(
        self, theta: Pair, found: Evaluation, gradient: Floats, wrong: Floats, count: int
    ) -> Move:
        """Say where the optimum is, and perhaps already what the next step is."""
        raise NotImplementedError

    def _step(self, gradient: Floats, move: Move, count: int) -> Floats:
        raise NotImplementedError


class NewtonSolver(Solver):
    """Newton's method with a dense inverse Hessian, for up to about 1,500 coefficients.

    Attributes
    ----------
    metric : Metric or None
    """

    def __init__(self, problem: Problem, theta: Floats, metric: Metric | None = None) -> None:
        super().__init__(problem, theta)
        self.metric = metric
        self._spent = 0.0
        self._before = np.inf

    def _look(
        self, theta: Pair, found: Evaluation, gradient: Floats, wrong: Floats, count: int
    ) -> Move:
        if count == 0:
            self._before = np.inf
        if self.metric is None:
            self._renew(found)
        assert self.metric is not None
        error = self._error(found)
        decrement, step, rounding = self.metric.decrement(gradient)
        if count > 0:
            self._spent += 1.0
        if self.metric.logits is not found.logits and self._worn(error, decrement):
            self._renew(found)
            error = self._error(found)
            decrement, step, rounding = self.metric.decrement(gradient)
        self._before = decrement
        wrong = found.summing + wrong
        summing, moved = self.metric.noise(wrong)
        noise = rounding + summing + 1.25 * found.energy
        if not self._certifies or error >= _OFF:
            return Move(step, decrement, noise, theta, np.full(1, np.inf))
        to = pair_sum(theta, (-step, np.zeros_like(step)))
        middle = self.problem.classes(to)
        reach = self.metric.reach(self.problem.design)
        widths = self.problem.widths(self.metric.inverse)
        least = distance_after_step(decrement, reach, error, noise) * widths
        least += rounding * widths + self.problem.spread(moved)
        least += 2.0**-96 * np.abs(theta[0]).sum(axis=0)
        energy = found.energy * float(np.sqrt(1.0 + error))
        if not settle(*middle, least + energy * widths)[1] and settle(*middle, least)[1]:
            energy = self.problem.design.energy(theta[0], found.logits)
            energy = min(energy, found.energy) * float(np.sqrt(1.0 + error))
        return Move(step, decrement, noise, to, least + energy * widths)

    def _worn(self, error: float, decrement: float) -> bool:
        """Tell whether a new Hessian is due."""
        assert self.metric is not None
        m, width = self.problem.shape
        if self._spent >= max(3.0, width * (m + 1) / 25):
            return True
        if not np.isfinite(self.metric.error):  # of a sample
            return decrement > 0.3 * self._before or decrement < 0.5
        return error >= _OFF or decrement > 0.3 * self._before

    def _renew(self, found: Evaluation) -> None:
        problem, design = self.problem, self.problem.design
        logits = found.logits
        logits[design.weights == 0] = 0.0
        wrong = 8 * found.logit_error + 64 * UNIT
        metric: Metric | None = invert(
            problem.hessian(logits), design.hessian_error + wrong, logits,
            problem.class_weights, problem.strengths,
        )  # fmt: skip
        if self._certifies and (metric is None or metric.error >= _OFF):
            metric = invert_precisely(
                problem.hessian_precisely(logits), wrong, logits, problem.class_weights,
                problem.strengths,
            )  # fmt: skip
        if metric is None:
            raise UncertainOptimumError(
                "the Hessian cannot be inverted with 100 bits; expected a better conditioned "
                "problem; choose a smaller C, or scale the columns"
            )
        self.metric = metric
        self._spent = 0.0

    def _error(self, found: Evaluation) -> float:
        """Bound what the metric is wrong by here and now."""
        metric, problem = self.metric, self.problem
        assert metric is not None
        if not metric.error < _OFF:
            return np.inf
        drift = metric.drift(problem.design, found.logits) + 2 * found.logit_error
        if drift > 1.0:
            return np.inf
        ratios = [_ratio(problem.class_weights, metric.class_weights)]
        ratios.append(_ratio(problem.strengths, metric.strengths))
        return float((1.0 + metric.error) * np.exp(drift) * (1.0 + max(ratios)) - 1.0)


def _ratio(now: Floats, before: Floats) -> float:
    """Return the largest relative change."""
    held = before != 0
    if not np.array_equal(held, now != 0):
        return np.inf
    return float(np.abs(now[held] / before[held] - 1.0).max(initial=0.0))



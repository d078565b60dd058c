"""Base of the solvers: gradients, line search, and rounding to the lattice.

The law kept here: a point of the lattice is called certain only when it is the nearest to the
optimum. A solver may start anywhere and take any steps; what it is certain of is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from erasable.core.arrays import Floats
from erasable.linear_model._lattice import STEP, Pair, pair_sum, round_intervals
from erasable.linear_model._softmax_design import Evaluation
from erasable.linear_model._softmax_problem import SoftmaxProblem

_MOST_STEPS = 300
_RESTART_AFTER = 25
"""Steps after which to start again from 0: from far outside, the way back may be longer."""
_STALLED = 6
"""Steps without progress, near the optimum, after which there will be none."""
_LONGEST = 2.0**32
"""Longest step of a coefficient in units: where there is hardly any curvature, Newton's is as good
as infinite, and no optimum is further away."""


@dataclass(slots=True)
class Move:
    """A step, and bounds of the optimum where it leads."""

    step: Floats | None  # to be subtracted, shape (m, D); None where it is not known yet
    decrement: float  # norm of the gradient
    noise: float  # how much of it may be rounding
    to: Pair  # where the optimum is looked for: behind the step, or here
    # half widths of the intervals of the coefficients of `SoftmaxProblem.classes` there
    half: Floats


@dataclass(frozen=True, slots=True)
class _Line:
    """A step that was taken: its start, its slope there, and its length.

    The slope along it grows with its length, because the objective is convex. A length is too long
    where the slope at its end is above `rise`, and too short where one that was too long is known
    and the slope is still half as steep as at the start.
    """

    start: Pair
    step: Floats
    descent: float
    rise: float
    length: float = 1.0
    shortest: float = 0.0
    longest: float = np.inf

    @classmethod
    def at(cls, theta: Floats) -> _Line:
        """Return a line that leads nowhere."""
        return cls((theta, np.zeros_like(theta)), np.zeros_like(theta), np.inf, np.inf)

    @property
    def end(self) -> Pair:
        """Where the step led."""
        return pair_sum(self.start, (-self.length * self.step, np.zeros_like(self.step)))

    def corrected(self, gradient: Floats) -> _Line | None:
        """Return a line of another length, where its end's gradient asks for that."""
        if not np.isfinite(self.descent):
            return None
        slope = -float(np.vdot(gradient, self.step))
        shortest, longest = self.shortest, self.longest
        if not slope <= self.rise:
            longest = self.length
        elif slope < -0.5 * self.descent and np.isfinite(longest):
            shortest = self.length
        else:
            return None
        length = 0.5 * (shortest + longest)
        if longest - shortest < 0.01 * longest or longest < 1e-18:
            # Near enough to a wall: stay on this side of it.
            if not self.length > shortest > 0.0:
                return None
            length = longest = shortest
        return replace(self, length=length, shortest=shortest, longest=longest)


class Solver:
    """Base of both solvers: the loop of steps, line search and certificate."""

    def __init__(self, problem: SoftmaxProblem, theta: Floats, *, certifies: bool = True) -> None:
        self.problem = problem
        self.theta = theta  # where the last step led, shape (m, D)
        self.certifies = certifies  # False: only `approach` is used, without a certificate

    def take_matrix(self, matrix: Any) -> bool:
        """Refer to another matrix of the records, with room for others, if that is simple."""
        return self.problem.design.take_matrix(matrix)

    @np.errstate(over="ignore", invalid="ignore")  # where a line has led much too far
    def find_lattice_point(self, margin: float = 1.0) -> tuple[Floats, bool]:
        """Look for the point of the lattice nearest to the optimum; tell whether it is certain.

        At the limit of the precision, intervals are widened by `margin`, so that a point that is
        certain from here is certain from every start.
        """
        precise, stalled, best = False, 0, np.array([np.inf, np.inf])
        line, warm = _Line.at(self.theta), bool(self.theta.any())
        for count in range(_MOST_STEPS):
            if count == _RESTART_AFTER and warm and not precise:
                line, warm = _Line.at(np.zeros_like(self.theta)), False
            theta, found, gradient, wrong = self._search_line(line, precise)
            move = self._look(theta, found, gradient, wrong, count)
            half = margin * move.half if precise else move.half
            values, certain = round_intervals(*self.problem.classes(move.to), half)
            self.theta = move.to[0]
            if certain:
                return values, True
            reached = np.array([float(move.half.max()), move.decrement])
            near = move.decrement < (1e3 * move.noise if precise else 1.0)
            stalled = stalled + 1 if near and not (reached < 0.9 * best).any() else 0
            # A step may lead down into a valley where the decrement is larger by far: what was
            # reached before it is no measure of the progress there.
            best = np.minimum(reached, best) if near else np.array([np.inf, np.inf])
            if stalled > _STALLED and precise:
                break
            line = self._line(theta, gradient, found.direct + wrong, move, count)
            del found  # before there are the logits of another
            # Without the precision, steps may lead to and fro: no slope determines their length.
            lost = stalled > _STALLED or count > 2 * _RESTART_AFTER
            if not precise and (lost or move.decrement <= 4 * move.noise):
                precise, stalled, best = True, 0, np.array([np.inf, np.inf])
        high, low = self.problem.classes(move.to)
        nearest: Floats = (np.rint(high / STEP + low / STEP)) * STEP + 0.0
        return nearest, False

    @np.errstate(over="ignore", invalid="ignore")
    def approach(self, decrement: float) -> None:
        """Take steps until the Newton decrement is small, without any certificate."""
        line = _Line.at(self.theta)
        for count in range(_MOST_STEPS):
            theta, found, gradient, wrong = self._search_line(line, False)
            move = self._look(theta, found, gradient, wrong, count)
            line = self._line(theta, gradient, found.direct + wrong, move, count)
            del found
            self.theta = line.end[0]
            if float(np.vdot(gradient, line.step)) < decrement * decrement or self._gives_up:
                return

    @property
    def _gives_up(self) -> bool:
        """Whether to approach no further: another solver is faster."""
        return False

    def _search_line(self, line: _Line, precise: bool) -> tuple[Pair, Evaluation, Floats, Floats]:
        """Go where a line is neither too long nor too short; return what is found there."""
        design = self.problem.design
        while True:
            high, low = line.end
            if precise:
                found = design.evaluate_exactly(high, low)
            else:
                low = np.zeros_like(high)
                found = design.evaluate(high)
            gradient, wrong = self.problem.gradient((high, low), found)
            other = line.corrected(gradient)
            if other is None:
                return (high, low), found, gradient, wrong
            line = other

    def _line(self, theta: Pair, gradient: Floats, errors: Floats, move: Move, count: int) -> _Line:
        """Return the next step; `errors` bound what of the gradient's components is rounding."""
        step = self._step(gradient, move, count) if move.step is None else move.step
        descent = float(np.vdot(gradient, step))
        # Both are bounds, and either may be the sharper one by far.
        is_noise = not (
            descent > 1e3 * move.noise * move.noise
            or descent > 30.0 * float(np.vdot(errors, np.abs(step)))
        )
        longest = float(np.abs(step).max())
        if longest > _LONGEST:
            step = step * (_LONGEST / longest)
            descent *= _LONGEST / longest
        if is_noise:
            descent = np.inf  # any length will do
        # A slope that is small beside an enormous one may still lead far up.
        total = float(self.problem.design.weights.sum())
        rise = 0.1 * descent if descent < 1.0 + 0.1 * total else 0.0
        return _Line(theta, step, descent, rise)

    def _look(
        self, theta: Pair, found: Evaluation, gradient: Floats, wrong: Floats, count: int
    ) -> Move:
        """Bound where the optimum is, and perhaps already take the next step."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _look()")

    def _step(self, gradient: Floats, move: Move, count: int) -> Floats:
        """Return the next step, where `_look` did not."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _step()")

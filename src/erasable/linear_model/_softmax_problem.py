"""Objective of a softmax: the loss of a design, and the penalty of its coefficients.

``F = sum_i s_i loss_i + sum_j strength_j |w_j|^2 / 2``, where w_j are the coefficients of column j
in all classes, in units of the columns, and the intercepts have strength 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from erasable.core.arrays import Floats, Ints
from erasable.linear_model._lattice import Pair, pair_divide, pair_sum, pair_times
from erasable.linear_model._softmax_design import UNIT, Evaluation, SoftmaxDesign


@dataclass(slots=True)
class SoftmaxProblem:
    """The objective that is minimised.

    Where it is `coupled`, the reference class has coefficients as well. Those of m logits,
    ``theta``, are then differences to its own. The penalty is that of
    ``theta - sum(theta) / (m + 1)``, the least of all that give these differences.
    """

    design: SoftmaxDesign
    strengths: Floats  # shape (D,); 0 for the intercept
    coupled: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of theta."""
        return self.design.n_logits, self.design.width

    def center(self, theta: Pair) -> Pair:
        """Return what is penalised."""
        if not self.coupled:
            return theta
        shares = self._shares(theta)
        return pair_sum(theta, (-shares[0], -shares[1]))

    def _shares(self, theta: Pair, n_classes: int = 0) -> Pair:
        total = theta[0][0], theta[1][0]
        for k in range(1, theta[0].shape[0]):
            total = pair_sum(total, (theta[0][k], theta[1][k]))
        return pair_divide(total, float(n_classes or theta[0].shape[0] + 1))

    def classes(self, theta: Pair) -> Pair:
        """Return the coefficients of all classes, which sum to 0 where there is more than one."""
        if self.coupled:
            last = self._shares(theta)
            high, low = self.center(theta)
            return np.vstack([high, -last[0]]), np.vstack([low, -last[1]])
        if theta[0].shape[0] == 1:
            return theta
        mean = self._shares(theta, theta[0].shape[0])
        return pair_sum(theta, (-mean[0], -mean[1]))

    def from_classes(self, values: Floats) -> Floats:
        """Return the theta of coefficients of all classes."""
        return values[:-1] - values[-1] if self.coupled else values.copy()

    def gradient(self, theta: Pair, found: Evaluation) -> tuple[Floats, Floats]:
        """Add the penalty to a gradient; return it, and how wrong adding makes it."""
        if not found.precise:
            pull = self.center(theta)[0] * self.strengths
            return found.gradient + pull, (self.shape[0] + 10) * UNIT * (
                np.abs(pull) + np.abs(found.gradient)
            )
        high, low = pair_times(self.center(theta), self.strengths)
        total, _ = pair_sum((found.gradient, found.rest), (high, low))
        wrong = 2.0**-100 * (np.abs(high) + np.abs(found.gradient)) + 2 * UNIT * np.abs(total)
        return total, wrong

    def widths(self, inverse: Floats) -> Floats:
        """Return ``sqrt(c' B c)`` of every coefficient of `classes`."""
        m, width = self.shape
        blocks = inverse.reshape(m, width, m, width)
        if not self.coupled:
            return np.sqrt(np.diagonal(inverse)).reshape(m, width)
        to_classes = np.vstack([np.eye(m), np.zeros((1, m))]) - 1.0 / (m + 1)
        squares = np.einsum("ck,kjlj,cl->cj", to_classes, blocks, to_classes)
        sizes = np.abs(to_classes)
        terms = np.einsum("ck,kjlj,cl->cj", sizes, np.abs(blocks), sizes)
        return np.asarray(1.001 * np.sqrt(np.maximum(squares, 0.0) + 16 * UNIT * terms))

    def spread(self, errors: Floats) -> Floats:
        """Bound errors of the coefficients of `classes`, for errors of theta, shape (m, D)."""
        if not self.coupled:
            return errors
        m = self.shape[0]
        to_classes = np.vstack([np.eye(m), np.zeros((1, m))]) - 1.0 / (m + 1)
        return np.asarray(np.abs(to_classes) @ errors)

    def hessian(self, logits: Floats) -> Floats:
        """Return the Hessian of the objective, shape (m D, m D)."""
        out = self.design.hessian(logits)
        for place, (high, _) in self._penalties():
            out[place] += high
        return out

    def hessian_precisely(self, logits: Floats) -> Pair:
        """Return the same as a pair."""
        out = self.design.hessian_precisely(logits)
        for place, pair in self._penalties():
            out[0][place], out[1][place] = pair_sum((out[0][place], out[1][place]), pair)
        return out

    def _penalties(self) -> Iterator[tuple[tuple[Ints, Ints], Pair]]:
        """Yield the diagonals of the blocks of the penalty's Hessian, and where they are."""
        m, width = self.shape
        columns, zeros = np.arange(width), np.zeros(width)
        own: Pair = self.strengths, zeros
        shared: Pair = zeros, zeros
        if self.coupled:
            shared = pair_divide((-self.strengths, zeros), m + 1.0)
        for k in range(m):
            for other in range(m):
                pair = pair_sum(own, shared) if k == other else shared
                yield (k * width + columns, other * width + columns), pair

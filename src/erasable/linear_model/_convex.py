"""The certificate that needs no Hessian: what the penalty and the intercepts alone guarantee.

Equation (4) of `_certificate`. It is blunter than a Hessian, so gradients must be nearer to 0; for
sparse records these cost little.
"""

from __future__ import annotations

import numpy as np

from erasable.core.arrays import Floats
from erasable.linear_model._certificate import distance
from erasable.linear_model._softmax_problem import Problem

__all__ = ["Convexity"]


class Convexity:
    """A diagonal lower bound of the Hessian at some coefficients, and what it certifies.

    Parameters
    ----------
    problem : Problem
        Not coupled.
    chances : ndarray of shape (n, m)
        Probabilities there.
    rows : float
        `Design.squared_rows`.
    """

    def __init__(self, problem: Problem, chances: Floats, rows: float) -> None:
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

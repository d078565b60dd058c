"""The start of the search for the optimum of a logistic regression.

It decides how fast the optimum is found, and is no part of the model, which is certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from erasable.core.arrays import Floats
from erasable.core.passes import Remote, Stored
from erasable.linear_model._conjugate import ConjugateSolver
from erasable.linear_model._logistic_classes import TaughtClasses
from erasable.linear_model._newton import NewtonSolver
from erasable.linear_model._softmax_problem import SoftmaxProblem
from erasable.linear_model._solver import Solver

_SAMPLE, _PART = 2500, 40
"""Least number of records of the sample from which a fit starts, and their share of all."""
_BROUGHT = 2**16
"""Most of that share where records are on workers: the driver alone learns from them."""
_WIDE = 200
"""Number of coefficients from which conjugate gradients lead near the optimum first."""


@dataclass(slots=True)
class Start:
    """Where to start from: coefficients of the records as they are, for some classes."""

    labels: list[Any]
    slopes: Floats
    constants: Floats

    @classmethod
    def of(cls, labels: list[Any], values: Floats, origin: Floats, unit: Floats) -> Self:
        """Return the start that coefficients of the records in other units are."""
        if values.shape[0] == 1:  # one class against the other
            values = np.vstack([-0.5 * values, 0.5 * values])
        d = unit.size
        slopes = values[:, :d] * unit
        constants = values[:, d] if values.shape[1] > d else np.zeros(values.shape[0])
        return cls(list(labels), slopes, constants - slopes @ origin)

    def coefficients(self, labels: list[Any], problem: SoftmaxProblem) -> Floats:
        """Return what a problem of these classes is to start from."""
        design = problem.design
        slopes = np.zeros((len(labels), design.unit.size))
        constants = np.zeros(len(labels))
        for k, label in enumerate(labels):
            if label in self.labels:
                before = self.labels.index(label)
                slopes[k], constants[k] = self.slopes[before], self.constants[before]
        constants = constants + slopes @ design.origin
        slopes = slopes / design.unit
        rows = np.column_stack([slopes, constants]) if design.intercept else slopes
        if problem.shape[0] == 1 and not problem.coupled:
            return np.asarray(rows[1:] - rows[:1])
        return problem.from_classes(rows - rows.mean(axis=0))


def from_sample(problem: SoftmaxProblem, taught: TaughtClasses, made: type[Solver]) -> Solver:
    """Come near the optimum: by some of the records, where there are many."""
    design = problem.design
    solver = made(problem, np.zeros(problem.shape))
    n = int(taught.counts.sum())
    share = n // _PART
    if isinstance(design.matrix, Remote):
        share = min(share, _BROUGHT)
    wanted = max(_SAMPLE, 10 * solver.theta.size, share)
    if n < 4 * wanted:
        _approach(problem, solver)
        return solver
    rows, weights = [], []
    for code in range(taught.n_taught):
        own = np.flatnonzero(taught.teaches & (design.codes == code))
        step = max(1, min(n // wanted, own.size // 100))
        rows.append(own[::step].copy())
        weights.append(design.weights[rows[-1]] * (own.size / rows[-1].size))
    sample = design.take(np.concatenate(rows), np.concatenate(weights))
    if isinstance(design.matrix, Stored):
        design.matrix.drop_copies()
    part = SoftmaxProblem(sample, problem.strengths, problem.coupled)
    small = made(part, solver.theta, certifies=False)
    _approach(part, small)
    small.approach(0.1)
    solver.theta = small.theta
    if isinstance(solver, NewtonSolver) and isinstance(small, NewtonSolver) and small.metric:
        solver.metric = small.metric.as_guess()
    return solver


def _approach(problem: SoftmaxProblem, solver: Solver) -> None:
    """Spare a solver some of its Hessians where these are large."""
    if isinstance(solver, NewtonSolver) and solver.theta.size >= _WIDE:
        rough = ConjugateSolver(problem, solver.theta, certifies=False)
        rough.approach(0.1)
        solver.theta = rough.theta

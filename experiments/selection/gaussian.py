"""A Gaussian process with the kernel of the experiments, and what is left of it after deletions.

Measures here take who stays, of shape ``(n_simulations, n_selected)`` in the order of choice, and
return a column for each number of chosen records, shape ``(n_simulations, n_counts)``: one Cholesky
factor has those of all first parts of a selection in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.optimize import minimize
from simulations import Floats, Ints, Mask
from sklearn.metrics import euclidean_distances

NEAR = 1e-6  # a distance that may be rounding
WIDEST = 9.0  # of the logarithm of a hyperparameter


@dataclass(frozen=True)
class Process:
    """A Gaussian process of mean 0.

    Its kernel is ``signal exp(-|x - z|)``, each feature divided by its length scale. With a slope,
    feature 0 has ``slope x0 z0`` in place of that.

    Attributes
    ----------
    lengths : ndarray of shape (n_features,) or, with a slope, (n_features - 1,)
    signal, noise : float
        Variances.
    slope : float or None
    """

    lengths: Floats
    signal: float
    noise: float
    slope: float | None = None

    def kernel(self, X: Floats, Z: Floats | None = None) -> Floats:
        """Return the kernel of records X and Z, by default X."""
        Z = X if Z is None else Z
        first = 0 if self.slope is None else 1
        distances = euclidean_distances(X[:, first:] / self.lengths, Z[:, first:] / self.lengths)
        if Z is X:
            distances = (distances + distances.T) / 2
        K = self.signal * np.exp(-distances)
        return K if self.slope is None else K + self.slope * np.outer(X[:, 0], Z[:, 0])

    def variance(self, X: Floats) -> Floats:
        """Return the variance of the signal at each record."""
        slope = 0.0 if self.slope is None else self.slope
        return np.asarray(self.signal + slope * X[:, 0] ** 2)

    @classmethod
    def fitted(
        cls, X: Floats, y: Floats, *, noise: float | None = None, with_slope: bool = False
    ) -> Process:
        """Fit the hyperparameters by maximum likelihood, from 1 for all; noise that is known stays.

        Noise that is not known is fitted from 0.1.
        """
        at_noise = X.shape[1] - with_slope + 1
        start = np.zeros(at_noise + 1 + with_slope)
        start[at_noise] = np.log(0.1 if noise is None else noise)
        bounds = [(-WIDEST, WIDEST)] * len(start)
        if noise is not None:
            bounds[at_noise] = (start[at_noise], start[at_noise])
        found = minimize(
            _negative, start, (X, y, with_slope), method="L-BFGS-B", jac=True, bounds=bounds
        )
        return cls.of(found.x, with_slope)

    @classmethod
    def of(cls, logarithms: Floats, with_slope: bool) -> Process:
        """Make a process of the logarithms of lengths, signal, noise and perhaps slope."""
        *lengths, signal, noise = np.exp(logarithms[: len(logarithms) - with_slope])
        slope = float(np.exp(logarithms[-1])) if with_slope else None
        return cls(np.array(lengths), float(signal), float(noise), slope)

    def told(self) -> str:
        """Write the hyperparameters."""
        lengths = ", ".join(f"{length:.3g}" for length in self.lengths)
        slope = "" if self.slope is None else f"; variance of the slope {self.slope:.3g}"
        return (
            f"length scales {lengths}; variance of the signal {self.signal:.3g}, of the noise "
            f"{self.noise:.3g}{slope}"
        )


def _negative(logarithms: Floats, X: Floats, y: Floats, slope: bool) -> tuple[float, Floats]:
    """Return the negative log marginal likelihood, and its gradient."""
    value, gradient = likelihood(Process.of(logarithms, slope), X, y)
    return -value, -gradient


def likelihood(process: Process, X: Floats, y: Floats) -> tuple[float, Floats]:
    """Return the log marginal likelihood (Rasmussen and Williams, equation 2.30), and its gradient.

    The gradient is by the logarithms of lengths, signal, noise and slope.
    """
    n, first = len(X), 0 if process.slope is None else 1
    rest = X[:, first:] / process.lengths
    distances = euclidean_distances(rest)
    decaying = process.signal * np.exp(-distances)
    linear = None if process.slope is None else process.slope * np.outer(X[:, 0], X[:, 0])
    K = decaying + process.noise * np.eye(n)
    factor = scipy.linalg.cho_factor(K if linear is None else K + linear, lower=True)
    alpha = scipy.linalg.cho_solve(factor, y)
    value = -0.5 * y @ alpha - np.log(np.diag(factor[0])).sum() - n / 2 * np.log(2 * np.pi)
    inner = np.outer(alpha, alpha) - scipy.linalg.cho_solve(factor, np.eye(n))
    near = distances < NEAR  # the derivative by a length is 0 there
    weights = np.where(near, 0.0, inner * decaying / np.where(near, 1.0, distances))
    by_length = (rest**2 * weights.sum(axis=0)[:, None]).sum(axis=0)
    by_length -= (rest * (weights @ rest)).sum(axis=0)
    gradient = [*by_length, 0.5 * np.sum(inner * decaying), 0.5 * process.noise * np.trace(inner)]
    if linear is not None:
        gradient.append(0.5 * np.sum(inner * linear))
    return float(value), np.array(gradient)


def factor_of(K: Floats, noise: float, rows: Ints) -> Floats:
    """Return the Cholesky factor of the kernel of some rows with noise."""
    part = K[np.ix_(rows, rows)]
    part[np.diag_indices_from(part)] += noise
    return np.asarray(scipy.linalg.cholesky(part, lower=True, check_finite=False))


def _solved(factor: Floats, right: Floats) -> Floats:
    return np.asarray(scipy.linalg.solve_triangular(factor, right, lower=True, check_finite=False))


class UtilityLeft:
    """The utility of who stays of the first chosen: mutual information, or reduction of variance.

    Parameters
    ----------
    K : ndarray of shape (n_selected, n_selected)
        The kernel of the chosen.
    noise : float
    counts : sequence of int
        Numbers of chosen records, ascending.
    cross : ndarray of shape (n_selected, n_targets), default=None
        The kernel of the chosen with targets, whose variance counts; None for the information.
    """

    def __init__(
        self, K: Floats, noise: float, counts: Sequence[int], cross: Floats | None = None
    ) -> None:
        self.K, self.noise, self.counts = K, noise, np.asarray(counts)
        self.Q = None if cross is None else cross @ cross.T

    def __call__(self, stays: Mask) -> Floats:
        found = np.zeros((len(stays), len(self.counts)))
        for values, mask in zip(found, stays, strict=True):
            rows = np.flatnonzero(mask)
            total = np.concatenate([[0.0], np.cumsum(self._gains(rows))])
            values[:] = total[np.searchsorted(rows, self.counts)]
        return found

    def _gains(self, rows: Ints) -> Floats:
        """Return what each of some rows adds to those before it."""
        if not len(rows):
            return np.zeros(0)
        factor = factor_of(self.K, self.noise, rows)
        if self.Q is None:
            return np.asarray(2 * np.log(np.diag(factor)) - np.log(self.noise))
        half = _solved(factor, self.Q[np.ix_(rows, rows)])
        return np.asarray(np.diag(_solved(factor, half.T)))


class DensityLeft:
    """The log predictive density of validation records, trained on who stays; its mean.

    Parameters
    ----------
    process : Process
    X, y : ndarray of shape (n_selected, n_features), (n_selected,)
        The chosen.
    X_new, y_new : ndarray
        Validation data.
    counts : sequence of int
        Numbers of chosen records, ascending.
    """

    def __init__(
        self, process: Process, X: Floats, y: Floats, X_new: Floats, y_new: Floats,
        counts: Sequence[int],
    ) -> None:  # fmt: skip
        self.noise, self.y, self.y_new, self.counts = process.noise, y, y_new, np.asarray(counts)
        self.K, self.cross = process.kernel(X), process.kernel(X, X_new)
        self.prior = process.variance(X_new) + process.noise

    def __call__(self, stays: Mask) -> Floats:
        found = np.empty((len(stays), len(self.counts)))
        for values, mask in zip(found, stays, strict=True):
            rows = np.flatnonzero(mask)
            values[:] = self._of(rows, np.searchsorted(rows, self.counts))
        return found

    def _of(self, rows: Ints, ends: Ints) -> list[float]:
        """Return the density after each of some numbers of rows."""
        if len(rows):
            factor = factor_of(self.K, self.noise, rows)
            solved = _solved(factor, np.column_stack([self.y[rows], self.cross[rows]]))
        else:
            solved = np.zeros((0, len(self.y_new) + 1))
        mean, variance, first, values = np.zeros(len(self.y_new)), self.prior.copy(), 0, []
        for end in ends.tolist():
            own, part = solved[first:end, 0], solved[first:end, 1:]
            mean += own @ part
            variance -= np.einsum("ij,ij->j", part, part)
            values.append(float(density(self.y_new, mean, variance).mean()))
            first = end
        return values


def density(y: Floats, mean: Any, variance: Any) -> Floats:
    """Return the logarithm of the normal density."""
    return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance))

"""A small network of rectified units for regression: its training, and its tangent kernel.

Weights are a list of a matrix and a vector for each layer, of float32 for training.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from simulations import Floats, Ints, Mask

Weights = list[tuple[NDArray[Any], NDArray[Any]]]
FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8  # of Adam


def start(sizes: Sequence[int], seed: int) -> Weights:
    """Draw weights uniformly, as a linear layer of torch does: within 1 / sqrt(n_inputs)."""
    rng = np.random.default_rng([seed, 25])
    weights = []
    for n_in, n_out in pairwise(sizes):
        bound = n_in**-0.5
        weights.append((
            rng.uniform(-bound, bound, (n_in, n_out)).astype(np.float32),
            rng.uniform(-bound, bound, n_out).astype(np.float32),
        ))  # fmt: skip
    return weights


def forward(weights: Weights, X: NDArray[Any]) -> list[NDArray[Any]]:
    """Return what goes into each layer, and what comes out of the last, (n_records, 1)."""
    values = [X]
    for at, (W, b) in enumerate(weights):
        out = values[-1] @ W + b
        values.append(np.maximum(out, 0) if at < len(weights) - 1 else out)
    return values


def predict(weights: Weights, X: NDArray[Any]) -> NDArray[Any]:
    """Return what the network says of each record, (n_records,)."""
    return forward(weights, X)[-1][:, 0]


def backward(weights: Weights, values: list[NDArray[Any]], last: Any) -> list[NDArray[Any]]:
    """Return the derivative by what comes out of each layer; `last` is that by the last one's."""
    found = [last]
    for at in range(len(weights) - 1, 0, -1):
        found.append((found[-1] @ weights[at][0].T) * (values[at] > 0))
    return found[::-1]


def train(weights: Weights, X: NDArray[Any], y: NDArray[Any], n_steps: int, rate: float) -> Weights:
    """Train on all the records in each step: Adam, squared error. Without records, nothing is."""
    if not len(X):
        return weights
    flat = np.concatenate([part.ravel() for layer in weights for part in layer])
    learned = _views(flat, weights)
    slope = np.empty_like(flat)
    slopes = _views(slope, weights)
    mean, square = np.zeros_like(flat), np.zeros_like(flat)
    for step in range(1, n_steps + 1):
        values = forward(learned, X)
        error = (values[-1] - y[:, None]) * np.float32(2 / len(X))
        by_layer = zip(slopes, values, backward(learned, values, error), strict=False)
        for (of_matrix, of_vector), into, derivative in by_layer:
            np.matmul(into.T, derivative, out=of_matrix)
            derivative.sum(axis=0, out=of_vector)
        mean += np.float32(1 - FIRST) * (slope - mean)
        square += np.float32(1 - SECOND) * (slope * slope - square)
        size = np.sqrt(square / np.float32(1 - SECOND**step)) + np.float32(SMALL)
        flat -= np.float32(rate / (1 - FIRST**step)) * mean / size
    return learned


def _views(flat: NDArray[Any], like: Weights) -> Weights:
    """Return weights that lie in one array."""
    found, at = [], 0
    for W, b in like:
        middle, end = at + W.size, at + W.size + b.size
        found.append((flat[at:middle].reshape(W.shape), flat[middle:end]))
        at = end
    return found


def tangent_kernel(weights: Weights, X: Floats, Z: Floats) -> Floats:
    """Return the empirical neural tangent kernel, (n_records, n_targets), in float64.

    That is the product of gradients by all the weights. By the matrix and the vector of one layer
    it is a product of two: of what goes in, with 1 added, and of derivatives by what comes out.
    """
    exact = [(W.astype(np.float64), b.astype(np.float64)) for W, b in weights]
    sides = []
    for records in (X, Z):
        values = forward(exact, records)
        sides.append((values, backward(exact, values, np.ones((len(records), 1)))))
    K = np.zeros((len(X), len(Z)))
    for into, derivative, into_z, derivative_z in zip(*sides[0], *sides[1], strict=False):
        K += (into @ into_z.T + 1) * (derivative @ derivative_z.T)
    return K


def noise_of(K: Floats, y: Floats) -> float:
    """Return the noise of largest likelihood, where outputs have the variance of K and noise.

    That is up to a factor of both, which is fitted, too: the utility does not depend on it.
    """
    eigenvalues, vectors = np.linalg.eigh(K)
    squares = (vectors.T @ y) ** 2

    def negative(logarithm: float) -> float:
        variances = np.maximum(eigenvalues, 0) + np.exp(logarithm)
        return float(np.log(variances).sum() + len(y) * np.log((squares / variances).sum()))

    middle = np.log(np.trace(K) / len(K))
    found = minimize_scalar(negative, bounds=(middle - 12, middle + 12), method="bounded")
    return float(np.exp(found.x))


class ErrorLeft:
    """The negated mean squared error after further training on who stays of the first chosen.

    Parameters
    ----------
    weights : Weights
        That training starts from.
    X, y : ndarray of shape (n_selected, n_features), (n_selected,)
        The chosen.
    X_new, y_new : ndarray
        Validation data.
    counts : sequence of int
    n_steps, rate
        Of the training.
    """

    def __init__(
        self, weights: Weights, X: Floats, y: Floats, X_new: Floats, y_new: Floats,
        counts: Sequence[int], n_steps: int, rate: float,
    ) -> None:  # fmt: skip
        self.weights, self.counts, self.n_steps, self.rate = weights, counts, n_steps, rate
        self.X, self.y = X.astype(np.float32), y.astype(np.float32)
        self.X_new, self.y_new = X_new.astype(np.float32), y_new

    def __call__(self, stays: Mask) -> Floats:
        found = np.empty((len(stays), len(self.counts)))
        for values, mask in zip(found, stays, strict=True):
            values[:] = [self._of(np.flatnonzero(mask[:k])) for k in self.counts]
        return found

    def _of(self, rows: Ints) -> float:
        trained = train(self.weights, self.X[rows], self.y[rows], self.n_steps, self.rate)
        return -float(np.mean((predict(trained, self.X_new) - self.y_new) ** 2))

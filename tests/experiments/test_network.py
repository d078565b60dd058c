"""The network of the experiments, against scikit-learn's, finite differences and torch."""

from __future__ import annotations

import warnings

import network
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.neural_network import MLPRegressor

from erasable.selection import NeuralVariance

RNG = np.random.default_rng(25)
SIZES = (3, 6, 4, 1)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
X_NEW, Y_NEW = RNG.normal(size=(7, 3)), RNG.normal(size=7)
STEPS, RATE = 40, 0.01


def exact(seed: int) -> network.Weights:
    return [(W.astype(float), b.astype(float)) for W, b in network.start(SIZES, seed)]


def by_scikit_learn(start: network.Weights, steps: int, rate: float = RATE) -> MLPRegressor:
    """Train scikit-learn's network from given weights."""
    model = MLPRegressor(
        hidden_layer_sizes=SIZES[1:-1], solver="adam", alpha=0.0, batch_size=len(X),
        learning_rate_init=rate, max_iter=1, shuffle=False, tol=0.0,
        n_iter_no_change=1000, warm_start=True,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
        model.coefs_ = [W.copy() for W, _ in start]
        model.intercepts_ = [b.copy() for _, b in start]
        model.max_iter = steps
        return model.fit(X, Y)


def test_it_is_trained_as_that_of_scikit_learn() -> None:
    start = exact(0)
    model = by_scikit_learn(start, STEPS)
    ours = network.train(start, X, Y, STEPS, RATE)
    np.testing.assert_allclose(network.predict(ours, X_NEW), model.predict(X_NEW), atol=1e-4)
    for (W, b), (first, second) in zip(start, exact(0), strict=True):
        np.testing.assert_array_equal(W, first)  # what it starts from stays
        np.testing.assert_array_equal(b, second)
    other = by_scikit_learn(start, STEPS, 1.2 * RATE).predict(X_NEW)
    assert np.abs(network.predict(ours, X_NEW) - other).max() > 1e-3


def test_without_records_nothing_is_learned() -> None:
    start = exact(1)
    left = network.ErrorLeft(start, X[:5], Y[:5], X_NEW, Y_NEW, (1, 5), STEPS, RATE)
    found = left(np.array([[False] * 5, [False, True, True, False, True]]))
    untrained = -np.mean((network.predict(start, X_NEW) - Y_NEW) ** 2)
    np.testing.assert_allclose(found[:, 0], untrained, rtol=1e-6)
    assert found[0, 1] == found[0, 0]
    rows = np.array([1, 2, 4])
    trained = network.train(start, X[rows], Y[rows], STEPS, RATE)
    right = -np.mean((network.predict(trained, X_NEW) - Y_NEW) ** 2)
    assert found[1, 1] == pytest.approx(right, rel=1e-4)


def test_the_tangent_kernel_is_that_of_differences() -> None:
    weights, step = exact(2), 1e-6
    columns = []
    for part in (part for layer in weights for part in layer):
        for place in np.ndindex(part.shape):
            kept = part[place]
            part[place] = kept + step
            above = network.predict(weights, np.concatenate([X, X_NEW]))
            part[place] = kept - step
            columns.append(above - network.predict(weights, np.concatenate([X, X_NEW])))
            part[place] = kept
    J = np.stack(columns, axis=1) / (2 * step)
    K = network.tangent_kernel(weights, X, X_NEW)
    np.testing.assert_allclose(K, J[: len(X)] @ J[len(X) :].T, rtol=1e-6, atol=1e-7)
    without_last = J[:, :-1]  # of the last weight, a bias, derivatives are 1
    assert np.abs(K - without_last[: len(X)] @ without_last[len(X) :].T).max() > 0.5


def test_the_tangent_kernel_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    weights = network.start(SIZES, 3)
    layers = []
    for W, b in weights:
        layer = torch.nn.Linear(*W.shape)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(W.T))
            layer.bias.copy_(torch.tensor(b))
        layers += [layer, torch.nn.ReLU()]
    problem = NeuralVariance(torch.nn.Sequential(*layers[:-1]), targets=X_NEW).problem(X)
    np.testing.assert_allclose(network.tangent_kernel(weights, X, X), problem.K, rtol=1e-10)
    np.testing.assert_allclose(network.tangent_kernel(weights, X, X_NEW), problem.cross, rtol=1e-10)


def test_the_noise_is_the_likeliest() -> None:
    half = RNG.normal(size=(30, 30))
    K = half @ half.T
    y = RNG.multivariate_normal(np.zeros(30), 3 * K + 30 * np.eye(30))

    def likelihood(noise: float) -> float:
        covariance = K + noise * np.eye(30)
        factor = y @ np.linalg.solve(covariance, y) / 30
        return float(multivariate_normal(cov=factor * covariance).logpdf(y))

    found = network.noise_of(K, y)
    assert likelihood(found) >= max(likelihood(ratio * found) for ratio in (0.8, 0.95, 1.05, 1.25))
    scaled = network.noise_of(K, 7 * y)
    assert scaled == pytest.approx(found, rel=1e-4)

"""What is left of a Gaussian process after deletions, against scikit-learn and the library."""

from __future__ import annotations

from typing import Any

import gaussian
import numpy as np
import pytest
from gaussian import DensityLeft, Process, UtilityLeft
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

from erasable.selection import MutualInformation, VarianceReduction

RNG = np.random.default_rng(23)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
X_NEW, Y_NEW = RNG.normal(size=(25, 3)), RNG.normal(size=25)
PLAIN = Process(np.array([0.7, 1.5, 2.0]), 1.3, 0.2)
SLOPED = Process(np.array([1.5, 2.0]), 1.3, 0.2, 0.6)
SELECTED = RNG.permutation(40)[:14]
STAYS = np.concatenate([RNG.random((30, 14)) < 0.5, np.zeros((1, 14), dtype=bool)])
COUNTS = (1, 5, 9, 14)


def of_scikit_learn(process: Process) -> Any:
    return ConstantKernel(process.signal) * Matern(process.lengths, nu=0.5)


def by_scikit_learn(process: Process, A: Any, B: Any) -> Any:
    if process.slope is None:
        return of_scikit_learn(process)(A, B)
    linear = DotProduct(sigma_0=0.0)(A[:, :1], B[:, :1])
    return process.slope * linear + of_scikit_learn(process)(A[:, 1:], B[:, 1:])


@pytest.mark.parametrize("process", [PLAIN, SLOPED], ids=["plain", "sloped"])
def test_the_kernel_is_that_of_scikit_learn(process: Process) -> None:
    theirs = by_scikit_learn(process, X, X_NEW)
    np.testing.assert_allclose(process.kernel(X, X_NEW), theirs, rtol=1e-10, atol=1e-12)
    K = process.kernel(X)
    np.testing.assert_allclose(K, by_scikit_learn(process, X, X), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(process.variance(X), np.diag(K), rtol=1e-6)
    other = Process(process.lengths * 1.1, process.signal, process.noise, process.slope)
    assert not np.allclose(other.kernel(X, X_NEW), theirs, rtol=1e-3)


def test_the_likelihood_is_that_of_scikit_learn() -> None:
    kernel = of_scikit_learn(PLAIN) + WhiteKernel(PLAIN.noise)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, Y)
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    ours, slope = gaussian.likelihood(PLAIN, X, Y)
    assert ours == pytest.approx(value, rel=1e-6)
    signal, *lengths, noise = gradient
    np.testing.assert_allclose(slope, [*lengths, signal, noise], rtol=1e-5, atol=1e-6)


def test_the_likelihood_with_a_slope_is_that_of_a_normal_law() -> None:
    K = by_scikit_learn(SLOPED, X, X) + SLOPED.noise * np.eye(len(X))
    value, gradient = gaussian.likelihood(SLOPED, X, Y)
    assert value == pytest.approx(multivariate_normal(cov=K).logpdf(Y), rel=1e-6)
    at = np.log([*SLOPED.lengths, SLOPED.signal, SLOPED.noise, SLOPED.slope])
    differences = approx_fprime(
        at, lambda each: gaussian.likelihood(Process.of(each, with_slope=True), X, Y)[0]
    )
    np.testing.assert_allclose(gradient, differences, rtol=1e-3, atol=1e-4)


def test_the_likeliest_process_is_found() -> None:
    def value(process: Process) -> float:
        return gaussian.likelihood(process, X, y)[0]

    y = RNG.multivariate_normal(np.zeros(40), SLOPED.kernel(X) + 0.2 * np.eye(40))
    found = Process.fitted(X, y, with_slope=True)
    assert value(found) > value(SLOPED)
    nearby = [1.05 * found.lengths, found.lengths / 1.05]
    assert value(found) >= max(
        value(Process(lengths, found.signal, found.noise, found.slope)) for lengths in nearby
    )
    known = Process.fitted(X, y, noise=0.3)
    assert known.noise == pytest.approx(0.3, rel=1e-12)
    assert known.slope is None
    assert len(known.lengths) == 3


@pytest.mark.parametrize("process", [PLAIN, SLOPED], ids=["plain", "sloped"])
def test_the_utility_left_is_that_of_the_library(process: Process) -> None:
    K = process.kernel(X)
    own = K[np.ix_(SELECTED, SELECTED)]
    information = MutualInformation("precomputed", gamma=1 / process.noise).problem(K)
    variance = VarianceReduction("precomputed", noise=process.noise).problem(K)
    for problem, cross in ((information, None), (variance, K[SELECTED])):
        found = UtilityLeft(own, process.noise, COUNTS, cross)(STAYS)
        theirs = [[problem.value(SELECTED[:k][mask[:k]]) for k in COUNTS] for mask in STAYS]
        np.testing.assert_allclose(found, theirs, rtol=1e-9, atol=1e-9)
        assert (found[-1] == 0).all()  # nobody stays
        noisier = UtilityLeft(own, 2 * process.noise, COUNTS, cross)(STAYS)
        assert not np.allclose(noisier, theirs, rtol=1e-3)


def test_the_density_is_that_of_scikit_learn() -> None:
    measure = DensityLeft(PLAIN, X[SELECTED], Y[SELECTED], X_NEW, Y_NEW, COUNTS)
    theirs, of_signal = np.empty((len(STAYS), len(COUNTS))), np.empty((len(STAYS), len(COUNTS)))
    for i, mask in enumerate(STAYS):
        for j, k in enumerate(COUNTS):
            rows = SELECTED[:k][mask[:k]]
            model = GaussianProcessRegressor(
                of_scikit_learn(PLAIN), alpha=PLAIN.noise, optimizer=None
            )
            if len(rows):
                model.fit(X[rows], Y[rows])
            mean, deviation = model.predict(X_NEW, return_std=True)
            deviations = np.sqrt(deviation**2 + PLAIN.noise)
            theirs[i, j] = norm(mean, deviations).logpdf(Y_NEW).mean()
            of_signal[i, j] = norm(mean, deviation).logpdf(Y_NEW).mean()
    np.testing.assert_allclose(measure(STAYS), theirs, rtol=1e-8)
    assert np.abs(measure(STAYS) - of_signal).max() > 0.01


def test_the_density_with_a_slope_is_that_of_whole_matrices() -> None:
    mask = STAYS[:1]
    rows = SELECTED[mask[0]]
    K = by_scikit_learn(SLOPED, X[rows], X[rows]) + SLOPED.noise * np.eye(len(rows))
    cross = by_scikit_learn(SLOPED, X[rows], X_NEW)
    variance = np.diag(by_scikit_learn(SLOPED, X_NEW, X_NEW) - cross.T @ np.linalg.solve(K, cross))
    mean = cross.T @ np.linalg.solve(K, Y[rows])
    right = norm(mean, np.sqrt(variance + SLOPED.noise)).logpdf(Y_NEW).mean()
    found = DensityLeft(SLOPED, X[SELECTED], Y[SELECTED], X_NEW, Y_NEW, (14,))(mask)
    assert found[0, 0] == pytest.approx(right, rel=1e-6)

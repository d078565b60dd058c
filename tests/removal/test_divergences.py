"""Estimates of divergences against closed forms, by every method, with the tolerance each has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from effort import few
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.removal import divergence
from removal.brute_force import kl_of_categories, kl_of_gaussians

METHODS = ["classifier", "gaussian", "nearest-neighbor"]


def draws(
    rng: np.random.Generator, n: int, d: int, shift: float, scale: float
) -> tuple[np.ndarray, np.ndarray, float]:
    mean, covariance = np.full(d, shift / np.sqrt(d)), scale**2 * np.eye(d)
    a, b = rng.normal(size=(n, d)), mean + scale * rng.normal(size=(n, d))
    return a, b, kl_of_gaussians(np.zeros(d), np.eye(d), mean, covariance)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("d", "shift", "scale"), [(1, 0.5, 1.0), (2, 1.0, 1.5), (3, 1.0, 0.8), (5, 1.5, 1.0)]
)
def test_gaussians(method: str, d: int, shift: float, scale: float) -> None:
    a, b, truth = draws(np.random.default_rng(d), 2000, d, shift, scale)
    found = divergence(a, b, method=method, n_resamples=20, random_state=0)
    # A tenth of the truth is about three standard errors; neighbours are biased by up to a third.
    rough = 0.35 if method == "nearest-neighbor" else 0.1
    assert found.value == pytest.approx(truth, abs=rough * truth + 0.04)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("method", ["classifier", "gaussian"])
def test_many_dimensions(method: str) -> None:
    a, b, truth = draws(np.random.default_rng(0), 2000, 50, 1.5, 1.0)
    found = divergence(a, b, method=method, n_resamples=20, random_state=0)
    assert found.value == pytest.approx(truth, rel=0.15)


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_the_truth(method: str) -> None:
    rng = np.random.default_rng(0)
    held = []
    for seed in range(few(90)):
        a, b, truth = draws(rng, 400, 2, 1.0, 1.0)
        found = divergence(a, b, method=method, n_resamples=30, random_state=seed)
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.8


@pytest.mark.parametrize("method", METHODS)
def test_intervals_are_not_so_wide_that_they_say_nothing(method: str) -> None:
    a, b, truth = draws(np.random.default_rng(1), 2000, 2, 1.0, 1.0)
    found = divergence(a, b, method=method, n_resamples=30, random_state=0)
    wider = divergence(a[:200], b[:200], method=method, n_resamples=30, random_state=0)
    assert found.high - found.low < 0.4 * truth
    assert wider.high - wider.low > 2 * (found.high - found.low)
    surer = divergence(a, b, method=method, n_resamples=30, confidence=0.5, random_state=0)
    assert surer.high - surer.low < found.high - found.low


def test_what_is_no_gaussian() -> None:
    """A mixture: the classifier that is handed the right feature sees what two moments do not."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=4000) * 0.3 + rng.choice([-1, 1], 4000)
    b = rng.normal(size=4000) * a.std()
    grid = np.linspace(-6, 6, 200_001)
    p = sum(np.exp(-((grid - m) ** 2) / 0.18) for m in (-1, 1)) / (2 * np.sqrt(0.18 * np.pi))
    q = np.exp(-(grid**2) / (2 * a.var())) / np.sqrt(2 * np.pi * a.var())
    truth = float(np.trapezoid(np.where(p > 0, p * np.log(np.maximum(p, 1e-300) / q), 0.0), grid))
    assert divergence(a, b, method="gaussian", n_resamples=10).value < truth / 5
    bumps = (
        np.exp(-((a[:, None] - [-1, 0, 1]) ** 2) * 2),
        np.exp(-((b[:, None] - [-1, 0, 1]) ** 2) * 2),
    )
    seen = divergence(*bumps, n_resamples=10, random_state=0)
    near = divergence(a, b, method="nearest-neighbor", n_resamples=10, random_state=0)
    assert seen.value == pytest.approx(truth, rel=0.15)
    assert near.value == pytest.approx(truth, rel=0.15)


def test_a_classifier_that_sees_less_says_less() -> None:
    rng = np.random.default_rng(0)
    a, b, truth = draws(rng, 2000, 3, 0.0, 2.0)  # only the variances differ
    blind = divergence(a, b, classifier=LogisticRegression(), n_resamples=20, random_state=0)
    assert blind.value < 0.05 * truth
    assert divergence(a, b, n_resamples=20, random_state=0).value > 0.8 * truth


def test_a_classifier_that_learns_by_heart_says_no_more_than_there_is() -> None:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(500, 2)), rng.normal(size=(500, 2))
    found = divergence(a, b, classifier=DecisionTreeClassifier(random_state=0), random_state=0)
    assert found.value == 0.0  # judged on what it has learned, it would say 27


def test_sparse_records() -> None:
    rng = np.random.default_rng(0)
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.1, 0.2, 0.3, 0.4])
    a, b = (np.eye(4)[rng.choice(4, 3000, p=each)] for each in (p, q))
    truth = kl_of_categories(p, np.log(q))
    found = divergence(scipy.sparse.csr_matrix(a), b, n_resamples=20, random_state=0)
    assert found.value == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_numbers(method: str) -> None:
    a, b, _ = draws(np.random.default_rng(0), 60, 2, 1.0, 1.0)
    first, second, other = (
        divergence(a, b, method=method, n_resamples=10, random_state=seed) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize(
    ("a", "b", "options", "kind", "told"),
    [
        (X, X[:0], {}, InvalidDataError, "b: Found array with 0 sample"),
        (X[:1], X, {}, InvalidDataError, "a has 1 records; expected 5 or more"),
        (X[:1], X, {"method": "gaussian"}, InvalidDataError, "expected 4 or more"),
        (X[:9], X, {"method": "nearest-neighbor"}, InvalidDataError, "expected 12 or more"),
        (X * np.nan, X, {}, InvalidDataError, "a: X contains NaN"),
        (X, X[:, :1], {}, InvalidDataError, "a has 2 features and b 1"),
        (X * 0, X, {"method": "gaussian"}, InvalidDataError, "covariance of a is singular"),
        (X.repeat(9, 0), X, {"method": "nearest-neighbor"}, InvalidDataError, "drop repeats"),
        (np.tile(X, 6), np.tile(X, 6), {"method": "nearest-neighbor"}, InvalidDataError,
         "a and b have 12 features; expected at most 10"),
        (scipy.sparse.csr_array(X), X, {"method": "gaussian"}, InvalidDataError,
         "a is a sparse matrix"),
        (X, X, {"method": "magic"}, InvalidParameterError, "method='magic'; expected one of"),
        (X, X, {"confidence": 1.0}, InvalidParameterError, "confidence=1.0"),
        (X, X, {"n_resamples": 3}, InvalidParameterError, "n_resamples=3"),
        (X, X, {"n_folds": 1}, InvalidParameterError, "n_folds=1"),
        (X, X, {"classifier": LinearSVC()}, InvalidParameterError, "with predict_proba"),
    ],
)  # fmt: skip
def test_bad_input(
    a: Any, b: Any, options: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as caught:
        divergence(a, b, **options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)

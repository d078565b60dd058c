"""Coefficients of linear support vector machines, beside those of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.svm
from scipy.sparse import csr_array

from erasable.svm import LinearSVC, LinearSVR

EXACT = {"dual": False, "tol": 1e-13, "max_iter": 10**6}


def tables() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    signs = X[:, 0] + X[:, 1] > 0.2
    return {
        "random": (X, rng.integers(0, 2, 80)),
        "separable": (X, signs.astype(int)),
        "collinear": (np.column_stack([X, X[:, 0], X[:, :2] @ [1.0, -2.0]]), signs.astype(int)),
        "nearly collinear": (
            np.column_stack([X, X[:, 0] + 1e-4 * rng.normal(size=80)]), signs ^ (X[:, 2] > 1.5),
        ),
        "unbalanced": (X, (np.arange(80) < 3).astype(int)),
        "tiny": (np.array([[0.0, 1.0], [1.0, 0.5], [2.0, -1.0]]), np.array([0, 1, 1])),
        "constant": (np.column_stack([X, np.full(80, 3.0), np.zeros(80)]), signs),
        "offset": (X + np.array([0.0, 50.0, -7.0, 0.3]), signs ^ (X[:, 3] > 1.0)),
        "scales": (X * np.array([1.0, 100.0, 0.01, 1.0]), rng.integers(0, 2, 80)),
        "three classes": (X, np.digitize(X[:, 0] + rng.normal(size=80), [-0.5, 0.5])),
        "five classes": (X, rng.integers(0, 5, 80)),
    }  # fmt: skip


def same(ours: Any, theirs: Any, X: Any) -> None:
    """Both are as near as liblinear comes to the optimum, relative to the largest values."""
    size = max(1.0, float(np.abs(theirs.coef_).max()))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-6 * size)
    size = max(size, float(np.abs(theirs.intercept_).max()))
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("name", tables())
def test_a_classifier(name: str, C: float) -> None:
    X, y = tables()[name]
    same(LinearSVC(C=C).fit(X, y), sklearn.svm.LinearSVC(C=C, **EXACT).fit(X, y), X)


@pytest.mark.parametrize(
    "params",
    [
        {"intercept_scaling": 10.0},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0, 1: 0.25}},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["offset", "five classes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_parameters(name: str, params: dict[str, Any], weighted: bool) -> None:
    X, y = tables()[name]
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.5, 1.0, 3.3], len(y)) if weighted else None
    ours, theirs = LinearSVC(**params), sklearn.svm.LinearSVC(**params, **EXACT)
    if weights is None:
        same(ours.fit(X, y), theirs.fit(X, y), X)
        return
    kept = weights > 0
    same(ours.fit(X, y, weights), theirs.fit(X[kept], y[kept], weights[kept]), X)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7, 100.0])
@pytest.mark.parametrize("name", ["random", "collinear", "constant", "offset", "tiny"])
def test_a_regression(name: str, epsilon: float, C: float) -> None:
    X = tables()[name][0]
    y = X @ np.arange(X.shape[1]) + np.random.default_rng(2).normal(size=len(X))
    params = {"epsilon": epsilon, "C": C}
    theirs = sklearn.svm.LinearSVR(loss="squared_epsilon_insensitive", **params, **EXACT)
    same(LinearSVR(**params).fit(X, y), theirs.fit(X, y), X)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_targets_of_any_size(scale: float) -> None:
    X = tables()["random"][0]
    y = scale * (X @ [1.0, 2.0, 3.0, 4.0] + np.random.default_rng(2).normal(size=80))
    ours = LinearSVR(epsilon=0.3 * scale).fit(X, y)
    theirs = LinearSVR(epsilon=0.3).fit(X, y / scale)
    np.testing.assert_allclose(ours.coef_ / scale, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(X) / scale, theirs.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_predicted(dtype: Any) -> None:
    X, y = tables()["three classes"]
    labels = np.array(["a", "b", "c"])[y]
    X = np.where(np.abs(X) < 0.7, 0.0, X).astype(dtype)
    ours = LinearSVC().fit(csr_array(X), labels)
    theirs = sklearn.svm.LinearSVC(**EXACT).fit(X.astype(np.float64), labels)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))

"""Data for the tests of logistic regression, and scikit-learn's to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.linear_model

from erasable.linear_model import LogisticRegression

STEP = 2.0**-20


def blobs(n_classes: int, n: int = 200, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 10.0, 0.1, 3.0][:d] + [0.0, 5.0, -3.0, 0.0][:d]
    score = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(d, n_classes))
    return X, np.argmax(score + rng.gumbel(size=score.shape), axis=1)


def theirs(**params: Any) -> sklearn.linear_model.LogisticRegression:
    params = {"tol": 1e-13, "max_iter": 100_000, "solver": "newton-cholesky", **params}
    return sklearn.linear_model.LogisticRegression(**params)


def assert_agree(ours: LogisticRegression, other: Any, X: Any) -> None:
    """Coefficients to the lattice's step, in the units of each column."""
    top = ours.state()["columns"]["top"]
    step = STEP * np.exp2(-top.astype(float))
    assert (np.abs(ours.coef_ - other.coef_) <= 0.51 * step + 1e-9 * np.abs(other.coef_)).all()
    logits, wanted = ours.decision_function(X), other.decision_function(X)
    assert np.abs(logits - wanted).max() <= 1e-5
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-5)
    assert np.mean(ours.predict(X) == other.predict(X)) > 0.99

"""Records for random Fourier features, and scikit-learn's way to learn from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.linear_model
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.kernel_approximation import RBFSampler

from linear_model.least_squares import Case

MODELS: list[dict[str, Any]] = [
    {"n_components": 12},
    {"n_components": 7, "alpha": 0.0, "gamma": 0.03, "fit_intercept": False},
]
"""Parameters that take different ways through the code."""


def sampler(model: Any) -> RBFSampler:
    """Scikit-learn's features, with the weights that a model has drawn."""
    features = RBFSampler(n_components=model.n_components, random_state=0)
    features.fit(np.zeros((2, model.n_features_in_)))
    features.random_weights_ = model.random_weights_
    features.random_offset_ = model.random_offset_
    return features


def theirs(model: Any, case: Case) -> tuple[Any, np.ndarray]:
    """Scikit-learn's ridge on these features, and the features."""
    table = sampler(model).transform(case.X)
    ridge = sklearn.linear_model.Ridge(model.alpha, fit_intercept=model.fit_intercept)
    return ridge.fit(table, case.y, sample_weight=case.weights), table


def waves(n: int = 300, d: int = 3, targets: int = 1, weighted: bool = False) -> Case:
    """A smooth function of a few features, with noise."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    y = np.sin(X @ rng.normal(size=(d, targets))) + 0.1 * rng.normal(size=(n, targets))
    return Case(X, y[:, 0] if targets == 1 else y, rng.random(n) if weighted else None)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few records; targets that are skewed, offset, whole or constant; weights with zeros."""
    n = draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X: Any = rng.normal(size=(n, draw(st.integers(1, 5)))) * draw(st.sampled_from([1.0, 1e3]))
    form = draw(st.sampled_from(["dense", "dense", "float32", "sparse"]))
    if form == "float32":
        X = X.astype(np.float32)
    elif form == "sparse":
        X = csr_array(X * (rng.random(X.shape) < 0.5))
    y: Any = {
        "skewed": np.exp(4.0 * rng.normal(size=n)),
        "offset": 1e9 + rng.normal(size=n),
        "two": rng.normal(size=(n, 2)),
        "whole": rng.integers(-50, 50, n),
        "constant": np.full(n, 3.7),
    }[draw(st.sampled_from(["skewed", "offset", "two", "whole", "constant"]))]
    kinds = [None, rng.random(n), np.exp(5.0 * rng.normal(size=n)), np.full(n, 2.0)]
    weights = draw(st.sampled_from(kinds))
    if weights is not None and draw(st.booleans()):
        weights[1 : 1 + n // 3] = 0.0
    return Case(X, y, weights)

"""Behind affine steps: learned from raw records, solved for scaled ones, and the law."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from sklearn.base import clone

from erasable.linear_model import LinearRegression, Ridge
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler

MODELS = [Ridge(), Ridge(30.0, fit_intercept=False), LinearRegression()]
SCALERS = [
    [StandardScaler()],
    [MinMaxScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(), MinMaxScaler((2.0, 3.0))],
]


def data(offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 4)) * [1.0, 1e3, 1e-3, 5.0] + offset
    return X, rng.normal(size=(150, 2)) + (X - X.mean(axis=0)) @ rng.normal(size=(4, 2))


def pipeline(scalers: list[Any], model: Any) -> Any:
    return make_pipeline(*map(clone, scalers), clone(model))


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("scalers", SCALERS, ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_it_learns_what_scaled_records_teach(scalers: list[Any], model: Any, offset: float) -> None:
    if offset and not getattr(scalers[0], "with_mean", True):
        pytest.skip("scaled values of 1e9 cost scikit-learn its digits")
    X, y = data(offset)
    ours = pipeline(scalers, model).fit(X, y)
    assert ours[-1]._map is not None
    ours.delete([3, 70])
    left = np.delete(np.arange(150), [3, 70])
    scaled = X[left]
    for step in scalers:
        scaled = clone(step).fit(scaled).transform(scaled)
    name = type(model).__name__
    settings = {each: value for each, value in model.get_params().items() if each != "n_jobs"}
    theirs = getattr(sklearn.linear_model, name)(**settings).fit(scaled, y[left])
    assert np.abs(ours.predict(X[left]) - theirs.predict(scaled)).max() < 1e-6 * y.std()
    tolerance = 1e-5 * np.abs(theirs.coef_).max()
    assert np.abs(ours[-1].coef_ - theirs.coef_).max() < tolerance
    assert np.abs(ours[-1].intercept_ - theirs.intercept_).max() < tolerance
    # The step itself, asked by anybody else, takes scaled rows.
    direct = ours[-1].predict(scaled)
    np.testing.assert_allclose(direct, ours.predict(X[left]), rtol=1e-9, atol=1e-6 * y.std())


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("scalers", SCALERS, ids=repr)
def test_after_deletions_it_is_a_refit(scalers: list[Any], model: Any) -> None:
    X, y = data(100.0)
    ours = pipeline(scalers, model).fit(X, y)
    for rows in ([0], [5, 9, 11], list(range(20, 60))):
        deletion = ours.delete(rows)
        assert deletion.action == "updated"
        left = ours.ids_
        fresh = pipeline(scalers, model).fit(X[left], y[left], ids=left)
        for other in (fresh, pickle.loads(pickle.dumps(ours))):
            assert other.digest() == ours.digest()
            assert other.predict(X).tobytes() == ours.predict(X).tobytes()
            assert other[-1].coef_.tobytes() == ours[-1].coef_.tobytes()
        ours = other


def test_the_penalty_is_that_of_scaled_features() -> None:
    """Negative control: penalised as raw features, coefficients would be others."""
    X, y = data()
    scaled = Ridge(50.0).fit(StandardScaler().fit(X).transform(X), y).predict
    raw = Ridge(50.0).fit(X, y).predict(X)
    ours = make_pipeline(StandardScaler(), Ridge(50.0)).fit(X, y).predict(X)
    assert np.abs(ours - scaled(StandardScaler().fit(X).transform(X))).max() < 1e-6 * y.std()
    assert np.abs(ours - raw).max() > 1e-3

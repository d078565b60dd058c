"""Behind scalers: the metric follows every deletion, and nothing is learned again."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.neighbors
import sklearn.pipeline
import sklearn.preprocessing

from erasable import Records, load
from erasable.kernel import NadarayaWatson
from erasable.neighbors import KNeighborsClassifier, KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from erasable.utils.estimator_checks import check_erasable
from naming import named

MODELS = [
    KNeighborsClassifier(3),
    KNeighborsRegressor(2, metric="manhattan", weights="distance"),
    KNeighborsRegressor(2, metric="chebyshev", leaf_size=3),
    NadarayaWatson(0.8),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=named)


def _table(n: int = 90) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)) * np.array([1.0, 1e3, 1e-3]) + np.array([0.0, 5e3, 1.0])
    return X, rng.integers(0, 3, size=n)


def _made(model: Any, scaler: Any = None) -> Any:
    own = type(model)(**model.get_params())
    return make_pipeline(StandardScaler() if scaler is None else scaler, own)


@pytest.mark.parametrize(
    "scaler",
    [
        pytest.param(StandardScaler(), id="StandardScaler()"),
        pytest.param(MinMaxScaler(), id="MinMaxScaler()", marks=pytest.mark.soak),
    ],
)
def test_the_law_behind_a_scaler(scaler: Any) -> None:
    check_erasable(make_pipeline(scaler, KNeighborsClassifier(3)), fast=True)


@each_model
def test_deletions_are_followed_without_learning_again(model: Any) -> None:
    X, y = _table()
    own = _made(model).fit(X, y)
    own.predict(X)
    before = own[-1]._accelerator
    for gone in ([0], [7, 8], [30]):
        deletion = own.delete(gone)
        assert deletion.action == "updated"
    assert own[-1]._accelerator is before
    left = np.delete(np.arange(90), [0, 7, 8, 30])
    fresh = _made(model).fit(X[left], y[left], ids=left)
    assert own.digest() == fresh.digest()
    assert own.predict(X).tobytes() == fresh.predict(X).tobytes()
    # The step by itself is given what the scaler makes of rows.
    alone = own[-1].predict(own[0].transform(X))
    np.testing.assert_allclose(alone, own.predict(X), rtol=1e-6, atol=1e-12)


def test_that_is_scikit_learns_pipeline() -> None:
    X, y = _table()
    Q = _table(80)[0]
    theirs = sklearn.pipeline.make_pipeline(
        sklearn.preprocessing.RobustScaler(), sklearn.neighbors.KNeighborsRegressor(4)
    ).fit(X, y)
    own = make_pipeline(RobustScaler(), KNeighborsRegressor(4)).fit(X, y)
    np.testing.assert_allclose(own.predict(Q), theirs.predict(Q), rtol=1e-12)
    # Without the scaler, one column of three decides.
    plain = KNeighborsRegressor(4).fit(X, y)
    assert not np.allclose(plain.predict(Q), theirs.predict(Q))


@each_model
def test_pickles_and_files_behind_a_scaler(model: Any, tmp_path: Path) -> None:
    X, y = _table()
    own = _made(model).fit(X, y)
    own.delete([4])
    answers = own.predict(X)
    own.save(tmp_path / "model")
    rest = np.delete(np.arange(90), 4)
    copies = [
        pickle.loads(pickle.dumps(own)),
        load(tmp_path / "model", Records(X[rest], y[rest], ids=rest)),
    ]
    assert load(tmp_path / "model").predict(X).tobytes() == answers.tobytes()
    own.delete([5, 6])
    for copy in copies:
        assert copy.predict(X).tobytes() == answers.tobytes()
        assert copy.delete([5, 6]).action == "updated"
        assert copy.digest() == own.digest()
        assert copy.predict(X).tobytes() == own.predict(X).tobytes()

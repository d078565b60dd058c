"""Trees behind steps that scale: they are those of the records as they were before."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import erasable
from erasable import Records
from erasable.compose import ColumnTransformer
from erasable.ensemble import RandomForestRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.tree import DecisionTreeClassifier
from naming import named

MODELS = [
    DecisionTreeClassifier(n_thresholds=4, random_state=1, min_impurity_decrease=1e-3),
    RandomForestRegressor(3, random_state=2),
]
SCALERS = [
    [StandardScaler()],
    [MinMaxScaler((-1, 3)), StandardScaler()],
    [ColumnTransformer([("some", StandardScaler(), [1, 0, 2])])],
]


def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3)) * [1.0, 1e3, 1e-3] + [0.0, 1e4, 1.0]
    return X, (X[:, 0] + X[:, 1] / 1e3 > 10.0).astype(int)


@pytest.mark.parametrize("steps", SCALERS, ids=lambda steps: type(steps[-1]).__name__)
@pytest.mark.parametrize("model", MODELS, ids=named)
def test_behind_a_map_nothing_grows_for_the_sake_of_a_scale(
    model: Any, steps: list[Any], tmp_path: Path
) -> None:
    X, y = table()
    chain = clone(make_pipeline(*steps, model)).fit(X, y)
    gone = [5, int(X[:, 1].argmax()), int(X[:, 0].argmin())]
    for row in gone:
        assert chain.delete([row]).action == "updated"
    kept = np.delete(np.arange(150), gone)
    refit = clone(make_pipeline(*steps, model)).fit(X[kept], y[kept], ids=kept)
    assert chain.digest() == refit.digest()
    chain.save(tmp_path / "chain")
    again = erasable.load(tmp_path / "chain", Records(X[kept], y[kept], ids=kept))
    assert again.delete([7]).action == "updated"
    for other in (refit, pickle.loads(pickle.dumps(chain))):
        assert other.predict(X).tobytes() == chain.predict(X).tobytes()


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_the_trees_are_those_of_unscaled_records(model: Any) -> None:
    X, y = table()
    chain, bare = make_pipeline(StandardScaler(), clone(model)).fit(X, y), clone(model).fit(X, y)
    trees, alone = chain[-1].state()["trees"], bare.state()["trees"]
    assert all(np.array_equal(trees[name], alone[name]) for name in alone)
    queries = X + np.array([0.01, 10.0, 1e-5])
    assert chain.predict(queries).tobytes() == bare.predict(queries).tobytes()
    # Asked by itself, the last step is asked in the units of the step before it.
    scaled = chain[0].transform(queries)
    assert chain[-1].predict(scaled).tobytes() == bare.predict(queries).tobytes()
    assert chain[-1].predict(queries).tobytes() != bare.predict(queries).tobytes()

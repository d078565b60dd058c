"""Trees are those that a slow oracle grows, after `fit` and after any deletions."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from sklearn.base import clone, is_classifier

from effort import examples
from erasable.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree import _forest as forest_module
from erasable.tree._layout import BLOCK
from naming import named
from tree.trees import assert_grown, assert_grown_on, expected, tables

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
MODELS = [
    DecisionTreeClassifier(n_thresholds=3),
    DecisionTreeClassifier(max_features=2, min_samples_leaf=3, n_thresholds=2),
    DecisionTreeClassifier(min_impurity_decrease=0.03, class_weight={0: 2.5, 2: 0.5}),
    DecisionTreeClassifier(class_weight="balanced", max_depth=3),
    DecisionTreeRegressor(min_impurity_decrease=0.02, n_thresholds=4),
    DecisionTreeRegressor(max_features=1, min_samples_split=4),
    RandomForestClassifier(3, n_thresholds=2),
    RandomForestRegressor(2, max_features=2, min_samples_leaf=2),
    ExtraTreesClassifier(2),
    ExtraTreesRegressor(2, bootstrap=True),
]


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("kind", MODELS, ids=named)
@settings(max_examples=examples(25), phases=PHASES)
@given(table=tables(), seed=st.integers(0, 9), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_trees_are_the_oracles(kind: Any, table: Any, seed: int, cuts: list[int]) -> None:
    assert_grown_on(kind, table, seed, cuts)


@pytest.mark.parametrize("kind", [MODELS[0], MODELS[5], MODELS[6]], ids=named)
def test_large_trees_are_the_oracles(kind: Any) -> None:
    """With nodes that keep the counts of their candidates, and groups that leave together."""
    rng = np.random.default_rng(3)
    n = 900
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 6, n), rng.normal(size=n).round(1)])
    y = (X[:, 0] + X[:, 1] / 3.0 + rng.normal(size=n) > 1.0).astype(int)
    groups = rng.integers(0, 90, n)
    model = clone(kind).set_params(random_state=4, max_depth=4)
    model.fit(X, y * 1.0 if not is_classifier(kind) else y, groups=groups)
    alive = np.ones(n, dtype=bool)
    for people in ([], [3], list(range(10, 40))):
        model.delete(groups=people)
        alive &= ~np.isin(groups, people)
        owners = groups[alive].tolist()
        y_alive = y[alive] * 1.0 if not is_classifier(kind) else y[alive]
        assert_grown(model, X[alive], y_alive, owners)


@pytest.mark.parametrize("kind", [MODELS[4], MODELS[6], MODELS[7]], ids=named)
@pytest.mark.parametrize("by_column", [False, True])
def test_trees_of_many_values_are_the_oracles(
    monkeypatch: pytest.MonkeyPatch, kind: Any, by_column: bool
) -> None:
    """With nodes of several blocks, in columns of more values than are counted one by one."""
    monkeypatch.setattr(forest_module, "_MANY", 0 if by_column else 10**9)
    rng = np.random.default_rng(5)
    n = 2 * BLOCK + 77
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n).round(3), rng.integers(0, 4, n)])
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 1.0).astype(int) + (X[:, 2] > 2)
    y = y if is_classifier(kind) else y * 0.75
    kind = clone(kind).set_params(random_state=4, max_depth=3)
    ids = np.arange(n)
    model = kind.fit(X, y, ids=ids)
    assert_grown(model, X, y, ids.tolist())
    model.delete(ids[: BLOCK // 2])
    left = slice(BLOCK // 2, None)
    assert_grown(model, X[left], y[left], ids[left].tolist())


def test_the_oracle_notices() -> None:
    """A negative control: other seeds, names, orders of ties or weights are other trees."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (60, 3)).astype(float), rng.integers(0, 2, 60)
    model = RandomForestClassifier(2, random_state=1).fit(X, y)
    wanted = expected(model, X, y, list(range(60)))
    assert model.state()["trees"]["features"].tolist() == wanted["features"]
    for other in (
        expected(model, X, y, list(range(1, 61))),
        expected(model, X[:, ::-1], y, list(range(60))),
        expected(RandomForestClassifier(2, random_state=2).fit(X, y), X, y, list(range(60))),
        expected(model, np.delete(X, 7, 0), np.delete(y, 7), [i for i in range(60) if i != 7]),
    ):
        assert other != wanted

"""Beside scikit-learn's, where they do the same; and what is refused, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree
from scipy.sparse import csr_array
from sklearn.base import clone

from erasable.compose import ColumnTransformer
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.ensemble import RandomForestClassifier, RandomForestRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from naming import named

RNG = np.random.default_rng(6)
X, X_NEW = RNG.normal(size=(300, 4)), RNG.normal(size=(500, 4))
SCORE = X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=300) / 4.0
Y = np.digitize(SCORE, [-0.5, 0.7])

SETTINGS: list[dict[str, Any]] = [
    {"max_depth": 4, "min_samples_leaf": 4},
    {"max_depth": 5, "min_samples_leaf": 9},
    {"max_depth": 6, "min_samples_split": 0.1, "min_samples_leaf": 0.02},
    {"max_depth": 6, "min_impurity_decrease": 0.01},
]
OF_CLASSES: list[dict[str, Any]] = [
    {"max_depth": 3, "criterion": "entropy"},
    {"max_depth": 6, "criterion": "log_loss", "min_impurity_decrease": 0.02},
    {"max_depth": 4, "class_weight": {0: 3.0, 1: 0.25, 2: 1.0}},
    {"max_depth": 4, "class_weight": "balanced", "criterion": "entropy"},
    {"max_depth": 5, "class_weight": "balanced", "min_impurity_decrease": 0.02},
]


@pytest.mark.parametrize("settings", [*SETTINGS, *OF_CLASSES], ids=named)
def test_a_tree_that_tries_everything_is_scikit_learns(settings: dict[str, Any]) -> None:
    ours = DecisionTreeClassifier(n_thresholds=1023, random_state=0, **settings).fit(X, Y)
    theirs = sklearn.tree.DecisionTreeClassifier(random_state=0, **settings).fit(X, Y)
    assert np.allclose(ours.predict_proba(X_NEW), theirs.predict_proba(X_NEW), atol=1e-12)
    assert ours.predict(X_NEW).tolist() == theirs.predict(X_NEW).tolist()
    assert ours.get_depth() == theirs.get_depth()
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-9)
    split = theirs.tree_.feature >= 0
    assert np.allclose(ours.state()["trees"]["thresholds"], theirs.tree_.threshold[split])
    leaves = np.searchsorted(np.flatnonzero(~split), theirs.apply(X_NEW))
    assert ours.apply(X_NEW).tolist() == leaves.tolist()


@pytest.mark.parametrize("settings", SETTINGS, ids=named)
def test_a_regression_tree_that_tries_everything_is_scikit_learns(settings: Any) -> None:
    ours = DecisionTreeRegressor(n_thresholds=1023, random_state=0, **settings).fit(X, SCORE)
    theirs = sklearn.tree.DecisionTreeRegressor(random_state=0, **settings).fit(X, SCORE)
    assert np.allclose(ours.predict(X_NEW), theirs.predict(X_NEW), atol=1e-6)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-6)


def test_forests_predict_as_well_as_scikit_learns() -> None:
    y_new = np.digitize(X_NEW[:, 0] + X_NEW[:, 1] * X_NEW[:, 2], [-0.5, 0.7])
    for ours, theirs, target, truth in (
        (RandomForestClassifier, sklearn.ensemble.RandomForestClassifier, Y, y_new),
        (
            RandomForestRegressor,
            sklearn.ensemble.RandomForestRegressor,
            SCORE,
            X_NEW[:, 0] + X_NEW[:, 1] * X_NEW[:, 2],
        ),
    ):
        mine, other = (
            kind(60, random_state=1).fit(X, target).score(X_NEW, truth) for kind in (ours, theirs)
        )
        assert mine > other - 0.04


def test_a_forest_is_the_mean_of_its_trees() -> None:
    """Without bags and draws, all trees are one; with bags, importances are means of theirs."""
    one = DecisionTreeClassifier(n_thresholds=1023, random_state=0, max_depth=3).fit(X, Y)
    all_ = {"bootstrap": False, "max_features": None, "n_thresholds": 1023, "max_depth": 3}
    forest = RandomForestClassifier(5, random_state=9, **all_).fit(X, Y)
    assert np.allclose(forest.predict_proba(X_NEW), one.predict_proba(X_NEW), atol=1e-15)
    assert np.allclose(forest.feature_importances_, one.feature_importances_, atol=1e-15)
    assert forest.apply(X_NEW).tolist() == np.tile(one.apply(X_NEW), (5, 1)).T.tolist()
    bagged = RandomForestRegressor(7, random_state=3).fit(X, SCORE)
    assert bagged.feature_importances_.sum() == pytest.approx(1.0)
    assert bagged.feature_importances_.argmin() == 3


def test_bags_are_poisson() -> None:
    forest = RandomForestClassifier(40, random_state=0, max_depth=1).fit(X, Y)
    weights = np.concatenate([tree.growing.rows >> 27 for tree in forest._accelerator.trees])
    assert len(weights) / 12_000 == pytest.approx(1.0 - np.exp(-1.0), abs=0.02)
    assert weights.sum() / 12_000 == pytest.approx(1.0, abs=0.03)
    assert (weights == 2).sum() / 12_000 == pytest.approx(np.exp(-1.0) / 2.0, abs=0.015)


def test_the_order_of_named_columns_is_no_matter_for_ties() -> None:
    """Two equal columns: the one whose name comes first is split, wherever it is."""
    column = np.repeat([0.0, 1.0], 10)
    for names in (["b", "a"], ["a", "b"]):
        frame = pd.DataFrame(dict.fromkeys(names, column))
        model = DecisionTreeClassifier(random_state=0).fit(frame, column.astype(int))
        assert names[model.feature_importances_.argmax()] == "a"


def test_constant_columns_do_not_count_as_looked_at_where_all_are() -> None:
    table = np.column_stack([np.zeros((40, 6)), np.arange(40.0)])
    model = DecisionTreeClassifier(max_features=1, random_state=0).fit(table, np.arange(40) > 20)
    assert model.feature_importances_.tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert model.score(table, np.arange(40) > 20) == 1.0
    leaf = DecisionTreeClassifier(random_state=0).fit(np.zeros((4, 2)), [0, 1, 1, 1])
    assert leaf.predict_proba([[5.0, 5.0]]).tolist() == [[0.25, 0.75]]
    assert leaf.feature_importances_.tolist() == [0.0, 0.0]


def test_balanced_weights_are_a_refit_and_right() -> None:
    kind = RandomForestClassifier(3, class_weight="balanced", random_state=0)
    model = kind.fit(X, Y)
    assert model.delete([0, 1]).action == "refit"
    fresh = RandomForestClassifier(3, class_weight="balanced", random_state=0)
    assert model.digest() == fresh.fit(X[2:], Y[2:], ids=np.arange(2, 300)).digest()


def test_shares_of_records_are_of_those_left() -> None:
    model = DecisionTreeClassifier(min_samples_leaf=0.02, random_state=0).fit(X, Y)
    assert model.delete(range(10)).action == "updated"
    assert model.delete(range(10, 60)).action == "refit"  # 2 % of 240 are 5, not 6
    fresh = DecisionTreeClassifier(min_samples_leaf=0.02, random_state=0)
    assert model.digest() == fresh.fit(X[60:], Y[60:], ids=np.arange(60, 300)).digest()


def test_a_grid_that_changes_is_a_refit_and_right() -> None:
    y = np.where(np.arange(300) == 7, 1e6, SCORE)
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    assert model.delete([8]).action == "updated"
    assert model.delete([7]).action == "refit"
    left = np.delete(np.arange(300), [7, 8])
    fresh = RandomForestRegressor(3, random_state=0).fit(X[left], y[left], ids=left)
    assert model.digest() == fresh.digest()


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestRegressor], ids=named)
def test_bad_input_is_refused_by_name(kind: Any) -> None:
    frame = pd.DataFrame({"age": [1.0, np.inf, 3.0], "city": [1.0, 2.0, 3.0]})
    with pytest.raises(InvalidDataError, match="age"):
        kind().fit(frame, [0, 1, 1])
    with pytest.raises(InvalidDataError, match="Sparse"):
        kind().fit(csr_array(X), Y)
    with pytest.raises(InvalidDataError, match="1d array"):
        kind().fit(X, np.column_stack([Y, Y]))
    for name, value in (("max_depth", 0), ("n_thresholds", 0), ("criterion", "mae"),
                        ("min_samples_leaf", 1.5), ("max_features", "auto")):  # fmt: skip
        with pytest.raises(InvalidParameterError, match=name):
            kind(**{name: value}).fit(X, Y)


def test_class_weights_that_are_no_weights_are_refused() -> None:
    for weight in (-1.0, np.nan, np.inf, "heavy"):
        with pytest.raises(InvalidParameterError, match="class_weight"):
            DecisionTreeClassifier(class_weight={0: weight}).fit(X, Y)


def test_behind_an_encoder_that_makes_a_sparse_table_the_error_says_how_to_make_another() -> None:
    frame = pd.DataFrame({"age": X[:, 0], "ward": np.where(Y > 0, "north", "south")})
    for options, refused in (({}, True), ({"sparse_output": False}, False)):
        parts = [("n", MinMaxScaler(), ["age"]), ("c", OneHotEncoder(**options), ["ward"])]
        model = make_pipeline(ColumnTransformer(parts), DecisionTreeClassifier(random_state=0))
        if refused:
            with pytest.raises(InvalidDataError, match="sparse_output=False"):
                model.fit(frame, Y)
            continue
        left = np.arange(300) != 7
        model.fit(frame, Y).delete([7])
        assert model.digest() == clone(model).fit(frame[left], Y[left]).digest()

"""Exported trees: thresholds, categories, gaps, importances, and what rounding to float32 does."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import export_text

from erasable import load
from erasable.compose import ColumnTransformer
from erasable.core.errors import DetachedError, ExportError
from erasable.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from naming import named

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
CLASSES = np.array(["a", "b", "c"])[1 * (X[:, 0] > 0) + (X[:, 1] > 0.5)]
NUMBERS = X[:, 0] * X[:, 1] + RNG.normal(size=400) * 0.1

CLASSIFIERS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(random_state=0, criterion="entropy", class_weight={"a": 3.0, "b": 0.0}),
    RandomForestClassifier(5, random_state=0, class_weight="balanced"),
    ExtraTreesClassifier(5, random_state=0),
]
REGRESSORS = [
    DecisionTreeRegressor(random_state=0),
    RandomForestRegressor(5, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
]
EACH = pytest.mark.parametrize("tree", [*CLASSIFIERS, *REGRESSORS], ids=named)


def targets(tree: Any) -> Any:
    return CLASSES if tree in CLASSIFIERS else NUMBERS


def answer(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


def float32(rows: Any) -> Any:
    """Return the same values as far as float32 holds them, in float64."""
    return rows.astype(np.float32).astype(np.float64)


@EACH
def test_float32_values_come_to_the_same_leaves(tree: Any) -> None:
    """To the last bit, also for values next to thresholds."""
    model = tree.fit(X, targets(tree))
    exported = model.to_sklearn()
    first = exported.estimators_[0] if hasattr(exported, "estimators_") else exported
    at = first.tree_.threshold[first.tree_.feature >= 0].astype(np.float32)
    beside = np.concatenate([at, np.nextafter(at, np.float32(9)), np.nextafter(at, np.float32(-9))])
    near = np.repeat(beside.astype(np.float64)[:, None], 4, axis=1)
    for rows in (float32(RNG.normal(size=(500, 4))), near):
        np.testing.assert_array_equal(answer(exported, rows), answer(model, rows))


def test_other_values_may_differ_within_rounding_of_a_threshold() -> None:
    """What the docstring says: the value is rounded to float32, and the threshold is not."""
    model = DecisionTreeClassifier(random_state=0).fit([[0.0], [2.0 / 3.0]], ["low", "high"])
    exported = model.to_sklearn()
    third = exported.tree_.threshold[0]
    other = np.nextafter(third, 1.0 if np.float32(third) < third else 0.0)
    assert model.predict([[other]]) != exported.predict([[other]])
    far = third * (1.0 + np.array([[-1e-7], [1e-7]]))
    np.testing.assert_array_equal(model.predict(far), exported.predict(far))


@EACH
def test_gaps_come_to_the_same_leaves(tree: Any) -> None:
    """In models of data with gaps and without; where only gaps go to the right, too."""
    for rows in (X, np.where(RNG.random(X.shape) < 0.3, np.nan, X)):
        kind = clone(tree).set_params(random_state=4)
        model = kind.fit(float32(rows), targets(tree))
        exported = model.to_sklearn()
        new = RNG.normal(size=(500, 4))
        new = float32(np.where(RNG.random(new.shape) < 0.3, np.nan, new))
        np.testing.assert_array_equal(answer(exported, new), answer(model, new))
    assert np.isinf(thresholds_of(exported)).any() or isinstance(tree, ExtraTreesRegressor)


def thresholds_of(exported: Any) -> Any:
    trees = getattr(exported, "estimators_", [exported])
    return np.concatenate([each.tree_.threshold for each in trees])


@EACH
def test_importances_are_the_models(tree: Any) -> None:
    model = tree.fit(X, targets(tree))
    exported = model.to_sklearn()
    np.testing.assert_allclose(exported.feature_importances_, model.feature_importances_, rtol=1e-6)


@pytest.mark.parametrize("tree", [CLASSIFIERS[0], REGRESSORS[0]], ids=named)
def test_nodes_are_scikit_learns(tree: Any) -> None:
    """Counts, weights, depth, and the text that scikit-learn makes of a tree."""
    weights = RNG.integers(1, 4, size=400)
    model = tree.fit(X, targets(tree), sample_weight=weights)
    exported = model.to_sklearn()
    assert exported.get_depth() == model.get_depth()
    assert exported.get_n_leaves() == model.get_n_leaves()
    nodes = exported.tree_
    assert nodes.weighted_n_node_samples[0] == weights.sum() == nodes.n_node_samples[0]
    below = exported.decision_path(X.astype(np.float32)).T @ weights
    np.testing.assert_allclose(nodes.weighted_n_node_samples, below)
    assert "feature_0" in export_text(exported)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=named)
@EACH
def test_a_tree_behind_scalers(tree: Any, scaler: Any) -> None:
    """It learns from unscaled values: thresholds are scaled, and lie between the same values."""
    grid = np.round(X * 16) / 16  # thresholds are in the middle, where no other value is
    model = make_pipeline(scaler, StandardScaler(), tree).fit(grid, targets(tree))
    new = np.round(RNG.normal(size=(300, 4)) * 32) / 32  # some of them at thresholds
    np.testing.assert_allclose(answer(model.to_sklearn(), new), answer(model, new), rtol=1e-12)


# -- boosting --------------------------------------------------------------------------------------

WITH_GAPS = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
CODES = RNG.integers(0, 9, size=400).astype(np.float64)
WITH_CODES = np.column_stack([np.where(RNG.random(400) < 0.1, np.nan, CODES), X[:, 1]])
OF_CODES = np.isin(CODES, [1, 4, 5]) * 1.0 + X[:, 1] ** 2


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_boosting_with_gaps(loss: str) -> None:
    y = np.floor(np.abs(NUMBERS * 4))
    model = HistGradientBoostingRegressor(loss, max_iter=12, min_samples_leaf=5).fit(WITH_GAPS, y)
    new = np.where(RNG.random((300, 4)) < 0.3, np.nan, RNG.normal(size=(300, 4)))
    exported = model.to_sklearn()
    np.testing.assert_allclose(exported.predict(new), model.predict(new), rtol=1e-12)
    # Edges are values of records.
    np.testing.assert_allclose(exported.predict(WITH_GAPS), model.predict(WITH_GAPS), rtol=1e-12)
    assert exported.n_iter_ == 12


@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]])
def test_boosting_of_classes(labels: list[str]) -> None:
    """Two classes and three, which have one tree and three in a round."""
    y = np.array(labels)[np.arange(400) % len(labels)]
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5).fit(X, y)
    exported, new = model.to_sklearn(), RNG.normal(size=(99, 4))
    np.testing.assert_allclose(exported.predict_proba(new), model.predict_proba(new), rtol=1e-12)
    np.testing.assert_array_equal(exported.predict(new), model.predict(new))


def test_columns_that_a_pipeline_does_not_scale_keep_their_thresholds() -> None:
    """A mean of two decimals is often next to a decimal."""
    rows = RNG.integers(-30, 31, size=(200, 2)) / 10.0
    columns = ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=1))
    model.fit(rows, np.sin(9.0 * rows[:, 1]))
    values = np.arange(-31, 32) / 10.0
    for each in (np.nextafter(values, -9.0), values, np.nextafter(values, 9.0)):
        asked = np.column_stack([np.full(each.size, 0.03), each])
        np.testing.assert_allclose(model.to_sklearn().predict(asked), model.predict(asked))


def test_boosting_of_one_class_is_refused() -> None:
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, np.full(400, "no"))
    with pytest.raises(ExportError, match="one class"):
        model.to_sklearn()


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("leaf", [3, 40])
def test_boosting_of_categories(scaled: bool, leaf: int) -> None:
    """Known ones, such as no record has, negative ones, which are gaps, and gaps."""
    model = HistGradientBoostingRegressor(
        max_iter=20, min_samples_leaf=leaf, categorical_features=[0], random_state=0
    )
    model = make_pipeline(StandardScaler(), model) if scaled else model
    # A scaler takes no gaps.
    own = np.nan_to_num(WITH_CODES, nan=-3.0) if scaled else WITH_CODES
    model.fit(own, OF_CODES)
    codes = [*range(12), 4.5, -1.0, -0.0, -7.0, 1e9] + ([] if scaled else [np.nan])
    new = np.array([[code, x] for code in codes for x in (-2.0, -0.3, 0.4, 1.7)])
    exported = model.to_sklearn()
    np.testing.assert_allclose(exported.predict(new), model.predict(new), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(exported.predict(own), model.predict(own), rtol=1e-12, atol=1e-12)


def test_boosting_of_categories_by_name_and_mask() -> None:
    frame = pd.DataFrame(WITH_CODES, columns=["code", "x"])
    for told in (["code"], [True, False]):
        model = HistGradientBoostingRegressor(
            max_iter=8, min_samples_leaf=5, categorical_features=told
        ).fit(frame, OF_CODES)
        exported = model.to_sklearn()
        np.testing.assert_allclose(exported.predict(frame), model.predict(frame), rtol=1e-12)


CITIES = pd.DataFrame(
    {"x": X[:, 1], "city": RNG.choice(["7", "Rome", "Oslo", "Bern"], 400), "code": CODES}
)
OF_CITIES = (CITIES.city == "Oslo") * 2.0 + (CITIES.city == "7") - CITIES.x


@pytest.mark.parametrize("told", ["from_dtype", ["city", "code"]])
def test_boosting_of_text(told: Any) -> None:
    """Also such as no record has, and gaps."""
    own = CITIES.astype({"city": "object"})
    own.loc[::11, "city"] = np.nan
    model = HistGradientBoostingRegressor(
        max_iter=12, min_samples_leaf=5, categorical_features=told, random_state=0
    ).fit(own, OF_CITIES)
    new = own.iloc[::-3].reset_index(drop=True)
    new.loc[:5, "city"], new.loc[6:9, "code"] = "Lima", [99.0, -2.0, np.nan, 1.0]
    exported = model.to_sklearn()
    for rows in (own, new, new[["code", "city", "x"]][list(own.columns)]):
        np.testing.assert_allclose(exported.predict(rows), model.predict(rows), rtol=1e-12)


def test_texts_that_decide_nothing_are_not_exported() -> None:
    own = CITIES.assign(name=[f"name {row}" for row in range(400)])
    model = HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=5, categorical_features=["city", "name"], random_state=0
    ).fit(own, OF_CITIES)
    exported = model.to_sklearn()
    np.testing.assert_allclose(exported.predict(own), model.predict(own), rtol=1e-12)
    found = pickle.dumps(exported)
    assert b"Oslo" in found
    assert b"name 1" not in found


def test_boosting_of_text_in_an_array() -> None:
    table = CITIES.to_numpy(dtype=object)
    model = HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=5, categorical_features=[1, 2], random_state=0
    ).fit(table, OF_CITIES)
    model.delete(np.flatnonzero(CITIES.city == "Bern"))
    np.testing.assert_allclose(model.to_sklearn().predict(table), model.predict(table), rtol=1e-12)


def test_boosting_of_text_without_records() -> None:
    file = io.BytesIO()
    model = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=5, categorical_features=["city"]
    ).fit(CITIES, OF_CITIES)
    model.save(file)
    file.seek(0)
    with pytest.raises(DetachedError, match="load it with them"):
        load(file).to_sklearn()


def test_boosting_of_text_and_numbers_is_refused() -> None:
    table = pd.DataFrame({"city": np.array(["x", 3, "z"], dtype=object)[np.arange(400) % 3]})
    model = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=5, categorical_features=["city"]
    ).fit(table, np.arange(400) % 3)
    with pytest.raises(ExportError, match="text and numbers"):
        model.to_sklearn()

"""Seams that an attack on compositions, files and targets found open."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from erasable import Records, load
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import ArtifactError, InvalidDataError
from erasable.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.kernel import NadarayaWatson
from erasable.linear_model import LinearRegression, Ridge
from erasable.neighbors import KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    SimpleImputer,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier

REGRESSORS = [
    Ridge(), LinearRegression(), KNeighborsRegressor(2), NadarayaWatson(),
    RandomForestRegressor(2, random_state=0), make_pipeline(StandardScaler(), Ridge()),
]  # fmt: skip


def saved(model: Any) -> io.BytesIO:
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return file


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("container", [list, lambda y: np.array(y, dtype=object)])
def test_a_float_among_integers_leaves_no_trace(model: Any, container: Any) -> None:
    X, y = np.arange(12.0).reshape(6, 2) ** 0.5, [2.5, 0, 1, 1, 0, 1]
    model = model.fit(X, container(y))
    model.delete([0])
    file = saved(model)
    fresh = clone(model).fit(X[1:], container(y[1:]), ids=range(1, 6))
    assert file.getvalue() == saved(fresh).getvalue()
    left = Records(X[1:], container(y[1:]), ids=range(1, 6))
    assert load(file, left).delete([2]).ids.tolist() == [2]
    file.seek(0)
    with pytest.raises(ArtifactError):
        load(file, Records(X[1:], container([1, 0, 1, 0, 1]), ids=range(1, 6)))


@pytest.mark.parametrize(
    "model", [OneHotEncoder(), OrdinalEncoder(), ColumnTransformer([("e", OneHotEncoder(), [0])])]
)
def test_objects_without_text_are_their_own_records(model: Any) -> None:
    X = np.array([[1, 2.0], [2, 3.0], [1, 4.0], [2, 3.0]], dtype=object)
    file = saved(model.fit(X))
    loaded = load(file, Records(X))
    loaded.delete([3])
    assert loaded.digest() == clone(model).fit(X[:3]).digest()
    file.seek(0)
    with pytest.raises(ArtifactError):
        load(file, Records(np.array([[7, 2.0], [2, 3.0], [1, 4.0], [2, 3.0]], dtype=object)))


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(), CountVectorizer(analyzer="char")])
@pytest.mark.parametrize("cell", [None, 7])
def test_a_text_that_is_none_is_told(vectorizer: Any, cell: Any) -> None:
    frame = pd.DataFrame({"t": pd.Series(["aa bb", cell, "cc"], dtype=object), "n": [1.0, 2, 3]})
    columns = ColumnTransformer([("t", vectorizer, "t")], remainder="passthrough")
    with pytest.raises(InvalidDataError, match="1 of 3 documents in 't' are not strings"):
        columns.fit(frame)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
def test_a_loaded_composition_hands_on_numbers_as_it_did(nested: bool, strategy: str) -> None:
    """Whether a table has numbers or objects depends on what the frame declares."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=30).round(2), "u": rng.choice(list("xyz"), 30)}, index=range(30)
    )
    frame.loc[3:6, "a"] = np.nan
    y = rng.normal(size=30)
    number: Any = ColumnTransformer([("a", "passthrough", ["a"])]) if nested else "passthrough"
    columns = ColumnTransformer([("n", number, ["a"]), ("o", OrdinalEncoder(), ["u"])])
    model = make_pipeline(columns, SimpleImputer(strategy=strategy), Ridge()).fit(frame, y)
    loaded = load(saved(model), Records(frame, y))
    left = np.flatnonzero(frame["u"] != "x")  # the codes of the other categories change
    loaded.delete(np.flatnonzero(frame["u"] == "x"))
    fresh = clone(model).fit(frame.iloc[left], y[left])
    assert loaded.digest() == fresh.digest()
    assert saved(loaded).getvalue() == saved(fresh).getvalue()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_pipeline_of_nothing_hands_on_names_and_types(depth: int) -> None:
    nothing: Any = "passthrough"
    for _ in range(depth):
        nothing = make_pipeline(nothing)
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, 3.0], "u": ["x", "y", "x", "y"]})
    columns = ColumnTransformer([("n", StandardScaler(), ["a"]), ("o", OrdinalEncoder(), ["u"])])
    model = make_pipeline(nothing, columns).fit(frame)
    assert np.array_equal(model.transform(frame), clone(columns).fit_transform(frame))
    model.delete([1])
    assert model.digest() == clone(model).fit(frame.drop(index=1)).digest()


@pytest.mark.parametrize(
    "last",
    [
        HistGradientBoostingRegressor(early_stopping=True, max_iter=3, random_state=0),
        HistGradientBoostingClassifier(class_weight="balanced", max_iter=3, random_state=0),
        HistGradientBoostingClassifier(early_stopping=True, max_iter=3, random_state=0),
        DecisionTreeClassifier(min_impurity_decrease=0.01, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("n_new", [1, 20, 0])
def test_a_step_that_cannot_add_behind_one_that_can_follows_exchanges(
    last: Any, n_new: int
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    model = make_pipeline(SimpleImputer(), last).fit(X[:20], y[:20], ids=range(20))
    new = np.arange(20, 20 + n_new)
    model.replace([0, 7], X[new], y[new], ids=new)
    left = np.setdiff1d(np.arange(20 + n_new), [0, 7])
    assert model.digest() == clone(model).fit(X[left], y[left], ids=left).digest()
    y[5:15] = 1 - y[5:15]
    model.correct(np.arange(8, 15), y=y[8:15])
    y[5:8] = 1 - y[5:8]
    assert model.digest() == clone(model).fit(X[left], y[left], ids=left).digest()


@pytest.mark.parametrize("corrects", [True, False])
def test_what_stays_in_an_exchange_need_not_be_learned_from(corrects: bool) -> None:
    """Without the first record the column holds no value, and the imputer drops it."""
    X = np.full((6, 1), np.nan)
    X[0], X[5] = 1.0, 3.0
    model = make_pipeline(SimpleImputer(), StandardScaler(), KMeans(1, random_state=0))
    model.fit(X[:5], ids=range(5))
    if corrects:
        X[0] = 2.0
        model.correct([0], X[:1])
        left = np.arange(5)
    else:
        model.replace([0], X[5:], ids=[5])
        left = np.arange(1, 6)
    assert model.digest() == clone(model).fit(X[left], ids=left).digest()
    before = model.digest()
    with pytest.raises(InvalidDataError):
        model.correct([left[0 if corrects else -1]], [[np.nan]])
    assert model.digest() == before

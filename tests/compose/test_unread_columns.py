"""Columns that no part of a composition looks at: they may hold anything, and nothing is kept."""

from __future__ import annotations

import datetime
import io
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.compose
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing

import erasable
from erasable import Records, Refit
from erasable.compose import ColumnTransformer
from erasable.core.errors import ArtifactError, InvalidDataError
from erasable.ensemble import ShardedClassifier
from erasable.linear_model import LogisticRegression
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from erasable.utils._checks.compare import assert_same

N = 40
IDS = [f"p{i}" for i in range(N)]
NUMBERS, CITY = ["age", "pulse"], ["city"]


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=N),
            "age": rng.normal(50.0, 9.0, N),
            "note": [f"text {i}" for i in range(N)],
            "city": rng.choice(["Bonn", "Ulm"], N),
            "pulse": rng.normal(70.0, 5.0, N),
            "odd": [complex(i) for i in range(N)],
            "endless": np.inf,
            "late": pd.to_timedelta(np.arange(N), unit="h"),
        }
    )


def own(*, text: bool) -> Any:
    encoder = [("text", OneHotEncoder(), CITY)] if text else [("none", "drop", CITY)]
    parts = ColumnTransformer([("numbers", StandardScaler(), NUMBERS), *encoder])
    return make_pipeline(parts, LogisticRegression())


def foreign(*, text: bool) -> Any:
    room = sklearn.preprocessing
    encoder = [("text", room.OneHotEncoder(), CITY)] if text else [("none", "drop", CITY)]
    parts = sklearn.compose.ColumnTransformer(
        [("numbers", room.StandardScaler(), NUMBERS), *encoder]
    )
    return sklearn.pipeline.make_pipeline(parts, sklearn.linear_model.LogisticRegression())


def nested() -> Any:
    inner = ColumnTransformer([("scaled", MinMaxScaler(), ["pulse"])])
    outer = ColumnTransformer([("inner", inner, ["when", "pulse"]), ("age", StandardScaler(), [1])])
    return make_pipeline(make_pipeline("passthrough"), outer, LogisticRegression())


MODELS = {
    "numbers": lambda: own(text=False),
    "numbers and text": lambda: own(text=True),
    "nested": nested,
    "refit of numbers": lambda: Refit(foreign(text=False), random_state=0),
    "refit of text": lambda: Refit(foreign(text=True), random_state=0),
    "shards": lambda: ShardedClassifier(own(text=True), n_shards=2, random_state=0),
    "foreign shards": lambda: ShardedClassifier(foreign(text=True), n_shards=2, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_they_are_never_read(name: str) -> None:
    make, X = MODELS[name], make_frame()
    y = (X["age"] > 50.0).to_numpy()
    model = make().fit(X, y, ids=IDS)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    others = X.assign(when="never", note=3.5, odd=[object() for _ in range(N)], late=None)
    assert make().fit(others, y, ids=IDS).predict(X).tolist() == model.predict(others).tolist()
    left = np.delete(np.arange(N), [3, 5])
    fresh = make().fit(X.iloc[left], y[left], ids=[IDS[i] for i in left])
    loaded = erasable.load(file, (X, y, IDS))
    for each in (model, loaded, pickle.loads(pickle.dumps(model))):
        each.delete(["p3", "p5"])
        assert_same(each, fresh, name)
    model.add(X.iloc[[3, 5]], y[[3, 5]], ids=["p3", "p5"])
    assert model.digest() == make().fit(X, y, ids=IDS).digest()


def test_nothing_of_them_is_kept() -> None:
    X = make_frame()
    model = own(text=True).fit(X, X["age"] > 50.0, ids=IDS)
    assert b"text 7" not in pickle.dumps(model)
    model.correct(["p7"], X.iloc[[7]].assign(note="another text", age=1.0))
    assert b"another text" not in pickle.dumps(model)
    assert b"Bonn" in pickle.dumps(model)  # what is read is there


def test_records_that_others_read_keep_them() -> None:
    """A file says the same of `Records` with such columns as of a frame of which they are left."""
    X = make_frame().drop(columns=["when", "odd", "endless", "late"])
    y = (X["age"] > 50.0).to_numpy()
    records = Records(X, y, ids=IDS)
    whole, alone = own(text=True).fit(records), own(text=True).fit(X, y, ids=IDS)
    for one, other in ((whole, (X, y, IDS)), (alone, Records(X, y, ids=IDS))):
        file = io.BytesIO()
        one.save(file)
        file.seek(0)
        assert erasable.load(file, other).digest() == alone.digest()
        file.seek(0)
        changed = X.assign(age=X["age"].where(X.index != 3, 1.0))
        with pytest.raises(ArtifactError, match=r"another (X|StandardScaler)"):
            erasable.load(file, (changed, y, IDS))


@pytest.mark.parametrize("kind", ["polars", "list", "objects"])
def test_other_tables(kind: str) -> None:
    days = [datetime.date(2024, 1, 1 + i) for i in range(4)]
    ages = [40.0, 50.0, 60.0, 80.0]
    X: Any = [[day, age] for day, age in zip(days, ages, strict=True)]
    if kind == "polars":
        X = pl.DataFrame({"when": days, "age": ages})
    elif kind == "objects":
        X = np.array(X, dtype=object)
    model = ColumnTransformer([("scaled", MinMaxScaler(), [1])]).fit(X, ids=[1, 2, 3, 4])
    assert model.transform(X).ravel().tolist() == [0.0, 0.25, 0.5, 1.0]
    model.delete([4])
    assert model.transform(X[:1]).tolist() == [[0.0]]
    assert model.n_features_in_ == 2


def test_what_is_read_is_named() -> None:
    X = make_frame()
    with pytest.raises(InvalidDataError, match="of type Timestamp in column 'when'; expected"):
        ColumnTransformer([("a", OneHotEncoder(), ["city", "when"])]).fit(X)
    with pytest.raises(InvalidDataError, match="of type complex in column 'odd'; expected"):
        ColumnTransformer([("a", "passthrough", ["odd", "city"])]).fit(X)
    with pytest.raises(InvalidDataError, match="contains inf in column 'endless' of objects"):
        OneHotEncoder().fit(X[["city", "endless"]].astype(object))
    with pytest.raises(InvalidDataError, match=r"of type complex in columns 0, 1; expected"):
        OneHotEncoder().fit(np.array([[1j, 2j, "a"]], dtype=object))

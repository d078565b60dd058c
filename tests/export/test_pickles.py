"""An exported estimator needs nothing of erasable, and holds no ids and no records."""

from __future__ import annotations

import pickle
import pickletools
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import sklearn.neighbors
import sklearn.svm
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from erasable.compose import ColumnTransformer
from erasable.core.errors import ExportWarning
from erasable.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.neighbors import KernelDensity, KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler
from erasable.refit import Refit
from erasable.utils._checks.data_sets import MARKED, suited
from law_instances import law_instances
from naming import named

WITHOUT = {"DBSCAN", "Embedding", "ItemNeighbors", "NadarayaWatson", "SegmentedRegression"}
HOLDERS = {"KNeighborsClassifier", "KNeighborsRegressor", "KernelDensity"}
INSTANCES = [each for each in law_instances() if type(each).__name__ not in WITHOUT]

ASK = """
import pickle, sys
sys.modules["erasable"] = None
folder = sys.argv[1]
with open(f"{folder}/models", "rb") as file:
    models, rows = pickle.load(file)
answers = [model.predict(X) if hasattr(model, "predict") else model.transform(X)
           for model, X in zip(models, rows, strict=True)]
with open(f"{folder}/answers", "wb") as file:
    pickle.dump(answers, file)
assert not any(name.startswith("erasable.") for name in sys.modules)
"""

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
FRAME = pd.DataFrame(X, columns=list("abc")).assign(city=RNG.choice(["x", "y", "z"], 90))
FRAME.loc[::7, "a"] = np.nan
TEXTS = [" ".join(RNG.choice(["red", "green", "blue", "round"], 5)) for _ in range(90)]


def models() -> list[tuple[Any, Any, Any]]:
    """Models of every family, each with what it learns from."""
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
            ("cities", OneHotEncoder(sparse_output=False), ["city"]),
        ]
    )
    return [
        (make_pipeline(columns, LogisticRegression()), FRAME, Y),
        (ColumnTransformer([("one", "passthrough", [0])], remainder=StandardScaler()), X, Y),
        (make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS, Y),
        (make_pipeline(FunctionTransformer(np.abs), StandardScaler()), X, Y),
        (RandomForestClassifier(3, random_state=0), X, Y),
        (HistGradientBoostingClassifier(max_iter=3), X, Y),
        (KNeighborsClassifier(3), X, Y),
        (BaggingClassifier(sklearn.linear_model.LogisticRegression(), 3, random_state=0), X, Y),
        (ShardedClassifier(RandomForestClassifier(2), 3, random_state=0), X, Y),
        (ShardedRegressor(Ridge(), 3, random_state=0), X, X[:, 0]),
        (Refit(sklearn.linear_model.LogisticRegression(), random_state=0), X, Y),
    ]


def test_exported_estimators_come_back_where_erasable_is_not(tmp_path: Path) -> None:
    fitted = [model.fit(rows, y) for model, rows, y in models()]
    asked = [rows for _, rows, _ in models()]
    exported = [model.to_sklearn(records=True) for model in fitted]
    (tmp_path / "models").write_bytes(pickle.dumps((exported, asked)))
    subprocess.run([sys.executable, "-c", ASK, tmp_path], check=True)
    answers = pickle.loads((tmp_path / "answers").read_bytes())
    for model, rows, answer in zip(fitted, asked, answers, strict=True):
        mine = model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
        if answer.dtype.kind == "f":
            np.testing.assert_allclose(answer, mine, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(answer, mine)


def test_joblib_keeps_them(tmp_path: Path) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    joblib.dump(model.to_sklearn(), tmp_path / "model")
    again = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def imported(pickled: bytes) -> set[str]:
    """Return the names of the packages that a pickle is made of."""
    texts = [str(arg) for _, arg, _ in pickletools.genops(pickled) if isinstance(arg, str)]
    return {text.partition(".")[0] for text in texts}


@pytest.mark.parametrize("estimator", INSTANCES, ids=named)
def test_no_id_and_no_record_is_in_a_pickle(estimator: Any) -> None:
    """Of records whose values occur nowhere else."""
    for data in suited(MARKED, estimator):
        model = clone(estimator)
        seeds = [name for name in model.get_params() if name.endswith("random_state")]
        model.set_params(**dict.fromkeys(seeds, 0))
        model.fit(data.X, data.y, ids=data.ids)
        found = pickle.dumps(model.to_sklearn(records=True))
        assert "erasable" not in imported(found)
        for one in data.ids.tolist():
            mark = one.encode() if isinstance(one, str) else int(one).to_bytes(8, "little")
            assert mark not in found
        held = type(model).__name__ in HOLDERS or "KNeighbors" in str(estimator)
        if data.X.dtype != object and not held:
            rows = np.ascontiguousarray(data.X[np.abs(data.X).min(axis=1) > 16])  # no codes
            assert not any(row.tobytes() in found for row in rows)


def test_a_record_is_found_where_there_is_one() -> None:
    """A negative control: nearest neighbours hold all of them."""
    found = pickle.dumps(KNeighborsClassifier(1).fit(X, Y).to_sklearn(records=True))
    assert all(row.tobytes() in found for row in X)
    assert "sklearn" in imported(found)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(1),
        KernelDensity(),
        make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
        BaggingClassifier(KNeighborsClassifier(1), 2, bootstrap=False, max_samples=0.5),
        BaggingClassifier(sklearn.neighbors.KNeighborsClassifier(1), 2),
        Refit(sklearn.svm.SVC()),
    ],
    ids=named,
)
def test_who_holds_records_says_so(estimator: Any) -> None:
    model = estimator.fit(X, Y)
    with pytest.warns(ExportWarning, match="holds the values of records"):
        model.to_sklearn()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.to_sklearn(records=True)

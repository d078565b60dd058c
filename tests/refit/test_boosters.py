"""XGBoost and LightGBM behind `Refit`, in shards and in bags: `make boosting` installs them."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.pipeline
import sklearn.preprocessing

import erasable
from erasable import Refit
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.errors import ArtifactError, InvalidParameterError
from erasable.ensemble import BaggingClassifier, ShardedClassifier, ShardedRegressor
from erasable.refit import _boosters
from erasable.utils._checks.compare import assert_same

N = 120
RNG = np.random.default_rng(11)
NUMBERS = RNG.normal(size=(N, 4))
NUMBERS[5, 1] = np.nan  # both learn from gaps
CLASSES = (np.nan_to_num(NUMBERS).sum(axis=1) > 0).astype(int)


def xgboost(kind: str, **params: Any) -> Any:
    library = pytest.importorskip("xgboost", reason="XGBoost is not installed: make boosting")
    return getattr(library, f"XGB{kind}")(**{"n_estimators": 4, "subsample": 0.7, **params})


def lightgbm(kind: str, **params: Any) -> Any:
    library = pytest.importorskip("lightgbm", reason="LightGBM is not installed: make boosting")
    drawn = {"n_estimators": 4, "subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.7}
    return getattr(library, f"LGBM{kind}")(verbose=-1, min_child_samples=5, **{**drawn, **params})


LIBRARIES: dict[str, Callable[..., Any]] = {"xgboost": xgboost, "lightgbm": lightgbm}


def in_pipeline(estimator: Any) -> Any:
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.RobustScaler(), estimator)


MODELS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "classifier": lambda make: Refit(make("Classifier"), random_state=1),
    "regressor": lambda make: Refit(make("Regressor"), random_state=1),
    "pipeline": lambda make: Refit(in_pipeline(make("Classifier", n_jobs=2)), random_state=1),
    "shards": lambda make: ShardedClassifier(make("Classifier"), n_shards=2, random_state=1),
    "shards of numbers": lambda make: ShardedRegressor(
        make("Regressor"), n_shards=2, random_state=1
    ),
    "bags": lambda make: BaggingClassifier(make("Classifier"), n_estimators=2, random_state=1),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("named", [False, True])
def test_they_forget(library: str, name: str, named: bool) -> None:
    X: Any = pd.DataFrame(NUMBERS, columns=list("abcd")) if named else NUMBERS
    model = MODELS[name](LIBRARIES[library]).fit(X, CLASSES)
    gone, left = [3, 5, 77], np.delete(np.arange(N), [3, 5, 77])
    fresh = MODELS[name](LIBRARIES[library])
    fresh.fit(X.iloc[left] if named else X[left], CLASSES[left], ids=left)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    trusted = erasable.load(file, trusted=True)
    assert trusted.digest() == model.digest()
    np.testing.assert_array_equal(trusted.predict(X), model.predict(X))
    file.seek(0)
    loaded = erasable.load(file, (X, CLASSES, np.arange(N)))
    for each in (model, loaded, pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert each.digest() != fresh.digest()
        each.delete(gone)
        assert_same(each, fresh, name)


@pytest.mark.parametrize("library", LIBRARIES)
def test_they_predict_as_they_do_alone(library: str) -> None:
    own = LIBRARIES[library]("Classifier", subsample=1.0, colsample_bytree=1.0)
    model = Refit(own, random_state=1).fit(NUMBERS, CLASSES)
    alone = own.fit(NUMBERS, CLASSES)
    np.testing.assert_allclose(
        model.predict_proba(NUMBERS), alone.predict_proba(NUMBERS), atol=1e-6
    )


def test_lightgbm_may_add_by_columns() -> None:
    model = Refit(lightgbm("Classifier", force_col_wise=True), random_state=1)
    told = model.fit(NUMBERS, CLASSES).estimator_.booster_.model_to_string()
    assert "[force_col_wise: 1]" in told
    assert "[force_row_wise: 0]" in told
    assert "[num_threads: 1]" in told


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_file_makes_them_read_no_other(library: str) -> None:
    """A file of a stranger may name a file that the library reads, or writes, as it learns."""
    model = Refit(LIBRARIES[library]("Classifier"), random_state=1).fit(NUMBERS, CLASSES)
    file, crafted = io.BytesIO(), io.BytesIO()
    model.save(file)
    file.seek(0)
    header, state = read_artifact(file)
    state["params"]["estimator"]["params"]["forcedbins_filename"] = "/etc/passwd"
    write_artifact(crafted, header, state)
    crafted.seek(0)
    with pytest.raises(ArtifactError, match="forcedbins_filename is none of its declared"):
        erasable.load(crafted, (NUMBERS, CLASSES, np.arange(N)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_trees_of_others_are_fitted_again(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bytes of a file that is not trusted are given to the library."""
    model = Refit(LIBRARIES[library]("Classifier"), random_state=1).fit(NUMBERS, CLASSES)
    file = io.BytesIO()
    model.save(file)
    read: list[str] = []
    real = _boosters.decode_booster

    def decode(tree: Any) -> Any:
        read.append(tree["class"])
        return real(tree)

    monkeypatch.setattr("erasable.refit._codec.decode_booster", decode)
    file.seek(0)
    with pytest.raises(ArtifactError, match="not checked"):
        erasable.load(file)
    assert read == []
    file.seek(0)
    erasable.load(file, trusted=True)
    assert len(read) == 1


def test_catboost_is_refused_with_advice() -> None:
    members = {"__module__": "catboost.core", "fit": lambda self, X, y: self}
    estimator = type("CatBoostClassifier", (), members)()
    with pytest.raises(InvalidParameterError, match="use XGBoost, LightGBM or Hist"):
        Refit(estimator).fit(NUMBERS, CLASSES)

"""Files of compositions of which earlier versions learned a wrong model."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from earlier import earlier_version
from sklearn.base import clone

from erasable import Records, load
from erasable.cluster import QuantizedKMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import ArtifactError, OutdatedModelWarning
from erasable.decomposition import PCA
from erasable.linear_model import LogisticRegression
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import _composition, _earlier, make_pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)

N = 60


@pytest.fixture
def numbers() -> Any:
    return np.round(np.random.default_rng(3).normal(size=(N, 3)) * 64) / 64


@pytest.fixture
def y(numbers: Any) -> Any:
    return (numbers @ [1.0, -2.0, 0.5] > 0).astype(int)


def _turned(*places: int, scaler: Any = None) -> ColumnTransformer:
    scaler = MinMaxScaler() if scaler is None else scaler
    return ColumnTransformer([("turned", scaler, list(places))])


WRONG = {
    "a permuting transformer": lambda: make_pipeline(
        _turned(1, 2, 0), StandardScaler(), LogisticRegression()
    ),
    "a nested pipeline": lambda: make_pipeline(
        make_pipeline(PCA(2), StandardScaler()), RobustScaler(), KNeighborsClassifier(3)
    ),
    "within a nested pipeline": lambda: make_pipeline(
        make_pipeline(_turned(2, 0, 1), StandardScaler()), KNeighborsClassifier(3)
    ),
    "behind a map, no map": lambda: make_pipeline(
        _turned(1, 0, 2), MaxAbsScaler(), QuantizedKMeans(2, random_state=0)
    ),
    "scalers in scalers": lambda: make_pipeline(
        make_pipeline(StandardScaler(), make_pipeline(MaxAbsScaler(), RobustScaler())),
        KNeighborsClassifier(3),
    ),
    "scalers in scalers, in a part of a column transformer": lambda: make_pipeline(
        ColumnTransformer(
            [
                (
                    "all",
                    make_pipeline(StandardScaler(), make_pipeline(MaxAbsScaler())),
                    [0, 1, 2],
                )
            ]
        ),
        LogisticRegression(),
    ),
    "in a part of a column transformer": lambda: make_pipeline(
        ColumnTransformer(
            [("all", make_pipeline(_turned(1, 2, 0), StandardScaler(), PCA(2)), [0, 1, 2])]
        ),
        LogisticRegression(),
    ),
}
RIGHT = {
    "columns in their order": lambda: make_pipeline(
        _turned(0, 1, 2), StandardScaler(), LogisticRegression()
    ),
    "the first columns": lambda: make_pipeline(
        _turned(0, 1), StandardScaler(), LogisticRegression()
    ),
    "gaps are filled, columns are not moved": lambda: make_pipeline(
        ColumnTransformer([("a", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2])]),
        RobustScaler(),
        LogisticRegression(),
    ),
    "nothing in between": lambda: make_pipeline(_turned(1, 2, 0), LogisticRegression()),
    "scalers first": lambda: make_pipeline(
        make_pipeline(make_pipeline(StandardScaler(), MaxAbsScaler()), RobustScaler()),
        KNeighborsClassifier(3),
    ),
    "nothing takes the map of scalers in scalers": lambda: make_pipeline(
        make_pipeline(StandardScaler(), make_pipeline(MaxAbsScaler())),
        QuantizedKMeans(2, random_state=0),
    ),
    "flat": lambda: make_pipeline(PCA(2), StandardScaler(), RobustScaler(), LogisticRegression()),
}


def _old_file(make: Any, X: Any, y: Any, folder: Path) -> tuple[Path, Any]:
    with earlier_version():
        model = make().fit(X, y)
        model.save(folder / "model")
    return folder / "model", model


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_says_so_and_learns_again(
    name: str, numbers: Any, y: Any, tmp_path: Path
) -> None:
    path, before = _old_file(WRONG[name], numbers, y, tmp_path)
    with pytest.warns(OutdatedModelWarning, match="applied a step twice"):
        model = load(path, Records(numbers, y))
    assert model.outdated
    assert model.digest() == before.digest() != WRONG[name]().fit(numbers, y).digest()
    for same in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        same.delete([5])
        rest = np.arange(N) != 5
        fresh = WRONG[name]().fit(numbers[rest], y[rest], ids=np.flatnonzero(rest))
        assert same.digest() == fresh.digest()
        assert not same.outdated


@pytest.mark.parametrize("name", WRONG)
def test_it_predicts_what_it_did(name: str, numbers: Any, y: Any, tmp_path: Path) -> None:
    path, _ = _old_file(WRONG[name], numbers, y, tmp_path)
    with pytest.warns(OutdatedModelWarning):
        model = load(path)
    assert model.predict(numbers).shape == (N,)
    again = tmp_path / "again"
    model.save(again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_model_is_what_it_was(name: str, numbers: Any, y: Any, tmp_path: Path) -> None:
    path, before = _old_file(RIGHT[name], numbers, y, tmp_path)
    model = load(path, Records(numbers, y))
    fresh = RIGHT[name]().fit(numbers, y)
    fresh.save(tmp_path / "fresh")
    assert not model.outdated
    assert fresh.digest() == before.digest()
    assert (tmp_path / "fresh").read_bytes() == path.read_bytes()
    assert _earlier.MARK not in fresh.state()


@pytest.mark.parametrize("name", WRONG)
def test_without_the_predicate_a_wrong_model_is_kept_or_blocks_a_deletion(
    name: str, numbers: Any, y: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: what the predicate is for."""
    path, _ = _old_file(WRONG[name], numbers, y, tmp_path)
    monkeypatch.setattr(_composition, "learned_wrong", lambda model: False)
    rest = np.arange(N) != 5
    fresh = WRONG[name]().fit(numbers[rest], y[rest], ids=np.flatnonzero(rest))
    try:
        model = load(path, Records(numbers, y))
        assert not model.outdated  # it predicts what is wrong, and nobody is told
        model.delete([5])
    except ArtifactError:
        return
    assert name.startswith("scalers in scalers") == (model.digest() == fresh.digest())


def test_an_interrupted_first_deletion_changes_nothing(
    numbers: Any, y: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = _old_file(WRONG["a permuting transformer"], numbers, y, tmp_path)
    with pytest.warns(OutdatedModelWarning):
        model = load(path, Records(numbers, y))
    with monkeypatch.context() as patch:
        patch.setattr(LogisticRegression, "_fit_rows", lambda self: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            model.delete([5])
    assert model.digest() == before.digest()
    assert model.outdated
    model.delete([5])
    rest = np.arange(N) != 5
    fresh = clone(model).fit(numbers[rest], y[rest], ids=np.flatnonzero(rest))
    assert model.digest() == fresh.digest()


@pytest.mark.parametrize(
    "imputer",
    [SimpleImputer(strategy="most_frequent"), SimpleImputer(strategy="constant", fill_value=-1.0)],
)
@pytest.mark.parametrize("nested", [False, True])
def test_an_imputer_that_read_numbers_as_objects(
    imputer: Any, nested: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"a": [np.nan, *rng.integers(0, 3, N - 1)], "u": rng.choice(["x", "y"], N)}
    )

    def make() -> Any:
        part = make_pipeline(clone(imputer)) if nested else clone(imputer)
        return ColumnTransformer([("n", part, ["a"]), ("o", OneHotEncoder(), ["u"])])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("erasable.pipeline._selection.Selection.declare", lambda self, numeric: None)
        make().fit(frame).save(tmp_path / "model")
    with pytest.warns(OutdatedModelWarning, match="numbers as objects"):
        model = load(tmp_path / "model", Records(frame))
    model.delete([7])
    assert model.digest() == make().fit(frame.drop(index=7)).digest()
    assert not model.outdated

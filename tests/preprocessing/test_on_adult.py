"""The encoders and the imputer on Adult's columns, against scikit-learn's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.impute
import sklearn.preprocessing

from erasable.core.estimator import NEVER
from erasable.preprocessing import OneHotEncoder, OrdinalEncoder, SimpleImputer
from preprocessing.mixed_tables import dense

TEXT = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"]


@pytest.fixture(scope="module")
def adult(data_dir: Path) -> Any:
    frame = pd.read_csv(data_dir / "adult" / "adult.csv.gz", nrows=6000)
    text = frame[[*TEXT, "native-country"]]
    return text.where(text != "?", None)


@pytest.mark.parametrize("cls", [OneHotEncoder, OrdinalEncoder])
def test_encoders(adult: Any, cls: Any) -> None:
    model = cls().fit(adult)
    other = getattr(sklearn.preprocessing, cls.__name__)().fit(adult)
    mine, wanted = dense(model.transform(adult)), dense(other.transform(adult))
    assert mine.tobytes() == wanted.tobytes()
    names = [name.replace("None", "nan") for name in other.get_feature_names_out()]
    assert model.get_feature_names_out().tolist() == names
    gone = np.arange(0, 6000, 3)
    deletion = model.delete(gone)
    rare = adult.groupby("native-country").size()
    assert deletion.counts["categories_gone"] <= len(rare)
    rest = adult.drop(index=gone)
    refit = cls().fit(rest)
    assert model.digest() == refit.digest()
    assert dense(model.transform(rest)).tobytes() == dense(refit.transform(rest)).tobytes()


def test_imputer(adult: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimpleImputer, "_refit_from", NEVER)  # most records go
    model = SimpleImputer(strategy="most_frequent").fit(adult)
    assert model.get_feature_names_out().tolist() == adult.columns.tolist()
    other = sklearn.impute.SimpleImputer(strategy="most_frequent", missing_values=None)
    wanted = other.fit(adult.astype(object).where(adult.notna(), None))
    assert model.statistics_.tolist() == wanted.statistics_.tolist()
    gone = np.flatnonzero(adult["workclass"].to_numpy() == "Private")
    assert model.delete(gone).counts["columns_changed"] >= 1
    assert (
        model.digest()
        == SimpleImputer(strategy="most_frequent").fit(adult.drop(index=gone)).digest()
    )

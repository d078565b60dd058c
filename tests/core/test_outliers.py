"""One value that is wrong by orders of magnitude: whoever rounds the others away says so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from erasable.cluster import KMeans
from erasable.core.grid import PrecisionWarning
from erasable.decomposition import PCA
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import NearestCentroid
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

N = 300
X = pd.DataFrame(np.random.default_rng(2).normal(size=(N, 2)), columns=["pulse", "weight"])
Y = (X.sum(axis=1) > 0).astype(int)
OUTLIER = pd.DataFrame({"pulse": [0.5], "weight": [1e10]})
MODELS = {
    "logistic": LogisticRegression(),
    "weighted classes": LogisticRegression(class_weight="balanced"),
    "without intercept": LogisticRegression(fit_intercept=False),
    "behind a scaler": make_pipeline(StandardScaler(), LogisticRegression()),
    "ridge": Ridge(),
    "k-means": KMeans(2, random_state=0),
    "naive Bayes": GaussianNB(),
    "centroids": NearestCentroid(),
    "components": PCA(1),
}


def told(action: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(each.message) for each in caught if each.category is PrecisionWarning]


@pytest.mark.parametrize("name", MODELS)
def test_it_is_told_when_it_comes(name: str) -> None:
    whole, y = pd.concat([X, OUTLIER], ignore_index=True), [*Y, 1]
    model = MODELS[name]
    (at_fit,) = told(lambda: model.fit(whole, y))
    assert "1 skewed columns ('weight')" in at_fit
    assert "correct what is wrong by orders of magnitude" in at_fit
    digest = model.digest()
    assert told(lambda: model.delete([N])) == []
    assert told(lambda: model.fit(X, Y)) == []
    (later,) = told(lambda: model.add(OUTLIER, [1], ids=[N]))
    assert "1 skewed columns ('weight')" in later
    assert model.digest() == digest
    assert told(lambda: model.add(OUTLIER / 2, [0], ids=[N + 1])) == []  # it is known


@pytest.mark.parametrize("name", MODELS)
def test_what_is_large_and_rounds_nothing_away_is_not_told(name: str) -> None:
    model = MODELS[name]
    large = OUTLIER.assign(weight=1e5)
    assert told(lambda: model.fit(pd.concat([X, large], ignore_index=True), [*Y, 1])) == []
    assert told(lambda: model.fit(X, Y).add(large, [1], ids=[N])) == []


def test_sparse_columns_are_told_of() -> None:
    dense = np.vstack([X, OUTLIER])
    dense[::3, 0] = 0.0
    model = LogisticRegression()
    (at_fit,) = told(lambda: model.fit(csr_array(dense), [*Y, 1]))
    assert "(column 1)" in at_fit
    model.fit(csr_array(dense[:-1]), Y)
    (later,) = told(lambda: model.add(csr_array(dense[-1:]), [1], ids=[N]))
    assert "(column 1)" in later


def test_it_is_worth_telling() -> None:
    """Without the one value the model is right; with it the column is lost."""
    whole, y = np.vstack([X, OUTLIER]), [*Y, 1]
    with pytest.warns(PrecisionWarning, match="skewed"):
        model = LogisticRegression().fit(whole, y)
    assert model.score(whole, y) < 0.8
    model.delete([N])
    assert model.score(X.to_numpy(), Y) > 0.95

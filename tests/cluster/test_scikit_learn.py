"""The clustering models are scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans

MODELS = [
    KMeans(),
    KMeans(n_clusters=3, tol=1e-3),
    QuantizedKMeans(),
    QuantizedKMeans(n_clusters=2, epsilon=0.1),
    DivideAndConquerKMeans(),
    DivideAndConquerKMeans(n_clusters=2, width=3, height=2, weight_by_mass=True),
]


@parametrize_with_checks(MODELS)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(str(model).split()))
def test_it_works_inside_scikit_learns_tools(model: Any) -> None:
    X = np.random.default_rng(0).normal(size=(90, 3)) * [1.0, 10.0, 100.0]
    search = GridSearchCV(clone(model).set_params(random_state=0), {"n_clusters": [2, 4]}, cv=3)
    assert search.fit(X).best_params_["n_clusters"] == 4
    piped = make_pipeline(StandardScaler(), clone(model).set_params(random_state=0)).fit(X)
    assert np.array_equal(piped.predict(X), piped[-1].labels_)
    assert piped.transform(X).shape == (90, model.n_clusters)
    assert len(piped.get_feature_names_out()) == model.n_clusters


@pytest.mark.parametrize(
    ("model", "parameter", "value"),
    [
        (KMeans, "n_clusters", 0),
        (KMeans, "n_clusters", 2.0),
        (KMeans, "max_iter", 0),
        (KMeans, "tol", -1e-3),
        (KMeans, "tol", np.nan),
        (KMeans, "random_state", -1),
        (KMeans, "random_state", 2**64),
        (KMeans, "random_state", "17"),
        (QuantizedKMeans, "epsilon", 0.0),
        (QuantizedKMeans, "epsilon", np.inf),
        (QuantizedKMeans, "gamma", 1.0),
        (QuantizedKMeans, "gamma", -0.1),
        (DivideAndConquerKMeans, "width", 0),
        (DivideAndConquerKMeans, "height", 0),
        (DivideAndConquerKMeans, "weight_by_mass", "yes"),
    ],
)
def test_parameters_out_of_range_are_named(model: Any, parameter: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {model.__name__} must"):
        model(**{parameter: value}).fit(np.arange(40.0).reshape(20, 2))

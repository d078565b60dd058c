"""The nearest centroid is scikit-learn's, and keeps the law."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.neighbors
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from effort import examples
from erasable import Records, load
from erasable.core.errors import (
    ArtifactError,
    InvalidInputError,
    InvalidParameterError,
    TooFewRecordsError,
)
from erasable.neighbors import NearestCentroid
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

WAYS: list[dict[str, Any]] = [
    {},
    {"shrink_threshold": 0.3},
    {"priors": "empirical"},
    {"priors": [0.2, 0.3, 0.5], "shrink_threshold": 2.0},
]


def blobs(seed: int, n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0] + 5.0
    X[:, 0] += y
    return X, np.array(["c", "a", "b"])[y]


@parametrize_with_checks([NearestCentroid(), NearestCentroid(shrink_threshold=0.2)])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_it_is_scikit_learns(way: dict[str, Any]) -> None:
    X, y = blobs(0)
    ours = NearestCentroid(**way).fit(X, y)
    theirs = sklearn.neighbors.NearestCentroid(**way).fit(X, y)
    for name in ("centroids_", "deviations_", "within_class_std_dev_", "class_prior_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), 1e-6, 1e-6)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    for method in ("predict_proba", "decision_function"):
        if hasattr(theirs, method):
            mine = getattr(ours, method)(X)
            np.testing.assert_allclose(mine, getattr(theirs, method)(X), 1e-5, 1e-5)


@given(st.integers(0, 2**31), st.sampled_from(WAYS))
@settings(max_examples=examples(15))
def test_deletions_are_a_refit(seed: int, way: dict[str, Any]) -> None:
    X, y = blobs(seed, 40)
    model, alive = NearestCentroid(**way).fit(X, y), np.ones(40, dtype=bool)
    for batch in np.array_split(np.random.default_rng(seed).permutation(40), 9):
        rest = np.setdiff1d(np.flatnonzero(alive), batch)
        try:
            fresh = clone(model).fit(X[rest], y[rest], ids=rest)
        except (TooFewRecordsError, InvalidInputError):
            before = model.digest()
            with pytest.raises(TooFewRecordsError):
                model.delete(batch)
            assert model.digest() == before
            continue
        model.delete(batch)
        alive[batch] = False
        assert model.digest() == fresh.digest()
        assert model.centroids_.tobytes() == fresh.centroids_.tobytes()


def test_the_last_record_of_a_class_takes_it_along() -> None:
    X, y = blobs(1, 12)
    model = NearestCentroid().fit(X, y)
    model.delete(np.flatnonzero(y == "a"))
    assert model.classes_.tolist() == ["b", "c"]
    with pytest.raises(TooFewRecordsError, match="at least 2 classes"):
        model.delete(np.flatnonzero(y == "b"))
    priors = NearestCentroid(priors=[0.5, 0.25, 0.25]).fit(X, y)
    with pytest.raises(TooFewRecordsError, match="a probability for each"):
        priors.delete(np.flatnonzero(y == "a"))


@pytest.mark.parametrize(
    ("priors", "error"),
    [
        ([0.5, 0.5], InvalidInputError),
        ([0.5, 0.6, 0.2], InvalidParameterError),
        ([-0.5, 1.0, 0.5], InvalidParameterError),
        ([np.nan, 0.5, 0.5], InvalidParameterError),
        ("equal", InvalidParameterError),
    ],
    ids=str,
)
def test_priors_that_are_not_of_the_classes(priors: Any, error: type[Exception]) -> None:
    model = NearestCentroid(priors=priors)
    with pytest.raises(error, match="priors"):
        model.fit(*blobs(2))
    assert not hasattr(model, "n_features_in_")


def test_features_that_do_not_vary_tell_nothing() -> None:
    X = np.column_stack([np.full(9, 7.0), np.arange(9.0) // 3])
    model = NearestCentroid(shrink_threshold=1e-3, priors="empirical").fit(X, np.arange(9) // 3)
    assert model.within_class_std_dev_.tolist() == [0.0, 0.0]
    assert model.centroids_[:, 0].tolist() == [7.0, 7.0, 7.0]
    assert np.isfinite(model.predict_proba(X)).all()


def test_behind_a_scaler_it_is_what_it_is_on_scaled_records() -> None:
    X, y = blobs(3)
    for way in WAYS:
        model = make_pipeline(StandardScaler(), NearestCentroid(**way)).fit(X, y)
        assert model[-1]._map is not None
        alone = NearestCentroid(**way).fit(StandardScaler().fit_transform(X), y)
        np.testing.assert_allclose(model[-1].centroids_, alone.centroids_, 1e-6, 1e-6)
        np.testing.assert_allclose(model[-1].deviations_, alone.deviations_, 1e-6, 1e-6)
        np.testing.assert_allclose(model.predict_proba(X[:9]), alone.predict_proba(
            StandardScaler().fit(X).transform(X[:9])), 1e-5, 1e-5)  # fmt: skip


def test_another_file_of_records_is_refused(tmp_path: Path) -> None:
    X, y = blobs(4)
    model = NearestCentroid().fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", Records(X, y))
    again.delete([3])
    model.delete([3])
    assert again.digest() == model.digest()
    NearestCentroid().fit(X, y).save(tmp_path / "model")
    X[5] += 1.0
    with pytest.raises(ArtifactError, match="another NearestCentroid"):
        load(tmp_path / "model", Records(X, y))

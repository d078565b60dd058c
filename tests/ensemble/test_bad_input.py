"""What the ensembles refuse, on one line, and before anything is changed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline as peers
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ensemble.learners import Converting, Unseeded, table
from erasable import linear_model as ours
from erasable import neighbors
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OrdinalEncoder, StandardScaler
from erasable.utils._checks.compare import assert_same


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ShardedClassifier(Ridge()), "Ridge, which is no classifier; .* use ShardedRegressor"),
        (BaggingRegressor(LogisticRegression()), "is no regressor; .* use BaggingClassifier"),
        (
            ShardedRegressor(KMeans()),
            "KMeans, which is no regressor; ShardedRegressor expected one",
        ),
        (
            ShardedClassifier(SVC),
            r"the class SVC; .* pass an instance, .* ShardedClassifier\(SVC\(\)\)",
        ),
        (ShardedClassifier(7), "'estimator' parameter of ShardedClassifier must be"),
        (ShardedRegressor(peers(ours.Ridge())), "holds a Ridge of erasable"),
        (
            ShardedClassifier(ours.LogisticRegression(), n_slices=2),
            "LogisticRegression, which has no partial_fit; .* or n_slices=1",
        ),
        (
            ShardedClassifier(ours.LogisticRegression(classes=["ash", "elm", "oak", "yew"])),
            "LogisticRegression with classes=, .* expected classes=None",
        ),
        (ShardedClassifier(ours.LogisticRegression(C=-1.0)), "'C' parameter"),
        (ShardedRegressor(ours.LogisticRegression()), "is no regressor; .* use ShardedClassifier"),
        (
            BaggingRegressor(neighbors.KNeighborsRegressor()),
            "a KNeighborsRegressor of erasable takes no sample_weight; expected bootstrap=False",
        ),
        (ShardedRegressor(Converting()), "Converting, which sklearn.base.clone cannot copy"),
        (ShardedClassifier(Unseeded(), 2), "Unseeded is not deterministic: .* differ in noise_"),
        (ShardedClassifier(Unseeded(), 2, n_slices=2), "is not deterministic: .* in noise_"),
        (ShardedRegressor(Ridge(), n_shards=0), "'n_shards' parameter"),
        (ShardedRegressor(Ridge(), n_shards=True), "'n_shards' parameter"),
        (ShardedRegressor(Ridge(), n_slices=0), "'n_slices' parameter"),
        (ShardedRegressor(Ridge(), n_jobs="two"), "'n_jobs' parameter"),
        (ShardedRegressor(Ridge(alpha=-1.0)), "Ridge refuses a parameter"),
        (BaggingRegressor(n_estimators=0), "'n_estimators' parameter"),
        (BaggingRegressor(max_samples=5), "'max_samples' parameter"),
        (BaggingRegressor(max_samples=0.0), "'max_samples' parameter"),
        (BaggingRegressor(max_features=1.5), "'max_features' parameter"),
        (BaggingRegressor(bootstrap="yes"), "'bootstrap' parameter"),
    ],
    ids=lambda case: " ".join(str(case).split()) if isinstance(case, str) else type(case).__name__,
)
def test_what_is_refused(model: Any, message: str) -> None:
    X, y, ids, _ = table(LogisticRegression() if "Classifier" in type(model).__name__ else Ridge())
    with pytest.raises(InvalidParameterError, match=message) as caught:
        model.fit(X, y, ids=ids)
    assert "\n" not in str(caught.value)
    assert "seed_" not in vars(model)


def test_weights_that_an_estimator_does_not_take() -> None:
    X, y, ids, _ = table(KNeighborsClassifier())
    for model in (
        ShardedClassifier(KNeighborsClassifier()),
        BaggingClassifier(KNeighborsClassifier()),
    ):
        with pytest.raises(InvalidInputError, match="KNeighborsClassifier takes none in fit"):
            model.fit(X, y, np.ones(60), ids=ids)


def test_several_labels_for_a_record_are_refused() -> None:
    X, _, _, _ = table(Ridge())
    with pytest.raises(InvalidDataError, match="y should be a 1d array"):
        ShardedClassifier(DecisionTreeClassifier()).fit(X, np.zeros((60, 2), dtype=int))


def test_text_goes_to_an_estimator_that_takes_it() -> None:
    """Beside numbers; a shard may lack words that others have."""
    words = np.array([["a", 1], ["b", 2.5], ["c", 3], ["d", 1], ["b", 0]] * 10, dtype=object)[:48]
    y = np.arange(48) % 2
    base = peers(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier())
    model = ShardedClassifier(base, 9, random_state=0).fit(words, y)
    model.delete(range(7))
    refit = ShardedClassifier(base, 9, random_state=0).fit(words[7:], y[7:], ids=range(7, 48))
    assert_same(model, refit, "with words", save=True)
    assert model.predict(words).shape == (48,)


def test_in_a_pipeline_it_learns_again_what_the_steps_before_have_changed() -> None:
    """All of it behind a scaler; the shards of records that an encoder has given another code."""
    X, y, ids, _ = table(DecisionTreeClassifier())
    codes = np.floor(X * 2)
    codes[0, 0] = codes[1, 0] = codes[:, 0].max() - 1.5  # two records alone have this category
    for head, wanted in ((StandardScaler(), None), (OrdinalEncoder(), "shards")):
        sharded = ShardedClassifier(DecisionTreeClassifier(), 6, random_state=0)
        pipe = make_pipeline(clone(head), sharded).fit(codes, y, ids=ids)
        for gone in (ids[5:6], ids[:2]):
            deletion = pipe.delete(gone)
        left = ~np.isin(ids, [*ids[5:6], *ids[:2]])
        fresh = make_pipeline(clone(head), clone(sharded)).fit(codes[left], y[left], ids=ids[left])
        assert_same(pipe, fresh, f"behind {head}", save=True)
        if wanted is not None:
            assert f"shardedclassifier.{wanted}" in deletion.counts


CONTRACT = [
    ShardedClassifier(DecisionTreeClassifier(), n_shards=2),
    ShardedRegressor(Ridge(), n_shards=2),
    BaggingClassifier(n_estimators=2),
    BaggingRegressor(Ridge(), n_estimators=2),
]


def expected_failures(model: Any) -> dict[str, str]:
    """A weight is not as many records to a hash of the id, which is of one record."""
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "copies of a record are other records"
        for kind in ("dense", "sparse")
    }


@parametrize_with_checks(CONTRACT, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)

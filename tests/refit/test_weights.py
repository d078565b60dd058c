"""`Refit` passes weights on: each to its record, in whatever order the records come."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from erasable import Records, load
from erasable.core.errors import ArtifactError, InvalidInputError, TooFewRecordsError
from erasable.refit import Refit
from erasable.refit._recipe import Recipe
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant
from refit.estimators import Homemade
from weighing import Weighing

WEIGHTED = {
    "forest": RandomForestClassifier(3, max_depth=3),
    "linear": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), Ridge()),
    "pipeline in a pipeline": make_pipeline(make_pipeline(StandardScaler()), StandardScaler()),
    "transformer": StandardScaler(),
    "clusters": KMeans(2, n_init=1),
}
each_kind = pytest.mark.parametrize("kind", WEIGHTED)


def data(n: int = 40) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, y, rng.integers(0, 5, n) / 2.0, 100 + rng.permutation(n)


class WeighingRefit(Weighing, Refit):
    pass


@pytest.mark.sampled(3)
@pytest.mark.thorough
@parametrize_with_law_checks(
    [
        WeighingRefit(make_pipeline(StandardScaler(), Ridge())),
        WeighingRefit(DecisionTreeRegressor(max_depth=3)),
    ],
    fast=True,
)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@each_kind
def test_rows_in_any_order_and_deletions(kind: str, tmp_path: Path) -> None:
    X, y, w, ids = data()
    model = Refit(clone(WEIGHTED[kind]), random_state=0).fit(X, y, w, ids=ids)
    order = np.arange(40)[::-1]
    other = Refit(clone(WEIGHTED[kind]), random_state=0)
    assert other.fit(X[order], y[order], w[order], ids=ids[order]).digest() == model.digest()
    plain = Refit(clone(WEIGHTED[kind]), random_state=0).fit(X, y, ids=ids)
    assert plain.digest() != model.digest()
    model = pickle.loads(pickle.dumps(model))
    model.delete(ids[:5])
    refit = other.fit(X[5:], y[5:], w[5:], ids=ids[5:])
    assert refit.digest() == model.digest()
    model.save(tmp_path / "model")
    whole = load(tmp_path / "model", Records(X[5:], y[5:], sample_weight=w[5:], ids=ids[5:]))
    for each in (whole, model):
        each.delete(ids[5:7])
    assert whole.digest() == model.digest()
    with pytest.raises(ArtifactError, match="come without weights; expected them with"):
        load(tmp_path / "model", Records(X[5:], y[5:], ids=ids[5:])).delete([ids[5]])


def test_the_estimator_is_given_them() -> None:
    X, y, w, ids = data()
    ours = Refit(Ridge(solver="cholesky")).fit(X, y.astype(float), w, ids=ids)
    theirs = Ridge(solver="cholesky").fit(X, y, w)
    np.testing.assert_allclose(ours.estimator_.coef_, theirs.coef_, rtol=1e-12)
    ours.delete(ids[:4])
    theirs.fit(X[4:], y[4:], w[4:])
    np.testing.assert_allclose(ours.estimator_.coef_, theirs.coef_, rtol=1e-12)
    pipe = make_pipeline(StandardScaler(), Ridge(solver="cholesky"))
    ours = Refit(pipe).fit(X, y.astype(float), w, ids=ids)
    theirs = clone(pipe).fit(X, y, ridge__sample_weight=w)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = Refit(pipe).fit(X, y.astype(float), w, ids=ids)
    np.testing.assert_allclose(routed.predict(X), theirs.predict(X), rtol=1e-12)
    scaled = Refit(StandardScaler()).fit_transform(X, None, w)
    np.testing.assert_allclose(
        scaled, StandardScaler().fit_transform(X, sample_weight=w), rtol=1e-9
    )
    clusters = Refit(KMeans(2), random_state=0).fit_predict(X, None, w)
    assert clusters.tolist() == Refit(KMeans(2), random_state=0).fit(X, None, w).labels_.tolist()


@pytest.mark.parametrize(
    "estimator",
    [KNeighborsClassifier(), make_pipeline(KNeighborsClassifier()), Homemade()],
    ids=repr,
)
def test_an_estimator_that_takes_none_is_not_given_any(estimator: Any) -> None:
    X, y, w, ids = data()
    with pytest.raises(InvalidInputError, match="takes none in fit; expected none; leave"):
        Refit(estimator).fit(X, y, w, ids=ids)
    with pytest.raises(InvalidInputError, match="makes no use; expected none"):
        Refit(estimator).fit(Records(X, y, sample_weight=w, ids=ids))


def test_records_without_any_weight_are_refused() -> None:
    X, y, _, ids = data()
    with pytest.raises(TooFewRecordsError, match="weights of all 40 records would be zero"):
        Refit(Ridge()).fit(X, y.astype(float), 0.0, ids=ids)
    w = np.zeros(40)
    w[3] = 2.0
    model = Refit(Ridge()).fit(X, y.astype(float), w, ids=ids)
    before = model.digest()
    with pytest.raises(TooFewRecordsError, match="weights of all 39 records would be zero"):
        model.delete([ids[3]])
    assert model.digest() == before


def test_weights_of_the_wrong_records_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: weights in the order of the rows, records in that of their ids."""
    X, y, w, ids = data()
    given = Recipe.given

    def in_order(self: Recipe, records: Records, rows: Any, text: Any = None) -> Any:
        assert records.weights is not None
        return (*given(self, records, rows, text)[:2], records.weights[np.sort(rows)])

    monkeypatch.setattr(Recipe, "given", in_order)
    order = np.arange(40)[::-1]
    model = Refit(Ridge()).fit(X, y.astype(float), w, ids=ids)
    other = Refit(Ridge()).fit(X[order], y[order].astype(float), w[order], ids=ids[order])
    assert other.digest() != model.digest()

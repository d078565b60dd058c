"""Scikit-learn's interface: names, parameters, containers, methods, checks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import sklearn.pipeline
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable import Records
from erasable.cluster import KMeans
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.estimator import Erasable
from erasable.linear_model import Ridge
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from pipeline.small_steps import Sums

X = np.random.default_rng(2).normal(size=(80, 3)) * [1.0, 20.0, 300.0]
FRAME = pd.DataFrame(X, columns=["age", "pressure", "weight"], index=[f"p{i}" for i in range(80)])


def clusters(**params: Any) -> Pipeline:
    return make_pipeline(StandardScaler(), KMeans(3, random_state=0, **params))


def _as_scikit_learns_own(estimator: Any) -> dict[str, str]:
    return {"check_estimators_overwrite_params": "steps are fitted in place, as in scikit-learn"}


@parametrize_with_checks(
    [clusters(), make_pipeline(FunctionTransformer(), MinMaxScaler(clip=True), StandardScaler())],
    expected_failed_checks=_as_scikit_learns_own,
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_steps_by_name_and_place() -> None:
    pipeline = Pipeline([("scaler", StandardScaler()), ("no", None), ("kmeans", KMeans(3))])
    assert len(pipeline) == 3
    assert pipeline[0] is pipeline["scaler"] is pipeline.named_steps.scaler
    assert pipeline[-1] is pipeline.named_steps["kmeans"]
    with pytest.raises(KeyError):
        pipeline["other"]
    names = [name for name, _ in make_pipeline(StandardScaler(), StandardScaler()).steps]
    assert names == ["standardscaler-1", "standardscaler-2"]


def test_parameters_reach_the_steps() -> None:
    pipeline = clusters()
    assert pipeline.get_params()["kmeans__n_clusters"] == 3
    assert pipeline.get_params(deep=False).keys() == {"steps"}
    pipeline.set_params(kmeans__n_clusters=2, standardscaler="passthrough").fit(X)
    assert pipeline["kmeans"].cluster_centers_.shape == (2, 3)
    assert pipeline["kmeans"]._map is None


def test_slices() -> None:
    pipeline = clusters()
    assert type(pipeline[:1]) is Pipeline
    with pytest.raises(ValueError, match="step of 1"):
        pipeline[::2]
    pipeline.fit(X)
    assert type(pipeline[:1]) is sklearn.pipeline.Pipeline
    scaled = pipeline[:-1].transform(X)
    assert np.array_equal(scaled, pipeline[0].transform(X))
    assert np.array_equal(pipeline[1:].predict(scaled), pipeline.predict(X))
    assert not hasattr(pipeline[:1], "delete")


def test_methods_are_those_of_the_last_step() -> None:
    pipeline = clusters()
    for name in ("predict", "transform", "score", "fit_predict", "fit_transform"):
        assert hasattr(pipeline, name)
    for name in ("predict_proba", "decision_function", "inverse_transform", "score_samples"):
        assert not hasattr(pipeline, name)
    assert not hasattr(make_pipeline(StandardScaler(), "passthrough"), "predict")
    assert hasattr(make_pipeline(StandardScaler(), "passthrough"), "transform")


def test_fitting_and_asking_in_one() -> None:
    pipeline, ids = clusters(), [f"v{i}" for i in range(80)]
    labels = pipeline.fit_predict(X, ids=ids)
    assert np.array_equal(labels, pipeline.predict(X))
    assert pipeline.ids_.tolist() == ids
    frame = FRAME.assign(visit=range(80))
    distances = pipeline.fit_transform(frame, ids="visit")
    assert np.array_equal(distances, pipeline.transform(FRAME))
    assert np.array_equal(distances.argmin(axis=1), pipeline[-1].labels_)


def test_transforming_back_and_forth() -> None:
    pipeline = make_pipeline(MinMaxScaler(), None, StandardScaler(with_std=False)).fit(X)
    Z = pipeline.transform(X)
    expected = sklearn.preprocessing.minmax_scale(X)
    np.testing.assert_allclose(Z, expected - expected.mean(axis=0), atol=1e-7)
    np.testing.assert_allclose(pipeline.inverse_transform(Z), X, rtol=1e-9)
    passing = make_pipeline("passthrough").fit(X)
    assert np.array_equal(passing.transform(X), X)
    assert passing.delete([0, 5]).action == "updated"
    assert passing.state()["steps"] == {}


def test_only_the_last_step_says_what_container() -> None:
    pipeline = clusters().fit(FRAME)
    assert pipeline.feature_names_in_.tolist() == ["age", "pressure", "weight"]
    assert pipeline.ids_.tolist() == FRAME.index.tolist()
    assert pipeline.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]
    out = pipeline.set_output(transform="pandas").transform(FRAME)
    assert out.columns.tolist() == ["kmeans0", "kmeans1", "kmeans2"]
    assert out.index.tolist() == FRAME.index.tolist()
    assert np.array_equal(out.to_numpy(), clusters().fit(FRAME).transform(FRAME))
    scaled = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), StandardScaler())
    scaled.set_output(transform="polars").fit(FRAME)
    frame = scaled.transform(pl.DataFrame(FRAME))
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["age", "pressure", "weight"]
    plain = scaled.set_output(transform="default").transform(FRAME)
    assert np.array_equal(frame.to_numpy(), plain)


def test_what_is_asked_must_look_like_what_was_learned() -> None:
    pipeline = clusters().fit(FRAME)
    with pytest.raises(InvalidDataError, match="2 features"):
        clusters().fit(X).predict(X[:, :2])
    with pytest.raises(InvalidDataError, match="feature names"):
        pipeline.predict(FRAME[["weight", "age", "pressure"]])
    with pytest.raises(InvalidDataError, match="NaN"):
        pipeline.transform(FRAME * np.nan)
    assert np.array_equal(pipeline.predict(FRAME), pipeline[-1].labels_)


def test_float32_is_what_it_is() -> None:
    narrow = X.astype(np.float32)
    for pipeline in (clusters(), make_pipeline(MinMaxScaler(clip=True), KMeans(3, random_state=0))):
        one, two = clone(pipeline).fit(narrow), clone(pipeline).fit(narrow.astype(np.float64))
        assert one.digest() == two.digest()
        assert np.array_equal(one.predict(narrow), one[-1].labels_)
        assert one.transform(narrow).dtype == np.float64


def test_metadata_and_searches() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = clusters().set_fit_request(ids=True)
        grid = {"kmeans__n_clusters": [2, 3], "standardscaler": [StandardScaler(), MinMaxScaler()]}
        search = GridSearchCV(pipeline, grid, cv=2).fit(X, ids=np.arange(100, 180))
        best = search.best_estimator_
        assert best.ids_.tolist() == list(range(100, 180))
        best.delete([100])


class Majority(sklearn.base.ClassifierMixin, Erasable):
    """Learns counts of classes from y alone."""

    _fields = "classes_", "counts_"

    def _fit_rows(self) -> None:
        live = self._held.records.y[self._held.live]
        self.classes_, self.counts_ = np.unique(live, return_counts=True)

    def _update(self, delta: Any) -> Outcome:
        self._fit_rows()
        return Outcome("updated")

    def predict(self, X: Any) -> Any:
        return np.repeat(self.classes_[self.counts_.argmax()], len(self._read_matrix(X)))


@pytest.mark.parametrize("first", [StandardScaler(), FunctionTransformer(np.abs), Sums()])
def test_targets_reach_the_last_step(first: Any) -> None:
    y = np.array([0, 1] * 40)
    pipeline = make_pipeline(first, Majority())
    assert get_tags(pipeline).target_tags.required
    assert get_tags(pipeline).estimator_type == "classifier"
    with pytest.raises(InvalidDataError, match="requires y"):
        pipeline.fit(np.abs(X))
    pipeline.fit(np.rint(X), y)
    pipeline.delete(range(0, 40, 2))
    assert pipeline.score(X, y) == 0.5
    assert pipeline.predict(X[:3]).tolist() == [1, 1, 1]


def test_classes_are_those_of_the_last_step() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X, ["a", "b", "a", "b"])
    assert model.classes_.tolist() == ["a", "b"]
    assert not hasattr(make_pipeline(StandardScaler(), KMeans(2)).fit(X), "classes_")
    scores = cross_val_score(model, np.tile(X, (5, 1)), ["a", "b", "a", "b"] * 5, scoring="roc_auc")
    assert len(scores) == 5


def test_a_step_is_told_that_no_column_is_left() -> None:
    """An encoder makes none of a single category; after a deletion, too."""
    pipe = make_pipeline(OneHotEncoder(drop="first", sparse_output=False), Normalizer(), Ridge())
    X, y = np.array([["a"], ["a"], ["b"]], dtype=object), [0.0, 1.0, 2.0]
    with pytest.raises(InvalidDataError, match=r"0 feature\(s\) .* required by Normalizer"):
        clone(pipe).fit(X[:2], y[:2])
    model = pipe.fit(X, y, ids=["r", "s", "t"])
    before = model.digest()
    with pytest.raises(InvalidDataError, match=r"0 feature\(s\) .* required by Normalizer"):
        model.delete(["t"])
    assert model.digest() == before


def weighted(*steps: Any) -> Pipeline:
    return make_pipeline(StandardScaler(), *steps, Ridge())


@pytest.mark.parametrize("name", ["sample_weight", "ridge__sample_weight"])
def test_weights_are_those_of_the_records(name: str) -> None:
    y, weights = X @ [1.0, 2.0, 3.0], np.arange(80.0) % 3
    model = weighted().fit(X, y, **{name: weights})
    assert model.digest() == weighted().fit(Records(X, y, sample_weight=weights)).digest()
    assert model.digest() != weighted().fit(X, y).digest()
    model.delete([7, 11])
    left = np.delete(np.arange(80), [7, 11])
    fresh = weighted().fit(X[left], y[left], ids=left, **{name: weights[left]})
    assert model.digest() == fresh.digest()


def test_weights_of_a_part_inside() -> None:
    y, weights = X @ [1.0, 2.0, 3.0], np.arange(80.0) % 3
    inner = make_pipeline(make_pipeline(MinMaxScaler(), Ridge()))
    model = inner.fit(X, y, pipeline__ridge__sample_weight=weights)
    assert model.digest() == clone(inner).fit(X, y, sample_weight=weights).digest()


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (weighted(), ["sample_weight", "standardscaler__sample_weight"]),
        (weighted(), ["ridge__sample_weight", "standardscaler__sample_weight"]),
        (clusters(), ["standardscaler__sample_weight"]),
        (
            make_pipeline(weighted()),
            ["sample_weight", "pipeline__standardscaler__sample_weight"],
        ),
    ],
)
def test_a_scaler_takes_weights_where_it_is_named(model: Pipeline, names: list[str]) -> None:
    y, weights = X @ [1.0, 2.0, 3.0], np.arange(80.0) % 3

    def fitted(rows: Any) -> Any:
        given = {name: weights[rows] for name in names}
        return clone(model).fit(X[rows], y[rows], ids=rows, **given)

    def scaler_of(fitted: Any) -> Any:
        return fitted[0] if isinstance(fitted[0], StandardScaler) else fitted[0][0]

    ours, left = fitted(np.arange(80)), np.delete(np.arange(80), [7, 11])
    alone = StandardScaler().fit(X, sample_weight=weights)
    np.testing.assert_array_equal(scaler_of(ours).mean_, alone.mean_)
    again = pickle.loads(pickle.dumps(ours))
    for each in (ours, again):
        each.delete([7, 11])
        assert each.digest() == fitted(left).digest()
        each.add(X[[7]], y[[7]], ids=[7], sample_weight=weights[[7]])
        assert each.digest() == fitted(np.delete(np.arange(80), 11)).digest()
    assert "weights" in str(scaler_of(ours).state().keys())
    plain = clone(model).fit(X, y, **({"sample_weight": weights} if y_counts(model) else {}))
    assert not np.array_equal(scaler_of(plain).mean_, alone.mean_)


def y_counts(model: Pipeline) -> bool:
    return bool(model._takers_of_weights())


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        (weighted(), {"weights": 1}, "expected sample_weight or ridge__sample_weight"),
        (weighted(), {"standardscaler__sample_weight": 1}, "standardscaler only beside the others"),
        (
            weighted(),
            {"sample_weight": 1, "standardscaler__sample_weight": 2},
            "ridge, standardscaler take weights, the same ones",
        ),
        (weighted(), {"sample_weight": 1, "ridge__sample_weight": 1}, "expected sample_weight or"),
        (clusters(), {"sample_weight": 1}, "expected standardscaler__sample_weight, as some of"),
        (make_pipeline(MinMaxScaler()), {"sample_weight": 1}, "none, as no part takes weights"),
        (clusters(), {"id": [1]}, "expected ids or groups or standardscaler__sample_weight, as"),
        (make_pipeline(MinMaxScaler()), {"group": 1}, "expected ids or groups, as no part takes"),
    ],
)
def test_what_fit_does_not_take(model: Pipeline, given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidInputError, match=expected):
        clone(model).fit(X, X[:, 0], **given)

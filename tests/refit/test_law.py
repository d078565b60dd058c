"""Every kind of estimator in `Refit` keeps the law: refits, files, pickles and predictions."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable import Records, load
from erasable.core.errors import ArtifactError, DetachedError
from erasable.core.values import Accepts
from erasable.refit import Refit
from erasable.utils._checks.compare import assert_same, assert_same_outputs
from erasable.utils._checks.data_sets import DataSet
from erasable.utils.estimator_checks import LAW_CHECKS
from refit.estimators import ESTIMATORS

each_kind = pytest.mark.parametrize("kind", ESTIMATORS)


def data_for(kind: str) -> DataSet:
    """36 records of three separated clusters; words, where the estimator takes categories."""
    rng = np.random.default_rng(5)
    n = 36
    place = rng.permutation(n) % 3
    X: Any = rng.normal(size=(n, 3)) + 3.0 * place[:, None]
    y = place if is_classifier(ESTIMATORS[kind]) else X @ [1.0, 2.0, -1.0] + rng.normal(size=n)
    if Accepts.of(Refit(ESTIMATORS[kind])).objects and kind == "words":
        words = np.array(["a", "b", "c", "d"], dtype=object)
        X = words[np.clip(np.floor(X), 0, 3).astype(int)]
    ids = np.array([f"visit {i}" for i in rng.permutation(n)], dtype=object)
    return DataSet("three clusters", X, y, ids, None, np.array([3, 30, 17, 18]))


def _fit(kind: str, data: DataSet, seed: int = 0) -> Any:
    model = Refit(clone(ESTIMATORS[kind]), random_state=seed)
    return model.fit(data.X.copy(), data.y.copy(), ids=data.ids.copy())


@each_kind
@pytest.mark.filterwarnings("ignore:.*random_state:FutureWarning")
def test_a_deletion_is_a_refit(kind: str, tmp_path: Path) -> None:
    data = data_for(kind)
    model = _fit(kind, data)
    model.delete(data.doomed_ids[:1])
    twin = pickle.loads(pickle.dumps(model))
    for each in (model, twin):
        report = each.delete(data.doomed_ids[1:])
        assert report.action == "refit"
        assert report.rows_touched == 32
    rest = data.without(data.doomed_ids)
    refit = _fit(kind, rest.take(np.random.default_rng(1).permutation(len(rest))))
    assert_same(model, refit, "from a refit in another order", save=True)
    assert_same_outputs(model, refit, data, "from a refit in another order")
    assert_same(twin, refit, "after unpickling")
    assert_same_outputs(twin, refit, data, "after unpickling")
    assert_same(model, refit, "after predictions")
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", trusted=True)
    assert_same(loaded, model, "after loading", save=True)
    assert_same_outputs(loaded, model, data, "after loading")
    with pytest.raises(DetachedError):
        loaded.delete(rest.ids[:1])
    whole = load(tmp_path / "model", Records(rest.X, rest.y, ids=rest.ids))
    for each in (model, whole, copy.deepcopy(model)):
        each.delete(rest.ids[:2])
        assert_same(each, _fit(kind, rest.without(rest.ids[:2])), "when deleting after loading")


@each_kind
@pytest.mark.filterwarnings("ignore:.*random_state:FutureWarning")
def test_it_predicts_as_the_estimator_itself(kind: str) -> None:
    """Nothing is lost on the way through plain values: the same fit predicts the same."""
    data = data_for(kind)
    model = _fit(kind, data)
    seeds = {n: v for n, v in model.estimator_.get_params().items() if n.endswith("random_state")}
    assert all(isinstance(seed, int) for seed in seeds.values())
    order = model._sorted_rows()
    plain = clone(ESTIMATORS[kind]).set_params(**seeds).fit(data.X[order], data.y[order])
    for method in ("predict", "predict_proba", "decision_function", "score_samples", "transform"):
        if hasattr(plain, method):
            mine, other = (getattr(each, method)(data.X) for each in (model, plain))
            dense = [each.toarray() if hasattr(each, "toarray") else each for each in (mine, other)]
            assert np.array_equal(*dense), method
        else:
            assert not hasattr(model, method)
    if hasattr(plain, "score"):
        assert model.score(data.X, data.y) == plain.score(data.X, data.y)


@pytest.mark.parametrize("name", ["check_nothing_left", "check_erased_by_the_last"])
@pytest.mark.parametrize("kind", ["neighbours", "forest", "process", "linear"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nothing_is_left(kind: str, name: str) -> None:
    LAW_CHECKS[name](Refit(ESTIMATORS[kind]))


CONTRACT = [
    Refit(LogisticRegression()),
    Refit(make_pipeline(StandardScaler(), Ridge())),
    Refit(StandardScaler()),
    Refit(KMeans(2)),
    Refit(IsolationForest(n_estimators=4)),
]


def expected_failures(model: Refit) -> dict[str, str]:
    """Where a weight is not as many copies to the estimator that is refitted, either."""
    dense, sparse = (
        f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")
    )
    if isinstance(model.estimator, KMeans | IsolationForest):
        return dict.fromkeys((dense, sparse), "it draws among records, whatever they weigh")
    if isinstance(model.estimator, Pipeline):
        return {dense: "its first step has no weights"}
    return {}


@parametrize_with_checks(CONTRACT, expected_failed_checks=expected_failures)
@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.SkipTestWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_order_of_rows_matters_without_refit() -> None:
    """What `Refit` is for: a negative control."""
    data = data_for("by gradients")
    plain = [
        clone(ESTIMATORS["by gradients"]).set_params(random_state=0).fit(data.X[o], data.y[o])
        for o in (np.arange(36), np.arange(36)[::-1])
    ]
    assert not np.array_equal(*(each.decision_function(data.X) for each in plain))


def test_seeds_are_drawn_from_one() -> None:
    data = data_for("boosting")
    digests = {_fit("boosting", data, seed).digest() for seed in range(5)}
    assert len(digests) == 5
    own = clone(ESTIMATORS["boosting"]).set_params(random_state=7)
    one = Refit(own, random_state=0).fit(data.X, data.y, ids=data.ids)
    assert one.digest() == _fit("boosting", data).digest()
    bags = Refit(ESTIMATORS["bags"], random_state=1).fit(data.X, data.y, ids=data.ids)
    inner = bags.estimator_.get_params()
    assert inner["random_state"] != inner["estimator__random_state"]


def test_the_number_of_threads_does_not_matter() -> None:
    from threadpoolctl import threadpool_limits

    data = data_for("histogram boosting")
    digests = set()
    for threads in (1, 2, 3):
        with threadpool_limits(threads):
            digests.add(_fit("histogram boosting", data).digest())
    assert len(digests) == 1


def test_times_of_a_search_are_not_kept() -> None:
    data = data_for("search")
    model = _fit("search", data)
    assert not hasattr(model.estimator_, "refit_time_")
    assert not [name for name in model.estimator_.cv_results_ if name.endswith("_time")]
    assert model.estimator_.cv_results_["rank_test_score"].size == 2
    assert model.estimator_.best_params_["alpha"] in (0.1, 10.0)


def test_clusters_of_records_are_in_row_order() -> None:
    data = data_for("clusters")
    model = Refit(ESTIMATORS["clusters"], random_state=0)
    labels = model.fit_predict(data.X, ids=data.ids)
    assert np.array_equal(labels, model.predict(data.X))
    assert np.array_equal(model.labels_, labels)
    model.delete(data.doomed_ids)
    rest = data.without(data.doomed_ids)
    assert np.array_equal(model.labels_, model.predict(rest.X))
    outliers = Refit(ESTIMATORS["outliers"], random_state=0)
    assert np.array_equal(outliers.fit_predict(data.X), outliers.predict(data.X))


def test_a_class_goes_with_its_last_record() -> None:
    X = np.arange(8.0)[:, None]
    y = ["a", "a", "b", "b", "b", "c", "b", "a"]
    model = Refit(ESTIMATORS["forest"], random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    model.delete([5])
    assert model.classes_.tolist() == ["a", "b"]
    assert model.predict_proba(X).shape == (8, 2)


def test_a_file_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sklearn

    model = _fit("linear", data_for("linear"))
    model.save(tmp_path / "model")
    monkeypatch.setattr(sklearn, "__version__", "0.1")
    with pytest.raises(ArtifactError, match=r"fitted with scikit-learn .*; expected 0\.1"):
        load(tmp_path / "model")


def test_records_without_targets_are_refused(tmp_path: Path) -> None:
    data = data_for("linear")
    _fit("linear", data).save(tmp_path / "model")
    with pytest.raises(ArtifactError, match="no targets"):
        load(tmp_path / "model", Records(data.X, ids=data.ids))

"""scikit-learn's model selection takes our estimators as they are, and finds what it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.pipeline
import sklearn.preprocessing
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)

from erasable.core.errors import DetachedError, InvalidIdsError
from erasable.linear_model import LinearRegression, LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler

theirs = sklearn.pipeline.make_pipeline
DIABETES = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
PRECISE = {"tol": 1e-12, "max_iter": 10_000}

TWINS = {
    "least squares": (LinearRegression(), sklearn.linear_model.LinearRegression()),
    "ridge": (Ridge(), sklearn.linear_model.Ridge()),
    "scaled ridge": (
        make_pipeline(StandardScaler(), Ridge()),
        theirs(sklearn.preprocessing.StandardScaler(), sklearn.linear_model.Ridge()),
    ),
    "logistic": (
        make_pipeline(StandardScaler(), LogisticRegression()),
        theirs(
            sklearn.preprocessing.StandardScaler(),
            sklearn.linear_model.LogisticRegression(**PRECISE),
        ),
    ),
    "gaussian": (GaussianNB(), sklearn.naive_bayes.GaussianNB()),
}
REGRESSORS = ["least squares", "ridge", "scaled ridge"]
CLASSIFIERS = ["logistic", "gaussian"]


def both(name: str, run: Any) -> tuple[Any, Any]:
    ours, other = TWINS[name]
    return run(ours), run(other)


@pytest.mark.parametrize("name", REGRESSORS)
def test_cross_validate_regressors(name: str) -> None:
    scoring = ["r2", "neg_mean_absolute_percentage_error"]
    ours, other = both(
        name, lambda e: cross_validate(e, *DIABETES, scoring=scoring, return_train_score=True)
    )
    for key in ours:
        if key.startswith(("test_", "train_")):
            np.testing.assert_allclose(ours[key], other[key], atol=1e-6, err_msg=key)


@pytest.mark.parametrize("data", [CANCER, IRIS], ids=["cancer", "iris"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_cross_validate_classifiers(name: str, data: Any) -> None:
    scoring = ["accuracy", "neg_log_loss", "roc_auc_ovr", "balanced_accuracy"]
    ours, other = both(name, lambda e: cross_validate(e, *data, scoring=scoring))
    for key in scoring:
        np.testing.assert_allclose(
            ours[f"test_{key}"], other[f"test_{key}"], atol=1e-6, err_msg=key
        )


def test_another_model_is_told_apart() -> None:
    ours = cross_val_score(Ridge(1.001), *DIABETES)
    other = cross_val_score(sklearn.linear_model.Ridge(), *DIABETES)
    assert np.abs(ours - other).max() > 1e-6


@pytest.mark.parametrize("name", REGRESSORS)
def test_cross_val_predict_regressors(name: str) -> None:
    ours, other = both(name, lambda e: cross_val_predict(e, *DIABETES))
    np.testing.assert_allclose(ours, other, rtol=1e-6)


@pytest.mark.parametrize("data", [CANCER, IRIS], ids=["cancer", "iris"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_cross_val_predict_classifiers(name: str, data: Any) -> None:
    ours, other = both(name, lambda e: cross_val_predict(e, *data, method="predict_proba"))
    np.testing.assert_allclose(ours, other, atol=2e-6)


def test_decisions_of_a_pipeline() -> None:
    ours, other = both(
        "logistic", lambda e: cross_val_predict(e, *CANCER, method="decision_function")
    )
    np.testing.assert_allclose(ours, other, rtol=1e-6, atol=2e-5)


@pytest.mark.parametrize("name", ["ridge", "scaled ridge"])
def test_learning_and_validation_curves(name: str) -> None:
    alpha = "alpha" if name == "ridge" else "ridge__alpha"
    alphas = [0.01, 1.0, 100.0]
    for run in (
        lambda e: learning_curve(e, *DIABETES)[1:3],
        lambda e: validation_curve(e, *DIABETES, param_name=alpha, param_range=alphas),
    ):
        ours, other = both(name, run)
        np.testing.assert_allclose(ours, other, atol=1e-6)


# -- searching -------------------------------------------------------------------------------------

GRID = {"standardscaler__with_mean": [True, False], "ridge__alpha": [0.1, 1.0, 10.0]}


@pytest.mark.parametrize(
    ("name", "grid", "data"),
    [
        ("ridge", {"alpha": np.logspace(-3, 3, 7)}, DIABETES),
        ("scaled ridge", {"standardscaler__with_std": [False, True]}, DIABETES),
        ("logistic", {"logisticregression__C": [0.01, 1.0, 100.0]}, CANCER),
        ("gaussian", {"var_smoothing": [1e-9, 1e-6, 1e-3]}, IRIS),
    ],
)
def test_a_grid_search_finds_the_same(name: str, grid: Any, data: Any) -> None:
    ours, other = both(name, lambda e: GridSearchCV(e, grid).fit(*data))
    assert ours.best_params_ == other.best_params_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-6
    )
    np.testing.assert_allclose(ours.score(*data), other.score(*data), atol=1e-6)
    if name in CLASSIFIERS:
        assert np.array_equal(ours.classes_, other.classes_)
        np.testing.assert_allclose(
            ours.predict_proba(data[0]), other.predict_proba(data[0]), atol=2e-6
        )


def test_parameters_of_several_steps() -> None:
    ours, other = both("scaled ridge", lambda e: GridSearchCV(e, GRID).fit(*DIABETES))
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-6
    )
    assert ours.best_params_["ridge__alpha"] == other.best_params_["ridge__alpha"]


def test_the_best_estimator_deletes() -> None:
    X, y = DIABETES
    ids = np.array([f"patient-{i}" for i in range(len(y))])
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), GRID).fit(X, y, ids=ids)
    best = search.best_estimator_
    best.delete(["patient-7"])
    left = ids != "patient-7"
    refit = clone(best).fit(X[left], y[left], ids=ids[left])
    assert best.digest() == refit.digest()
    assert np.array_equal(search.predict(X), refit.predict(X))


def test_groups_reach_the_model_by_metadata_routing() -> None:
    X, y = DIABETES
    people = np.arange(len(y)) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), Ridge())
        search = GridSearchCV(model, GRID, cv=GroupKFold(4))
        search.fit(X, y, ids=np.arange(len(y)) + 1000, groups=people)
    search.best_estimator_.delete(groups=[100])
    assert np.setdiff1d(np.arange(442) + 1000, search.best_estimator_.ids_).tolist() == [1200, 1201]
    plain = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), GRID, cv=GroupKFold(4))
    plain.fit(X, y, groups=people)
    assert np.array_equal(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    with pytest.raises(InvalidIdsError, match="the records came without groups"):
        plain.best_estimator_.delete(groups=[100])


INDEXES = {
    "numbers": pd.RangeIndex(1000, 1442),
    "text": pd.Index([f"p{i}" for i in range(442)], dtype=object),
}


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_an_index_is_passed_as_ids(index: Any, routing: bool) -> None:
    X, y = DIABETES
    frame, y = pd.DataFrame(X, index=index).rename(columns=str), pd.Series(y, index)
    model, people = make_pipeline(StandardScaler(), Ridge()), np.arange(442) // 3
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(model, GRID, cv=GroupKFold(3), error_score="raise")
        search.fit(frame, y, ids=frame.index, groups=people)
        assert search.best_estimator_.ids_.tolist() == index.tolist()
        given = {"params": {"ids": frame.index, **({"groups": people} if routing else {})}}
        plain = {} if routing else {"groups": people}
        scores = cross_val_score(model, frame, y, cv=GroupKFold(3), **given, **plain)
        kept = cross_validate(model, frame, y, params={"ids": frame.index}, return_estimator=True)
        predicted = cross_val_predict(model, frame, y, params={"ids": list(frame.index)})
    assert np.array_equal(scores, cross_val_score(model, X, y, cv=GroupKFold(3), groups=people))
    assert set(kept["estimator"][0].ids_) < set(index)
    assert np.array_equal(predicted, cross_val_predict(model, X, y))
    best = clone(model).fit(frame, y, ids=frame.index)
    assert best.delete([index[7]]).ids.tolist() == [index[7]]


def test_scores_of_a_pipeline_are_weighted() -> None:
    X, y = DIABETES
    weights = np.linspace(0.0, 2.0, len(y))
    ours, other = both("scaled ridge", lambda e: e.fit(X, y).score(X, y, sample_weight=weights))
    assert ours == pytest.approx(other, rel=1e-9)
    assert ours != pytest.approx(both("scaled ridge", lambda e: e.fit(X, y).score(X, y))[0])


def test_frames_keep_their_index() -> None:
    X, y = DIABETES
    frame = pd.DataFrame(X[:, :3], columns=["age", "sex", "bmi"])
    frame.index = [f"p{i}" for i in range(len(y))]
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), GRID).fit(frame, y)
    assert search.best_estimator_.ids_.tolist() == frame.index.tolist()
    assert search.feature_names_in_.tolist() == ["age", "sex", "bmi"]
    ours, _ = TWINS["scaled ridge"]
    scores = cross_val_score(ours, frame, pd.Series(y, frame.index))
    assert np.array_equal(scores, cross_val_score(ours, X[:, :3], y))


def test_weights_and_groups_pass_through() -> None:
    X, y = DIABETES
    weights = np.linspace(0.0, 2.0, len(y))
    ours, other = both(
        "ridge",
        lambda e: GridSearchCV(e, {"alpha": [0.1, 1.0]}, cv=GroupKFold(4)).fit(
            X, y, sample_weight=weights, groups=np.arange(len(y)) % 9
        ),
    )
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-6
    )


def test_whole_steps_can_be_searched() -> None:
    steps = [StandardScaler(), MinMaxScaler(), "passthrough"]
    search = RandomizedSearchCV(
        make_pipeline(StandardScaler(), Ridge()),
        {"standardscaler": steps},
        n_iter=3,
        random_state=0,
    ).fit(*DIABETES)
    for place, step in enumerate(search.cv_results_["param_standardscaler"]):
        alone = Ridge() if isinstance(step, str) else make_pipeline(clone(step), Ridge())
        scores = cross_val_score(alone, *DIABETES)
        assert search.cv_results_["mean_test_score"][place] == pytest.approx(scores.mean())


def test_nested_search_and_estimators_of_folds() -> None:
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), GRID, cv=3)
    told = cross_validate(search, *DIABETES, cv=3, return_estimator=True)
    for fold in told["estimator"]:
        assert fold.best_estimator_.delete([0]).action == "updated"
        with pytest.raises(DetachedError):
            fold.best_estimator_[-1].delete([1])


def test_clones_are_unfitted_and_alike() -> None:
    for ours, _ in TWINS.values():
        fitted = clone(ours).fit(*(CANCER if hasattr(ours, "predict_proba") else DIABETES))
        again = clone(fitted)
        assert again.get_params(deep=True).keys() == fitted.get_params(deep=True).keys()
        assert str(again) == str(ours)
        assert not hasattr(again, "n_features_in_")

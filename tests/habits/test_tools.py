"""Tools of scikit-learn that take any estimator take ours, and find what they find in the twin."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
from matplotlib import pyplot
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay
from sklearn.multiclass import OneVsRestClassifier
from sklearn.tree import export_graphviz, export_text, plot_tree
from sklearn.utils._param_validation import InvalidParameterError

from erasable.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ShardedClassifier,
)
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsClassifier, KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from naming import named

matplotlib.use("Agg")


def classes(frame: bool) -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[::2, :4], y.iloc[::2]
    return (X, y) if frame else (X.to_numpy(), y.to_numpy())


def numbers() -> tuple[pd.DataFrame, pd.Series[float]]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.iloc[::2, :4], y.iloc[::2]


CLASSIFIERS = [
    GaussianNB(),
    KNeighborsClassifier(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(4, random_state=0),
    HistGradientBoostingClassifier(max_iter=4, random_state=0),
    BaggingClassifier(n_estimators=3, random_state=0),
    ShardedClassifier(GaussianNB(), n_shards=2, random_state=0),
]
REGRESSORS = [
    make_pipeline(StandardScaler(), Ridge()),
    KNeighborsRegressor(),
    DecisionTreeRegressor(max_depth=4, random_state=0),
    RandomForestRegressor(4, random_state=0),
    HistGradientBoostingRegressor(max_iter=4, random_state=0),
]
TWINS = [
    (GaussianNB(), sklearn.naive_bayes.GaussianNB()),
    (KNeighborsClassifier(7), sklearn.neighbors.KNeighborsClassifier(7)),
]
each_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
each_regressor = pytest.mark.parametrize("model", REGRESSORS, ids=named)
each_twin = pytest.mark.parametrize(("ours", "theirs"), TWINS, ids=named)
of_frames = pytest.mark.parametrize("frame", [True, False], ids=["frame", "array"])


@pytest.fixture(autouse=True)
def _close_figures() -> Any:
    yield
    pyplot.close("all")


# -- calibration -----------------------------------------------------------------------------------


@of_frames
@each_twin
def test_calibration_finds_the_probabilities_of_the_twin(
    ours: Any, theirs: Any, frame: bool
) -> None:
    X, y = classes(frame)
    for settings in ({"cv": 3}, {"cv": 3, "method": "isotonic"}, {"cv": 3, "ensemble": False}):
        found, known = (
            CalibratedClassifierCV(each, **settings).fit(X, y).predict_proba(X)
            for each in (ours, theirs)
        )
        np.testing.assert_allclose(found, known, atol=1e-5)
    plain = clone(ours).fit(X, y).predict_proba(X)
    assert np.abs(found - plain).max() > 1e-3


@of_frames
@each_classifier
def test_every_classifier_is_calibrated(model: Any, frame: bool) -> None:
    X, y = classes(frame)
    found = CalibratedClassifierCV(model, cv=2).fit(X, y)
    assert found.score(X, y) > 0.8
    frozen = FrozenEstimator(clone(model).fit(X, y))
    again = CalibratedClassifierCV(frozen).fit(X, y).calibrated_classifiers_[0].estimator
    np.testing.assert_array_equal(again.predict(X), frozen.predict(X))


@each_classifier
def test_what_is_frozen_is_not_fitted_again(model: Any) -> None:
    X, y = classes(frame=True)
    fitted = clone(model).fit(X, y)
    before = fitted.digest()
    frozen = clone(FrozenEstimator(fitted)).fit(X, 1 - y)
    assert frozen.estimator.digest() == before
    fitted.delete(fitted.ids_[:3])
    assert frozen.estimator.digest() == fitted.digest() != before


# -- inspection ------------------------------------------------------------------------------------


@each_twin
def test_importances_and_dependences_are_those_of_the_twin(ours: Any, theirs: Any) -> None:
    X, y = classes(frame=True)
    ours, theirs = (clone(each).fit(X, y) for each in (ours, theirs))
    found, known = (permutation_importance(m, X, y, random_state=0) for m in (ours, theirs))
    np.testing.assert_allclose(found.importances, known.importances, atol=1e-9)
    assert found.importances_mean.max() > 0.0
    found, known = (partial_dependence(m, X, ["mean area"]) for m in (ours, theirs))
    np.testing.assert_allclose(found["average"], known["average"], atol=1e-6)
    assert np.ptp(found["average"]) > 0.0


@each_classifier
def test_every_classifier_is_inspected(model: Any) -> None:
    X, y = classes(frame=True)
    two = clone(model).fit(X.iloc[:, :2], y)
    DecisionBoundaryDisplay.from_estimator(two, X.iloc[:, :2], grid_resolution=5)
    fitted = clone(model).fit(X, y)
    assert permutation_importance(fitted, X, y, n_repeats=2, random_state=0).importances.any()
    assert partial_dependence(fitted, X, [0], grid_resolution=4)["average"].shape == (1, 4)
    assert RocCurveDisplay.from_estimator(fitted, X, y).roc_auc > 0.8
    assert ConfusionMatrixDisplay.from_estimator(fitted, X, y).confusion_matrix.sum() == len(y)
    assert CalibrationDisplay.from_estimator(fitted, X, y).prob_pred.size


@each_regressor
def test_every_regressor_is_inspected(model: Any) -> None:
    X, y = numbers()
    fitted = clone(model).fit(X, y)
    assert permutation_importance(fitted, X, y, n_repeats=2, random_state=0).importances.any()
    shown = PartialDependenceDisplay.from_estimator(
        fitted, X, ["bmi", ("bmi", "bp")], grid_resolution=4
    )
    assert shown.pd_results[1]["average"].shape == (1, 4, 4)
    both = PartialDependenceDisplay.from_estimator(
        fitted, X, ["bmi"], kind="both", grid_resolution=4
    )
    assert both.pd_results[0]["individual"].shape == (1, len(y), 4)


# -- estimators made of others ---------------------------------------------------------------------


@each_classifier
def test_every_classifier_is_a_part_of_others(model: Any) -> None:
    X, y = classes(frame=True)
    for whole in (
        VotingClassifier([("one", model)]),
        StackingClassifier([("one", model)], cv=2),
        OneVsRestClassifier(model),
        SequentialFeatureSelector(model, n_features_to_select=1, cv=2),
    ):
        whole.fit(X, y)
    assert VotingClassifier([("one", model)]).fit(X, y).score(X, y) > 0.8


@each_regressor
def test_every_regressor_is_stacked(model: Any) -> None:
    X, y = numbers()
    assert StackingRegressor([("one", model)], cv=2).fit(X, y).score(X, y) > 0.1


def test_features_are_chosen_by_what_models_show() -> None:
    X, y = classes(frame=True)
    assert SelectFromModel(RandomForestClassifier(5, random_state=0)).fit(X, y).get_support().any()
    ours, theirs = (
        RFE(each, n_features_to_select=2).fit(X, y).ranking_.tolist()
        for each in (LogisticRegression(), sklearn.linear_model.LogisticRegression(max_iter=10**4))
    )
    assert ours == theirs


# -- trees -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classify", [True, False])
def test_trees_are_drawn_and_printed(classify: bool) -> None:
    X, y = classes(frame=True) if classify else numbers()
    model = (DecisionTreeClassifier if classify else DecisionTreeRegressor)(
        max_depth=3, random_state=0
    ).fit(X, y)
    names = X.columns.tolist()
    for _ in range(2):
        exported = model.to_sklearn()
        boxes = plot_tree(exported, feature_names=names, filled=True)
        words = export_text(exported, feature_names=names)
        leaves = model.get_n_leaves()
        assert words.count("class:" if classify else "value:") == leaves
        assert sum(1 for box in boxes if "\n" in box.get_text()) == 2 * leaves - 1
        assert export_graphviz(exported, feature_names=names).count("->") == 2 * leaves - 2
        assert f"samples = {len(model.ids_)}" in boxes[0].get_text()
        model.delete(model.ids_[::3])  # an old export is not followed; a new one is other


def test_scikit_learn_draws_its_own_trees_alone() -> None:
    """So the documentation says that they are exported first."""
    X, y = classes(frame=True)
    with pytest.raises(InvalidParameterError, match="must be an instance of"):
        plot_tree(DecisionTreeClassifier(max_depth=1).fit(X, y))

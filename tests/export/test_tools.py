"""Tools for estimators of scikit-learn take exported ones: plots, skops, ONNX, SHAP and treelite.

Those that are no dependency of the tests are tried where they are installed.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.tree import plot_tree

from erasable.cluster import KMeans
from erasable.decomposition import PCA
from erasable.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ShardedClassifier,
)
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from naming import named

matplotlib.use("Agg")
X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32).astype(np.float64)
Y = 1 * (X[:, 0] > 0) + (X[:, 1] > 0.5)
NUMBERS = X @ [1.0, 2.0, -1.0] + X[:, 0] ** 2

MODELS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(MinMaxScaler(), PCA(2), Ridge()),
    GaussianNB(),
    KMeans(2, random_state=0),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(4, max_depth=4, random_state=0),
    RandomForestRegressor(4, max_depth=4, random_state=0),
    HistGradientBoostingClassifier(max_iter=4, random_state=0),
    HistGradientBoostingRegressor(max_iter=4, random_state=0),
    ShardedClassifier(GaussianNB(), 2, random_state=0),
]
EACH = pytest.mark.parametrize("model", MODELS, ids=named)
CONVERTED = pytest.mark.parametrize(
    "model", [each for each in MODELS if "HistGradient" not in str(each)], ids=named
)
"""skl2onnx 1.20 converts no boosting with onnx 1.23, whatever fitted it."""


def fitted(model: Any) -> Any:
    numbers = "Regressor" in str(model) or "Ridge" in str(model)
    return model.fit(X, NUMBERS if numbers else Y)


def test_a_tree_is_plotted() -> None:
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, NUMBERS)
    exported = model.to_sklearn()
    drawn = plot_tree(exported)
    matplotlib.pyplot.close("all")
    assert len(drawn) >= exported.tree_.node_count == 7  # and more for arrows
    assert "samples = 200" in drawn[0].get_text()


def test_importances_by_permutation() -> None:
    exported = make_pipeline(StandardScaler(), Ridge()).fit(X, NUMBERS).to_sklearn()
    found = permutation_importance(exported, X, NUMBERS, random_state=0)
    assert found.importances_mean.argmax() == 1


@EACH
def test_skops_keeps_exported_estimators(model: Any, tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    exported = fitted(model).to_sklearn()
    io.dump(exported, tmp_path / "model.skops")
    told = io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("sklearn.") for name in told)
    again = io.load(tmp_path / "model.skops", trusted=told)
    np.testing.assert_array_equal(again.predict(X), exported.predict(X))


@CONVERTED
def test_onnx_predicts_the_same(model: Any) -> None:
    converter = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    exported = fitted(model).to_sklearn()
    if hasattr(exported, "flatten_transform"):  # which is not converted
        exported.set_params(flatten_transform=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the converter uses
        made = converter.to_onnx(exported, X[:1].astype(np.float32), target_opset=17)
    session = runtime.InferenceSession(made.SerializeToString())
    (answer, *_) = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})
    mine = model.predict(X)
    if mine.dtype.kind == "f":
        np.testing.assert_allclose(answer.ravel(), mine, rtol=1e-4, atol=1e-4)
    else:
        assert np.mean(answer.ravel() == mine) > 0.99  # of probabilities in float32


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=4, random_state=0),
        RandomForestRegressor(4, max_depth=4, random_state=0),
    ],
    ids=named,
)
def test_shap_adds_up_to_predictions(model: Any) -> None:
    shap = pytest.importorskip("shap")
    exported = fitted(model).to_sklearn()
    explainer = shap.TreeExplainer(exported)
    values = explainer.shap_values(X[:20])
    np.testing.assert_allclose(
        values.sum(axis=1) + explainer.expected_value, model.predict(X[:20]), rtol=1e-6
    )


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(4, max_depth=4, random_state=0),
        HistGradientBoostingRegressor(max_iter=4, random_state=0),
    ],
    ids=named,
)
def test_shap_against_a_background(model: Any) -> None:
    """Boosting does not count records in its nodes, so that it needs some records to compare."""
    shap = pytest.importorskip("shap")
    exported = fitted(model).to_sklearn()
    explainer = shap.TreeExplainer(exported, X[:50])
    values = explainer.shap_values(X[50:70])
    whole = values.sum(axis=1) + explainer.expected_value
    mine = (
        model.predict_proba(X[50:70])
        if hasattr(model, "predict_proba")
        else model.predict(X[50:70])
    )
    np.testing.assert_allclose(whole, mine, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(4, max_depth=4, random_state=0),
        ExtraTreesRegressor(4, random_state=0),
        HistGradientBoostingClassifier(max_iter=4, random_state=0),
        HistGradientBoostingRegressor(max_iter=4, random_state=0),
    ],
    ids=named,
)
def test_treelite_compiles_forests_and_boosting(model: Any) -> None:
    treelite = pytest.importorskip("treelite")
    importer = pytest.importorskip("treelite.sklearn")
    made = importer.import_model(fitted(model).to_sklearn())
    rows = X if "HistGradient" in str(model) else X.astype(np.float32)
    answers = np.squeeze(treelite.gtil.predict(made, rows))
    mine = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    np.testing.assert_allclose(answers, mine, rtol=1e-5, atol=1e-6)
    assert not np.allclose(answers[::-1], mine, rtol=1e-5, atol=1e-6)

"""Exported estimators answer as the models, on data that none of them has learned from."""

from __future__ import annotations

import warnings
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge as TheirRidge

import erasable
from erasable.core.errors import ErasableError, ExportError
from erasable.linear_model import Ridge
from erasable.utils._checks.data_sets import STANDARD, suited
from law_instances import law_instances
from naming import named
from same_answers import (
    CLOSE,
    COARSE,
    DifferentAnswersError,
    answerable,
    compare,
    possible,
)

WITHOUT = {"DBSCAN", "Embedding", "ItemNeighbors", "NadarayaWatson", "SegmentedRegression"}
INSTANCES = [each for each in law_instances() if type(each).__name__ not in WITHOUT]

FAR_FROM_ZERO = {
    "LogisticRegression",
    "MultinomialNB",
    "NearestCentroid",
    "RandomFourierRidge",
}
"""Of values of 1e9 and more, scikit-learn's formulas keep fewer digits than are compared."""

TIED = {"KNeighborsClassifier", "KNeighborsRegressor"}
"""Of records at the same distance, others may be the nearest."""


def given(estimator: Any) -> list[Any]:
    """Return the data sets that an estimator is compared on."""
    name, left_out = type(estimator).__name__, set()
    if name in FAR_FROM_ZERO:
        left_out.add("timestamps")
    if name in TIED:
        left_out |= {"duplicated rows", "integers"}
    if name == "KernelDensity" and estimator.kernel == "cosine":
        left_out |= {"integers", "timestamps"}  # of an even number of features
    return [data for data in suited(STANDARD, estimator) if data.name not in left_out]


def seeded(estimator: Any) -> Any:
    """Return an unfitted copy that learns the same each time."""
    model = clone(estimator)
    seeds = [name for name in model.get_params() if name.endswith("random_state")]
    return model.set_params(**dict.fromkeys(seeds, 0))


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """Ignore what scikit-learn warns of where the model does not."""
    with warnings.catch_warnings():
        for told in ("Found unknown categories", "Skipping features", "overflow encountered"):
            warnings.filterwarnings("ignore", told)
        warnings.filterwarnings("ignore", category=erasable.core.errors.PrecisionWarning)
        yield


@pytest.mark.parametrize("estimator", INSTANCES, ids=named)
def test_answers_are_the_models(estimator: Any) -> None:
    """In every variant, on every kind of data; two of three records are learned from."""
    compared = 0
    for data in given(estimator):
        rows = np.arange(len(data))
        own, new = data.take(rows[rows % 3 > 0]), data.take(rows[rows % 3 == 0])
        try:
            model = seeded(estimator).fit(own.X, own.y, ids=own.ids)
        except ErasableError:  # fewer records than it needs
            continue
        if _is_certain(model):
            continue
        exported = model.to_sklearn(records=True)
        X = possible(model, answerable(model, new.X))
        if len(X):
            compare(model, exported, X, COARSE if "KMeans" in str(estimator) else CLOSE)
            compared += 1
    assert compared


def _is_certain(model: Any) -> bool:
    """Tell whether a BernoulliNB holds something for certain, which scikit-learn's cannot."""
    if type(model).__name__ != "BernoulliNB" or not (model.feature_log_prob_ == 0).any():
        return False
    with pytest.raises(ExportError, match="alpha above 0"):
        model.to_sklearn()
    return True


@pytest.mark.parametrize("estimator", INSTANCES, ids=named)
def test_a_model_that_has_deleted_is_exported_as_one_that_never_had(estimator: Any) -> None:
    data = next(one for one in suited(STANDARD, estimator) if one.name == "large")
    left = data.without(data.doomed_ids)
    model = seeded(estimator).fit(data.X, data.y, ids=data.ids)
    model.delete(data.doomed_ids)
    fresh = seeded(estimator).fit(left.X, left.y, ids=left.ids)
    if not _is_certain(model):
        one, other = (each.to_sklearn(records=True) for each in (model, fresh))
        assert joblib.hash(one) == joblib.hash(other)


def test_every_estimator_is_exported_or_named() -> None:
    exported = {type(each).__name__ for each in INSTANCES}
    assert exported | WITHOUT >= {name for name, _, _ in erasable.all_estimators()}


ONLY_EXPORTED = {
    "BaggingClassifier": {"estimator_"},
    "BaggingRegressor": {"estimator_"},
    "DecisionTreeClassifier": {"max_features_", "n_outputs_", "tree_"},
    "DecisionTreeRegressor": {"max_features_", "n_outputs_", "tree_"},
    **{
        f"{kind}{task}": {"estimator_", "estimators_", "estimators_samples_", "n_outputs_"}
        for kind in ("ExtraTrees", "RandomForest")
        for task in ("Classifier", "Regressor")
    },
    **{
        f"HistGradientBoosting{task}": {
            "do_early_stopping_", "is_categorical_", "train_score_", "validation_score_",
        }
        for task in ("Classifier", "Regressor")
    },
    "KNeighborsClassifier": {"effective_metric_", "effective_metric_params_", "outputs_2d_"},
    "KNeighborsRegressor": {"effective_metric_", "effective_metric_params_"},
    "KernelDensity": {"tree_"},
    "Ridge": {"n_iter_", "solver_"},
    "SimpleImputer": {"indicator_"},
    "ShardedClassifier": {"le_", "named_estimators_"},
    "ShardedRegressor": {"named_estimators_"},
}  # fmt: skip
"""Fitted attributes that the exported estimator has and the model has not."""


@pytest.mark.parametrize("estimator", INSTANCES, ids=named)
def test_other_attributes_are_the_models(estimator: Any) -> None:
    name = type(estimator).__name__
    if name in ("ColumnTransformer", "Pipeline", "RandomFourierRidge", "Refit"):
        return  # which have those of their parts
    data = next(one for one in suited(STANDARD, estimator) if one.name == "large")
    model = seeded(estimator).fit(data.X, data.y, ids=data.ids)
    if not _is_certain(model):
        exported = model.to_sklearn(records=True)
        shown = [each for each in dir(exported) if each.endswith("_") and each[0] != "_"]
        missing = {each for each in shown if hasattr(exported, each) and not hasattr(model, each)}
        assert missing <= ONLY_EXPORTED.get(name, set())


# -- negative controls: what differs is found ------------------------------------------------------

X = np.random.default_rng(0).normal(size=(40, 2))
Y = X @ [1.0, -2.0] + X[:, 0] ** 2


def test_another_model_is_found() -> None:
    model = Ridge().fit(X, Y)
    with pytest.raises(DifferentAnswersError, match="40 of 40"):
        compare(model, TheirRidge(alpha=1.001).fit(X, Y), X)


@pytest.mark.parametrize("name", ["coef_", "intercept_"])
def test_a_changed_attribute_is_found(name: str) -> None:
    model = Ridge().fit(X, Y)
    exported = model.to_sklearn()
    setattr(exported, name, getattr(exported, name) * (1.0 + 1e-7))
    with pytest.raises(DifferentAnswersError):
        compare(model, exported, X)

"""What `set_params` says after `fit` concerns the next `fit`, in every estimator."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.utils._param_validation import Interval, StrOptions, generate_valid_param

import erasable
from erasable.audit import refit
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import ErasableError
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.feature_extraction import CountVectorizer
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.refit import Refit
from erasable.utils._checks.compare import (
    Snapshot,
    assert_same,
    assert_same_outputs,
    demand,
    fit,
    saved,
    seeded,
)
from erasable.utils._checks.data_sets import FAST, DataSet, suited
from law_instances import instances_of
from naming import named


def shout(text: str) -> str:
    """Preprocess a text otherwise than scikit-learn does."""
    return text.upper()


def halves(text: str) -> list[str]:
    """Cut a text otherwise than scikit-learn does."""
    return [text[: len(text) // 2], text[len(text) // 2 :]]


OTHER: dict[str, Any] = {
    "categorical_features": [1],
    "categories": [[1.0, 2.0]] * 4,
    "class_prior": [0.2, 0.3, 0.5],
    "class_weight": {0: 1.0, 1: 2.0, 2: 1.0},
    "classes": [0, 1, 2, 9],
    "criterion": "entropy",  # which the next fit of a regressor refuses
    "drop": "first",
    "dtype": np.float32,
    "encoded_missing_value": -2,
    "feature_range": (-1, 3),
    "fill_value": 5.0,
    "loss": "absolute_error",  # which the next fit refuses
    "max_df": 0.5,
    "max_features": 1,
    "min_df": 2,
    "missing_values": 0,
    "ngram_range": (1, 2),
    "preprocessor": shout,
    "priors": [0.2, 0.3, 0.5],
    "quantile_range": (10.0, 80.0),
    "stop_words": ["a1", "b1", "c2"],
    "strategy": "constant",
    "token_pattern": r"[a-z]",
    "tokenizer": halves,
    "unknown_value": -1,
    "vocabulary": ["a0", "a1", "b0"],
}
"""Values for parameters of these names; others follow from their constraints."""


def other_value(name: str, default: Any, constraints: list[Any]) -> Any:
    """Return a value of a parameter that is not its default."""
    if name in OTHER:
        return OTHER[name]
    if isinstance(default, bool):
        return not default
    for constraint in constraints:
        if isinstance(constraint, StrOptions):
            return min(constraint.options - {default}, default=default)
        if isinstance(constraint, Interval):
            value = generate_valid_param(constraint)
            return value if value != default else value + 1
    raise KeyError(f"add a value of {name!r} to OTHER: no constraint of it gives one")


def other_values(estimator: Any) -> dict[str, Any]:
    """Return for each parameter of an estimator but the seed a value that is not its default.

    Parameters that take one value alone are left out.
    """
    constraints = estimator._parameter_constraints
    defaults = {k: v for k, v in estimator.get_params().items() if k != "random_state"}
    others = {k: other_value(k, v, constraints.get(k, [])) for k, v in defaults.items()}
    return {k: value for k, value in others.items() if value is not defaults[k]}


MADE_OF_OTHERS: list[tuple[Any, dict[str, Any]]] = [
    (
        make_pipeline(FunctionTransformer(np.abs), MinMaxScaler(), KMeans(3)),
        {
            "functiontransformer__func": np.sign,
            "minmaxscaler__clip": True,
            "minmaxscaler__feature_range": (2, 5),
            "kmeans__n_clusters": 2,
        },
    ),
    (make_pipeline(StandardScaler(), Normalizer()), {"normalizer__norm": "max"}),
    (
        make_pipeline(make_pipeline(MinMaxScaler()), make_pipeline(StandardScaler()), KMeans(2)),
        {"pipeline-1__minmaxscaler__clip": True, "pipeline-2__standardscaler__quantize": True},
    ),
    (
        ColumnTransformer(
            [("one", MinMaxScaler(), [0]), ("two", Normalizer(), [1, 0])],
            remainder=StandardScaler(),
        ),
        {
            "one__clip": True,
            "two__norm": "l1",
            "remainder__with_mean": False,
            "verbose_feature_names_out": False,
        },
    ),
    (Refit(SklearnRidge()), {"estimator__alpha": 90.0, "estimator": SklearnRidge(alpha=80.0)}),
    (Refit(RandomForestClassifier(3)), {"estimator__max_depth": 1}),
    (
        ShardedClassifier(SGDClassifier(), n_shards=2),
        {"estimator__alpha": 0.5, "n_shards": 3, "n_slices": 2},
    ),
    (ShardedRegressor(SklearnRidge(), n_shards=2), {"estimator": SklearnRidge(alpha=80.0)}),
    (
        BaggingClassifier(n_estimators=2),
        {
            "bootstrap": False,
            "estimator": GaussianNB(),
            "max_features": 1,
            "max_samples": 0.5,
            "n_estimators": 3,
        },
    ),
    (BaggingRegressor(SklearnRidge(), n_estimators=2), {"estimator__alpha": 90.0}),
    *(
        (
            instances_of("Embedding", cls, {})[0],
            {"backbone": "neural.backbones.moments", "batch_size": 2, "n_jobs": 2, "shape": (2, 2)},
        )
        for name, cls, _ in erasable.all_estimators()
        if name == "Embedding"
    ),
]


def _of_few_trees(estimator: Any) -> Any:
    return estimator.set_params(**{"n_estimators": 4} if hasattr(estimator, "n_estimators") else {})


CASES = [
    *(
        (_of_few_trees(cls()), name, value)
        for label, cls, tags in erasable.all_estimators()
        if not tags["meta"]
        for name, value in other_values(cls()).items()
    ),
    *((made, name, value) for made, others in MADE_OF_OTHERS for name, value in others.items()),
]


class Learned(Snapshot):
    """What a model is, but for what it will be made with the next time."""

    def _look(self) -> dict[str, Any]:
        return {k: value for k, value in super()._look().items() if k[:10] != "get_params"}


def _data(estimator: Any) -> DataSet:
    return suited([FAST[0]], estimator)[0]


def _fit(model: Any, data: DataSet) -> Any:
    """Fit this very object, or return the kind of error: a value may not suit the data."""
    try:
        return model.fit(data.X, data.y, ids=data.ids, groups=data.groups)
    except ErasableError as error:
        return type(error)


def test_every_parameter_of_every_estimator_is_tried() -> None:
    for label, cls, tags in erasable.all_estimators():
        if not tags["meta"]:
            params = cls().get_params()
            for name, value in other_values(cls()).items():
                assert repr(value) != repr(params[name]), f"{label}({name})"
    with pytest.raises(KeyError, match="add a value of 'bins' to OTHER"):
        other_value("bins", None, [None, "array-like"])
    made = {type(estimator).__name__ for estimator, _ in MADE_OF_OTHERS}
    assert made == {label for label, _, tags in erasable.all_estimators() if tags["meta"]}


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.filterwarnings("ignore:The parameter:UserWarning")
@pytest.mark.parametrize(("estimator", "name", "value"), CASES, ids=named)
def test_what_is_set_after_fit_concerns_the_next_fit(estimator: Any, name: str, value: Any) -> None:
    data = _data(estimator)
    model = fit(estimator, data)
    digest, written, before = model.digest(), saved(model), Learned(model, data)
    model.set_params(**{name: value})
    before.assert_unchanged(f"set_params({name})")
    demand(saved(model) == written, f"the file has changed with {name}")
    assert_same(refit(model), model, f"a refit made use of {name}")
    rest = data.without(data.doomed_ids[:1])
    for copy in (pickle.loads(pickle.dumps(model)), model):
        assert repr(copy.get_params()[name]) == repr(value)
        copy.delete(data.doomed_ids[:1])
        assert_same(copy, fit(estimator, rest), f"from a refit, with {name}", save=True)
        assert_same_outputs(copy, fit(estimator, rest), data, f"from a refit, with {name}")
    fresh = _fit(seeded(estimator).set_params(**{name: value}), data)
    if isinstance(fresh, type):
        assert _fit(model, data) is fresh
    else:
        assert_same(_fit(model, data), fresh, f"from a first fit with that {name}")
        has_effect = name not in getattr(model, "_without_effect", ())
        assert (model.digest() != digest) is has_effect


def test_a_file_keeps_the_parameters_of_the_fit(tmp_path: Path) -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = StandardScaler(with_mean=False).fit(X).set_params(with_mean=True, with_std=False)
    model.save(tmp_path / "model")
    loaded = StandardScaler.load(tmp_path / "model")
    assert loaded.get_params() == StandardScaler(with_mean=False).get_params()
    assert loaded.transform(X).tobytes() == model.transform(X).tobytes()


def test_a_list_that_is_changed_in_place_concerns_the_next_fit() -> None:
    words = ["ham", "spam"]
    model = CountVectorizer(vocabulary=words, binary=True).fit(["ham", "spam ham"], ids=[1, 2])
    before = model.digest()
    words.append("eggs")
    model.delete([2])
    assert model.transform(["eggs ham"]).toarray().tolist() == [[1, 0]]
    twin = CountVectorizer(vocabulary=["ham", "spam"], binary=True).fit(["ham"], ids=[1])
    assert model.digest() == twin.digest() != before


def test_a_replaced_step_is_not_fitted() -> None:
    model = make_pipeline(MinMaxScaler(), KMeans(2, random_state=0)).fit(np.arange(9.0)[:, None])
    model.set_params(minmaxscaler=StandardScaler())
    with pytest.raises(NotFittedError, match="step 'minmaxscaler' was replaced"):
        model.predict([[1.0]])


def test_columns_that_are_set_after_fit_concern_the_next_fit() -> None:
    X = np.arange(12.0).reshape(6, 2) ** 2
    part = MinMaxScaler()
    model = ColumnTransformer([("one", part, [0])]).fit(X)
    before = model.transform(X)
    model.set_params(transformers=[("one", part, [1])], remainder="passthrough")
    for fitted in (model, pickle.loads(pickle.dumps(model))):
        fitted.delete([2])
        assert fitted.transform(X).tobytes() == before.tobytes()
    assert model.fit(X).transform(X).shape == (6, 2)

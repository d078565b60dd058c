"""The estimators on which the law is tested: each as it comes, meta-estimators as they supply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sklearn.pipeline
import sklearn.preprocessing
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import erasable
from erasable import ensemble, linear_model
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "BernoulliNB": [{"alpha": 0.0, "binarize": 1.5, "fit_prior": False}],
    "CountVectorizer": [
        {"max_features": 5, "max_df": 0.4},
        {"ngram_range": (1, 2), "binary": True},
    ],
    "DBSCAN": [{"eps": 3.0, "min_samples": 2}, {"eps": 1.2}],
    "DecisionTreeClassifier": [
        {"max_features": 1, "min_samples_leaf": 2, "n_thresholds": 2, "class_weight": {0: 2.5}},
        {"min_impurity_decrease": 0.02, "criterion": "entropy", "class_weight": "balanced"},
    ],
    "DecisionTreeRegressor": [
        {"max_depth": 3, "min_samples_split": 0.2, "max_features": 0.5},
        {"min_impurity_decrease": 0.5, "n_thresholds": 1},
    ],
    "DivideAndConquerKMeans": [{"n_clusters": 2}],
    "GaussianNB": [
        {"priors": [0.2, 0.3, 0.5], "var_smoothing": 0.0},
        {"classes": [0, 1, 2, 7]},
    ],
    "HistGradientBoostingClassifier": [
        {"max_iter": 5, "min_samples_leaf": 2, "early_stopping": True, "n_iter_no_change": 2},
        {"max_iter": 4, "min_samples_leaf": 1, "max_depth": 2, "categorical_features": [0]},
        {"max_iter": 3, "min_samples_leaf": 1, "max_bins": 4, "class_weight": "balanced"},
    ],
    "HistGradientBoostingRegressor": [
        {"max_iter": 5, "min_samples_leaf": 2, "early_stopping": True, "n_iter_no_change": 2},
        {"max_iter": 4, "min_samples_leaf": 1, "max_bins": 4, "l2_regularization": 0.5},
    ],
    "ItemNeighbors": [{"similarity": "lift", "n_neighbors": 2}],
    "KMeans": [{"n_clusters": 3}, {"n_clusters": 2, "max_iter": 100, "tol": 1e-3}],
    "KNeighborsClassifier": [{"n_neighbors": 2, "weights": "distance", "leaf_size": 2}],
    "KNeighborsRegressor": [{"n_neighbors": 3, "algorithm": "brute", "metric": "manhattan"}],
    "KernelDensity": [
        {"bandwidth": 0.7, "kernel": "cosine"},
        {"bandwidth": "silverman", "kernel": "exponential"},
    ],
    "LinearRegression": [{"fit_intercept": False}],
    "LinearSVC": [
        {"C": 100.0, "fit_intercept": False},
        {"class_weight": "balanced", "intercept_scaling": 10.0},
        {"C": 1e3, "classes": [0, 1, 2, 5]},
    ],
    "LinearSVR": [{"epsilon": 0.5, "C": 10.0}, {"epsilon": 0.05, "fit_intercept": False}],
    "LogisticRegression": [
        {"C": 100.0, "fit_intercept": False},
        {"class_weight": "balanced"},
        {"C": 1e4, "classes": [0, 1, 2, 5]},
    ],
    "MLPClassifier": [
        {"hidden_layer_sizes": (5, 3), "activation": "tanh", "batch_size": 0.4, "max_iter": 4},
        {"activation": "logistic", "max_iter": 1, "lattice_step": 4.0},
    ],
    "MLPRegressor": [
        {"hidden_layer_sizes": 4, "activation": "identity", "batch_size": 1, "max_iter": 3},
        {"hidden_layer_sizes": (), "alpha": 0.1, "max_iter": 1, "lattice_step": 4.0},
    ],
    "MinMaxScaler": [{"feature_range": (-1, 1)}],
    "MultinomialNB": [{"alpha": 0.0, "classes": [0, 1, 2, 5]}, {"class_prior": [1, 1, 1]}],
    "NadarayaWatson": [{"bandwidth": 0.3, "kernel": "tricube"}],
    "NearestCentroid": [{"shrink_threshold": 0.4, "priors": "empirical"}],
    "OneHotEncoder": [
        {"drop": "first", "handle_unknown": "ignore"},
        {"drop": "if_binary", "sparse_output": False},
    ],
    "OrdinalEncoder": [{"handle_unknown": "use_encoded_value", "unknown_value": -1}],
    "PCA": [{"n_components": 2, "whiten": True}],
    "QuantizedKMeans": [{"n_clusters": 3}],
    "RandomFourierRidge": [
        {"n_components": 7, "alpha": 0.0, "gamma": 0.03, "fit_intercept": False}
    ],
    "Ridge": [{"alpha": 0.0}, {"alpha": np.array([2.5]), "fit_intercept": False}],
    "RobustScaler": [
        {"with_centering": False, "quantile_range": (10, 60.5)},
        {"unit_variance": True},
    ],
    "SegmentedRegression": [{"n_segments": 3, "alpha": 0.0, "max_iter": 2}],
    "SimpleImputer": [
        {"strategy": "median", "add_indicator": True},
        {"strategy": "most_frequent"},
        {"strategy": "constant", "keep_empty_features": True},
        {"missing_values": 0, "add_indicator": True},
    ],
    "TfidfVectorizer": [
        {"quantize": True, "max_df": 0.9},
        {"use_idf": False, "norm": "l1", "sublinear_tf": True},
    ],
    "StandardScaler": [{"with_mean": False}, {"with_std": False}],
}
"""Parameters, beside the default ones, that take another way through the code."""

FEWER: dict[str, dict[str, Any]] = {
    "HistGradientBoostingClassifier": {"max_iter": 10},
    "HistGradientBoostingRegressor": {"max_iter": 10},
    "MLPClassifier": {"max_iter": 3},
    "MLPRegressor": {"max_iter": 3},
}
"""Parameters of the first instances, where the default ones only have more of the same done."""


def _forests(cls: type[Any]) -> list[Any]:
    return [
        cls(n_estimators=3),
        cls(n_estimators=4, bootstrap=False, max_features="log2"),
        cls(n_estimators=2, bootstrap=True, min_samples_leaf=0.05, max_depth=4),
    ]


def _pipelines(cls: type[Any]) -> list[Any]:
    rows: list[list[Any]] = [
        [StandardScaler(), KMeans(3)],
        [MinMaxScaler(), StandardScaler(with_mean=False), KMeans(2, max_iter=50, tol=1e-3)],
        [StandardScaler(quantize=True), QuantizedKMeans(2)],
        [FunctionTransformer(np.abs), MinMaxScaler(clip=True), "passthrough", KMeans(2)],
        [StandardScaler(), DivideAndConquerKMeans(2), MinMaxScaler()],
    ]
    return [make_pipeline(*steps) for steps in rows]


def _column_transformers(cls: type[Any]) -> list[Any]:
    nested = make_pipeline(MinMaxScaler(clip=True), StandardScaler())
    return [
        cls([("one", StandardScaler(), [0]), ("two", MinMaxScaler(), slice(1, None))]),
        cls([("one", nested, [1, 0]), ("gone", "drop", [0])], remainder="passthrough"),
    ]


def _scaled_ridge() -> Any:
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), Ridge())


MADE: dict[str, Callable[[type[Any]], list[Any]]] = {
    "BaggingClassifier": lambda cls: [
        cls(DecisionTreeClassifier(max_depth=3), n_estimators=2, max_features=0.7),
        cls(ensemble.RandomForestClassifier(2), n_estimators=3, max_samples=0.5, bootstrap=False),
    ],
    "BaggingRegressor": lambda cls: [
        cls(KNeighborsRegressor(1), n_estimators=2, max_samples=0.5),
        cls(linear_model.Ridge(), n_estimators=2, max_features=0.7),
    ],
    "CategoricalNB": lambda cls: [  # which predict what was deleted, too
        cls(min_categories=16),
        cls(min_categories=16, alpha=0.0, fit_prior=False, classes=[0, 1, 2, 7]),
    ],
    "ColumnTransformer": _column_transformers,
    "Embedding": lambda cls: [  # which is listed where torch is installed
        cls("neural.backbones.any_width"),
        cls("neural.backbones.moments", batch_size=2),
    ],
    "ExtraTreesClassifier": _forests,
    "ExtraTreesRegressor": _forests,
    "Pipeline": _pipelines,
    "RandomForestClassifier": _forests,
    "RandomForestRegressor": _forests,
    "Refit": lambda cls: [
        cls(_scaled_ridge()),
        cls(RandomForestClassifier(3, max_depth=4)),
        cls(KNeighborsRegressor(1)),
    ],
    "ShardedClassifier": lambda cls: [
        cls(DecisionTreeClassifier(max_depth=3), n_shards=3),
        cls(SGDClassifier(), n_shards=2, n_slices=3),
        cls(ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2), n_shards=2),
    ],
    "ShardedRegressor": lambda cls: [
        cls(Ridge(), n_shards=3),
        cls(make_pipeline(StandardScaler(), linear_model.Ridge()), n_shards=3),
        cls(_scaled_ridge(), n_shards=2),
    ],
}
"""Estimators that are made of others, or need parameters to be what the tests of the law ask."""


def instances_of(name: str, cls: type[Any], tags: dict[str, Any]) -> list[Any]:
    """Unfitted instances of one estimator."""
    if name in MADE:
        return MADE[name](cls)
    if tags["meta"]:
        raise AssertionError(
            f"{name} is made of other estimators; expected instances to test it by; add it to MADE"
        )
    return [cls(), *(cls(**params) for params in VARIANTS.get(name, []))]


def law_instances() -> Iterator[Any]:
    """Unfitted instances of every estimator of erasable."""
    for name, cls, tags in erasable.all_estimators():
        yield from instances_of(name, cls, tags)


def first_instances() -> list[Any]:
    """Return one unfitted instance of every estimator."""
    return [
        instances_of(*item)[0].set_params(**FEWER.get(item[0], {}))
        for item in erasable.all_estimators()
    ]


def other_instances() -> list[Any]:
    """Return those that take another way through the code."""
    return [one for item in erasable.all_estimators() for one in instances_of(*item)[1:]]

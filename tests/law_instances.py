"""The estimators on which the law is tested: each as it comes, meta-estimators as they supply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import erasable

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "BernoulliNB": [{"alpha": 0.0, "binarize": 1.5, "fit_prior": False}],
    "CountVectorizer": [
        {"max_features": 5, "max_df": 0.4},
        {"ngram_range": (1, 2), "binary": True},
    ],
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
    "KMeans": [{"n_clusters": 3}, {"n_clusters": 2, "max_iter": 100, "tol": 1e-3}],
    "KNeighborsClassifier": [{"n_neighbors": 2, "weights": "distance", "leaf_size": 2}],
    "KNeighborsRegressor": [{"n_neighbors": 3, "algorithm": "brute", "metric": "manhattan"}],
    "LinearRegression": [{"fit_intercept": False}],
    "LogisticRegression": [
        {"C": 100.0, "fit_intercept": False},
        {"class_weight": "balanced"},
        {"C": 1e4, "classes": [0, 1, 2, 5]},
    ],
    "MinMaxScaler": [{"feature_range": (-1, 1)}],
    "MultinomialNB": [{"alpha": 0.0, "classes": [0, 1, 2, 5]}, {"class_prior": [1, 1, 1]}],
    "NadarayaWatson": [{"bandwidth": 0.3, "kernel": "tricube"}],
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


def instances_of(name: str, cls: type[Any], tags: dict[str, Any]) -> list[Any]:
    """Unfitted instances of one estimator."""
    if hasattr(cls, "_law_instances"):
        return list(cls._law_instances())
    if tags["meta"]:
        raise AssertionError(
            f"{name} is made of other estimators; expected instances to test it by; "
            "give it a classmethod _law_instances()"
        )
    return [cls(), *(cls(**params) for params in VARIANTS.get(name, []))]


def law_instances() -> Iterator[Any]:
    """Unfitted instances of every estimator of erasable."""
    for name, cls, tags in erasable.all_estimators():
        yield from instances_of(name, cls, tags)


def first_instances() -> list[Any]:
    """Return one unfitted instance of every estimator."""
    return [instances_of(*item)[0] for item in erasable.all_estimators()]


def other_instances() -> list[Any]:
    """Return those that take another way through the code."""
    return [one for item in erasable.all_estimators() for one in instances_of(*item)[1:]]

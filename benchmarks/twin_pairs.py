"""Our estimators beside their twins of scikit-learn, where one line does not make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.compose
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.kernel_approximation
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.tree
from twin_data import adult

from erasable import (
    compose,
    ensemble,
    feature_extraction,
    kernel,
    linear_model,
)
from erasable import preprocessing as ours
from erasable.pipeline import make_pipeline

theirs = sklearn.preprocessing
Pair = tuple[Any, Any]


def _columns(room: Any, encoder: Any) -> list[Any]:
    frame = adult(50).X
    numbers = list(frame.select_dtypes("number"))
    texts = [name for name in frame if name not in numbers]
    return [("numbers", room.StandardScaler(), numbers), ("texts", encoder, texts)]


def adult_pipelines() -> Pair:
    unknown = {"handle_unknown": "ignore"}
    return (
        make_pipeline(
            compose.ColumnTransformer(_columns(ours, ours.OneHotEncoder(**unknown))),
            linear_model.LogisticRegression(),
        ),
        sklearn.pipeline.make_pipeline(
            sklearn.compose.ColumnTransformer(_columns(theirs, theirs.OneHotEncoder(**unknown))),
            sklearn.linear_model.LogisticRegression(max_iter=1000),
        ),
    )


def sms_pipelines() -> Pair:
    text = sklearn.feature_extraction.text
    return (
        make_pipeline(feature_extraction.TfidfVectorizer(), linear_model.LogisticRegression()),
        sklearn.pipeline.make_pipeline(
            text.TfidfVectorizer(), sklearn.linear_model.LogisticRegression(max_iter=1000)
        ),
    )


def fourier() -> Pair:
    sampler = sklearn.kernel_approximation.RBFSampler(gamma=0.01, random_state=0)
    return (
        kernel.RandomFourierRidge(gamma=0.01, random_state=0),
        sklearn.pipeline.make_pipeline(sampler, sklearn.linear_model.Ridge()),
    )


def nothing(model: Any) -> None:
    return None


def one_row(model: Any) -> Any:
    return model.predict(np.zeros((1, model.n_features_in_)))


def sharded_boosting(**shorter: float) -> Callable[[], Pair]:
    """32 shards of boosting against one of all records, which is never shortened."""
    boosting = sklearn.ensemble.HistGradientBoostingClassifier(random_state=0)
    shard = sklearn.ensemble.HistGradientBoostingClassifier(random_state=0, **shorter)
    return lambda: (ensemble.ShardedClassifier(shard, n_shards=32, random_state=0), boosting)


def sharded_gradients() -> Pair:
    gradients = sklearn.linear_model.SGDClassifier(loss="log_loss", random_state=0)
    return (
        ensemble.ShardedClassifier(gradients, n_shards=8, n_slices=8, random_state=0),
        gradients,
    )


def bags() -> Pair:
    tree = sklearn.tree.DecisionTreeClassifier(min_samples_leaf=20)
    return (
        ensemble.BaggingClassifier(tree, n_estimators=10, random_state=0),
        sklearn.ensemble.BaggingClassifier(tree, n_estimators=10, random_state=0),
    )


def coefficients(model: Any) -> Any:
    return (model[-1] if hasattr(model, "steps") else model).coef_


def forests(ours: Any, theirs: Any) -> Callable[[], Pair]:
    return lambda: (ours(random_state=0), theirs(random_state=0))


forest_classifiers = forests(
    ensemble.RandomForestClassifier, sklearn.ensemble.RandomForestClassifier
)

"""Estimators for the ensembles, data to learn from, and scikit-learn's fits shard by shard."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from erasable.core.tape import Stream, Tape
from erasable.refit._fitting import seeds_of

WHOLE: dict[str, Any] = {
    "linear": LogisticRegression(),
    "no probabilities": SVC(),
    "no random state": GaussianNB(),
    "tree": DecisionTreeClassifier(max_features=2),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
    "pipeline": make_pipeline(StandardScaler(), RidgeClassifier()),
    "regression": Ridge(),
    "neighbours": KNeighborsRegressor(2),
    "regression tree": DecisionTreeRegressor(max_features=1),
}

SLICED: dict[str, Any] = {
    "by gradients": SGDClassifier(),
    "sums": GaussianNB(),
    "network": MLPClassifier(hidden_layer_sizes=(4,)),
    "regression network": MLPRegressor(hidden_layer_sizes=(3,)),
}
"""They learn slice by slice; a network has a generator and moments that must come along."""


class Unseeded(ClassifierMixin, BaseEstimator):
    """Draws from NumPy's global generator, and can learn slice by slice."""

    def fit(self, X: Any, y: Any) -> Unseeded:
        return self.partial_fit(X, y, classes=np.unique(y))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Unseeded:
        if classes is not None:
            self.classes_ = classes
        self.noise_ = np.random.normal(size=X.shape[1])
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


class Converting(RegressorMixin, BaseEstimator):
    """Cannot be cloned: its constructor changes what it is given."""

    def __init__(self, widths: Any = (1, 2)) -> None:
        self.widths = [float(width) for width in widths]

    def fit(self, X: Any, y: Any) -> Converting:
        return self


class Strict(RegressorMixin, BaseEstimator):
    """Learns the mean of three records or more."""

    def fit(self, X: Any, y: Any) -> Strict:
        if len(X) < 3:
            raise ValueError("too few rows")
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


def table(base: Any, n: int = 60) -> tuple[Any, Any, Any, Any]:
    """Records of three classes, which differ, with ids and groups of three."""
    rng = np.random.default_rng(11)
    place = rng.permutation(n) % 3
    X = rng.normal(size=(n, 3)) + 2.0 * place[:, None]
    y: Any = np.array(["ash", "elm", "oak"], dtype=object)[place]
    if not is_classifier(base):
        y = X @ [1.0, 2.0, -1.0] + rng.normal(size=n)
    return X, y, rng.permutation(7 * n)[:n], rng.permutation(n) // 3


def assigned(seed: int, owners: Any, n: int, step: int = 0) -> Any:
    """The shard of each owner, one by one and by the definition: a hash cut into n parts."""
    tape = Tape(seed)
    draws = [tape.uniform(tape.record_keys(np.array([each])), Stream.LEAF, step) for each in owners]
    return np.array([int(float(draw[0]) * n) for draw in draws])


def in_order(seed: int, ids: Any) -> Any:
    """Positions in the order of the record keys."""
    return np.argsort(Tape(seed).record_keys(np.asarray(ids)))


def fitted(base: Any, tape: Tape, X: Any, y: Any, **more: Any) -> Any:
    """scikit-learn's own fit, with the seeds of a tape."""
    return clone(base).set_params(**seeds_of(base, tape)).fit(X, y, **more)

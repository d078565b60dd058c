"""Estimators of many kinds for `Refit`, and parts that somebody wrote at home."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import Birch, KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.random_projection import SparseRandomProjection
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

ESTIMATORS: dict[str, Any] = {
    "linear": LogisticRegression(),
    "by gradients": SGDClassifier(max_iter=5, tol=None),
    "support vectors": SVC(),
    "tree": DecisionTreeRegressor(max_features=1),
    "forest": RandomForestClassifier(4),
    "boosting": GradientBoostingClassifier(n_estimators=3, subsample=0.7),
    "histogram boosting": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3),
    "weighted votes": AdaBoostClassifier(n_estimators=3),
    "bags": BaggingRegressor(Ridge(), n_estimators=3),
    "votes": VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"),
    "calibrated": CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2),
    "neighbours": KNeighborsClassifier(3, algorithm="kd_tree"),
    "network": MLPClassifier((4,), max_iter=300, tol=1e-2),
    "mixture": GaussianMixture(2),
    "clusters": KMeans(3),
    "a tree of clusters": Birch(n_clusters=2, threshold=0.5),
    "outliers": IsolationForest(n_estimators=4),
    "process": GaussianProcessRegressor(optimizer=None),
    "search": GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=3),
    "components": PCA(2),
    "sparse projection": SparseRandomProjection(2),
    "splines": make_pipeline(SplineTransformer(n_knots=3), Ridge()),
    "chosen columns": make_pipeline(SelectKBest(k=2), GaussianNB()),
    "columns": make_pipeline(
        ColumnTransformer([("x", StandardScaler(), [0, 2])], remainder="passthrough"), Ridge()
    ),
    "a scaled target": TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    "a function": make_pipeline(
        SelectKBest(k=3),
        TruncatedSVD(2, algorithm="randomized"),
        SGDClassifier(max_iter=5, tol=None),
    ),
    "words": make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
}


class Chancy(RegressorMixin, BaseEstimator):
    """Draws from NumPy's global generator."""

    def fit(self, X: Any, y: Any) -> Chancy:
        self.coef_ = np.random.normal(size=np.shape(X)[1])
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X) @ self.coef_


class Counting(RegressorMixin, BaseEstimator):
    """Remembers how often anything of its class was fitted: no function of the data either."""

    fits = 0

    def fit(self, X: Any, y: Any) -> Counting:
        Counting.fits += 1
        self.count_ = Counting.fits
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.count_)


class Homemade(ClassifierMixin, BaseEstimator):
    """Keeps to the rules: draws from its random_state alone, and learns arrays."""

    def __init__(self, tilt: float = 0.5, random_state: Any = None) -> None:
        self.tilt = tilt
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Homemade:
        rng = np.random.default_rng(self.random_state)
        X = np.asarray(X, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        means = [X[codes == k].mean(axis=0) for k in range(self.classes_.size)]
        self.means_ = np.array(means) + 1e-3 * rng.normal(size=X.shape[1])
        self.first_ = X[0].copy()
        return self

    def predict(self, X: Any) -> Any:
        far = np.asarray(X, dtype=np.float64)[:, None] - self.means_
        return self.classes_[(far**2).sum(axis=2).argmin(axis=1)]


class Holding(RegressorMixin, BaseEstimator):
    """Holds something of which no plain copy can be made."""

    def fit(self, X: Any, y: Any) -> Holding:
        self.files_ = open  # any function of Python's own
        self.lock_ = memoryview(b"bytes")
        return self


class Failing(RegressorMixin, BaseEstimator):
    """Tells a value of the data in its complaint."""

    def fit(self, X: Any, y: Any) -> Failing:
        raise ValueError("cannot learn from text: 'secret'\nreally")


class Adding(TransformerMixin, BaseEstimator):
    """Names a column of the frame that it expects."""

    def fit(self, X: Any, y: Any = None) -> Adding:
        self.mean_ = float(np.mean(X["age"].to_numpy()))
        return self

    def transform(self, X: Any) -> Any:
        return X["age"].to_numpy()[:, None] - self.mean_


def shouted(values: Any) -> Any:
    return np.char.upper(np.asarray(values, dtype=str))


ONE_DIMENSIONAL = IsotonicRegression()

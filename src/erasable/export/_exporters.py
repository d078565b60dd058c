"""A table that says which estimator of scikit-learn each estimator becomes.

A row of the table names scikit-learn's class, and the fitted attributes that are copied; where more
is needed, it is a function. Nothing of erasable is in what they return.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import sklearn.ensemble
import sklearn.tree

from erasable.cluster import DBSCAN, DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.compose import ColumnTransformer
from erasable.core.attachment import Attachment
from erasable.core.errors import ExportError
from erasable.decomposition import PCA
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.export import _compositions, _copies, _encoders, _ensembles, _neighbors, _trees
from erasable.export._source import Source, set_names
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.kernel import NadarayaWatson, RandomFourierRidge
from erasable.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    SegmentedRegression,
)
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.neighbors import (
    KernelDensity,
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestCentroid,
)
from erasable.neural_network import MLPClassifier, MLPRegressor
from erasable.pipeline import Pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.random_projection import GaussianRandomProjection, SparseRandomProjection
from erasable.recommend import ItemNeighbors
from erasable.refit import Refit
from erasable.svm import LinearSVC, LinearSVR
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor

Exporter = Callable[[Source], Any]


def _tree(theirs: type[Any]) -> Exporter:
    return partial(_trees.decision_tree, theirs=theirs)


def _forest(theirs: type[Any]) -> Exporter:
    return partial(_trees.forest, theirs=theirs)


def _boosting(theirs: type[Any]) -> Exporter:
    return partial(_trees.boosting, theirs=theirs)


EXPORTERS: Mapping[type[Any], Exporter] = {
    BaggingClassifier: _ensembles.bagging,
    BaggingRegressor: _ensembles.bagging,
    BernoulliNB: _copies.BERNOULLI_NB,
    CategoricalNB: _copies.CATEGORICAL_NB,
    ColumnTransformer: _compositions.column_transformer,
    CountVectorizer: _encoders.count_vectorizer,
    DecisionTreeClassifier: _tree(sklearn.tree.DecisionTreeClassifier),
    DecisionTreeRegressor: _tree(sklearn.tree.DecisionTreeRegressor),
    DivideAndConquerKMeans: _copies.k_means,
    ExtraTreesClassifier: _forest(sklearn.ensemble.ExtraTreesClassifier),
    ExtraTreesRegressor: _forest(sklearn.ensemble.ExtraTreesRegressor),
    GaussianNB: _copies.GAUSSIAN_NB,
    GaussianRandomProjection: _copies.GAUSSIAN_PROJECTION,
    HistGradientBoostingClassifier: _boosting(sklearn.ensemble.HistGradientBoostingClassifier),
    HistGradientBoostingRegressor: _boosting(sklearn.ensemble.HistGradientBoostingRegressor),
    KernelDensity: _neighbors.kernel_density,
    KMeans: _copies.k_means,
    KNeighborsClassifier: _neighbors.neighbors_classifier,
    KNeighborsRegressor: _neighbors.neighbors_regressor,
    LinearRegression: _copies.LINEAR_REGRESSION,
    LinearSVC: _copies.LINEAR_SVC,
    LinearSVR: _copies.linear_svr,
    LogisticRegression: _copies.LOGISTIC_REGRESSION,
    MLPClassifier: _copies.perceptron,
    MLPRegressor: _copies.perceptron,
    MaxAbsScaler: _copies.MAX_ABS_SCALER,
    MinMaxScaler: _copies.MIN_MAX_SCALER,
    MultinomialNB: _copies.MULTINOMIAL_NB,
    NearestCentroid: _copies.NEAREST_CENTROID,
    OneHotEncoder: _encoders.one_hot,
    OrdinalEncoder: _encoders.ordinal,
    PCA: _copies.PRINCIPAL_COMPONENTS,
    Pipeline: _compositions.pipeline,
    QuantizedKMeans: _copies.k_means,
    RandomForestClassifier: _forest(sklearn.ensemble.RandomForestClassifier),
    RandomForestRegressor: _forest(sklearn.ensemble.RandomForestRegressor),
    RandomFourierRidge: _copies.random_fourier_ridge,
    Refit: _compositions.refit,
    Ridge: _copies.RIDGE,
    RobustScaler: _copies.ROBUST_SCALER,
    ShardedClassifier: _ensembles.sharded_classifier,
    ShardedRegressor: _ensembles.sharded_regressor,
    SimpleImputer: _encoders.imputer,
    SparseRandomProjection: _copies.SPARSE_PROJECTION,
    StandardScaler: _copies.STANDARD_SCALER,
    TfidfVectorizer: _encoders.tfidf_vectorizer,
}
"""What becomes of a fitted model of each class."""

INSTEAD: Mapping[type[Any], str] = {
    DBSCAN: "it predicts nothing: read its labels_, and fit KNeighborsClassifier(1) to them",
    ItemNeighbors: "read its similarities with `similar`, or deploy the model itself",
    NadarayaWatson: "use KNeighborsRegressor(weights='distance') or RandomFourierRidge",
    SegmentedRegression: "use a decision tree, RandomFourierRidge or Ridge",
}
"""What to use in the place of a model that scikit-learn has no class for."""


def export(
    model: Any, at_fit: Callable[[str], Any], held: Attachment | None, *, records: bool
) -> Any:
    """Make a fitted estimator of scikit-learn; see `erasable.core.estimator.Erasable.to_sklearn`.

    `at_fit` returns a parameter of the fitted model as it was at `fit`; `held` are its records.
    """
    cls = type(model)
    if cls in EXPORTERS:
        source = Source(model, lambda name: copy.deepcopy(at_fit(name)), held, records)
        made = EXPORTERS[cls](source)
        set_names(made, source.names)
        return made
    instead = INSTEAD.get(cls, "save the model, and load it where erasable is installed")
    raise ExportError(
        f"scikit-learn has no estimator like {cls.__name__}; expected one of those that it has; "
        f"{instead}"
    )

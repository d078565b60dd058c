"""The everyday estimators beside their twins of scikit-learn, each on data of a stated kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sklearn.cluster
import sklearn.decomposition
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.impute
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.preprocessing
import sklearn.svm
import sklearn.tree
from twin_data import (
    Data,
    adult,
    adult_codes,
    adult_texts,
    blobs,
    clusters,
    covertype,
    housing,
    million,
    near,
    of_kind,
    sms,
)
from twin_pairs import (
    Pair,
    adult_pipelines,
    bags,
    coefficients,
    forest_classifiers,
    forests,
    fourier,
    nothing,
    one_row,
    sharded_boosting,
    sharded_gradients,
    sms_pipelines,
)

import erasable
from erasable import (
    cluster,
    decomposition,
    ensemble,
    feature_extraction,
    kernel,
    linear_model,
    naive_bayes,
    neighbors,
    svm,
    tree,
)
from erasable import preprocessing as ours


@dataclass(frozen=True)
class Twin:
    """One line of the page.

    Attributes
    ----------
    title : str
    make : callable
        Returns our estimator and scikit-learn's, unfitted.
    data : callable
        Takes the number of records (None: all) and returns `Data`.
    use : callable
        What is asked of a model after a deletion, so that lazy work is counted.
    aims : dict
        ``bare_us``, ``used_us``: microseconds at most; ``bare_x``, ``used_x``: times a refit of
        scikit-learn's at least; ``fit``: times its fit at most; ``person``: times a single
        deletion that 100 at once take at most.
    lazy : bool
        Whether it learns nothing before it is asked.
    """

    title: str
    make: Callable[[], Pair]
    data: Callable[[int | None], Data]
    use: Callable[[Any], Any]
    aims: dict[str, float]
    lazy: bool = False


BARE = {"bare_us": 50.0, "fit": 3.0}
SHARDED = {"bare_x": 20.0, "fit": 1.5}
TWINS: dict[str, Twin] = {
    "ridge": Twin(
        "Ridge",
        lambda: (linear_model.Ridge(), sklearn.linear_model.Ridge()),
        of_kind("regression"),
        coefficients,
        {"bare_us": 60.0, "used_us": 150.0, "fit": 3.0},
    ),
    "least-squares": Twin(
        "LinearRegression",
        lambda: (linear_model.LinearRegression(), sklearn.linear_model.LinearRegression()),
        of_kind("regression"),
        coefficients,
        {"fit": 3.0},
    ),
    "logistic": Twin(
        "LogisticRegression",
        lambda: (linear_model.LogisticRegression(), sklearn.linear_model.LogisticRegression()),
        of_kind("two"),
        coefficients,
        {"bare_x": 50.0, "used_x": 8.0, "fit": 2.0},
    ),
    "logistic-three": Twin(
        "LogisticRegression, 3 classes",
        lambda: (linear_model.LogisticRegression(), sklearn.linear_model.LogisticRegression()),
        of_kind("three"),
        coefficients,
        {},
    ),
    "linear-svc": Twin(
        "LinearSVC",
        lambda: (svm.LinearSVC(), sklearn.svm.LinearSVC(dual=False)),
        of_kind("two"),
        coefficients,
        {"used_x": 50.0, "fit": 2.0},
    ),
    "linear-svc-three": Twin(
        "LinearSVC, 3 classes",
        lambda: (svm.LinearSVC(), sklearn.svm.LinearSVC(dual=False)),
        of_kind("three"),
        coefficients,
        {"used_x": 50.0, "fit": 2.0},
    ),
    "linear-svr": Twin(
        "LinearSVR",
        lambda: (
            svm.LinearSVR(epsilon=0.1),
            sklearn.svm.LinearSVR(epsilon=0.1, loss="squared_epsilon_insensitive", dual=False),
        ),
        of_kind("regression"),
        coefficients,
        {"used_x": 50.0, "fit": 2.0},
    ),
    "gaussian-bayes": Twin(
        "GaussianNB",
        lambda: (naive_bayes.GaussianNB(), sklearn.naive_bayes.GaussianNB()),
        of_kind("three"),
        lambda model: model.theta_,
        BARE,
    ),
    "multinomial-bayes": Twin(
        "MultinomialNB",
        lambda: (naive_bayes.MultinomialNB(), sklearn.naive_bayes.MultinomialNB()),
        of_kind("counts"),
        lambda model: model.feature_log_prob_,
        BARE,
    ),
    "bernoulli-bayes": Twin(
        "BernoulliNB",
        lambda: (naive_bayes.BernoulliNB(), sklearn.naive_bayes.BernoulliNB()),
        of_kind("counts"),
        lambda model: model.feature_log_prob_,
        BARE,
    ),
    "categorical-bayes": Twin(
        "CategoricalNB",
        lambda: (naive_bayes.CategoricalNB(), sklearn.naive_bayes.CategoricalNB()),
        of_kind("codes"),
        lambda model: model.feature_log_prob_,
        BARE,
    ),
    "neighbors-classes": Twin(
        "KNeighborsClassifier",
        lambda: (neighbors.KNeighborsClassifier(), sklearn.neighbors.KNeighborsClassifier()),
        lambda n: near(n or 100_000, 20, classes=True),
        one_row,
        {"bare_us": 100.0, "fit": 1.5},
        lazy=True,
    ),
    "neighbors": Twin(
        "KNeighborsRegressor",
        lambda: (neighbors.KNeighborsRegressor(), sklearn.neighbors.KNeighborsRegressor()),
        lambda n: near(n or 100_000, 20, classes=False),
        one_row,
        {"bare_us": 100.0, "fit": 1.5},
        lazy=True,
    ),
    "neighbors-tree": Twin(
        "KNeighborsRegressor, 5 features",
        lambda: (neighbors.KNeighborsRegressor(), sklearn.neighbors.KNeighborsRegressor()),
        lambda n: near(n or 100_000, 5, classes=False),
        one_row,
        {"bare_us": 100.0, "fit": 1.5},
        lazy=True,
    ),
    "nearest-centroid": Twin(
        "NearestCentroid",
        lambda: (neighbors.NearestCentroid(), sklearn.neighbors.NearestCentroid()),
        lambda n: near(n or 100_000, 20, classes=True),
        one_row,
        {"bare_us": 100.0, "fit": 1.5},
    ),
    "nadaraya-watson": Twin(
        "NadarayaWatson (against KNeighborsRegressor)",
        lambda: (kernel.NadarayaWatson(0.3), sklearn.neighbors.KNeighborsRegressor()),
        lambda n: near(n or 20_000, 5, classes=False),
        one_row,
        {"bare_us": 100.0},
        lazy=True,
    ),
    "dbscan": Twin(
        "DBSCAN",
        lambda: (cluster.DBSCAN(2.5), sklearn.cluster.DBSCAN(2.5)),
        lambda n: blobs(n or 20_000),
        lambda model: model.labels_,
        {"bare_us": 500.0, "used_x": 50.0, "fit": 1.5},
    ),
    "standard-scaler": Twin(
        "StandardScaler",
        lambda: (ours.StandardScaler(), sklearn.preprocessing.StandardScaler()),
        of_kind("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "min-max-scaler": Twin(
        "MinMaxScaler",
        lambda: (ours.MinMaxScaler(), sklearn.preprocessing.MinMaxScaler()),
        of_kind("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "max-abs-scaler": Twin(
        "MaxAbsScaler",
        lambda: (ours.MaxAbsScaler(), sklearn.preprocessing.MaxAbsScaler()),
        of_kind("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "robust-scaler": Twin(
        "RobustScaler",
        lambda: (ours.RobustScaler(), sklearn.preprocessing.RobustScaler()),
        of_kind("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "one-hot-encoder": Twin(
        "OneHotEncoder (Adult)",
        lambda: (ours.OneHotEncoder(), sklearn.preprocessing.OneHotEncoder()),
        adult_texts,
        lambda model: model.categories_,
        {"fit": 3.0},
    ),
    "ordinal-encoder": Twin(
        "OrdinalEncoder (Adult)",
        lambda: (ours.OrdinalEncoder(), sklearn.preprocessing.OrdinalEncoder()),
        adult_texts,
        lambda model: model.categories_,
        {"fit": 3.0},
    ),
    "imputer": Twin(
        "SimpleImputer",
        lambda: (ours.SimpleImputer(), sklearn.impute.SimpleImputer()),
        of_kind("gaps"),
        lambda model: model.statistics_,
        {"fit": 3.0},
    ),
    "imputer-median": Twin(
        "SimpleImputer, median",
        lambda: (
            ours.SimpleImputer(strategy="median"),
            sklearn.impute.SimpleImputer(strategy="median"),
        ),
        of_kind("gaps"),
        lambda model: model.statistics_,
        {"fit": 3.0},
    ),
    "forest-adult": Twin(
        "RandomForestClassifier (Adult)",
        forest_classifiers,
        adult_codes,
        nothing,
        {"bare_x": 60.0, "used_x": 60.0, "fit": 3.0, "person": 20.0},
    ),
    "forest-covertype": Twin(
        "RandomForestClassifier (covertype)",
        forest_classifiers,
        covertype,
        nothing,
        {"fit": 3.0, "person": 20.0},
    ),
    "forest-clusters": Twin(
        "RandomForestClassifier",
        forest_classifiers,
        clusters,
        nothing,
        {"bare_x": 25.0, "used_x": 25.0, "fit": 3.0, "person": 20.0},
    ),
    "forest-housing": Twin(
        "RandomForestRegressor (housing)",
        forests(ensemble.RandomForestRegressor, sklearn.ensemble.RandomForestRegressor),
        housing,
        nothing,
        {"fit": 3.0},
    ),
    "extra-trees-adult": Twin(
        "ExtraTreesClassifier (Adult)",
        forests(ensemble.ExtraTreesClassifier, sklearn.ensemble.ExtraTreesClassifier),
        adult_codes,
        nothing,
        {"fit": 3.0},
    ),
    "extra-trees-housing": Twin(
        "ExtraTreesRegressor (housing)",
        forests(ensemble.ExtraTreesRegressor, sklearn.ensemble.ExtraTreesRegressor),
        housing,
        nothing,
        {"fit": 3.0},
    ),
    "tree-adult": Twin(
        "DecisionTreeClassifier (Adult)",
        forests(tree.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier),
        adult_codes,
        nothing,
        {"fit": 3.0},
    ),
    "pca": Twin(
        "PCA",
        lambda: (decomposition.PCA(5), sklearn.decomposition.PCA(5)),
        of_kind("two"),
        lambda model: model.components_,
        {"fit": 3.0},
    ),
    "count-vectorizer": Twin(
        "CountVectorizer (SMS)",
        lambda: (
            feature_extraction.CountVectorizer(),
            sklearn.feature_extraction.text.CountVectorizer(),
        ),
        sms,
        nothing,
        {"fit": 3.0},
    ),
    "tfidf-vectorizer": Twin(
        "TfidfVectorizer (SMS)",
        lambda: (
            feature_extraction.TfidfVectorizer(),
            sklearn.feature_extraction.text.TfidfVectorizer(),
        ),
        sms,
        lambda model: model.idf_,
        {"fit": 3.0},
    ),
    "tfidf-logistic": Twin(
        "TfidfVectorizer -> LogisticRegression (SMS)",
        sms_pipelines,
        sms,
        coefficients,
        {"used_x": 5.0, "fit": 3.0},
    ),
    "columns-logistic": Twin(
        "ColumnTransformer -> LogisticRegression (Adult)",
        adult_pipelines,
        adult,
        coefficients,
        {"used_x": 10.0, "fit": 3.0},
    ),
    "fourier-ridge": Twin("RandomFourierRidge", fourier, of_kind("regression"), coefficients, {}),
    "segmented": Twin(
        "SegmentedRegression",
        lambda: (linear_model.SegmentedRegression(random_state=0), sklearn.linear_model.Ridge()),
        of_kind("regression"),
        nothing,
        {},
    ),
    "sharded-boosting": Twin(
        "ShardedClassifier, 32 x histogram boosting",
        sharded_boosting(),
        million,
        nothing,
        SHARDED,
    ),
    "sharded-boosting-adult": Twin(
        "ShardedClassifier, 32 x histogram boosting (Adult)",
        sharded_boosting(),
        adult_codes,
        nothing,
        SHARDED,
    ),
    "sharded-boosting-clusters": Twin(
        "ShardedClassifier, 32 x histogram boosting",
        sharded_boosting(),
        lambda n: clusters(n or 100_000),
        nothing,
        SHARDED,
    ),
    "sharded-short-adult": Twin(
        "ShardedClassifier, 32 x 20 rounds of 8 leaves (Adult)",
        sharded_boosting(max_iter=20, learning_rate=0.3, max_leaf_nodes=8),
        adult_codes,
        nothing,
        SHARDED,
    ),
    "sharded-short-clusters": Twin(
        "ShardedClassifier, 32 x 20 rounds of 16 leaves",
        sharded_boosting(max_iter=20, learning_rate=0.3, max_leaf_nodes=16),
        lambda n: clusters(n or 100_000),
        nothing,
        SHARDED,
    ),
    "sharded-gradients": Twin(
        "ShardedClassifier, 8 shards of 8 slices, SGDClassifier",
        sharded_gradients,
        of_kind("two"),
        nothing,
        {},
    ),
    "bagging": Twin("BaggingClassifier, 10 trees", bags, adult_codes, nothing, {}),
    "refit": Twin(
        "Refit(Ridge)",
        lambda: (erasable.Refit(sklearn.linear_model.Ridge()), sklearn.linear_model.Ridge()),
        of_kind("regression"),
        nothing,
        {},
    ),
}

# Trees draw thresholds of their own, and are as good as scikit-learn's only if it turns out so.
TREES = {
    **{name: TWINS[name] for name in TWINS if name.startswith(("forest-", "extra-", "tree-"))},
    "forest-clusters-100k": Twin(
        "RandomForestClassifier",
        forest_classifiers,
        lambda n: clusters(n or 100_000),
        nothing,
        {},
    ),
}

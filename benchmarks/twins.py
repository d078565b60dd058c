"""The everyday estimators beside their twins of scikit-learn, each on data of a stated kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import sklearn.compose
import sklearn.datasets
import sklearn.decomposition
import sklearn.ensemble
import sklearn.feature_extraction.text
import sklearn.impute
import sklearn.kernel_approximation
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.neighbors
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.tree
from data import FOLDER

import erasable
from erasable import (
    compose,
    decomposition,
    ensemble,
    feature_extraction,
    kernel,
    linear_model,
    naive_bayes,
    neighbors,
    tree,
)
from erasable import preprocessing as ours
from erasable.pipeline import make_pipeline

theirs = sklearn.preprocessing
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Data:
    """Records, with what is asked of a model on them.

    Attributes
    ----------
    X, y : what `fit` takes
    hurtful : positions of records whose deletion should cost most
    """

    X: Any
    y: Any
    hurtful: np.ndarray

    def take(self, rows: np.ndarray) -> Pair:
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return X, None if self.y is None else self.y[rows]

    def __len__(self) -> int:
        return self.X.shape[0]


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


def _extremes(X: np.ndarray) -> np.ndarray:
    """Rows at an extreme of some column, column after column."""
    order = np.argsort(X, axis=0)
    rows = np.column_stack([order[:20].T, order[-20:].T]).T.ravel()
    return np.array(list(dict.fromkeys(rows.tolist())))


@cache
def _numbers(n: int | None, kind: str) -> Data:
    n, rng = n or 100_000, np.random.default_rng(7)
    X = rng.normal(size=(n, 50)) * np.exp(rng.normal(size=50)) + rng.normal(size=50)
    score = (X - X.mean(0)) / X.std(0) @ rng.normal(size=50) / 4.0
    if kind == "regression":
        return Data(X, score + rng.normal(size=n), _extremes(X))
    y = np.digitize(score + rng.logistic(size=n), [0.0] if kind == "two" else [-1.0, 1.0])
    if kind == "counts":
        counts = rng.poisson(np.exp(0.5 * np.outer(y, rng.normal(size=50))))
        return Data(counts.astype(float), y, _extremes(counts.astype(float)))
    if kind == "codes":
        codes = rng.integers(0, 8 + y[:, None], size=(n, 50))
        return Data(codes.astype(float), y, _extremes(codes.astype(float)))
    if kind == "gaps":
        return Data(np.where(rng.random(X.shape) < 0.05, np.nan, X), None, _extremes(X))
    return Data(X, y, _extremes(X))


@cache
def near(n: int, d: int, classes: bool) -> Data:
    """Records whose targets are smooth in a few of their features."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n)
    return Data(X, np.digitize(score, [-1.0, 1.0]) if classes else score, _extremes(X))


@cache
def million(n: int | None) -> Data:
    """So many that each of 32 shards has enough for boosting: its trees cost what they cost."""
    n, rng = n or 1_000_000, np.random.default_rng(11)
    X = rng.normal(size=(n, 10))
    score = X @ rng.normal(size=10) + X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    return Data(X, (score + rng.logistic(size=n) > 0).astype(int), _extremes(X))


@cache
def adult(n: int | None) -> Data:
    frame = pd.read_csv(FOLDER / "adult" / "adult.csv.gz").replace("?", np.nan).dropna()
    frame = frame[frame["split"] == "train"].head(n).reset_index(drop=True)
    y = (frame["income"] == ">50K").to_numpy().astype(int)
    X = frame.drop(columns=["income", "split"])
    texts = X.select_dtypes(exclude="number")
    rare = texts.apply(lambda column: column.map(column.value_counts())).min(axis=1)
    return Data(X, y, np.argsort(rare.to_numpy(), kind="stable")[:200])


@cache
def adult_codes(n: int | None) -> Data:
    """Categories as whole numbers, as trees of both sides take them."""
    data = adult(n)
    codes = [data.X[name].astype("category").cat.codes for name in data.X.select_dtypes("object")]
    X = np.column_stack([data.X.select_dtypes("number"), *codes]).astype(float)
    return Data(X, data.y, data.hurtful)


@cache
def covertype(n: int | None) -> Data:
    frame = pd.read_csv(FOLDER / "covertype" / "covertype_train_15120.csv.gz").head(n)
    X = frame.drop(columns=["Id", "Cover_Type"]).to_numpy(float)
    return Data(X, frame["Cover_Type"].to_numpy(), _extremes(X[:, :10]))


@cache
def housing(n: int | None) -> Data:
    frame = pd.read_csv(FOLDER / "california_housing" / "cal_housing.csv.gz")
    frame = frame.sample(frac=1.0, random_state=0).head(n)
    X = frame.drop(columns="medianHouseValue").to_numpy(float)
    return Data(X, frame["medianHouseValue"].to_numpy(float) / 1e5, _extremes(X))


@cache
def clusters(n: int | None) -> Data:
    """20 continuous columns, half of them informative."""
    X, y = sklearn.datasets.make_classification(
        10_000 if n is None else n, 20, n_informative=10, random_state=0
    )
    return Data(X, y, _extremes(X))


def adult_texts(n: int | None) -> Data:
    data = adult(n)
    return Data(data.X.select_dtypes(exclude="number"), None, data.hurtful)


@cache
def sms(n: int | None) -> Data:
    path = FOLDER / "sms_spam" / "SMSSpamCollection.tsv.gz"
    frame = pd.read_csv(path, sep="\t", header=None, quoting=3).head(n)
    lengths = frame[1].str.len().to_numpy()
    return Data(frame[1].to_numpy(), frame[0].to_numpy(), np.argsort(-lengths)[:200])


def _of(kind: str) -> Callable[[int | None], Data]:
    return lambda n: _numbers(n, kind)


def _columns(room: Any, encoder: Any) -> list[Any]:
    frame = adult(50).X
    numbers = list(frame.select_dtypes("number"))
    texts = [name for name in frame if name not in numbers]
    return [("numbers", room.StandardScaler(), numbers), ("texts", encoder, texts)]


def _adult_pipelines() -> Pair:
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


def _sms_pipelines() -> Pair:
    text = sklearn.feature_extraction.text
    return (
        make_pipeline(feature_extraction.TfidfVectorizer(), linear_model.LogisticRegression()),
        sklearn.pipeline.make_pipeline(
            text.TfidfVectorizer(), sklearn.linear_model.LogisticRegression(max_iter=1000)
        ),
    )


def _fourier() -> Pair:
    sampler = sklearn.kernel_approximation.RBFSampler(gamma=0.01, random_state=0)
    return (
        kernel.RandomFourierRidge(gamma=0.01, random_state=0),
        sklearn.pipeline.make_pipeline(sampler, sklearn.linear_model.Ridge()),
    )


def _nothing(model: Any) -> None:
    return None


def _one_row(model: Any) -> Any:
    return model.predict(np.zeros((1, model.n_features_in_)))


def _sharded_boosting(**shorter: float) -> Callable[[], Pair]:
    """32 shards of boosting against one of all records, which is never shortened."""
    boosting = sklearn.ensemble.HistGradientBoostingClassifier(random_state=0)
    shard = sklearn.ensemble.HistGradientBoostingClassifier(random_state=0, **shorter)
    return lambda: (ensemble.ShardedClassifier(shard, n_shards=32, random_state=0), boosting)


def _sharded_gradients() -> Pair:
    gradients = sklearn.linear_model.SGDClassifier(loss="log_loss", random_state=0)
    return (
        ensemble.ShardedClassifier(gradients, n_shards=8, n_slices=8, random_state=0),
        gradients,
    )


def _bags() -> Pair:
    tree = sklearn.tree.DecisionTreeClassifier(min_samples_leaf=20)
    return (
        ensemble.BaggingClassifier(tree, n_estimators=10, random_state=0),
        sklearn.ensemble.BaggingClassifier(tree, n_estimators=10, random_state=0),
    )


def _coefficients(model: Any) -> Any:
    return (model[-1] if hasattr(model, "steps") else model).coef_


def _forests(ours: Any, theirs: Any) -> Callable[[], Pair]:
    return lambda: (ours(random_state=0), theirs(random_state=0))


_forest_classifiers = _forests(
    ensemble.RandomForestClassifier, sklearn.ensemble.RandomForestClassifier
)
BARE = {"bare_us": 50.0, "fit": 3.0}
SHARDED = {"bare_x": 20.0, "fit": 1.5}
TWINS: dict[str, Twin] = {
    "ridge": Twin(
        "Ridge",
        lambda: (linear_model.Ridge(), sklearn.linear_model.Ridge()),
        _of("regression"),
        _coefficients,
        {"bare_us": 60.0, "used_us": 150.0, "fit": 3.0},
    ),
    "least-squares": Twin(
        "LinearRegression",
        lambda: (linear_model.LinearRegression(), sklearn.linear_model.LinearRegression()),
        _of("regression"),
        _coefficients,
        {"fit": 3.0},
    ),
    "logistic": Twin(
        "LogisticRegression",
        lambda: (linear_model.LogisticRegression(), sklearn.linear_model.LogisticRegression()),
        _of("two"),
        _coefficients,
        {"bare_x": 50.0, "used_x": 8.0, "fit": 2.0},
    ),
    "logistic-three": Twin(
        "LogisticRegression, 3 classes",
        lambda: (linear_model.LogisticRegression(), sklearn.linear_model.LogisticRegression()),
        _of("three"),
        _coefficients,
        {},
    ),
    "gaussian-bayes": Twin(
        "GaussianNB",
        lambda: (naive_bayes.GaussianNB(), sklearn.naive_bayes.GaussianNB()),
        _of("three"),
        lambda model: model.theta_,
        BARE,
    ),
    "multinomial-bayes": Twin(
        "MultinomialNB",
        lambda: (naive_bayes.MultinomialNB(), sklearn.naive_bayes.MultinomialNB()),
        _of("counts"),
        lambda model: model.feature_log_prob_,
        BARE,
    ),
    "bernoulli-bayes": Twin(
        "BernoulliNB",
        lambda: (naive_bayes.BernoulliNB(), sklearn.naive_bayes.BernoulliNB()),
        _of("counts"),
        lambda model: model.feature_log_prob_,
        BARE,
    ),
    "categorical-bayes": Twin(
        "CategoricalNB",
        lambda: (naive_bayes.CategoricalNB(), sklearn.naive_bayes.CategoricalNB()),
        _of("codes"),
        lambda model: model.feature_log_prob_,
        BARE,
    ),
    "neighbors-classes": Twin(
        "KNeighborsClassifier",
        lambda: (neighbors.KNeighborsClassifier(), sklearn.neighbors.KNeighborsClassifier()),
        lambda n: near(n or 100_000, 20, classes=True),
        _one_row,
        {"bare_us": 100.0, "fit": 1.5},
        lazy=True,
    ),
    "neighbors": Twin(
        "KNeighborsRegressor",
        lambda: (neighbors.KNeighborsRegressor(), sklearn.neighbors.KNeighborsRegressor()),
        lambda n: near(n or 100_000, 20, classes=False),
        _one_row,
        {"bare_us": 100.0, "fit": 1.5},
        lazy=True,
    ),
    "neighbors-tree": Twin(
        "KNeighborsRegressor, 5 features",
        lambda: (neighbors.KNeighborsRegressor(), sklearn.neighbors.KNeighborsRegressor()),
        lambda n: near(n or 100_000, 5, classes=False),
        _one_row,
        {"bare_us": 100.0, "fit": 1.5},
        lazy=True,
    ),
    "nadaraya-watson": Twin(
        "NadarayaWatson (against KNeighborsRegressor)",
        lambda: (kernel.NadarayaWatson(0.3), sklearn.neighbors.KNeighborsRegressor()),
        lambda n: near(n or 20_000, 5, classes=False),
        _one_row,
        {"bare_us": 100.0},
        lazy=True,
    ),
    "standard-scaler": Twin(
        "StandardScaler",
        lambda: (ours.StandardScaler(), theirs.StandardScaler()),
        _of("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "min-max-scaler": Twin(
        "MinMaxScaler",
        lambda: (ours.MinMaxScaler(), theirs.MinMaxScaler()),
        _of("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "max-abs-scaler": Twin(
        "MaxAbsScaler",
        lambda: (ours.MaxAbsScaler(), theirs.MaxAbsScaler()),
        _of("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "robust-scaler": Twin(
        "RobustScaler",
        lambda: (ours.RobustScaler(), theirs.RobustScaler()),
        _of("two"),
        lambda model: model.scale_,
        BARE,
    ),
    "one-hot-encoder": Twin(
        "OneHotEncoder (Adult)",
        lambda: (ours.OneHotEncoder(), theirs.OneHotEncoder()),
        adult_texts,
        lambda model: model.categories_,
        {"fit": 3.0},
    ),
    "ordinal-encoder": Twin(
        "OrdinalEncoder (Adult)",
        lambda: (ours.OrdinalEncoder(), theirs.OrdinalEncoder()),
        adult_texts,
        lambda model: model.categories_,
        {"fit": 3.0},
    ),
    "imputer": Twin(
        "SimpleImputer",
        lambda: (ours.SimpleImputer(), sklearn.impute.SimpleImputer()),
        _of("gaps"),
        lambda model: model.statistics_,
        {"fit": 3.0},
    ),
    "imputer-median": Twin(
        "SimpleImputer, median",
        lambda: (
            ours.SimpleImputer(strategy="median"),
            sklearn.impute.SimpleImputer(strategy="median"),
        ),
        _of("gaps"),
        lambda model: model.statistics_,
        {"fit": 3.0},
    ),
    "forest-adult": Twin(
        "RandomForestClassifier (Adult)",
        _forest_classifiers,
        adult_codes,
        _nothing,
        {"bare_x": 60.0, "used_x": 60.0, "fit": 3.0, "person": 20.0},
    ),
    "forest-covertype": Twin(
        "RandomForestClassifier (covertype)",
        _forest_classifiers,
        covertype,
        _nothing,
        {"fit": 3.0, "person": 20.0},
    ),
    "forest-clusters": Twin(
        "RandomForestClassifier",
        _forest_classifiers,
        clusters,
        _nothing,
        {"bare_x": 25.0, "used_x": 25.0, "fit": 3.0, "person": 20.0},
    ),
    "forest-housing": Twin(
        "RandomForestRegressor (housing)",
        _forests(ensemble.RandomForestRegressor, sklearn.ensemble.RandomForestRegressor),
        housing,
        _nothing,
        {"fit": 3.0},
    ),
    "extra-trees-adult": Twin(
        "ExtraTreesClassifier (Adult)",
        _forests(ensemble.ExtraTreesClassifier, sklearn.ensemble.ExtraTreesClassifier),
        adult_codes,
        _nothing,
        {"fit": 3.0},
    ),
    "extra-trees-housing": Twin(
        "ExtraTreesRegressor (housing)",
        _forests(ensemble.ExtraTreesRegressor, sklearn.ensemble.ExtraTreesRegressor),
        housing,
        _nothing,
        {"fit": 3.0},
    ),
    "tree-adult": Twin(
        "DecisionTreeClassifier (Adult)",
        _forests(tree.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier),
        adult_codes,
        _nothing,
        {"fit": 3.0},
    ),
    "pca": Twin(
        "PCA",
        lambda: (decomposition.PCA(5), sklearn.decomposition.PCA(5)),
        _of("two"),
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
        _nothing,
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
        _sms_pipelines,
        sms,
        _coefficients,
        {"used_x": 5.0, "fit": 3.0},
    ),
    "columns-logistic": Twin(
        "ColumnTransformer -> LogisticRegression (Adult)",
        _adult_pipelines,
        adult,
        _coefficients,
        {"used_x": 10.0, "fit": 3.0},
    ),
    "fourier-ridge": Twin("RandomFourierRidge", _fourier, _of("regression"), _coefficients, {}),
    "segmented": Twin(
        "SegmentedRegression",
        lambda: (linear_model.SegmentedRegression(random_state=0), sklearn.linear_model.Ridge()),
        _of("regression"),
        _nothing,
        {},
    ),
    "sharded-boosting": Twin(
        "ShardedClassifier, 32 x histogram boosting",
        _sharded_boosting(),
        million,
        _nothing,
        SHARDED,
    ),
    "sharded-boosting-adult": Twin(
        "ShardedClassifier, 32 x histogram boosting (Adult)",
        _sharded_boosting(),
        adult_codes,
        _nothing,
        SHARDED,
    ),
    "sharded-boosting-clusters": Twin(
        "ShardedClassifier, 32 x histogram boosting",
        _sharded_boosting(),
        lambda n: clusters(n or 100_000),
        _nothing,
        SHARDED,
    ),
    "sharded-short-adult": Twin(
        "ShardedClassifier, 32 x 20 rounds of 8 leaves (Adult)",
        _sharded_boosting(max_iter=20, learning_rate=0.3, max_leaf_nodes=8),
        adult_codes,
        _nothing,
        SHARDED,
    ),
    "sharded-short-clusters": Twin(
        "ShardedClassifier, 32 x 20 rounds of 16 leaves",
        _sharded_boosting(max_iter=20, learning_rate=0.3, max_leaf_nodes=16),
        lambda n: clusters(n or 100_000),
        _nothing,
        SHARDED,
    ),
    "sharded-gradients": Twin(
        "ShardedClassifier, 8 shards of 8 slices, SGDClassifier",
        _sharded_gradients,
        _of("two"),
        _nothing,
        {},
    ),
    "bagging": Twin("BaggingClassifier, 10 trees", _bags, adult_codes, _nothing, {}),
    "refit": Twin(
        "Refit(Ridge)",
        lambda: (erasable.Refit(sklearn.linear_model.Ridge()), sklearn.linear_model.Ridge()),
        _of("regression"),
        _nothing,
        {},
    ),
}

# Trees draw thresholds of their own, and are as good as scikit-learn's only if it turns out so.
TREES = {
    **{name: TWINS[name] for name in TWINS if name.startswith(("forest-", "extra-", "tree-"))},
    "forest-clusters-100k": Twin(
        "RandomForestClassifier",
        _forest_classifiers,
        lambda n: clusters(n or 100_000),
        _nothing,
        {},
    ),
}

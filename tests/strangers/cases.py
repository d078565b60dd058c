"""Models whose files are changed: every estimator, and variants that save other fields.

To try another model, add a case to `cases`. Those whose names begin with "scikit-learn" hold
states of its estimators.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.preprocessing import Binarizer, FunctionTransformer

from erasable import Refit
from erasable.cluster import DBSCAN, DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.compose import ColumnTransformer
from erasable.core.records import Records
from erasable.decomposition import PCA
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.kernel import NadarayaWatson, RandomFourierRidge
from erasable.linear_model import LinearRegression, LogisticRegression, Ridge, SegmentedRegression
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.neighbors import KernelDensity, KNeighborsClassifier, KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.utils._checks.data_sets import STANDARD, suited
from law_instances import law_instances

__all__ = ["Case", "cases", "prepare"]

OF_SCIKIT_LEARN = (
    Refit,
    BaggingClassifier,
    BaggingRegressor,
    ShardedClassifier,
    ShardedRegressor,
)


@dataclass
class Case:
    """A model, what it is fitted on, and what it is asked afterwards.

    Attributes
    ----------
    name : str
    model : estimator
        Not fitted.
    X, y : records and targets
    more : dict
        Further arguments of `Records`.
    file : bytes
        The saved model, once `prepare` has fitted it.
    """

    name: str
    model: Any
    X: Any
    y: Any = None
    more: dict[str, Any] = field(default_factory=dict)
    file: bytes = b""

    @property
    def ids(self) -> Any:
        """Ids of the records."""
        return self.more.get("ids", np.arange(len(self.y)))

    def records(self) -> Records:
        """Make the records that the model holds."""
        return Records(self.X, self.y, **self.more)

    def queries(self) -> Any:
        """Return what the model is asked about."""
        return self.X[:5]


def prepare(case: Case) -> Case:
    """Fit and save the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(case.model)
        for name in model.get_params(deep=True):
            if name.split("__")[-1] == "random_state":
                model.set_params(**{name: 7})
        model.fit(case.records())
        file = io.BytesIO()
        model.save(file)
    case.file = file.getvalue()
    return case


def cases() -> list[Case]:
    """Return them, not prepared."""
    every = [*_of_every_estimator(), *_of_other_fields(), *_of_compositions()]
    for number, case in enumerate(every):
        case.name = " ".join(f"{case.name} [{number}]".split())
    return every


def _of_every_estimator() -> Iterator[Case]:
    data = next(data for data in STANDARD if data.name == "duplicated rows")
    for model in law_instances():
        of_model = suited([data], model)[0]
        name = repr(clone(model))
        if isinstance(model, OF_SCIKIT_LEARN):
            name = f"scikit-learn: {name}"
        y = np.array(of_model.y)
        X = of_model.X.tolist() if of_model.X.ndim == 1 else np.array(of_model.X)
        yield Case(name, model, X, y, {"ids": np.array(of_model.ids)})


def _table(n: int = 40, d: int = 3) -> Any:
    return np.random.default_rng(11).normal(size=(n, d)) + np.arange(n)[:, None] % 3


def _texts(n: int = 40) -> list[str]:
    words = ["ink", "elm", "oak", "fir", "ash", "yew", "über", "dune"]
    rng = np.random.default_rng(12)
    return [" ".join(rng.choice(words, size=6).tolist()) for _ in range(n)]


def _of_other_fields() -> Iterator[Case]:
    """Yield models whose states have fields that those of the law's instances do not have."""
    X, n = _table(), 40
    numbers = X @ np.array([1.0, -2.0, 0.5])
    classes = np.arange(n) % 3
    words = np.array(["no", "yes", "perhaps"], dtype=object)[classes]
    weights = {"sample_weight": 1.0 + np.arange(n) % 4}
    groups = {"groups": np.arange(n) // 4}
    counts = np.abs(np.rint(X))
    sparse = csr_array(np.where(X > 1.0, X, 0.0))
    several = np.column_stack([numbers, -numbers])
    pairs = np.column_stack([classes, classes[::-1]])
    for model, y, more in (
        (LinearRegression(), numbers, weights),
        (Ridge(), several, {}),
        (RandomFourierRidge(n_components=5), numbers, weights),
        (LogisticRegression(), words, weights),
        (LogisticRegression(), classes == 1, {}),
        (GaussianNB(), words, weights),
        (KNeighborsClassifier(2), pairs, {}),
        (KNeighborsClassifier(2), words, {"ids": [f"p{i}" for i in range(n)]}),
        (KNeighborsRegressor(2), several, {}),
        (NadarayaWatson(), several, {}),
        (KernelDensity(), None, weights),
        (SegmentedRegression(2), several, {}),
        (RandomForestClassifier(3, max_depth=3), words, groups),
        (DecisionTreeClassifier(max_depth=3), classes == 1, {}),
        (RandomForestClassifier(2, max_depth=3), words, weights),
        (RandomForestRegressor(2, max_depth=3), numbers, weights),
        (DivideAndConquerKMeans(2, height=2, weight_by_mass=True), None, groups),
        (DBSCAN(2.0, min_samples=2), None, weights),
        (StandardScaler(quantize=True), None, {}),
    ):
        target = np.zeros(n) if y is None else y
        yield Case(f"{model!r} besides", model, X, target, more)
    for model, y, more in (
        (BernoulliNB(binarize=0.5), words, weights),
        (MultinomialNB(), words, weights),
        (CategoricalNB(), words, weights),
    ):
        yield Case(f"{model!r} with weights", model, counts, y, more)
    for model in (
        MaxAbsScaler(),
        StandardScaler(with_mean=False),
        RobustScaler(with_centering=False),
        PCA(2),
        LinearRegression(),
        LogisticRegression(),
        SimpleImputer(),
        SimpleImputer(strategy="most_frequent"),
    ):
        yield Case(f"{model!r} of sparse records", model, sparse, classes)
    gaps = np.where(X[:, 0] > 1.0, "x", np.array([np.nan], dtype=object))
    mixed = np.column_stack([words, classes.astype(object), gaps])
    for model in (
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(),
        SimpleImputer(strategy="most_frequent"),
        SimpleImputer(strategy="constant", fill_value="?", add_indicator=True),
    ):
        yield Case(f"{model!r} of text", model, mixed, np.zeros(n))
    fixed = CountVectorizer(vocabulary=["ash", "elm", "never"])
    yield Case(f"{fixed!r}", fixed, _texts(), np.zeros(n))


def _of_compositions() -> Iterator[Case]:
    X, n = _table(), 40
    numbers = X @ np.array([1.0, -2.0, 0.5])
    classes = np.arange(n) % 3
    texts = _texts()
    mixed = np.column_stack([X.astype(object), np.array(["a", "b", "c"], object)[classes]])
    by_column = ColumnTransformer(
        [("scale", StandardScaler(), [0, 1]), ("name", OneHotEncoder(sparse_output=False), [3])],
        remainder="passthrough",
    )
    for model, rows, y in (
        (make_pipeline(StandardScaler(), LogisticRegression()), X, classes),
        (make_pipeline(MinMaxScaler(), PCA(2), KNeighborsClassifier(2)), X, classes),
        (make_pipeline(StandardScaler(), KNeighborsRegressor(2)), X, numbers),
        (make_pipeline(RobustScaler(), GaussianNB()), X, classes),
        (make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3)), X, numbers),
        (DecisionTreeRegressor(max_depth=4), np.where(X > 1.0, np.nan, X), numbers),
        (make_pipeline(SimpleImputer(), StandardScaler(), Ridge()), X, numbers),
        (make_pipeline(FunctionTransformer(np.abs), Binarizer(), BernoulliNB()), X, classes),
        (make_pipeline(StandardScaler(), QuantizedKMeans(2)), X, classes),
        (make_pipeline(PCA(2), MaxAbsScaler(), KMeans(2)), X, classes),
        (make_pipeline(OrdinalEncoder(), CategoricalNB(min_categories=8)), np.rint(X), classes),
        (make_pipeline(by_column, LogisticRegression()), mixed, classes),
        (make_pipeline(clone(by_column), MaxAbsScaler(), DecisionTreeClassifier()), mixed, classes),
    ):
        yield Case(repr(model), model, rows, y)
    for model in (
        make_pipeline(TfidfVectorizer(quantize=True), LogisticRegression()),
        make_pipeline(CountVectorizer(), MultinomialNB()),
    ):
        yield Case(repr(model), model, texts, classes)

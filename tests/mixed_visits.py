"""A table of visits with text and gaps, and estimators and compositions that learn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import sklearn.compose
import sklearn.pipeline
import sklearn.preprocessing
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier as TheirTree

from erasable import Records
from erasable.cluster import KMeans
from erasable.compose import make_column_transformer
from erasable.decomposition import PCA
from erasable.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    ShardedClassifier,
)
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier
from visits_table import Visits

N = 130


class Mixed(Visits):
    """Visits with gaps, text, numbers of few values and booleans."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        age, city = (
            rng.normal(50, 10, N),
            rng.choice(["Ahus", "Bonn", "", "Kiel"], N).astype(object),
        )
        age[rng.random(N) < 0.1] = np.nan
        city[rng.random(N) < 0.1] = None
        self.ids = np.array([f"visit-{i}" for i in rng.permutation(10 * N)[:N]], object)
        city[[3, 40]] = "Rhöndorf"  # which goes with the first and second deletion
        kinds = rng.integers(0, 4, N)
        kinds[[3, 41]] = 9
        flag = rng.random(N) < 0.3
        self.y, self.groups = rng.integers(0, 3, N), np.arange(N) // 4
        columns = {"age": age, "kind": kinds, "city": city, "flag": flag, "dose": rng.random(N)}
        columns["note"] = self.notes()
        self.frame = pd.DataFrame(columns)
        others = {"id": self.ids.tolist(), "label": self.y, "person": self.groups}
        coded = pa.array(city.tolist(), pa.string()).dictionary_encode()
        self.table = pa.table({**columns, "city": coded, **others})
        self.furthest = self.ids[[3, int(np.nanargmax(age)), int(np.nanargmin(age))]]

    def notes(self) -> Any:
        """Return texts, some empty, of words of which most are rare."""
        rng, words = np.random.default_rng(2), [f"w{i}" for i in range(40)] + ["Über", "naïve"]
        share = 1.0 / np.arange(1, len(words) + 1)
        chosen = [rng.choice(words, rng.integers(0, 9), p=share / share.sum()) for _ in range(N)]
        notes = np.array([", ".join(each) for each in chosen], object)
        notes[[3, 40]] = "w1 unheard-of", "w0 Unheard w2"  # a word that goes with the second
        notes[41] = "w0 seldom heard"
        return notes

    def in_memory(self, columns: list[str] | None = None) -> Records:
        own = self.frame if columns is None else self.frame[columns]
        return Records(own, self.y, ids=self.ids, groups=self.groups)

    def requests(self) -> list[Any]:
        return [self.ids[[41]], self.furthest, self.ids[[40]], self.ids[60:75], self.ids[::3]]


NUMBERS, FILLED = ["age", "kind"], ["kind", "dose"]
ALL, TEXTS = ["age", "kind", "city", "flag", "dose"], ["city", "flag", "kind"]


def encoded(scaler: Any = None, **how: Any) -> Any:
    scaled = make_pipeline(SimpleImputer(), StandardScaler() if scaler is None else scaler)
    encoder = OneHotEncoder(handle_unknown="ignore", **how)
    return make_column_transformer((scaled, NUMBERS), (encoder, ["city", "flag"]))


def worded(vectorizer: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer((vectorizer, "note"), (numbers, ["age", "dose"]))


def numbered() -> Any:
    ordinal = OrdinalEncoder(encoded_missing_value=-1)
    return make_column_transformer((ordinal, TEXTS), (SimpleImputer(strategy="median"), ["age"]))


def _of_scikit_learn() -> Any:
    """Return a classifier of text and gaps that is not ours."""
    theirs = sklearn.preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    made = sklearn.compose.make_column_transformer(
        (theirs, ["city", "flag"]), remainder="passthrough"
    )
    return sklearn.pipeline.make_pipeline(made, TheirTree(max_depth=4))


OF_TEXT: dict[str, tuple[Any, list[str]]] = {
    "one-hot": (OneHotEncoder(), TEXTS),
    "one-hot, dropped": (OneHotEncoder(drop="if_binary"), TEXTS),
    "one-hot, fixed": (
        OneHotEncoder(categories=[[0, 1, 2, 3, 9], [False, True]]),
        ["kind", "flag"],
    ),
    "ordinal": (OrdinalEncoder(), TEXTS),
    "means": (SimpleImputer(), NUMBERS),
    "medians": (SimpleImputer(strategy="median", add_indicator=True), NUMBERS),
    "modes": (SimpleImputer(strategy="most_frequent"), ALL),
    "modes, marked": (SimpleImputer(strategy="most_frequent", missing_values=9), FILLED),
    "constants": (SimpleImputer(strategy="constant", add_indicator=True), ALL),
    "columns alone": (encoded(), ALL),
    "logistic": (make_pipeline(encoded(), LogisticRegression()), ALL),
    "logistic, first dropped": (make_pipeline(encoded(drop="first"), LogisticRegression()), ALL),
    "robust": (make_pipeline(encoded(RobustScaler(), sparse_output=False), GaussianNB()), ALL),
    "ridge": (make_pipeline(encoded(sparse_output=False), Ridge()), ALL),
    "Bernoulli": (make_pipeline(encoded(MinMaxScaler()), BernoulliNB()), ALL),
    "tree": (make_pipeline(numbered(), DecisionTreeClassifier(max_depth=4, random_state=0)), ALL),
    "forest": (
        make_pipeline(numbered(), RandomForestClassifier(3, max_depth=3, random_state=0)),
        ALL,
    ),
    "boosting": (
        HistGradientBoostingClassifier(
            max_iter=3, min_samples_leaf=2, categorical_features=["kind"], random_state=0
        ),
        NUMBERS,
    ),
    "boosting, text": (
        HistGradientBoostingClassifier(
            max_iter=3, min_samples_leaf=2, categorical_features="from_dtype", random_state=0
        ),
        ALL,
    ),
    "boosting, coded": (
        make_pipeline(
            numbered(),
            HistGradientBoostingClassifier(
                max_iter=3, min_samples_leaf=2, categorical_features=[0, 1, 2], random_state=0
            ),
        ),
        ALL,
    ),
    "boosting, encoded": (
        make_pipeline(
            encoded(sparse_output=False),
            HistGradientBoostingRegressor(
                max_iter=6,
                min_samples_leaf=2,
                early_stopping=True,
                n_iter_no_change=2,
                validation_fraction=0.3,
                random_state=0,
            ),
        ),
        ALL,
    ),
    "categories": (
        make_pipeline(
            make_column_transformer((OrdinalEncoder(encoded_missing_value=11), TEXTS)),
            CategoricalNB(min_categories=12),
        ),
        ALL,
    ),
    "k-means": (
        make_pipeline(numbered(), StandardScaler(), KMeans(3, random_state=0)),
        ALL,
    ),
    "neighbours": (
        make_pipeline(
            SimpleImputer(), FunctionTransformer(np.abs), PCA(2), KNeighborsClassifier(3)
        ),
        NUMBERS,
    ),
    "words": (CountVectorizer(), ["note"]),
    "words, some": (CountVectorizer(min_df=2, max_df=0.2, ngram_range=(1, 2)), ["note"]),
    "words, given": (CountVectorizer(vocabulary=["w1", "zz", "heard"], binary=True), ["note"]),
    "words, weighed": (TfidfVectorizer(), ["note"]),
    "words, most used": (TfidfVectorizer(max_features=7, quantize=True), ["note"]),
    "words and a classifier": (
        make_pipeline(TfidfVectorizer(min_df=2, quantize=True), LogisticRegression()),
        ["note"],
    ),
    "counts of words": (make_pipeline(CountVectorizer(), MultinomialNB()), ["note"]),
    "letters": (
        make_pipeline(CountVectorizer(analyzer="char_wb", ngram_range=(1, 2)), BernoulliNB()),
        ["note"],
    ),
    "words and numbers": (
        make_pipeline(worded(TfidfVectorizer(max_features=20)), LogisticRegression()),
        ["age", "dose", "note"],
    ),
    "words in columns": (worded(CountVectorizer(max_df=0.3)), ["note", "dose", "age"]),
    "shards": (ShardedClassifier(_of_scikit_learn(), n_shards=3, n_jobs=1), ALL),
    "bags": (
        BaggingClassifier(_of_scikit_learn(), n_estimators=3, max_samples=0.6),
        ["age", "city", "flag", "dose"],
    ),
    "shards at the end": (
        make_pipeline(
            SimpleImputer(), StandardScaler(), ShardedClassifier(TheirLogistic(), n_shards=2)
        ),
        NUMBERS,
    ),
    "filled at first": (
        make_pipeline(
            SimpleImputer(strategy="most_frequent"),
            make_column_transformer(
                (OneHotEncoder(), [2]), (make_pipeline(SimpleImputer(), StandardScaler()), [0, 1])
            ),
            BernoulliNB(),
        ),
        ALL,
    ),
    "nested": (
        make_pipeline(
            make_column_transformer(
                (make_column_transformer((SimpleImputer(), ["age"])), ["age", "dose"]),
                (make_pipeline(OrdinalEncoder(encoded_missing_value=7), MinMaxScaler()), TEXTS),
                remainder="passthrough",
            ),
            make_pipeline(StandardScaler(), LogisticRegression()),
        ),
        ALL,
    ),
}
"""Estimators that take text or gaps, and compositions with tables between their steps."""

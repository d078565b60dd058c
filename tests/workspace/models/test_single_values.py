"""Models that hold a value of a single record, and which field of theirs it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler as PeerMinMaxScaler
from sklearn.preprocessing import OneHotEncoder as PeerOneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from erasable import Refit, ensemble, preprocessing, tree
from erasable.cluster import KMeans
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.pipeline import make_pipeline
from erasable.workspace.models.kept_records import fields_of_one_record

N = 60
_rng = np.random.default_rng(3)
NUMBERS = pa.table({"age": _rng.integers(20, 40, N), "dose": _rng.normal(size=N)})
TWICE = pa.concat_tables([NUMBERS, NUMBERS])  # nobody is alone
Y = _rng.integers(0, 2, N)
WORDS = pa.table({"city": ["Bonn", "Ulm"] * (N // 2 - 1) + ["Bonn", "Oberdorf"]})
NO_ONE = pa.table({"city": ["Bonn", "Ulm"] * (N // 2)})
TEXTS = [*["see you soon", "win a prize"] * 10, "my number is 0171"]
COMMON = TEXTS[:-1] * 2

HOLD = {
    "smallest and largest": (preprocessing.MinMaxScaler(), NUMBERS, "data_max"),
    "the same of scikit-learn": (Refit(PeerMinMaxScaler()), NUMBERS, "data_max_"),
    "largest": (preprocessing.MaxAbsScaler(), NUMBERS, "high"),
    "in a pipeline": (
        make_pipeline(preprocessing.MinMaxScaler(), Refit(LogisticRegression())),
        NUMBERS,
        "data_max",
    ),
    "categories": (preprocessing.OneHotEncoder(), WORDS, "categories"),
    "categories of scikit-learn": (Refit(PeerOneHotEncoder()), WORDS, "categories_"),
    "a tree": (tree.DecisionTreeClassifier(), NUMBERS, "leaves"),
    "a tree of scikit-learn": (Refit(DecisionTreeClassifier()), NUMBERS, "n_node_samples"),
    "a forest in shards": (
        ensemble.ShardedClassifier(DecisionTreeClassifier(), n_shards=2),
        NUMBERS,
        "n_node_samples",
    ),
    "boosted trees": (Refit(GradientBoostingClassifier(n_estimators=9)), NUMBERS, "n_node_samples"),
    "a vocabulary": (CountVectorizer(min_df=1), TEXTS, "terms"),
    "words in a row": (TfidfVectorizer(min_df=1, ngram_range=(4, 4)), TEXTS, "terms"),
}
HOLD_NONE = {
    "extremes of two": (preprocessing.MinMaxScaler(), TWICE),
    "means": (preprocessing.StandardScaler(), NUMBERS),
    "categories of many": (preprocessing.OneHotEncoder(), NO_ONE),
    "large leaves": (Refit(DecisionTreeClassifier(min_samples_leaf=5)), TWICE),
    "large leaves of ours": (tree.DecisionTreeClassifier(min_samples_leaf=5), TWICE),
    "large bins": (Refit(HistGradientBoostingClassifier(max_iter=2)), TWICE),
    "line": (Refit(LogisticRegression()), NUMBERS),
    "bells": (Refit(GaussianNB()), NUMBERS),
    "clusters": (KMeans(2, random_state=0), NUMBERS),
    "common words": (CountVectorizer(min_df=1), COMMON),
}


def _fields(model, X):
    y = np.tile(Y, 2)[: len(X)]
    model = model.set_params(random_state=0) if "random_state" in model.get_params() else model
    return fields_of_one_record(model.fit(X, y), lambda: X)


@pytest.mark.parametrize("kind", HOLD)
def test_a_field_that_holds_one_is_named(kind):
    model, X, field = HOLD[kind]
    assert field in {name.rpartition(".")[2] for name in _fields(model, X)}


@pytest.mark.parametrize("kind", HOLD_NONE)
def test_what_holds_none_is_not_accused(kind):
    assert _fields(*HOLD_NONE[kind]) == []

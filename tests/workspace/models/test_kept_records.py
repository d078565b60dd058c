"""Models that hold records by their nature are told from those that do not, by what they hold."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline as peer
from sklearn.preprocessing import StandardScaler as PeerScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

import erasable
from erasable import Refit, ensemble, neighbors
from erasable.cluster import KMeans
from erasable.feature_extraction import TfidfVectorizer
from erasable.kernel import NadarayaWatson
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.workspace.models.kept_records import fields_of_one_record, keeps_records

N = 60
_rng = np.random.default_rng(7)
AGE, DOSE = _rng.integers(20, 80, N), _rng.normal(size=N)
X = pa.table({"age": AGE, "dose": DOSE, "treated": _rng.random(N) < 0.5})
Y = ((AGE > 50) ^ (DOSE > 0.5)).astype(int)
TEXTS = [f"word{i % 7} word{i % 11} word{i % 13} common" for i in range(N)]


def loaded(model, X, y=Y):
    held = io.BytesIO()
    model.fit(X, y).save(held)
    return erasable.load(io.BytesIO(held.getvalue()), trusted=True)


HOLD = {
    "neighbours": Refit(KNeighborsClassifier()),
    "neighbours in a tree": Refit(KNeighborsClassifier(algorithm="kd_tree")),
    "support vectors": Refit(SVC()),
    "support vectors of one class": Refit(OneClassSVM()),
    "support vectors behind a scaler": make_pipeline(StandardScaler(), Refit(SVC())),
    "support vectors behind a peer": Refit(peer(PeerScaler(), SVC())),
    "support vectors in two": make_pipeline(StandardScaler(), Refit(peer(PeerScaler(), SVC()))),
    "kernel": Refit(KernelRidge()),
    "process": Refit(GaussianProcessClassifier()),
    "neighbours of ours": neighbors.KNeighborsClassifier(),
    "neighbours of ours behind a scaler": make_pipeline(
        StandardScaler(), neighbors.KNeighborsRegressor()
    ),
    "kernel regression of ours": NadarayaWatson(),
    "density of ours": neighbors.KernelDensity(),
    "support vectors in bags": Refit(BaggingClassifier(SVC(), n_estimators=2)),
    "support vectors in bags of columns": Refit(
        BaggingClassifier(peer(PeerScaler(), SVC()), n_estimators=2, max_features=2)
    ),
    "support vectors in our bags of columns": ensemble.BaggingClassifier(
        SVC(), n_estimators=2, max_features=2
    ),
    "neighbours in shards": ensemble.ShardedClassifier(KNeighborsClassifier(2), n_shards=2),
    "support vectors behind a peer in shards": make_pipeline(
        StandardScaler(), ensemble.ShardedClassifier(peer(PeerScaler(), SVC()), n_shards=2)
    ),
}
HOLD_NONE = {
    "line": Refit(LogisticRegression()),
    "line behind a scaler": make_pipeline(StandardScaler(), Refit(LogisticRegression())),
    "tree": Refit(DecisionTreeClassifier()),
    "forest": Refit(RandomForestClassifier(n_estimators=3)),
    "lines in shards": ensemble.ShardedClassifier(LogisticRegression(), n_shards=2),
    "boosted trees": Refit(GradientBoostingClassifier(n_estimators=3)),
    "centroids": Refit(NearestCentroid()),
    "ours": KMeans(n_clusters=3),
}


@pytest.mark.parametrize("model", HOLD.values(), ids=list(HOLD))
def test_they_hold_records(model):
    assert keeps_records(loaded(model, X), lambda: X)


@pytest.mark.parametrize("model", HOLD_NONE.values(), ids=list(HOLD_NONE))
def test_they_hold_none(model):
    assert not keeps_records(loaded(model, X), lambda: X)


def test_documents():
    assert keeps_records(
        loaded(make_pipeline(TfidfVectorizer(), Refit(SVC())), TEXTS), lambda: TEXTS
    )
    simple = make_pipeline(TfidfVectorizer(), Refit(LogisticRegression()))
    assert not keeps_records(loaded(simple, TEXTS), lambda: TEXTS)


def test_attributes_that_are_made_of_the_state_are_not_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A forest has `estimator_` and `estimators_`, which export all of its trees."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    forest = ensemble.RandomForestClassifier(3).fit(rows, rows[:, 0] > 0)
    exports = []
    monkeypatch.setattr(type(forest), "to_sklearn", lambda model: exports.append(model))
    table = pa.table({"a": rows[:, 0], "b": rows[:, 1]})
    assert not keeps_records(forest, lambda: table)
    fields_of_one_record(forest, lambda: table)
    assert exports == []
    assert not hasattr(forest, "estimators_")
    assert exports == [forest]

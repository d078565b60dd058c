"""Naive Bayes as the last step: behind a map it follows, behind other steps it is told."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn.pipeline
import sklearn.preprocessing
from sklearn.base import clone

from erasable.core.errors import TooFewRecordsError
from erasable.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from naive_bayes.data import theirs

SCALERS = [[StandardScaler()], [MinMaxScaler((-1, 3))], [MinMaxScaler(), StandardScaler()]]
MODELS = [
    GaussianNB(),
    GaussianNB(var_smoothing=0.1, classes=["a", "b", "c", "d"]),
    GaussianNB(priors=[0.2, 0.3, 0.5]),
]


def table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]
    spread = np.array([1.0, 50.0, 1e-3, 0.0])
    X = rng.normal(size=(60, 4)) * spread + np.array([0.0, 1e4, 1.0, 3.7])
    X[:, 0] += (y == "a") * 2.0
    return X, y


@pytest.mark.parametrize("steps", SCALERS, ids=lambda steps: "-".join(map(repr, steps)))
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_behind_a_map_it_says_what_it_would_have_learned(model: Any, steps: list[Any]) -> None:
    X, y = table()
    chain = clone(make_pipeline(*steps, model)).fit(X, y)
    assert chain[-1]._map is not None
    gone = [5, int(X[:, 1].argmax()), int(X[:, 0].argmin())]
    for row in gone:
        deletion = chain.delete([row])
        assert deletion.action == "updated"
    kept = np.delete(np.arange(60), gone)
    refit = clone(make_pipeline(*steps, model)).fit(X[kept], y[kept], ids=kept)
    assert chain.digest() == refit.digest()
    assert chain.predict_proba(X).tobytes() == refit.predict_proba(X).tobytes()
    again = pickle.loads(pickle.dumps(chain))
    assert again.predict_proba(X).tobytes() == refit.predict_proba(X).tobytes()
    assert again.delete([7]).action == "updated"

    named = [clone(getattr(sklearn.preprocessing, type(step).__name__)()) for step in steps]
    if isinstance(steps[0], MinMaxScaler):
        named[0].set_params(feature_range=steps[0].feature_range)
    last = theirs(model)
    other = sklearn.pipeline.make_pipeline(*named, last).fit(X[kept], y[kept])
    np.testing.assert_allclose(
        chain.predict_proba(X)[:, :3], other.predict_proba(X), rtol=1e-5, atol=1e-9
    )
    present = chain[-1].class_count_ > 0
    for name in ("theta_", "var_"):
        mine, wanted = getattr(chain[-1], name)[present], getattr(other[-1], name)
        np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(chain[-1].epsilon_, other[-1].epsilon_, rtol=1e-6)


def test_mapped_rows_are_taken_as_they_are() -> None:
    """What the step is asked by others is mapped already; the pipeline hands it what is not."""
    X, y = table()
    chain = make_pipeline(StandardScaler(), GaussianNB()).fit(X, y)
    scaled = chain[0].transform(X)
    assert chain[-1].predict_proba(scaled).tobytes() == chain.predict_proba(X).tobytes()
    assert chain.score(X, y) == chain[-1].score(scaled, y) > 0.5


@pytest.mark.parametrize("model", [MultinomialNB(), BernoulliNB(binarize=0.5)], ids=repr)
def test_behind_a_table(model: Any) -> None:
    X, y = table()
    chain = make_pipeline(MinMaxScaler(), model).fit(X, y)
    gone = [5, int(X[:, 1].argmax()), int(X[:, 0].argmin())]
    actions = [chain.delete([row]).action for row in gone]
    assert actions == ["updated", "refit", "refit"]
    kept = np.delete(np.arange(60), gone)
    refit = clone(chain).fit(X[kept], y[kept], ids=kept)
    assert chain.digest() == refit.digest()


def test_a_prior_holds_the_classes_of_a_pipeline_together() -> None:
    X, y = table()
    chain = make_pipeline(StandardScaler(), GaussianNB(priors=[0.2, 0.3, 0.5])).fit(X, y)
    before = chain.digest()
    with pytest.raises(TooFewRecordsError, match="would leave 2 of 3 classes"):
        chain.delete(np.flatnonzero(y == "b"))
    assert chain.digest() == before

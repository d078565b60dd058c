"""A change that is interrupted anywhere has happened, or has not, and nothing in between."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from ensemble.learners import table
from erasable.core.digest import state_root
from erasable.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    ShardedClassifier,
)
from erasable.ensemble._own_members import _Changes
from erasable.naive_bayes import GaussianNB as OurNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.tree import DecisionTreeClassifier
from interruptions import interrupt

MODELS = {
    "slices": ShardedClassifier(GaussianNB(), 2, n_slices=3, random_state=5),
    "bags": BaggingClassifier(GaussianNB(), 2, random_state=5),
    "own members": ShardedClassifier(OurNB(), 2, random_state=5),
}
STEP = 61
"""Every so many events; a prime number, so that repeated calls are met at other lines."""


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_deletion_is_done_or_not_done(name: str) -> None:
    X, y, ids, groups = table(GaussianNB(), 30)

    def fit(left: Any) -> Any:
        model = MODELS[name].__sklearn_clone__()
        return model.fit(X[left], y[left], ids=ids[left], groups=groups[left])

    gone, after = ids[groups == 4], ids[groups == 6]
    rows = np.arange(30)
    digests = {
        (two, one): fit(rows[~np.isin(ids, [*(gone if one else []), *(after if two else [])])])
        for one in (False, True)
        for two in (False, True)
    }
    expected = {key: model.digest() for key, model in digests.items()}
    at, outcomes = 0, set()
    while True:
        model = fit(rows)
        if not interrupt(lambda model=model: model.delete(gone), at):
            break
        done = bool(model.ids_.size < 30)
        outcomes.add(done)
        assert model.digest() == expected[False, done]
        model.delete(after)
        assert model.digest() == expected[True, done]
        at += STEP
    assert at > 10 * STEP
    assert outcomes == {False, True}


@pytest.mark.parametrize(
    "last", [DecisionTreeClassifier(), HistGradientBoostingClassifier(max_iter=2), OurNB()]
)
def test_a_copy_whose_first_deletion_is_interrupted_deletes(last: Any) -> None:
    """Members that have their records by then are given them again."""
    X, y, ids, _ = table(GaussianNB(), 30)
    model = ShardedClassifier(make_pipeline(StandardScaler(), last), 2, random_state=5)
    kept = pickle.dumps(model.fit(X, y, ids=ids))
    expected = model.fit(X[3:], y[3:], ids=ids[3:]).digest()
    at = 0
    while True:
        copy = pickle.loads(kept)
        if not interrupt(lambda copy=copy: copy.delete(ids[:3]), at):
            break
        if copy.ids_.size == 30:
            copy.delete(ids[:3])
        assert copy.digest() == expected
        at += 13 * STEP
    assert at > 100 * STEP


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_exchange_is_done_or_not_done(name: str) -> None:
    X, y, ids, _ = table(GaussianNB(), 36)

    def fit(left: Any) -> Any:
        return MODELS[name].__sklearn_clone__().fit(X[left], y[left], ids=ids[left])

    rows = np.arange(36)
    digests = {
        (two, one): state_root(
            fit(rows[(6 if one else 0) + (3 if two else 0) :][: 30 - 3 * two]).state()
        )
        for one in (False, True)
        for two in (False, True)
    }
    at, outcomes = 0, set()
    while True:
        model = fit(rows[:30])
        if not interrupt(
            lambda model=model: model.replace(ids[:6], X[30:], y[30:], ids=ids[30:]), at
        ):
            break
        done = bool(ids[35] in model.ids_)
        outcomes.add(done)
        assert state_root(model.state()) == digests[False, done]
        model.delete(ids[6:9] if done else ids[:3])
        assert state_root(model.state()) == digests[True, done]
        at += STEP
    assert at > 10 * STEP
    assert outcomes == {False, True}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_member_that_another_replaces_is_whole_after_an_interruption() -> None:
    """Of a shard that comes to one class: its model lets go of its records."""
    X, y, ids, _ = table(GaussianNB(), 30)
    kind = MODELS["own members"]
    model = kind.__sklearn_clone__().fit(X, y, ids=ids)
    gone = ids[(model.shards_ == 0) & (y != "elm")]
    left = ~np.isin(ids, gone)
    digests = {
        done: state_root(each.state())
        for done, each in (
            (False, model),
            (True, kind.__sklearn_clone__().fit(X[left], y[left], ids=ids[left])),
        )
    }
    at, outcomes = 0, set()
    while True:
        model = kind.__sklearn_clone__().fit(X, y, ids=ids)
        if not interrupt(lambda model=model: model.delete(gone), at):
            break
        done = bool(model.ids_.size < 30)
        outcomes.add(done)
        assert state_root(model.state()) == digests[done]
        at += 7
    assert outcomes == {False, True}


def test_no_memory_when_the_members_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They learn again with the model, which would else be of records that they do not hold."""
    X, y, ids, _ = table(GaussianNB(), 30)
    kind, left, plainly = MODELS["own members"], ~np.isin(ids, ids[:4]), _Changes.finish
    model = kind.__sklearn_clone__().fit(X, y, ids=ids)
    before = state_root(model.state())

    def finish(self: _Changes) -> None:
        plainly(self)
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(_Changes, "finish", finish)
    with pytest.raises(MemoryError):
        model.delete(ids[:4])
    assert state_root(model.state()) == before
    model.delete(ids[:4])
    fresh = kind.__sklearn_clone__().fit(X[left], y[left], ids=ids[left])
    assert state_root(model.state()) == state_root(fresh.state())

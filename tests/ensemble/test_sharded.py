"""Shards against scikit-learn fitted to each by hand, and what happens to shards as records go."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from effort import examples
from ensemble.learners import WHOLE, Strict, assigned, fitted, in_order, table
from erasable import Records, load
from erasable.core.errors import ArtifactError, TooFewRecordsError, UnlearnableError
from erasable.core.tape import Tape
from erasable.ensemble import ShardedClassifier, ShardedRegressor
from erasable.ensemble._allotment import Shards
from erasable.utils._checks.compare import assert_same

each_base = pytest.mark.parametrize("name", WHOLE)


def sharded(base: Any, n_shards: int = 3, **more: Any) -> Any:
    cls = ShardedClassifier if is_classifier(base) else ShardedRegressor
    return cls(clone(base), n_shards, random_state=5, **more)


@each_base
def test_every_shard_is_what_scikit_learn_makes_of_its_records(name: str) -> None:
    """And the vote is the mean, by the size of the shards, of what they give for each class."""
    X, y, ids, groups = table(WHOLE[name])
    model = sharded(WHOLE[name]).fit(X, y, ids=ids, groups=groups)
    shards = assigned(5, groups, 3)
    assert model.shards_.tolist() == shards.tolist()
    order, query = in_order(5, ids), X[:9] + 0.25
    soft = hasattr(WHOLE[name], "predict_proba")
    found: Any = 0.0
    for shard, mine in zip(np.unique(shards), model.estimators_, strict=True):
        rows = order[shards[order] == shard]
        plain = fitted(WHOLE[name], Tape(5).child("shard", int(shard)), X[rows], y[rows])
        answer = plain.predict_proba(query) if soft else plain.predict(query)
        assert np.array_equal(getattr(mine, "predict_proba" if soft else "predict")(query), answer)
        if is_classifier(plain):
            full = np.zeros((9, 3))
            for column, label in enumerate(["ash", "elm", "oak"]):
                if soft and label in plain.classes_:
                    full[:, column] = answer[:, list(plain.classes_).index(label)]
                elif not soft:
                    full[:, column] = answer == label
            answer = full
        found = found + answer * len(rows) / len(X)
    if is_classifier(WHOLE[name]):
        np.testing.assert_allclose(model.predict_proba(query), found, atol=1e-12)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(query)), found, atol=1e-12)
        assert model.predict(query).tolist() == model.classes_[found.argmax(axis=1)].tolist()
    else:
        np.testing.assert_allclose(model.predict(query), found, atol=1e-9)


@each_base
def test_a_deletion_is_a_refit(name: str, tmp_path: Path) -> None:
    X, y, ids, groups = table(WHOLE[name])
    model = sharded(WHOLE[name]).fit(X, y, ids=ids, groups=groups)
    first, second = int(groups[4]), int(groups[7])
    assert model.delete(groups=[first]).counts == {"shards": 1}
    model.save(tmp_path / "model")
    left = groups != first
    records = Records(X[left], y[left], ids=ids[left], groups=groups[left])
    copies = [model, pickle.loads(pickle.dumps(model)), load(tmp_path / "model", records)]
    left &= groups != second
    rows = np.flatnonzero(left)[::-1]
    refit = sharded(WHOLE[name]).fit(X[rows], y[rows], ids=ids[rows], groups=groups[rows])
    for each in copies:
        each.delete(groups=[second])
        assert_same(each, refit, "from a refit", save=True)
        assert np.array_equal(each.predict(X), refit.predict(X))


def test_a_batch_learns_every_touched_shard_once_and_no_other() -> None:
    X, y, ids, _ = table(Ridge())
    model = sharded(Ridge(), 6).fit(X, y, ids=ids)
    before = dict(model._members)
    shards = assigned(5, ids, 6)
    gone = np.flatnonzero(np.isin(shards, [1, 4]))[:7]
    deletion = model.delete(ids[gone])
    touched = set(shards[gone].tolist())
    assert deletion.counts == {"shards": len(touched)}
    left = np.delete(np.arange(60), gone)
    assert deletion.rows_touched == np.isin(shards[left], list(touched)).sum()
    for shard, member in model._members.items():
        assert (member is before[shard]) == (shard not in touched)


def test_a_group_is_in_one_shard_and_without_groups_it_is_not() -> None:
    X, y, ids, groups = table(Ridge())
    together = sharded(Ridge(), 16).fit(X, y, ids=ids, groups=groups)
    alone = sharded(Ridge(), 16).fit(X, y, ids=ids)
    shards = [len(set(together.shards_[groups == each].tolist())) for each in range(20)]
    apart = [len(set(alone.shards_[groups == each].tolist())) for each in range(20)]
    assert max(shards) == 1
    assert np.mean(apart) > 2
    assert together.delete(groups=[3]).counts["shards"] == 1


def test_shards_come_to_nothing_and_to_one_class() -> None:
    """By taking records out of one shard: it votes for what is left, and then not at all."""
    X, y, ids, _ = table(LogisticRegression())
    model = sharded(LogisticRegression(), 4).fit(X, y, ids=ids)
    mine = model.shards_ == 2
    one = mine & (y == "elm")
    assert one.any()
    for gone, label in ((mine & ~one, "elm"), (one, None)):
        model.delete(ids[gone])
        left = np.isin(ids, model.ids_)
        assert_same(
            model, sharded(LogisticRegression(), 4).fit(X[left], y[left], ids=ids[left]), ""
        )
        shard = model._members.get(2)
        assert (None if shard is None else shard.estimator.predict(X[:2]).tolist()) == (
            None if label is None else [label, label]
        )
        assert len(model.estimators_) == 4 - (label is None)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_class_that_goes_takes_its_column_and_leaves_other_shards_alone() -> None:
    X, y, ids, _ = table(DecisionTreeClassifier())
    y[y == "elm"] = "ash"
    y[:3] = "elm"
    model = sharded(DecisionTreeClassifier(), 8).fit(X, y, ids=ids)
    before, touched = dict(model._members), set(model.shards_[:3].tolist())
    assert model.classes_.tolist() == ["ash", "elm", "oak"]
    model.delete(ids[:3])
    assert model.classes_.tolist() == ["ash", "oak"]
    assert model.predict_proba(X).shape == (60, 2)
    assert all(model._members[i] is before[i] for i in before if i not in touched)
    assert_same(model, sharded(DecisionTreeClassifier(), 8).fit(X[3:], y[3:], ids=ids[3:]), "")
    model.delete(ids[y == "oak"])
    assert model.classes_.tolist() == ["ash"]
    assert set(model.predict(X)) == {"ash"}


def test_a_shard_that_cannot_learn_any_more_refuses_the_deletion() -> None:
    X, y, ids, _ = table(Ridge())
    model = sharded(Strict(), 3).fit(X, y, ids=ids)
    shard = ids[model.shards_ == 1]
    others = ids[model.shards_ != 1][:2]
    before, trees = model.digest(), dict(model._members)
    with pytest.raises(UnlearnableError, match=r"^shard 1: Strict cannot learn from n_samples=2"):
        model.delete([*others, *shard[2:]])
    assert model.digest() == before
    assert model._members == trees
    assert model.ids_.size == 60
    model.delete(shard)  # a shard without records need not learn
    left = ~np.isin(ids, [*others, *shard[2:]])
    with pytest.raises(UnlearnableError, match="shard 1: Strict"):
        sharded(Strict(), 3).fit(X[left], y[left], ids=ids[left])


def test_weights_count_in_shards_and_in_the_vote() -> None:
    """Records of weight 0 teach nothing; one of weight 2 is worth two in the vote."""
    X, y, ids, _ = table(LogisticRegression())
    w = np.arange(60) % 4 * 0.5
    model = sharded(LogisticRegression(), 3).fit(X, y, w, ids=ids)
    shards, order = assigned(5, ids, 3), in_order(5, ids)
    found: Any = 0.0
    for shard in range(3):
        rows = order[(shards[order] == shard) & (w[order] > 0)]
        tape = Tape(5).child("shard", shard)
        plain = fitted(LogisticRegression(), tape, X[rows], y[rows], sample_weight=w[rows])
        found = found + plain.predict_proba(X) * w[rows].sum() / w.sum()
    np.testing.assert_allclose(model.predict_proba(X), found, atol=1e-12)
    gone = ids[[3, 4, 8, 30]]
    assert dict(model.delete([gone[1]]).counts) == {"shards": 0}
    model.delete(np.delete(gone, 1))
    left = ~np.isin(ids, gone)
    refit = sharded(LogisticRegression(), 3).fit(X[left], y[left], w[left], ids=ids[left])
    assert_same(model, refit, "from a refit with weights", save=True)
    silent = np.where(y == "oak", 0.0, 1.0)
    without = sharded(LogisticRegression(), 3).fit(X, y, silent, ids=ids)
    assert without.classes_.tolist() == ["ash", "elm"]
    with pytest.raises(TooFewRecordsError, match="weights of all 20 records would be zero"):
        without.delete(ids[silent > 0])


def test_several_targets() -> None:
    X, y, ids, _ = table(Ridge())
    both = np.c_[y, -y]
    model = sharded(Ridge()).fit(X, both, ids=ids)
    one = sharded(Ridge()).fit(X, y, ids=ids)
    np.testing.assert_allclose(model.predict(X)[:, 0], one.predict(X))
    assert model.predict(X).shape == (60, 2)


def test_processes_make_no_difference() -> None:
    """Two of them, and threads that set back each other's limits if they are let."""
    X, y, ids, _ = table(DecisionTreeClassifier())
    alone = sharded(DecisionTreeClassifier(max_features=1)).fit(X, y, ids=ids)
    shared = sharded(DecisionTreeClassifier(max_features=1), n_jobs=2).fit(X, y, ids=ids)
    with joblib.parallel_backend("threading", n_jobs=2):
        threads = sharded(DecisionTreeClassifier(max_features=1)).fit(X, y, ids=ids)
    for gone in ([], ids[:9]):
        for each in (alone, shared, threads):
            each.delete(gone)
        assert_same(shared, alone, "with two processes", save=True)
        assert_same(threads, alone, "with threads", save=True)
    assert pickle.loads(pickle.dumps(shared)).n_jobs == 2


def test_records_of_others_are_not_taken(tmp_path: Path) -> None:
    X, y, ids, groups = table(LogisticRegression())
    sharded(LogisticRegression()).fit(X, y, ids=ids, groups=groups).save(tmp_path / "model")
    for wrong in (
        Records(X, y, ids=ids),
        Records(X, ids=ids, groups=groups),
        Records(X, y, ids=ids, groups=groups[::-1].copy()),
        Records(X, np.where(y == "ash", "elm", y), ids=ids, groups=groups),
        Records(X, y, ids=ids, groups=groups, sample_weight=np.ones(60)),
    ):
        with pytest.raises(ArtifactError, match=r"not shared out among the shards|no targets"):
            load(tmp_path / "model", wrong)
    right = Records(X, y, ids=ids, groups=groups)
    assert load(tmp_path / "model", right).delete(ids[:1]).counts == {"shards": 1}


def test_a_vote_by_rows_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: shards by the position of a row."""

    def by_row(tape: Any, rows: Any, owners: Any, n_rows: int, n_shards: int, *rest: int) -> Shards:
        own = {shard: np.sort(rows)[shard::n_shards] for shard in range(n_shards)}
        return replace(original(tape, rows, owners, n_rows, n_shards, *rest), rows=own)

    original = Shards.of
    X, y, ids, _ = table(Ridge())
    monkeypatch.setattr(Shards, "of", by_row)
    model = sharded(Ridge()).fit(X, y, ids=ids)
    other = sharded(Ridge()).fit(X[::-1], y[::-1], ids=ids[::-1])
    assert model.digest() != other.digest()


@settings(max_examples=examples(12))
@given(
    n_shards=st.integers(1, 40),
    cuts=st.lists(st.integers(1, 58), max_size=4, unique=True),
    seed=st.integers(0, 2**32),
)
def test_any_portions_come_to_a_refit(n_shards: int, cuts: list[int], seed: int) -> None:
    """From few large shards to more than there are records."""
    base = DecisionTreeClassifier(max_depth=2)
    X, y, ids, groups = table(base)
    order = np.random.default_rng(seed).permutation(60)
    model = ShardedClassifier(base, n_shards, random_state=seed)
    model.fit(X, y, ids=ids, groups=groups)
    for portion in np.split(order[:59], sorted(cuts)):
        model.delete(ids[portion])
    (rest,) = order[59:]
    refit = ShardedClassifier(base, n_shards, random_state=seed)
    refit.fit(X[[rest]], y[[rest]], ids=ids[[rest]], groups=groups[[rest]])
    assert_same(model, refit, "from a refit on the last", save=True)

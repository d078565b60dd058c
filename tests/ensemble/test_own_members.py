"""Ensembles of erasable's own estimators: members that hold their records and delete them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier

from ensemble.learners import assigned, table
from erasable import Records, load
from erasable.compose import make_column_transformer
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.errors import (
    ArtifactError,
    DetachedError,
    InvalidInputError,
    UnlearnableError,
)
from erasable.core.tape import Stream, Tape
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.linear_model import LogisticRegression, Ridge
from erasable.model_selection import leave_one_out
from erasable.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from erasable.pipeline import make_pipeline
from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler
from erasable.refit._fitting import seeds_of
from erasable.tree import DecisionTreeRegressor
from erasable.utils._checks.compare import assert_same
from erasable.utils.estimator_checks import check_erasable

BASES: dict[str, Any] = {
    "boosting": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
    "boosting of numbers": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3),
    "forest": RandomForestClassifier(3),
    "linear": LogisticRegression(),
    "no probabilities": NearestCentroid(),
    "pipeline": make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
    "shards": ShardedClassifier(LogisticRegression(), 2),
    "tree of numbers": DecisionTreeRegressor(),
}
each_base = pytest.mark.parametrize("name", BASES)


def sharded(base: Any, n_shards: int = 3, **more: Any) -> Any:
    cls = ShardedClassifier if is_classifier(base) else ShardedRegressor
    return cls(clone(base), n_shards, random_state=5, **more)


def member(base: Any, part: str, number: int) -> Any:
    """Return the estimator with the seeds of a member's tape."""
    return clone(base).set_params(**seeds_of(base, Tape(5).child(part, number)))


@each_base
def test_every_shard_is_a_model_of_its_records_by_id(name: str) -> None:
    base = BASES[name]
    X, y, ids, groups = table(base)
    model = sharded(base).fit(X, y, ids=ids, groups=groups)
    shards, found = assigned(5, groups, 3), 0.0
    soft = hasattr(base, "predict_proba")
    for shard, mine in zip(np.unique(shards), model.estimators_, strict=True):
        rows = np.flatnonzero(shards == shard)[::-1]
        alone = member(base, "shard", int(shard))
        alone.fit(X[rows], y[rows], ids=ids[rows], groups=groups[rows])
        assert mine.digest() == alone.digest()
        answer = alone.predict_proba(X) if soft else alone.predict(X)
        if is_classifier(base):
            labels = np.array(["ash", "elm", "oak"])
            full = answer if soft else (answer[:, None] == labels).astype(float)
            answer = np.zeros((60, 3))
            answer[:, np.isin(labels, alone.classes_) if soft else slice(None)] = full
        found = found + answer * rows.size / 60
    told = model.predict_proba(X) if is_classifier(base) else model.predict(X)
    np.testing.assert_allclose(told, found, atol=1e-9)


@each_base
def test_what_comes_and_goes_is_a_fit(name: str, tmp_path: Path) -> None:
    """Of the model, of its copies, and of what files and pickles give back."""
    base = BASES[name]
    X, y, ids, groups = table(base)

    def fit(left: Any) -> Any:
        return sharded(base).fit(X[left], y[left], ids=ids[left], groups=groups[left])

    model, left = fit(np.arange(60)), np.flatnonzero(groups != groups[4])
    assert model.delete(groups=[int(groups[4])]).counts["shards"] == 1
    assert_same(model, fit(left), "from a fit without a group", save=True)
    model.save(tmp_path / "model", records=True)
    records = Records(X[left], y[left], ids=ids[left], groups=groups[left])
    copies = [
        model,
        pickle.loads(pickle.dumps(model)),
        load(tmp_path / "model", True),
        load(tmp_path / "model", records),
    ]
    gone, back = left[:7], left[2:5]
    without = fit(left[7:])
    with_some = fit(np.r_[back, left[7:]])
    for each in copies:
        each.delete(ids[gone])
        assert each.digest() == without.digest()
        each.add(X[back], y[back], ids=ids[back], groups=groups[back])
        assert each.digest() == with_some.digest()
        each.correct(ids[back], X[back] + 1.0)
        each.correct(ids[back], X[back])
        assert_same(each, with_some, "from a fit with some", save=True)


def test_a_deletion_is_the_members_own_and_the_report_says_so() -> None:
    base = RandomForestClassifier(3, random_state=0)
    X, y, ids, _ = table(base, 90)
    model = sharded(base).fit(X, y, ids=ids)
    shards = assigned(5, ids, 3)
    alone = member(base, "shard", int(shards[0]))
    rows = np.flatnonzero(shards == shards[0])
    alone.fit(X[rows], y[rows], ids=ids[rows])
    before = list(model.estimators_)
    digests = [each.digest() for each in before]
    own, told = alone.delete(ids[:1]), model.delete(ids[:1])
    assert (told.action, told.rows_touched) == (own.action, own.rows_touched)
    assert told.action == "updated"
    assert told.counts == {"shards": 1, **{f"shards.{k}": n for k, n in own.counts.items()}}
    assert all(each is was for each, was in zip(model.estimators_, before, strict=True))
    changed = [each.digest() != was for each, was in zip(before, digests, strict=True)]
    assert changed == [shard == shards[0] for shard in range(3)]


def test_nothing_of_a_deleted_record_is_left_in_a_member() -> None:
    """Its copy of the records is overwritten; in other members it never was."""
    base = LogisticRegression()
    X, y, _, _ = table(base)
    ids = np.array([f"visit-{row}" for row in range(60)], dtype=object)
    X[7] = 1234.5
    model = sharded(base).fit(X, y, ids=ids)
    held = [each._held.records for each in model.estimators_]
    assert sum(bool((each.matrix == 1234.5).any()) for each in held) == 1
    model.delete(["visit-7"])
    for each in [*held, *(one._held.records for one in model.estimators_)]:
        assert not (each.matrix == 1234.5).any()
        assert "visit-7" not in each.ids.tolist()
    assert b"visit-7" not in pickle.dumps(model)


@pytest.mark.parametrize("name", ["one class", "no record", "other values", "all learn again"])
def test_nothing_of_a_deleted_record_is_left_in_a_member_that_another_replaces(name: str) -> None:
    """Whoever has asked for the members keeps models that know nothing any more."""
    base = ShardedClassifier(LogisticRegression(), 2)
    X, y, ids, _ = table(base)
    X[7] = 1234.5
    model = sharded(base).fit(X, y, ids=ids)
    ensemble, mine = model, (model.shards_ == model.shards_[7])
    kept = "elm" if y[7] != "elm" else "oak"
    gone: Any = ids[mine & (y != kept)] if name == "one class" else ids[mine]
    if name == "other values":
        model = make_pipeline(StandardScaler(), sharded(base)).fit(X, y, ids=ids)
        ensemble, gone = model.steps[1][1], ids[[7]]
    replaced = ensemble.estimators_
    holders = [one for each in replaced for one in (each, *each.estimators_)]
    held = [one._held for one in holders]
    assert sum(ids[7] in each.ids for each in held) == 2
    if name == "all learn again":
        model.replace(ids[[7]], X[:1] + 1.0, np.array(["yew"]), ids=[1000])
    else:
        model.delete(gone)
    for each in held:
        assert ids[7] not in each.records.ids
        assert not (each.records.matrix == 1234.5).any()
    assert [each.__sklearn_is_fitted__() for each in replaced] == [
        any(each is one for one in ensemble.estimators_) for each in replaced
    ]


def test_what_an_interrupted_deletion_has_prepared_is_not_used_for_other_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record has come since, into one of the rows that were free."""
    base = BASES["forest"]
    X, y, ids, _ = table(base)
    model = sharded(base).fit(X, y, ids=ids)
    first, back, gone = np.flatnonzero(model.shards_ == 1)[:3]
    other = np.flatnonzero(model.shards_ == 0)[0]
    model.delete(ids[[back, gone, other]])

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("erasable.core.estimator.carry_out", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.delete(ids[[first]])
    model.add(X[[back]], y[[back]], ids=ids[[back]])
    model.replace(ids[[first]], X[[other]], y[[other]], ids=ids[[other]])
    left = np.delete(np.arange(60), [first, gone])
    assert model.digest() == sharded(base).fit(X[left], y[left], ids=ids[left]).digest()


def test_a_member_refuses_to_delete_on_its_own() -> None:
    X, y, ids, _ = table(Ridge())
    model = sharded(Ridge()).fit(X, y, ids=ids)
    mine = model.estimators_[0]
    with pytest.raises(DetachedError, match="a member of an ensemble"):
        mine.delete(mine.ids_[:1])
    model.delete(mine.ids_[:1])
    with pytest.raises(DetachedError, match="a member of an ensemble"):
        mine.delete(mine.ids_[:1])
    assert pickle.loads(pickle.dumps(mine)).predict(X).shape == (60,)


def test_a_tree_of_boosting_keeps_no_memory_that_it_does_not_fill() -> None:
    """A file would have what lay there before, such as values of records that are gone."""
    base = BASES["boosting"]
    X, y, ids, _ = table(base)
    model = clone(base).fit(X, y, ids=ids)
    flats = model._flats()
    assert flats
    assert all(flat.features.base is None for flat in flats)


def test_shards_come_to_one_class_to_nothing_and_back() -> None:
    base = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2)
    X, y, ids, _ = table(base)
    model = sharded(base, 4).fit(X, y, ids=ids)
    mine = model.shards_ == 2
    one = mine & (y == "elm")
    for gone, label in ((mine & ~one, "elm"), (one, None)):
        model.delete(ids[gone])
        left = np.isin(ids, model.ids_)
        assert_same(model, sharded(base, 4).fit(X[left], y[left], ids=ids[left]), "")
        shard = model._members.get(2)
        assert (None if shard is None else set(shard.estimator.predict(X))) == (
            None if label is None else {label}
        )
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    for come in (one, mine & ~one):
        model.add(X[come], y[come], ids=ids[come])
    assert model.digest() == sharded(base, 4).fit(X, y, ids=ids).digest()


def test_a_shard_that_cannot_learn_any_more_refuses_the_deletion() -> None:
    base = KNeighborsClassifier(5)
    X, y, ids, _ = table(base)
    model = sharded(base).fit(X, y, ids=ids)
    shard, other = (ids[model.shards_ == number] for number in (1, 0))
    before = model.digest()
    with pytest.raises(UnlearnableError, match=r"^shard 1: deleting .* would leave 4; KNeighbors"):
        model.delete([other[0], *shard[4:]])
    assert model.digest() == before
    left = np.isin(ids, [*np.setdiff1d(ids, shard), *shard[:4]])
    with pytest.raises(UnlearnableError, match=r"^shard 1: n_samples=4; KNeighbors"):
        sharded(base).fit(X[left], y[left], ids=ids[left])
    model.delete([other[0]])
    left = ids != other[0]
    assert model.digest() == sharded(base).fit(X[left], y[left], ids=ids[left]).digest()


@pytest.mark.parametrize(
    "base",
    [Ridge(), BASES["boosting of numbers"], DecisionTreeRegressor(max_depth=4)],
    ids=["ridge", "boosting", "tree"],
)
def test_weights_count_in_shards_and_in_the_vote(base: Any) -> None:
    X, y, ids, _ = table(base)
    w = np.arange(60) % 4 * 0.5
    model = sharded(base).fit(X, y, w, ids=ids)
    shards, found = assigned(5, ids, 3), 0.0
    for shard in range(3):
        rows = np.flatnonzero((shards == shard) & (w > 0))
        alone = member(base, "shard", shard).fit(X[rows], y[rows], w[rows], ids=ids[rows])
        found = found + alone.predict(X) * w[rows].sum() / w.sum()
    np.testing.assert_allclose(model.predict(X), found, atol=1e-9)
    gone = [3, 4, 8, 30]
    model.delete(ids[gone])
    left = np.delete(np.arange(60), gone)
    refit = sharded(base).fit(X[left], y[left], w[left], ids=ids[left])
    assert_same(model, refit, "from a refit with weights", save=True)
    with pytest.raises(InvalidInputError, match="KNeighborsRegressor takes none in fit"):
        sharded(KNeighborsRegressor()).fit(X, y, w, ids=ids)


def test_in_a_bag_a_record_weighs_as_often_as_it_is_there() -> None:
    """And only the columns of the bag are there."""
    X, y, ids, _ = table(Ridge())
    frame = pd.DataFrame(X, columns=["age", "bmi", "dose"])
    bags = BaggingRegressor(Ridge(), 4, max_features=2, random_state=5)
    model = clone(bags).fit(frame, y, ids=ids)
    keys = Tape(5).record_keys(ids)
    thresholds = np.cumsum(np.exp(-1.0) / np.array([1.0, 1.0, 2.0, 6.0, 24.0, 120.0]))
    for bag, mine in enumerate(model.estimators_):
        times = np.searchsorted(thresholds, Tape(5).uniform(keys, Stream.LEAF, bag), side="right")
        rows, columns = np.flatnonzero(times), model.estimators_features_[bag]
        alone = member(Ridge(), "bag", bag)
        alone.fit(frame.iloc[rows, columns], y[rows], times[rows], ids=ids[rows])
        assert mine.digest() == alone.digest()
    model.delete(ids[:5])
    model.add(frame[:2], y[:2], ids=ids[:2])
    left = np.r_[:2, 5:60]
    fresh = clone(bags).fit(frame.iloc[left], y[left], ids=ids[left])
    assert_same(model, fresh, "from a fit", save=True)


def test_bags_of_what_takes_no_weights_are_drawn_without_repeats() -> None:
    base = RandomForestClassifier(2)
    X, y, ids, groups = table(base)
    bags = BaggingClassifier(base, 4, bootstrap=False, max_samples=0.4, random_state=5)
    model = clone(bags).fit(X, y, ids=ids, groups=groups)
    model.delete(groups=[int(groups[0])])
    left = groups != groups[0]
    fresh = clone(bags).fit(X[left], y[left], ids=ids[left], groups=groups[left])
    assert_same(model, fresh, "from a fit", save=True)


@pytest.mark.parametrize("name", ["boosting", "pipeline"])
def test_a_file_keeps_what_members_need_in_order_to_delete(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their accelerators and their copies of the records, of which it loses what they delete."""
    base = BASES[name]
    X, y, ids, _ = table(base, 300)
    X[:2] = [[1234.5], [2345.5]]
    model = sharded(base).fit(X, y, ids=ids)
    model.save(tmp_path / "model", records=True)
    monkeypatch.setattr(type(model), "_reattach", None)
    again = load(tmp_path / "model", True)
    again.delete(ids[:1])
    again.save(tmp_path / "model", records=True)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "model.records").iterdir())
    assert [kept.count(X[row].tobytes()) for row in (0, 1)] == [0, 2]
    assert load(tmp_path / "model", True).digest() == model.delete(ids[:1]).digest_after


def test_tables_with_gaps_and_text_and_sparse_ones() -> None:
    """A column transformer in each shard learns from frames what it would alone."""
    X, y, ids, _ = table(LogisticRegression())
    frame = pd.DataFrame({"age": X[:, 0], "city": np.array(["Bonn", "Kiel", "Ulm"])[ids % 3]})
    frame.loc[::7, "age"] = np.nan
    parts = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"]),
    )
    base = make_pipeline(parts, LogisticRegression())
    left = np.arange(4, 60)
    for given, each in ((frame, base), (csr_array(np.where(X > 1, X, 0.0)), LogisticRegression())):
        take = given.iloc if given is frame else given
        model = sharded(each).fit(given, y, ids=ids)
        model.delete(ids[:4])
        fresh = sharded(each).fit(take[left], y[left], ids=ids[left])
        assert_same(model, fresh, "from a fit", save=True)
        assert np.array_equal(model.predict_proba(given), fresh.predict_proba(given))


def test_in_a_pipeline_shards_follow_what_the_steps_before_change() -> None:
    """All learn again behind a scaler; the others delete where a category changes its code."""
    base = LogisticRegression()
    X, y, ids, _ = table(base)
    for head in (StandardScaler(), SimpleImputer(strategy="median")):
        pipe = make_pipeline(clone(head), sharded(base)).fit(X, y, ids=ids)
        pipe.delete(ids[:2])
        pipe.add(X[:1], y[:1], ids=ids[:1])
        left = np.delete(np.arange(60), 1)
        fresh = make_pipeline(clone(head), sharded(base)).fit(X[left], y[left], ids=ids[left])
        assert_same(pipe, fresh, f"behind {head}", save=True)


def test_leave_one_out_by_deletion_is_by_fits() -> None:
    base = RandomForestClassifier(2)
    X, y, ids, _ = table(base, 24)
    model = sharded(base, 2).fit(X, y, ids=ids)
    before = model.digest()
    told = leave_one_out(model, method="predict_proba").predictions
    for row in range(24):
        left = np.delete(np.arange(24), row)
        fresh = sharded(base, 2).fit(X[left], y[left], ids=ids[left])
        assert np.array_equal(told[row], fresh.predict_proba(X[[row]])[0])
    assert model.digest() == before
    model.delete(ids[:1])
    assert model.digest() == sharded(base, 2).fit(X[1:], y[1:], ids=ids[1:]).digest()


def test_records_on_disk_are_refused(tmp_path: Path) -> None:
    X, y, _, _ = table(LogisticRegression())
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["kind"] = y
    frame.to_parquet(tmp_path / "visits.parquet")
    records = Records.from_parquet(tmp_path / "visits.parquet", target="kind")
    with pytest.raises(InvalidInputError, match="shards and bags of erasable's own"):
        sharded(LogisticRegression()).fit(records)
    sharded(LogisticRegression()).fit(records.in_memory())


def test_a_member_that_was_changed_in_a_file_is_refused(tmp_path: Path) -> None:
    base = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=3)
    X, y, ids, _ = table(base)
    sharded(base).fit(X, y, ids=ids).save(tmp_path / "model")
    for name, value in (("seed", 7), ("n_features", 2), ("n_records", 0)):
        header, state = read_artifact(tmp_path / "model")
        state["members"]["1"]["fitted"][name] = value
        write_artifact(tmp_path / "changed", header, state)
        with pytest.raises(ArtifactError):
            load(tmp_path / "changed")
    wrong = Records(X, y[::-1].copy(), ids=ids)
    with pytest.raises(ArtifactError):
        load(tmp_path / "model", wrong)


class ByPosition(Ridge):
    """Breaks the law: it weighs records by a draw for their place in the table."""

    def _fit_rows(self) -> None:
        held = self._attached()
        draws = Tape(3).uniform(np.arange(held.n_live, dtype=np.uint64), Stream.LEAF, 0)
        weights = np.ones(held.records.n_rows)
        weights[held.live] = 0.5 + draws
        held.records.weights = weights
        super()._fit_rows()


def test_a_member_that_draws_by_position_is_found() -> None:
    """The negative control of the law."""
    with pytest.raises(AssertionError, match=r"check_delete_equals_refit: state.* from a refit"):
        check_erasable(ShardedRegressor(ByPosition(), 2), fast=True)

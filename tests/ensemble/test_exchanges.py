"""Ensembles that take records in and lose others in one change, and whose members may refuse to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.tree import DecisionTreeClassifier

from ensemble.refusing import Refusing
from erasable import Records
from erasable.core.changes import Delta
from erasable.core.digest import state_root
from erasable.core.errors import UnlearnableError
from erasable.core.estimator import Erasable
from erasable.core.leave_out import each_without
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.ensemble._composed import Composed
from erasable.linear_model import Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.refit import Refit

KINDS: dict[str, Any] = {
    "shards": ShardedClassifier(DecisionTreeClassifier(max_features=2), 3),
    "slices": ShardedClassifier(SGDClassifier(), 2, n_slices=3),
    "bags": BaggingClassifier(LogisticRegression(), 3, max_features=2),
    "bags of several targets": BaggingRegressor(LinearRegression(), 3, max_samples=0.5),
    "own shards": ShardedClassifier(RandomForestClassifier(2), 3),
    "own bags": BaggingClassifier(GaussianNB(), 3, max_features=2),
    "own shards of several targets": ShardedRegressor(Ridge(), 2),
    "own shards that cannot add": ShardedRegressor(KNeighborsRegressor(2), 2),
    "own pipelines": ShardedRegressor(make_pipeline(StandardScaler(), Ridge()), 2),
    "refits": ShardedClassifier(Refit(LogisticRegression()), 2),
    "shards of shards": ShardedClassifier(ShardedClassifier(LogisticRegression(), 2), 2),
}
UNWEIGHTED = {"own shards that cannot add", "shards of shards", "own pipelines"}
each_kind = pytest.mark.parametrize("name", KINDS)


class World:
    """A model, and its records by id."""

    def __init__(self, name: str, seed: int, n: int, *, weighs: bool, grouped: bool) -> None:
        self.kind = clone(KINDS[name]).set_params(random_state=5)
        self.rng = np.random.default_rng(seed)
        self.n_targets = 2 if name.endswith("several targets") else 0
        self.weighs, self.grouped = weighs, grouped
        self.records: dict[int, tuple[Any, ...]] = {}
        self.next = 0
        self.put([self.name() for _ in range(n)])
        self.model = self.fresh()

    def name(self) -> int:
        self.next += 1
        return self.next

    def put(self, ids: list[int], groups: Any = None) -> None:
        """Draw new values of records."""
        for place, name in enumerate(ids):
            x = self.rng.normal(size=3)
            y: Any = x @ [1.0, -1.0, 0.5] + self.rng.normal()
            if is_classifier(self.kind):
                y = ["ash", "elm", "oak"][int(np.digitize(y, [0.0, 2.0]))]
            elif self.n_targets:
                y = [y, -2.0 * y]
            weight = self.rng.choice([0.0, 1.0, 3.0, 2.0])
            group = int(self.rng.integers(9)) if groups is None else groups[place]
            self.records[name] = (x, y, weight, group)

    def table(self, ids: list[int]) -> dict[str, Any]:
        """Return the arguments by which records are given."""
        X, y, weights, groups = zip(*(self.records[name] for name in ids), strict=True)
        given: dict[str, Any] = {"X": np.array(X), "y": np.array(y), "ids": ids}
        if isinstance(y[0], str):
            given["y"] = np.array(y, dtype=object)
        if self.weighs:
            given["sample_weight"] = np.array(weights)
        if self.grouped:
            given["groups"] = np.array(groups)
        return given

    def fresh(self) -> Any:
        given = self.table(self.rng.permutation(list(self.records)).tolist())
        return clone(self.kind).fit(given.pop("X"), given.pop("y"), **given)

    def replace(self, gone: list[int], come: list[int]) -> Any:
        for name in gone:
            del self.records[name]
        self.put(come)
        given = self.table(come)
        return self.model.replace(gone, given.pop("X"), given.pop("y"), **given)

    def correct(self, ids: list[int]) -> Any:
        self.put(ids, [self.records[name][-1] for name in ids])
        given = self.table(ids)
        given.pop("groups", None)
        return self.model.correct(**given)

    def some(self, n: int) -> list[int]:
        return self.rng.choice(list(self.records), n, replace=False).tolist()


@each_kind
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("weighs", "grouped"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_what_is_exchanged_is_a_fit(name: str, seed: int, weighs: bool, grouped: bool) -> None:
    if weighs and name in UNWEIGHTED:
        pytest.skip("it takes no weights")
    world = World(name, seed, int([30, 90][seed]), weighs=weighs, grouped=grouped)
    for size in (1, 4):
        gone = world.some(size)
        stays = gone[:1] if size > 1 else []  # it leaves, and comes back with other values
        world.replace(gone, stays + [world.name() for _ in range(int(world.rng.integers(1, 4)))])
        assert world.model.digest() == world.fresh().digest()
        world.correct(world.some(size))
        assert world.model.digest() == world.fresh().digest()
        (doomed,) = world.some(1)
        world.model.delete([doomed])
        del world.records[doomed]
        assert world.model.digest() == world.fresh().digest()
        (come,) = names = [world.name()]
        world.put(names)
        given = world.table([come])
        world.model.add(given.pop("X"), given.pop("y"), **given)
        assert world.model.digest() == world.fresh().digest()


@pytest.mark.parametrize("name", ["slices", "own shards"])
def test_all_goes_in_one_update(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(name, 7, 90, weighs=False, grouped=False)
    found: list[Delta] = []
    update = Composed._update

    def noted(self: Any, delta: Delta) -> Any:
        found.append(delta)
        return update(self, delta)

    monkeypatch.setattr(Composed, "_update", noted)
    report = world.correct(world.some(1))
    assert report.counts[f"{world.model._part}s"] == 1
    (delta,) = found
    assert (delta.leaving.size, delta.arriving.size) == (1, 1)


def test_a_new_class_concerns_the_members_that_have_it() -> None:
    world = World("shards", 1, 60, weighs=False, grouped=False)
    (name,) = world.some(1)
    x, _, *others = world.records[name]
    world.records[name] = (x, "yew", *others)
    assert world.model.correct([name], y=np.array(["yew"], dtype=object)).counts == {"shards": 1}
    assert world.model.digest() == world.fresh().digest()
    assert world.model.classes_.tolist() == ["ash", "elm", "oak", "yew"]


# -- estimators that refuse to learn ---------------------------------------------------------------

REFUSING: dict[str, Any] = {
    "shards": ShardedRegressor(Refusing(), 3),
    "bags": BaggingRegressor(Refusing(), 4),
    "slices": ShardedRegressor(Refusing(), 3, n_slices=2),
    "refit": Refit(Refusing()),
    "own shards": ShardedRegressor(Refit(Refusing()), 3),
    "shards of shards": ShardedRegressor(ShardedRegressor(Refusing(), 2), 2),
}
ROWS = np.random.default_rng(3).normal(size=(70, 2))
Y = ROWS @ [1.0, 2.0]
CHANGES: dict[str, Any] = {
    "delete": lambda model: model.delete(range(20)),
    "add": lambda model: model.add(ROWS[60:], Y[60:], ids=range(60, 70)),
    "correct": lambda model: model.correct(range(10), ROWS[60:], Y[60:]),
    "replace": lambda model: model.replace(range(10), ROWS[60:], Y[60:], ids=range(60, 70)),
}


def refused(model: Any, change: str) -> int:
    """Have a member refuse a change, the first, the second, and so on, until it is done.

    Return how often one has refused. Nobody can learn again meanwhile.
    """
    root, times = state_root(model.state()), 0
    while True:
        before, members = dict(model.__dict__), getattr(model, "estimators_", [])
        Refusing.left = times
        try:
            CHANGES[change](model)
            return times
        except UnlearnableError:
            times += 1
        finally:
            Refusing.left = None
        assert state_root(model.state()) == root
        assert model.ids_.tolist() == list(range(60))
        assert model.__dict__.keys() == before.keys()
        changed = {name for name in before if model.__dict__[name] is not before[name]}
        assert changed <= {"_info", "_has_begun"}
        now = getattr(model, "estimators_", [])
        own = [member for member in members if isinstance(member, Erasable)]
        assert all(any(each is one for one in now) for each in own)


def left_by(change: str) -> tuple[Any, Any, Any]:
    """Return the records after a change."""
    rows, ids = np.arange(60), np.arange(60)
    if change == "delete":
        rows = ids = rows[20:]
    elif change == "add":
        rows = ids = np.arange(70)
    else:
        rows = np.concatenate([np.arange(60, 70), rows[10:]])
        ids = np.concatenate([np.arange(60, 70) - (60 if change == "correct" else 0), ids[10:]])
    return ROWS[rows], Y[rows], ids


@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_member_refuses_changes_nothing_and_costs_no_fit(name: str, change: str) -> None:
    model = clone(REFUSING[name]).set_params(random_state=0)
    model.fit(ROWS[:60], Y[:60])
    assert refused(model, change) >= (1 if name == "refit" else 2)
    X, y, ids = left_by(change)
    fresh = clone(REFUSING[name]).set_params(random_state=0)
    assert model.digest() == fresh.fit(X, y, ids=ids).digest()


def test_a_model_that_has_to_learn_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: it cannot, and is not fitted any more."""
    model = Refit(Refusing(), random_state=0).fit(ROWS[:60], Y[:60])
    monkeypatch.setattr(Refit, "_updates_in_place", True)
    with pytest.raises(NotFittedError):
        refused(model, "delete")


def test_what_another_model_refuses_changes_nothing() -> None:
    """Of models that share records the last refuses; the others have changed already."""
    records = Records(ROWS[:60], Y[:60])
    models = [
        ShardedRegressor(Ridge(), 3, random_state=0).fit(records),
        ShardedRegressor(LinearRegression(), 3, random_state=0).fit(records),
        Refit(LinearRegression(), random_state=0).fit(records),
        Refit(Refusing(), random_state=0).fit(records),
    ]
    roots = [state_root(model.state()) for model in models]
    Refusing.left = 0
    with pytest.raises(UnlearnableError, match="Refusing"):
        records.correct(range(10), ROWS[60:], Y[60:])
    Refusing.left = None
    assert [state_root(model.state()) for model in models] == roots
    records.correct(range(10), ROWS[60:], Y[60:])
    X, y, ids = left_by("correct")
    for model in models:
        assert model.digest() == clone(model).fit(X, y, ids=ids).digest()


def test_leaving_one_out_leaves_a_model_whole_that_refuses() -> None:
    model = Refit(Refusing(), random_state=0).fit(ROWS[:60], Y[:60])
    digest = model.digest()
    Refusing.left = 1
    with pytest.raises(UnlearnableError, match="Refusing"):
        list(each_without(model, [np.array([3]), np.array([4])]))
    Refusing.left = None
    assert model.digest() == digest
    assert model.ids_.tolist() == list(range(60))
    model.delete([3])
    left = np.delete(np.arange(60), 3)
    fresh = Refit(Refusing(), random_state=0).fit(ROWS[left], Y[left], ids=left)
    assert model.digest() == fresh.digest()

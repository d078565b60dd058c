"""Trees and forests that take records in and lose others in one change, against fresh fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from erasable import Records
from erasable.core.changes import Delta
from erasable.core.errors import TooFewRecordsError
from erasable.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree._estimators import TreeModel
from erasable.tree._grown import UpdatableTree
from naming import named

KINDS = [
    DecisionTreeClassifier(random_state=1, n_thresholds=3),
    DecisionTreeRegressor(random_state=2, max_features=2),
    RandomForestClassifier(4, random_state=3, class_weight={0: 2.0, 1: 0.5}),
    RandomForestRegressor(3, random_state=4, min_samples_leaf=2, n_thresholds=5),
    ExtraTreesClassifier(3, random_state=5, bootstrap=True),
    ExtraTreesRegressor(3, random_state=6, n_thresholds=2),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=named)


class World:
    """A model, and its records by id."""

    def __init__(
        self, kind: Any, seed: int, n: int, *, weighs: bool, grouped: bool, gaps: float = 0.0
    ) -> None:
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.weighs, self.grouped, self.gaps = weighs, grouped, gaps
        self.records: dict[int, tuple[Any, ...]] = {}
        self.next = 0
        self.put([self.name() for _ in range(n)])
        self.model = self.fresh()

    def name(self) -> int:
        self.next += 1
        return self.next

    def put(self, ids: list[int], groups: Any = None) -> None:
        """Draw new values of records."""
        few = self.rng.random(3) < 0.5
        for place, name in enumerate(ids):
            x = np.where(few, self.rng.integers(0, 4, 3), self.rng.normal(size=3))
            score = x[0] * x[1] + self.rng.normal()
            if self.gaps:
                x = np.where(self.rng.random(3) < [self.gaps, 0.01, 0.0], np.nan, x)
            y = int(np.digitize(score, [0.0, 1.5])) if is_classifier(self.kind) else score
            weight = self.rng.choice([0.0, 1.0, 3.0, 1.7])
            group = int(self.rng.integers(9)) if groups is None else groups[place]
            self.records[name] = (x, y, weight, group)

    def table(self, ids: list[int]) -> dict[str, Any]:
        """Return the arguments by which records are given."""
        X, y, weights, groups = zip(*(self.records[name] for name in ids), strict=True)
        given: dict[str, Any] = {"X": np.array(X), "y": np.array(y), "ids": ids}
        if self.weighs:
            given["sample_weight"] = np.array(weights)
        if self.grouped:
            given["groups"] = np.array(groups)
        return given

    def fresh(self) -> Any:
        ids = self.rng.permutation(list(self.records)).tolist()
        given = self.table(ids)
        return clone(self.kind).fit(given.pop("X"), given.pop("y"), **given)

    def replace(self, gone: list[int], come: list[int]) -> str:
        for name in gone:
            del self.records[name]
        self.put(come)
        given = self.table(come)
        return self.model.replace(gone, given.pop("X"), given.pop("y"), **given).action

    def correct(self, ids: list[int]) -> str:
        self.put(ids, [self.records[name][-1] for name in ids])
        given = self.table(ids)
        given.pop("groups", None)
        return self.model.correct(**given).action

    def some(self, n: int) -> list[int]:
        return self.rng.choice(list(self.records), n, replace=False).tolist()


@each_kind
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("weighs", "grouped", "gaps"),
    [
        (False, False, 0.0), (True, False, 0.0), (False, True, 0.0), (True, True, 0.0),
        (False, False, 0.3), (True, True, 0.3), (False, False, 0.95), (False, False, 0.005),
    ],
)  # fmt: skip
def test_what_is_exchanged_is_a_fit(
    kind: Any, seed: int, weighs: bool, grouped: bool, gaps: float
) -> None:
    n = int([9, 70, 400][seed])
    world = World(kind, seed, n, weighs=weighs, grouped=grouped, gaps=gaps)
    actions = []
    for size in (1, 2, 1, 5):
        gone = world.some(size)
        stays = gone[:1] if size > 1 else []  # it leaves, and comes back with other values
        come = stays + [world.name() for _ in range(int(world.rng.integers(1, 5)))]
        actions.append(world.replace(gone, come))
        assert world.model.digest() == world.fresh().digest()
        actions.append(world.correct(world.some(size)))
        assert world.model.digest() == world.fresh().digest()
        doomed = world.some(1)
        world.model.delete(doomed)
        del world.records[doomed[0]]
        assert world.model.digest() == world.fresh().digest()
    assert len(world.records) < 100 or "updated" in actions


@each_kind
def test_all_goes_in_one_update(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(kind, 7, 200, weighs=False, grouped=False)
    found: list[Delta] = []
    update = TreeModel._update

    def noted(self: Any, delta: Delta) -> Any:
        found.append(delta)
        return update(self, delta)

    monkeypatch.setattr(TreeModel, "_update", noted)
    assert world.correct(world.some(3)) == "updated"
    (delta,) = found
    assert (delta.leaving.size, delta.arriving.size) == (3, 3)
    assert np.intersect1d(delta.leaving, delta.arriving).size == 0


@each_kind
def test_everything_is_exchanged(kind: Any) -> None:
    """So few that a new fit is no faster; trees and bags are empty in between."""
    world = World(kind, 8, 5, weighs=False, grouped=False)
    for _ in range(5):
        world.replace(list(world.records), [world.name() for _ in range(5)])
        assert world.model.digest() == world.fresh().digest()


def test_a_class_whose_only_record_is_corrected_stays() -> None:
    X, y = np.arange(12.0)[:, None], np.arange(12) % 3
    y[y == 2] = 0
    y[7] = 2
    model = RandomForestClassifier(3, random_state=0).fit(X, y)
    assert model.correct([7], [[20.0]]).action == "updated"
    X[7] = 20.0
    assert model.digest() == RandomForestClassifier(3, random_state=0).fit(X, y).digest()


def test_bags_that_are_empty_come_and_go() -> None:
    """With two records some of forty bags are empty, and learn from all records."""
    kind = RandomForestClassifier(40, random_state=0)
    records = Records([[0.0], [1.0]], [0, 1], ids=[0, 1])
    model = clone(kind).fit(records)
    for turn in range(2, 12):
        assert model._accelerator.whole.any()
        model.replace([turn - 2], [[float(turn)]], [turn % 2], ids=[turn])
        ids = [turn - 1, turn]
        fresh = clone(kind).fit([[float(i)] for i in ids], [i % 2 for i in ids], ids=ids)
        assert model.digest() == fresh.digest()


@each_kind
def test_weights_that_all_go_are_refused_and_nothing_is_changed(kind: Any) -> None:
    X, y = np.arange(4.0)[:, None], np.arange(4) % 2
    model = clone(kind).fit(X, y, sample_weight=[1.0, 0.0, 0.0, 0.0])
    digest = model.digest()
    with pytest.raises(TooFewRecordsError):
        model.replace([0], X[:1], y[:1], sample_weight=[0.0], ids=[9])
    assert model.digest() == digest
    assert model.ids_.tolist() == [0, 1, 2, 3]


def test_rows_that_stay_in_the_trees_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: what leaves is taken out of all trees but the first."""
    remove = UpdatableTree.remove
    world = World(clone(KINDS[2]), 9, 80, weighs=False, grouped=False)
    first = world.model._accelerator.trees[0]

    def forgetful(self: Any, *given: Any) -> Any:
        return (0, 0) if self is first else remove(self, *given)

    monkeypatch.setattr(UpdatableTree, "remove", forgetful)
    for _ in range(4):
        world.correct(world.some(1))
    assert world.model.digest() != world.fresh().digest()

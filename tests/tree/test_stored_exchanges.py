"""Trees of stored records that take records in and lose others, against those of memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone, is_classifier

from erasable import Records
from erasable.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree._estimators import TreeModel
from erasable.tree._stored import StoredForest
from naming import named
from simulated_workers import Simulated, even, spread

MODELS = [
    RandomForestClassifier(3, random_state=0),
    RandomForestClassifier(2, min_samples_leaf=4, max_features=1, random_state=1, n_jobs=2),
    RandomForestRegressor(3, n_thresholds=3, random_state=2),
    ExtraTreesClassifier(2, bootstrap=True, random_state=3),
    ExtraTreesRegressor(2, random_state=4),
    DecisionTreeClassifier(max_depth=4, class_weight={0: 2.0, 1: 1.0, 2: 1.0}, random_state=5),
    DecisionTreeRegressor(max_depth=5, max_features=2, random_state=6),
]
N = 500


class World:
    """Records by id, of which the model of stored ones and that of memory learn."""

    def __init__(self, model: Any, seed: int, *, weighs: bool, gaps: bool = False) -> None:
        self.model, self.weighs, self.gaps = model, weighs, gaps
        self.rng = np.random.default_rng(seed)
        self.records: dict[int, tuple[Any, ...]] = {}
        self.put(list(range(N)))
        self.next = N

    def put(self, ids: list[int]) -> None:
        rng = self.rng
        for name in ids:
            x = [0.0, rng.normal(), float(rng.integers(0, 3)), round(rng.normal(), 1), 7.0]
            if rng.random() < 0.01:
                x[4] = 8.0  # of a column that is mostly constant
            y: Any = 4.0 * x[1] + x[1] * x[3] + rng.normal()
            y = int(np.digitize(y, [0.0, 3.0])) if is_classifier(self.model) else round(y, 2)
            if self.gaps:
                shares = [0.005, 0.2, 0.9, 0.01, 0.005]
                x = np.where(rng.random(5) < shares, np.nan, x).tolist()
            self.records[name] = (x, y, rng.choice([0.0, 1.0, 2.5]), name // 3)

    def table(self, ids: list[int]) -> dict[str, Any]:
        X, y, weights, groups = zip(*(self.records[name] for name in ids), strict=True)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
        given: dict[str, Any] = {"X": frame, "y": np.array(y), "ids": ids, "groups": list(groups)}
        if self.weighs:
            given["sample_weight"] = np.array(weights)
        return given

    def fresh(self) -> Any:
        given = self.table(list(self.records))
        return clone(self.model).fit(given.pop("X"), given.pop("y"), **given)

    def stored(self) -> pa.Table:
        given = self.table(list(self.records))
        others = {"id": given["ids"], "label": given["y"], "person": given["groups"]}
        others |= {"weight": given["sample_weight"]} if self.weighs else {}
        return pa.table({**{name: given["X"][name].to_numpy() for name in given["X"]}, **others})

    def some(self, n: int) -> list[int]:
        return self.rng.choice(list(self.records), n, replace=False).tolist()

    def names(self, n: int) -> list[int]:
        self.next += n
        return list(range(self.next - n, self.next))

    def live(self, model: Any) -> list[Any]:
        """Change records in all ways; return the reports."""
        reports = []
        for size in (1, 1, 4, 30):
            come = self.names(size)
            self.put(come)
            given = self.table(come)
            reports.append(model.add(given.pop("X"), given.pop("y"), **given))
            assert model.digest() == self.fresh().digest()
            wrong = self.some(size)
            self.put(wrong)
            given = self.table(wrong)
            del given["groups"]
            reports.append(model.correct(**given))
            assert model.digest() == self.fresh().digest()
            gone, come = self.some(size), self.names(2)
            for name in gone:
                del self.records[name]
            self.put(come)
            given = self.table(come)
            reports.append(model.replace(gone, given.pop("X"), given.pop("y"), **given))
            assert model.digest() == self.fresh().digest()
            (doomed,) = self.some(1)
            del self.records[doomed]
            reports.append(model.delete([doomed]))
            assert model.digest() == self.fresh().digest()
        return reports


@pytest.mark.parametrize(
    ("weighs", "gaps"), [(False, False), (True, False), (False, True), (True, True)]
)
@pytest.mark.parametrize("gathered", [25, 120, 10_000])
@pytest.mark.parametrize("model", MODELS, ids=named)
def test_files(
    model: Any, gathered: int, weighs: bool, gaps: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(TreeModel, "_gathered", gathered)
    world = World(model, gathered, weighs=weighs, gaps=gaps)
    pq.write_table(world.stored(), tmp_path / "records.parquet", row_group_size=70)
    records = Records.from_parquet(
        tmp_path, ids="id", target="label", groups="person",
        sample_weight="weight" if weighs else None,
    )  # fmt: skip
    ours = clone(model).fit(records)
    assert isinstance(ours._accelerator, StoredForest) == (gathered < N)
    reports = world.live(ours)
    assert {report.action for report in reports} == {"updated"}
    if gathered == 25 and hasattr(model, "n_estimators"):
        # Most of the large nodes stand, and only smaller ones are grown again.
        touched = [report.rows_touched for report in reports if report.ids.size == 1]
        assert np.median(touched) < 0.3 * N * model.n_estimators


@pytest.mark.parametrize(("n_workers", "gaps"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("model", MODELS[:3], ids=named)
def test_workers(model: Any, n_workers: int, gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreeModel, "_gathered", 60)
    world = World(model, 7, weighs=False, gaps=gaps)
    ours = clone(model).fit(spread(world.stored(), even(N, 5), Simulated(n_workers)))
    assert isinstance(ours._accelerator, StoredForest)
    assert {report.action for report in world.live(ours)} == {"updated"}


def test_bags_that_are_empty_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreeModel, "_gathered", 1)
    kind = RandomForestClassifier(40, random_state=0)
    table = pa.table({"x": [0.0, 1.0], "y": [0, 1], "id": [0, 1]})
    pq.write_table(table, tmp_path / "records.parquet")
    model = clone(kind).fit(Records.from_parquet(tmp_path, ids="id", target="y"))
    assert isinstance(model._accelerator, StoredForest)
    for turn in range(2, 12):
        assert model._accelerator._records.whole.any()
        row = pd.DataFrame({"x": [float(turn)]})
        model.replace([turn - 2], row, [turn % 2], ids=[turn])
        ids = [turn - 1, turn]
        X = pd.DataFrame({"x": [float(i) for i in ids]})
        assert model.digest() == clone(kind).fit(X, [i % 2 for i in ids], ids=ids).digest()


def test_a_value_that_would_be_drawn_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A negative control: nodes that overlook what they would draw."""
    monkeypatch.setattr(TreeModel, "_gathered", 25)
    monkeypatch.setattr(StoredForest, "_draws_alike", lambda *_: True)
    world = World(MODELS[2], 3, weighs=False)
    pq.write_table(world.stored(), tmp_path / "records.parquet", row_group_size=70)
    records = Records.from_parquet(tmp_path, ids="id", target="label", groups="person")
    with pytest.raises(AssertionError):
        world.live(clone(MODELS[2]).fit(records))

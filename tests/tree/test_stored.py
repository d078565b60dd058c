"""Trees of records in files: those of memory, to the last bit, where nodes are grown by passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from erasable import Records
from erasable.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from erasable.tree import DecisionTreeClassifier, _stored
from erasable.tree._estimators import TreeModel
from erasable.tree._level_passes import Drawing
from erasable.tree._stored import StoredForest
from simulated_workers import Simulated, even, spread
from visits_table import Visits, live

MODELS = [
    RandomForestClassifier(4, random_state=0),
    RandomForestClassifier(3, criterion="entropy", class_weight={0: 2.0}, random_state=0),
    RandomForestClassifier(3, min_impurity_decrease=0.01, class_weight="balanced", random_state=0),
    RandomForestRegressor(3, max_features=1, min_samples_leaf=3, random_state=0, n_jobs=2),
    ExtraTreesRegressor(3, min_impurity_decrease=0.001, random_state=0),
    DecisionTreeClassifier(max_depth=6, min_samples_split=0.01, random_state=0),
]


def write(folder: Path, frame: Any, y: Any, groups: Any, row_group: int) -> Records:
    columns = {name: frame[name].to_numpy() for name in frame}
    table = pa.table({"id": np.arange(len(y)), "y": y, "g": groups, **columns})
    pq.write_table(table, folder / "records.parquet", row_group_size=row_group)
    return Records.from_parquet(folder, ids="id", target="y", groups="g")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("row_group", "gathered", "seed"), [(70, 60, 0), (1000, 200, 1)])
def test_digests_are_those_of_memory(
    model: Any, row_group: int, gathered: int, seed: int, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(TreeModel, "_gathered", gathered)
    rng, n = np.random.default_rng(seed), 700
    X = np.column_stack(
        [np.zeros(n), rng.normal(size=n), rng.integers(0, 3, n), rng.normal(size=n).round(1)]
    )
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"])
    y = (X[:, 1] + rng.normal(size=n) > 0).astype(int)
    y[[7, 8]] = 2  # a class that goes
    groups = np.arange(n) // 2
    ours = clone(model).fit(write(tmp_path, frame, y, groups, row_group))
    memory = Records(frame, y, ids=np.arange(n), groups=groups)
    twin = clone(model).fit(memory)
    assert isinstance(ours._accelerator, StoredForest)
    assert ours.digest() == twin.digest()
    for gone in ([3], [7, 8], [20, 21, 22], list(range(100, 140))):
        for each in (ours, twin):
            each.delete(gone)
        assert ours.digest() == twin.digest()
    left = np.isin(np.arange(n), ours.ids_)
    fresh = clone(model).fit(Records(frame[left], y[left], ids=ours.ids_, groups=groups[left]))
    assert fresh.digest() == ours.digest()


@pytest.mark.parametrize("n_workers", [1, 3])
def test_large_nodes_on_a_cluster(n_workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes send the keys and targets of a block to its worker once, and no others."""
    monkeypatch.setattr(TreeModel, "_gathered", 3000)
    n = 20_000
    visits, workers = Visits(n=n), Simulated(n_workers)
    records = spread(visits.table, even(n, 12), workers)
    model, twin = (RandomForestClassifier(2, max_depth=5, random_state=0) for _ in range(2))
    workers.sent_by.clear()
    workers.asked.clear()
    model.fit(records)
    twin.fit(visits.in_memory())
    assert model.digest() == twin.digest()
    jobs = workers.asked["RunPass"]
    assert jobs >= 6 * n_workers  # three levels
    told = workers.sent_by["RunPass"] + workers.sent_by["RunHidden"]
    assert told < 16 * n + 20_000 * (jobs + workers.asked["RunHidden"])
    # Small nodes are grown by workers: each record has 44 bytes, once for each share of the nodes.
    assert workers.asked["Call"] >= n_workers
    trips = workers.asked["RunHidden"] / n_workers
    assert workers.sent_by["Call"] < 44 * n * 2 * n_workers * trips + 4_000 * workers.asked["Call"]
    killed = workers.die(0.05, seed=0)
    for gone in visits.requests():
        gone = live(model, gone)
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
    assert killed


def test_nodes_do_not_depend_on_who_else_is_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are dealt; and subtrees that are given to other nodes are noticed."""
    monkeypatch.setattr(TreeModel, "_gathered", 100)
    visits = Visits(n=600)

    def digest() -> str:
        records = spread(visits.table, even(600, 5), Simulated(3))
        return RandomForestClassifier(2, random_state=0).fit(records).digest()

    twin = RandomForestClassifier(2, random_state=0).fit(visits.in_memory()).digest()
    for deal in (
        lambda sizes, n: [list(range(len(sizes)))],
        lambda sizes, n: [[place] for place in reversed(range(len(sizes)))],
    ):
        monkeypatch.setattr(_stored, "dealt", deal)
        assert digest() == twin
    real = _stored.grow_where

    def turned(*args: Any) -> Any:
        places, flats = zip(*real(*args), strict=True)
        return zip(places, reversed(flats), strict=True)

    monkeypatch.setattr(_stored, "grow_where", turned)
    assert digest() != twin


def test_a_wrong_merge_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreeModel, "_gathered", 60)
    monkeypatch.setattr(Drawing, "merge", lambda self, one, other: one)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(700, 2)), columns=["x0", "x1"])
    y = (frame["x0"].to_numpy() > 0).astype(int)
    ours = MODELS[0].fit(write(tmp_path, frame, y, np.arange(700), 70)).digest()
    twin = MODELS[0].fit(Records(frame, y, ids=np.arange(700), groups=np.arange(700))).digest()
    assert ours != twin

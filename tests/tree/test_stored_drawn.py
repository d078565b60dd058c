"""Random trees on random records, all of whose larger nodes are grown by passes."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import erasable
from effort import examples
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
from simulated_workers import Simulated, spread

CLASSIFIERS = [DecisionTreeClassifier(), RandomForestClassifier(2), ExtraTreesClassifier(2)]
REGRESSORS = [DecisionTreeRegressor(), RandomForestRegressor(2), ExtraTreesRegressor(2)]


class Case(NamedTuple):
    """Records, a model, how they are cut, and what is to be deleted."""

    frame: Any
    y: Any
    model: Any
    cuts: list[int]
    gathered: int
    gone: list[list[int]]
    weights: Any

    @property
    def table(self) -> pa.Table:
        n = len(self.y)
        others = {"id": np.arange(n), "label": self.y, "person": np.arange(n) // 3}
        others |= {} if self.weights is None else {"weight": self.weights}
        return pa.table({**{name: self.frame[name].to_numpy() for name in self.frame}, **others})

    @property
    def weight(self) -> str | None:
        return None if self.weights is None else "weight"

    def in_memory(self, rows: Any = None) -> Records:
        own = np.arange(len(self.y)) if rows is None else rows
        weights = None if self.weights is None else self.weights[own]
        return Records(
            self.frame.iloc[own], self.y[own], ids=own, groups=own // 3, sample_weight=weights
        )


@st.composite
def cases(draw: Any) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 90)), draw(st.integers(1, 3))
    kinds = [
        np.zeros(n), rng.normal(size=n), rng.integers(0, 3, n), rng.normal(size=n).round(1),
        np.repeat([1e-300, -1e300], (n + 1) // 2)[:n],
    ]  # fmt: skip
    chosen = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=d, max_size=d))
    frame = pd.DataFrame({f"x{j}": kinds[kind] for j, kind in enumerate(chosen)}, dtype=float)
    if draw(st.booleans()):
        shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=d, max_size=d))
        frame = frame.mask(rng.random(frame.shape) < shares)
    regression = draw(st.booleans())
    model = clone(draw(st.sampled_from(REGRESSORS if regression else CLASSIFIERS)))
    settings_of = {
        "max_depth": draw(st.sampled_from([None, 1, 4])),
        "min_samples_leaf": draw(st.sampled_from([1, 1, 2, 0.1])),
        "max_features": draw(st.sampled_from([None, 1, "sqrt"])),
        "min_impurity_decrease": draw(st.sampled_from([0.0, 0.0, 0.01])),
        "random_state": draw(st.integers(0, 3)),
    }
    if not regression:
        settings_of["class_weight"] = draw(st.sampled_from([None, None, "balanced"]))
    if "bootstrap" in model.get_params():
        settings_of["bootstrap"] = draw(st.booleans())
    y = rng.normal(size=n).round(draw(st.integers(0, 3))) if regression else rng.integers(0, 3, n)
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=5)))
    gone = draw(st.lists(st.lists(st.integers(0, n - 1), min_size=1, max_size=6), max_size=4))
    weights = None
    if draw(st.booleans()):
        weights = rng.choice([0.0, 0.25, 1.0, 1.7, 1e-9, 9.0], n)
        weights[-1] = 1.0
    model.set_params(**settings_of)
    return Case(frame, y, model, cuts, draw(st.integers(1, 40)), gone, weights)


def check(case: Case, model: Any, records: Records, folder: str = "") -> None:
    """Fit, delete, and, where there is a folder, save and load in between."""
    twin = clone(model).fit(case.in_memory())
    model.fit(records)
    event("by passes" if isinstance(model._accelerator, StoredForest) else "in memory")
    assert model.digest() == twin.digest()
    for number, rows in enumerate(case.gone):
        held = set(model.ids_.tolist())
        gone = [row for row in dict.fromkeys(rows) if row in held]
        rest = np.array(sorted(held - set(gone)), dtype=int)
        if rest.size < 2 or (case.weights is not None and not case.weights[rest].any()):
            continue
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
        if folder and number % 2 == 0:
            model.save(f"{folder}/model", records=True)
            model = erasable.load(f"{folder}/model", True)
            assert model.digest() == twin.digest()
        elif folder:
            model.save(f"{folder}/model")
            left = np.array(model.ids_.tolist())
            model = erasable.load(f"{folder}/model", case.in_memory(left))
    fresh = clone(twin).fit(case.in_memory(np.array(model.ids_.tolist())))
    assert fresh.digest() == model.digest()
    assert np.array_equal(model.predict(case.frame), fresh.predict(case.frame))


@given(cases())
@settings(max_examples=examples(60), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_files(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeModel, "_gathered", case.gathered)
        place = Path(folder, "records")
        place.mkdir()
        for number, (first, stop) in enumerate(pairwise([0, *case.cuts, len(case.y)])):
            part = case.table.slice(first, stop - first)
            pq.write_table(part, place / f"{number}.parquet", row_group_size=17)
        records = Records.from_parquet(
            place, ids="id", target="label", groups="person", sample_weight=case.weight
        )
        check(case, case.model, records, folder)


@given(cases(), st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_workers(case: Case, n_workers: int, seed: int) -> None:
    workers = Simulated(n_workers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeModel, "_gathered", case.gathered)
        records = spread(case.table, case.cuts, workers, weights=case.weight)
        workers.die(0.03, seed)
        check(case, case.model, records)


def test_a_forest_above_the_limit_is_saved_and_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From workers to files: with its records, which are here then; and without."""
    monkeypatch.setattr(TreeModel, "_gathered", 50)
    rng, n = np.random.default_rng(0), 600
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x0", "x1", "x2"])
    y = (frame["x0"].to_numpy() + rng.normal(size=n) > 0).astype(int)
    case = Case(frame, y, RandomForestClassifier(3, random_state=0), [200, 400], 50, [], None)
    records = spread(case.table, case.cuts, Simulated(2))
    model, twin = case.model.fit(records), clone(case.model).fit(case.in_memory())
    assert isinstance(model._accelerator, StoredForest)
    model.save(tmp_path / "with", records=True)
    model.save(tmp_path / "without")
    twin.save(tmp_path / "memory")
    assert (tmp_path / "without").read_bytes() == (tmp_path / "memory").read_bytes()
    known = [
        erasable.load(tmp_path / "with", True),
        erasable.load(tmp_path / "without", records),
        erasable.load(tmp_path / "without", case.in_memory()),
    ]
    for gone in ([5], list(range(100, 140)), list(range(300, 599, 3))):
        for each in (model, twin, *known):
            each.delete(gone)
        assert {each.digest() for each in (model, *known)} == {twin.digest()}

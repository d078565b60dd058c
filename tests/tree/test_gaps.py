"""Trees of data with missing values: those of a slow oracle and of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.ensemble
import sklearn.tree
from hypothesis import given, settings
from sklearn.base import clone, is_classifier

from effort import examples
from erasable import Records
from erasable.compose import ColumnTransformer
from erasable.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    ShardedClassifier,
)
from erasable.pipeline import Pipeline, make_pipeline
from erasable.preprocessing import SimpleImputer, StandardScaler
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree import _forest as forest_module
from erasable.tree._estimators import TreeModel
from erasable.tree._layout import BLOCK
from naming import named
from tree.test_oracle import MODELS, PHASES
from tree.trees import assert_grown, assert_grown_on, expected, tables


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("kind", MODELS, ids=named)
@settings(max_examples=examples(25), phases=PHASES)
@given(
    table=tables(gaps=True), seed=st.integers(0, 9), cuts=st.lists(st.integers(0, 40), max_size=4)
)
def test_trees_are_the_oracles(kind: Any, table: Any, seed: int, cuts: list[int]) -> None:
    assert_grown_on(kind, table, seed, cuts)


@pytest.mark.parametrize("kind", [MODELS[0], MODELS[5], MODELS[6], MODELS[7]], ids=named)
@pytest.mark.parametrize("by_column", [False, True])
def test_large_trees_are_the_oracles(
    monkeypatch: pytest.MonkeyPatch, kind: Any, by_column: bool
) -> None:
    """With nodes that keep the counts of their candidates, of several blocks."""
    monkeypatch.setattr(forest_module, "_MANY", 0 if by_column else 10**9)
    rng = np.random.default_rng(5)
    n = 2 * BLOCK + 77
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n).round(3), rng.integers(0, 4, n)])
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 1.0).astype(int) + (X[:, 2] > 2)
    X = np.where(rng.random(X.shape) < [0.3, 0.001, 0.1], np.nan, X)
    y = y if is_classifier(kind) else y * 0.75
    ids = np.arange(n)
    model = clone(kind).set_params(random_state=4, max_depth=3).fit(X, y, ids=ids)
    assert_grown(model, X, y, ids.tolist())
    few = np.flatnonzero(np.isnan(X[:, 1]))
    alive = np.ones(n, dtype=bool)
    for gone in (few[:1], ids[: BLOCK // 2], few[1:]):
        gone = gone[alive[gone]]
        model.delete(ids[gone])
        alive[gone] = False
        assert_grown(model, X[alive], y[alive], ids[alive].tolist())
    model.add(X[few], y[few], ids=few)
    model.correct(ids[[-1]], np.full((1, 3), np.nan), y[[-1]])
    X[-1], alive[few] = np.nan, True
    assert_grown(model, X[alive], y[alive], ids[alive].tolist())


def test_the_oracle_notices() -> None:
    """A negative control: other gaps, or other places of them, are other trees."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (60, 2)).astype(float), rng.integers(0, 2, 60)
    X[rng.random(X.shape) < 0.3] = np.nan
    model = DecisionTreeClassifier(random_state=1).fit(X, y)
    wanted, ids = expected(model, X, y, list(range(60))), list(range(60))
    assert model.state()["trees"]["gap_sides"].tolist() == wanted["gap_sides"]
    assert {0, 1, 2} == set(wanted["gap_sides"])
    for other in (np.nan_to_num(X), np.nan_to_num(X, nan=9.0), np.roll(X, 1, axis=0)):
        assert expected(model, other, y, ids) != wanted


KINDS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeRegressor(random_state=0),
    RandomForestClassifier(5, random_state=0),
    RandomForestRegressor(5, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(), 3, bootstrap=False, random_state=0),
]


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_the_first_gap_comes_and_the_last_one_leaves(kind: Any) -> None:
    """Without gaps the model is that of data that never had any, and so is its file."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    plain = clone(kind).fit(X, y)
    model = clone(kind).fit(X, y)
    row = np.array([[np.nan, 0.5, np.nan]])
    gapped = np.concatenate([X, row])
    model.add(row, [1], ids=[400])
    assert model.digest() == clone(kind).fit(gapped, np.append(y, 1)).digest()
    assert model.digest() != plain.digest()
    model.delete([400])
    assert model.digest() == plain.digest()
    model.correct([7], [[np.nan, np.nan, np.nan]])
    gapped = np.where(np.arange(400)[:, None] == 7, np.nan, X)
    assert model.digest() == clone(kind).fit(gapped, y).digest()
    model.correct([7], X[[7]])
    assert model.digest() == plain.digest()
    model.correct(range(400), np.column_stack([np.full(400, np.nan), X[:, 1:]]))
    gapped = np.column_stack([np.full(400, np.nan), X[:, 1:]])
    assert model.digest() == clone(kind).fit(gapped, y).digest()


def test_codes_that_are_spread_leave_gaps_as_they_are() -> None:
    """Of columns with gaps alone, too, to which values come."""
    kind = RandomForestClassifier(3, random_state=0)
    rng = np.random.default_rng(2)
    X = np.where(rng.random((300, 2)) < 0.4, np.nan, rng.normal(size=(300, 2)))
    X[:100, 1] = np.nan
    y = rng.integers(0, 2, 300)
    model = clone(kind).fit(X[:100], y[:100])
    for row in range(100, 300, 4):
        some = np.arange(row, row + 4)
        model.add(X[some], y[some], ids=some)
        if row % 48 == 4:
            fresh = clone(kind).fit(X[: row + 4], y[: row + 4])
            assert model.digest() == fresh.digest()
    assert model.digest() == clone(kind).fit(X, y).digest()


# -- compositions ----------------------------------------------------------------------------------

_FIRST = ColumnTransformer([("scaled", StandardScaler(), ["a"])], remainder="passthrough")
_FILLED = ColumnTransformer(
    [("filled", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"])],
    remainder="passthrough",
)
COMPOSITIONS = [
    make_pipeline(_FIRST, RandomForestClassifier(3, random_state=0)),
    make_pipeline(_FILLED, DecisionTreeClassifier(random_state=0)),
    ShardedClassifier(RandomForestClassifier(2), n_shards=3, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(), 3, max_features=0.5, random_state=0),
]


@pytest.mark.parametrize("gathered", [60, 2**20])
@pytest.mark.parametrize("kind", COMPOSITIONS, ids=named)
def test_compositions(
    kind: Any, gathered: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that are let through keep their gaps; so do members of ensembles."""
    monkeypatch.setattr(TreeModel, "_gathered", gathered)
    rng, n = np.random.default_rng(0), 300
    values = rng.normal(size=(n, 4))
    y = (values[:, 0] + values[:, 1] * values[:, 3] > 0).astype(int)
    values[:, 1:] = np.where(rng.random((n, 3)) < 0.2, np.nan, values[:, 1:])
    frame = pd.DataFrame(values, columns=["a", "b", "c", "d"])
    columns = {name: frame[name].to_numpy() for name in frame}
    table = pa.table({"id": np.arange(n), "y": y, **columns})
    pq.write_table(table, tmp_path / "records.parquet", row_group_size=50)
    records = Records.from_parquet(tmp_path, ids="id", target="y")
    models = [clone(kind).fit(frame, y)]
    if isinstance(kind, Pipeline):
        models.append(clone(kind).fit(records))
    for gone in ([3], list(range(20, 60))):
        left = np.setdiff1d(models[0].ids_, gone)
        fresh = clone(kind).fit(frame.iloc[left], y[left], ids=left)
        for model in models:
            model.delete(gone)
            assert model.digest() == fresh.digest()
    exported = models[0].to_sklearn()
    assert np.mean(exported.predict(frame) == models[0].predict(frame)) > 0.99
    models[0].add(frame.iloc[[3]], y[[3]], ids=[3])
    left = np.sort(models[0].ids_)
    fresh = clone(kind).fit(frame.iloc[left], y[left], ids=left)
    assert models[0].digest() == fresh.digest()


# -- scikit-learn ----------------------------------------------------------------------------------

RNG = np.random.default_rng(6)
X, X_NEW = RNG.normal(size=(600, 4)), RNG.normal(size=(1500, 4))
SCORE, SCORE_NEW = (rows[:, 0] + rows[:, 1] * rows[:, 2] for rows in (X, X_NEW))
Y, Y_NEW = (np.digitize(score, [-0.5, 0.7]) for score in (SCORE, SCORE_NEW))
X, X_NEW = (np.where(RNG.random(rows.shape) < 0.2, np.nan, rows) for rows in (X, X_NEW))


@pytest.mark.parametrize("leaf", [12, 20])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_tree_that_tries_everything_is_scikit_learns(leaf: int, gaps: bool) -> None:
    """What it does with gaps that it learned nothing of, too. Smaller leaves have ties."""
    learned = X.astype(np.float32) if gaps else np.nan_to_num(X.astype(np.float32), nan=-0.77)
    settings = {"max_depth": 5, "min_samples_leaf": leaf, "random_state": 0}
    for ours, theirs, y in (
        (DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier, Y),
        (DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor, SCORE),
    ):
        mine = ours(n_thresholds=1023, **settings).fit(learned, y)
        other = theirs(**settings).fit(learned, y)
        new = X_NEW.astype(np.float32)
        assert mine.get_n_leaves() == other.get_n_leaves()
        assert np.allclose(mine.predict(new), other.predict(new), atol=1e-6)


@pytest.mark.parametrize("name", ["RandomForest", "ExtraTrees"])
def test_forests_predict_as_well_as_scikit_learns(name: str) -> None:
    for kind, y, truth in (("Classifier", Y, Y_NEW), ("Regressor", SCORE, SCORE_NEW)):
        ours = globals()[name + kind](60, random_state=1)
        theirs = getattr(sklearn.ensemble, name + kind)(60, random_state=1)
        mine, other = (each.fit(X, y).score(X_NEW, truth) for each in (ours, theirs))
        assert mine > other - 0.04
        # A negative control: gaps that are moved tell nothing of the target.
        shuffled = clone(ours).fit(RNG.permuted(X, axis=0), y).score(X_NEW, truth)
        assert shuffled < other - 0.04

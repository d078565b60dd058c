"""The graph of a composition: what a deletion changes passes from node to node, at any depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import erasable
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer, make_column_transformer
from erasable.core.changes import ANYTHING, NOTHING, VALUES, Affine, TableChange, union
from erasable.linear_model import Ridge as LinearRidge
from erasable.model_selection import leave_one_out
from erasable.pipeline import Pipeline, fusing, make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, SimpleImputer, StandardScaler
from erasable.refit import Refit
from pipeline.small_steps import Rarity, Sums


def table(n: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 4)).astype(float)
    X[:, 3] += rng.random(n)
    return X


# -- changes ---------------------------------------------------------------------------------------


def test_parts_of_a_change_occur_together() -> None:
    change = TableChange(np.array([2]), np.array([True, False]), np.array([1, -1]))
    assert change
    assert not change.in_place
    assert TableChange(np.array([2]), np.array([False, False])).still
    assert not TableChange(np.array([], dtype=np.int64))
    assert TableChange(np.array([], dtype=np.int64), origin=np.array([0, 2]))
    assert VALUES
    assert ANYTHING
    assert not NOTHING


def test_columns_that_nobody_takes_do_not_count() -> None:
    change = TableChange(None, np.array([True, False, False]))
    assert not change.of_columns([1, 2])
    assert change.of_columns([2, 0])
    moved = TableChange(None, np.array([True, False]), np.array([1, 2]))
    assert not moved.of_columns([1]).known  # it is another column now


def test_changes_are_joined() -> None:
    rows = union([TableChange(np.array([4])), NOTHING, TableChange(np.array([1]))])
    assert rows.rows is not None
    assert rows.rows.tolist() == [1, 4]
    assert union([VALUES, TableChange(np.array([1]))]).rows is None
    both = union([TableChange(origin=np.array([0])), TableChange(origin=np.array([0]))])
    assert not both.known


def test_a_chain_of_maps_is_one_map() -> None:
    rng = np.random.default_rng(0)
    first, second = (Affine(rng.normal(size=3), rng.random(3) + 0.5) for _ in range(2))
    X = rng.normal(size=(5, 3))
    one_by_one = ((X - first.shift) / first.scale - second.shift) / second.scale
    joined = first.then(second)
    np.testing.assert_allclose((X - joined.shift) / joined.scale, one_by_one, rtol=1e-12)


# -- nesting ---------------------------------------------------------------------------------------


def nested(*last: Any) -> Pipeline:
    """Make rows that change meet a column transformer, some columns of which they are not in."""
    side = make_column_transformer(
        (Sums(), [0, 1]),
        (make_pipeline(MinMaxScaler(clip=True), Sums()), [2]),
        ("passthrough", [3]),
    )
    return make_pipeline(Rarity(), side, *last)


def test_steps_within_a_part_follow_rows_that_changed() -> None:
    X = table()
    model, left, followed = nested().fit(X), np.arange(len(X)), 0
    for gone in range(30):
        report = model.delete([gone])
        left = left[left != gone]
        assert not any("columntransformer.refits" in name for name in report.counts)
        followed += report.counts.get("columntransformer.sums.rows_followed", 0)
        assert model.digest() == clone(model).fit(X[left], ids=left).digest()
    assert followed > 0


def test_a_part_whose_columns_change_is_laid_out_again() -> None:
    X = np.array([[1.0, 5.0], [1.0, 6.0], [2.0, 7.0], [3.0, 8.0], [3.0, 9.0]])
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), [0]), remainder="passthrough"
    )
    inner = ColumnTransformer([("some", StandardScaler(), slice(1, None))], remainder="passthrough")
    model = make_pipeline(encode, inner, Sums()).fit(X)
    report = model.delete([2])  # the last record of its category
    assert report.counts["columntransformer-2.refits"] == 1
    left = [0, 1, 3, 4]
    assert model.digest() == clone(model).fit(X[left], ids=left).digest()
    assert model.transform(X[left]).shape == (4, 3)


@pytest.mark.parametrize("fused", [True, False])
def test_a_step_that_trains_and_fails_leaves_all_as_it_was(
    fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = table()
    y = X @ np.arange(4.0)
    with fusing(fused):
        model = make_pipeline(
            SimpleImputer(),
            make_column_transformer((StandardScaler(), [0, 3])),
            Refit(Ridge(), random_state=0),
        ).fit(X, y)
        digest, answers = model.digest(), model.predict(X)
        failures = iter([True])
        learn = Refit._learn_again

        def fail_once(self: Any, rows: Any) -> Any:
            if next(failures, False):
                raise RuntimeError("no")
            return learn(self, rows)

        monkeypatch.setattr(Refit, "_learn_again", fail_once)
        with pytest.raises(RuntimeError):
            model.delete([5])
        assert model.digest() == digest
        assert len(model.ids_) == len(X)
        np.testing.assert_array_equal(model.predict(X), answers)
        model.delete([5])
        rest = np.delete(np.arange(len(X)), 5)
        assert model.digest() == clone(model).fit(X[rest], y[rest], ids=rest).digest()


def test_a_model_that_fuses_no_maps_stays_one(tmp_path: Any) -> None:
    X = table()
    with fusing(False):
        model = make_pipeline(StandardScaler(), MinMaxScaler(), KMeans(2, random_state=0)).fit(X)
    assert [learning.maps for learning in model._layout.learners] == [(), (), ()]
    model.save(tmp_path / "model")
    again = erasable.load(tmp_path / "model", erasable.Records(X))
    assert again.digest() == model.digest()
    for each in (model, again):
        each.delete([3])
    with fusing(False):
        fresh = clone(model).fit(np.delete(X, 3, axis=0), ids=np.delete(np.arange(60), 3))
    assert model.digest() == again.digest() == fresh.digest()
    fused = clone(model).fit(X)
    assert fused._layout.learners[1].maps


@pytest.mark.parametrize("fused", [True, False])
def test_groups_searches_and_leave_one_out_serve_either_graph(fused: bool) -> None:
    X = table()
    y, groups = X @ np.arange(4.0), np.arange(60) // 4
    model = make_pipeline(StandardScaler(), MinMaxScaler(), LinearRidge(alpha=0.5))
    with fusing(fused):
        model.fit(X, y, groups=groups)
        rest = np.flatnonzero(groups != 5)
        left = clone(model).fit(X[rest], y[rest], ids=rest, groups=groups[rest])
        found = leave_one_out(model)
        np.testing.assert_array_equal(found.predictions[groups == 5], left.predict(X[20:24]))
        search = GridSearchCV(clone(model), {"ridge__alpha": [0.5, 50.0]}, cv=3).fit(X, y)
        again = clone(search.best_estimator_).fit(X, y)
    model.delete(groups=[5])
    assert model.digest() == left.digest()
    assert search.best_estimator_.digest() == again.digest()
    assert bool(model._layout.learners[1].maps) == fused

"""What hurts: roots, whole classes, people with many records, the last ones; and what is left."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import erasable
from erasable import Records
from erasable.core.errors import ArtifactError, TooFewRecordsError
from erasable.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree._flat import UNIT
from erasable.tree._layout import KEPT_ABOVE, KEPT_BYTES, NONE
from erasable.utils._checks.compare import assert_same
from erasable.utils._checks.reach import Marks, traces
from naming import named

N = 1400
KINDS = [
    DecisionTreeClassifier(random_state=1),
    DecisionTreeRegressor(random_state=2, min_impurity_decrease=1e-4),
    RandomForestClassifier(4, random_state=3),
    RandomForestRegressor(3, random_state=4, min_samples_leaf=2, n_thresholds=5),
    ExtraTreesClassifier(3, random_state=5),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=named)


def data_for(kind: Any) -> tuple[Any, Any]:
    """Large enough for nodes that keep counts, and for trees that are hashed in parts."""
    assert 2 * max(KEPT_ABOVE, UNIT) < N
    rng = np.random.default_rng(17)
    X = np.column_stack(
        [rng.normal(size=(N, 2)), rng.integers(0, 9, (N, 2)), rng.normal(size=N).round(1)]
    )
    score = X[:, 0] * X[:, 1] + X[:, 2] / 4.0 + rng.normal(size=N)
    return X, np.digitize(score, [0.5, 2.0]) if is_classifier(kind) else score


def refit(kind: Any, X: Any, y: Any, left: Any, **more: Any) -> Any:
    return clone(kind).fit(X[left], y[left], ids=left, **more)


@each_kind
def test_long_sequences_with_files_and_pickles_between(kind: Any, tmp_path: Path) -> None:
    X, y = data_for(kind)
    rng = np.random.default_rng(5)
    model, alive = clone(kind).fit(X, y), np.ones(N, dtype=bool)
    order, start = rng.permutation(N), 0
    for turn, size in enumerate([1, 1, 2, 40, 1, 300, 5, 700, 1, 200, 3]):
        rows = order[start : start + size]
        start += size
        model.delete(rows)
        alive[rows] = False
        left = np.flatnonzero(alive)
        if turn % 3 == 2:
            model.save(tmp_path / "model")
            records = Records(X[left], y[left], ids=left)
            model = erasable.load(tmp_path / "model", records)
        if turn % 4 == 3:
            model = pickle.loads(pickle.dumps(model))
        assert_same(model, refit(kind, X, y, left), f"after {start} deletions", save=True)


@each_kind
def test_what_the_root_hangs_on(kind: Any) -> None:
    """Delete all records with the values at the root's split, again and again."""
    X, y = data_for(kind)
    model = clone(kind).fit(X, y)
    for _ in range(4):
        left = model.ids_
        trees = model.state()["trees"]
        values, threshold = X[left, trees["features"][0]], trees["thresholds"][0]
        below, above = values[values <= threshold].max(), values[values > threshold].min()
        for value in (below, above):
            doomed = left[values == value]
            model.delete(doomed)
            left, values = left[values != value], values[values != value]
            assert_same(model, refit(kind, X, y, left), "after the root's values")


@pytest.mark.parametrize("kind", [k for k in KINDS if is_classifier(k)], ids=named)
def test_whole_classes(kind: Any) -> None:
    X, y = data_for(kind)
    names = np.array(["b", "a", "c"], dtype=object)[y]
    model = clone(kind).fit(X, names)
    for gone, kept in (("a", ["b", "c"]), ("c", ["b"])):
        left = model.ids_
        model.delete(left[names[left] == gone])
        assert model.classes_.tolist() == kept
        assert_same(model, refit(kind, X, names, model.ids_), f"without {gone}", save=True)
    assert model.predict_proba(X[:2]).tolist() == [[1.0], [1.0]]


@each_kind
def test_people_leave_with_all_their_records(kind: Any) -> None:
    X, y = data_for(kind)
    groups = np.random.default_rng(2).integers(0, 30, N)
    model = clone(kind).fit(X, y, groups=groups)
    model.delete(groups=[3, 11])
    left = np.flatnonzero(~np.isin(groups, [3, 11]))
    assert_same(model, refit(kind, X, y, left, groups=groups[left]), "without two people")
    if isinstance(kind, RandomForestClassifier):
        alone = refit(kind, X, y, left)
        assert alone.digest() != model.digest()  # bags are of people, where there are any


@each_kind
def test_until_one_is_left(kind: Any) -> None:
    X, y = (part[:9] for part in data_for(kind))
    model = clone(kind).fit(X, y)
    for gone in range(8):
        model.delete([gone])
        assert_same(model, refit(kind, X, y, np.arange(gone + 1, 9)), f"after {gone}")
    with pytest.raises(TooFewRecordsError):
        model.delete([8])
    assert model.predict(X[:1]) == pytest.approx(y[8])


def test_an_empty_bag_is_filled_with_all_records() -> None:
    """With two records, some of forty bags are empty, or become so."""
    X, y, kind = np.array([[0.0], [1.0]]), np.array([0, 1]), RandomForestClassifier(40)
    model = clone(kind).set_params(random_state=0).fit(X, y)
    assert model._accelerator.whole.any()
    assert not model._accelerator.whole.all()
    before = model._accelerator.whole.sum()
    model.delete([0])
    assert model._accelerator.whole.sum() > before
    assert_same(model, refit(kind.set_params(random_state=0), X, y, np.array([1])), "of one")


@each_kind
def test_nothing_of_a_record_is_left(kind: Any) -> None:
    """Not in rows, counts, codes, hashes of parts or the file; in a model of kept counts."""
    rng = np.random.default_rng(8)
    n = 700
    X = 2.0 * rng.integers(2**22, 2**23, (n, 3)) + 1.0
    y: Any = 2.0 * rng.integers(2**22, 2**23, n) + 1.0
    ids = rng.integers(2**61, 2**62, n)
    classes = rng.integers(0, 2, n)
    model = clone(kind).fit(X, classes if is_classifier(kind) else y, ids=ids)
    model.digest()
    values = tuple(X[5]) if is_classifier(kind) else (*X[5], y[5])
    marks = Marks(int(ids[5]), tuple(map(float, values)))
    assert traces(model, marks)  # the search finds it while it is there
    rows = [tree.growing.rows for tree in model._accelerator.trees]
    model.delete(ids[[5]])
    assert traces(model, marks) == set()
    for own in rows:
        assert not ((own != NONE) & (own & np.uint32(2**27 - 1) == 5)).any()


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2]], ids=named)
def test_memory_grows_with_the_records_and_not_with_the_columns(kind: Any) -> None:
    """Counts are kept within bounds; where there are many columns, nodes count again."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(900, 120)), rng.integers(0, 2, 900)
    model = clone(kind).fit(X, y)
    for tree in model._accelerator.trees:
        kept = sum(getattr(tree.growing, name).nbytes for name in ("codes", "counts", "lefts"))
        assert kept < 2 * KEPT_BYTES * len(tree.growing.rows)
    model.delete([3])
    assert_same(model, refit(kind, X, y, np.delete(np.arange(900), 3)), "with many columns")


def test_records_that_do_not_fill_the_leaves_are_refused(tmp_path: Path) -> None:
    for kind in KINDS:
        X, y = (part[:200].copy() for part in data_for(kind))
        model = clone(kind).fit(X, y)
        model.save(tmp_path / "model")
        for change in ("values", "targets", "none"):
            other_X, other_y = X.copy(), y.copy()
            if change == "values":
                other_X[:100, :] += 3.0
            elif change == "targets":
                other_y = np.roll(other_y, 1)
            records = Records(other_X, None if change == "none" else other_y)
            told = "no targets" if change == "none" else "do not fill the leaves"
            with pytest.raises(ArtifactError, match=told):
                erasable.load(tmp_path / "model", records)
        assert erasable.load(tmp_path / "model", Records(X, y)).digest() == model.digest()


def test_a_tree_that_forgets_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: one tree of four keeps a record."""
    from erasable.tree._grown import UpdatableTree

    X, y = data_for(KINDS[2])
    model = clone(KINDS[2]).fit(X, y)
    remove, calls = UpdatableTree.remove, []

    def forgetful(self: Any, *arguments: Any) -> Any:
        calls.append(self)
        return (0, 0) if len(calls) == 1 else remove(self, *arguments)

    monkeypatch.setattr(UpdatableTree, "remove", forgetful)
    model.delete([7])
    left = np.delete(np.arange(N), 7)
    with pytest.raises(AssertionError, match="differs"):
        assert_same(model, refit(KINDS[2], X, y, left), "with a forgetful tree")

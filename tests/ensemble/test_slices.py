"""Learning slice by slice: resuming equals never having stopped, and holds nobody who is gone."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB

from effort import examples
from ensemble.learners import SLICED, Unseeded, assigned, in_order, table
from erasable.core.digest import state_root
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.tape import Tape
from erasable.ensemble import ShardedClassifier, ShardedRegressor
from erasable.refit._fitting import seeds_of
from erasable.utils._checks.compare import assert_same
from erasable.utils._checks.data_sets import MARKED, suited
from erasable.utils._checks.reach import Marks, reachable, shows

each_base = pytest.mark.parametrize("name", SLICED)
N_SLICES = 4


def sliced(base: Any, n_shards: int = 2, n_slices: int = N_SLICES) -> Any:
    cls = ShardedClassifier if is_classifier(base) else ShardedRegressor
    return cls(clone(base), n_shards, n_slices=n_slices, random_state=5)


def trees(model: Any) -> dict[tuple[int, int], bytes]:
    """What is kept between slices, by shard and slice."""
    return {
        (shard, number): state_root({"": tree})
        for shard, trail in model._accelerator.trails.items()
        for number, tree in trail.trees.items()
    }


@each_base
def test_a_shard_is_what_scikit_learn_makes_of_its_slices(name: str) -> None:
    """By `partial_fit`, without a break and without going through plain values."""
    X, y, ids, groups = table(SLICED[name])
    model = sliced(SLICED[name]).fit(X, y, ids=ids, groups=groups)
    shards, slices = assigned(5, groups, 2), assigned(5, groups, N_SLICES, step=1)
    order = in_order(5, ids)
    for shard, mine in zip(range(2), model.estimators_, strict=True):
        plain = clone(SLICED[name])
        plain.set_params(**seeds_of(plain, Tape(5).child("shard", shard)))
        more = {"classes": np.unique(y[shards == shard])} if is_classifier(plain) else {}
        for number in np.unique(slices[shards == shard]):
            rows = order[(shards[order] == shard) & (slices[order] == number)]
            plain.partial_fit(X[rows], y[rows], **more)
        method = "predict" if not hasattr(plain, "predict_proba") else "predict_proba"
        assert np.array_equal(getattr(mine, method)(X), getattr(plain, method)(X))


@each_base
def test_a_deletion_resumes_and_is_a_refit(name: str) -> None:
    X, y, ids, groups = table(SLICED[name])
    model = sliced(SLICED[name]).fit(X, y, ids=ids, groups=groups)
    slices = assigned(5, groups, N_SLICES, step=1)
    gone: list[int] = []
    for number in (3, 1, 0):
        record = int(np.flatnonzero((slices == number) & ~np.isin(ids, gone))[0])
        before = trees(model)
        deletion = model.delete([ids[record]])
        gone.append(ids[record])
        left = ~np.isin(ids, gone)
        shard = model.shards_[0] * 0 + assigned(5, groups[[record]], 2)[0]
        inside = left & (assigned(5, groups, 2) == shard) & (slices >= number)
        assert deletion.rows_touched == inside.sum()
        assert deletion.action == "resumed"
        refit = sliced(SLICED[name]).fit(X[left], y[left], ids=ids[left], groups=groups[left])
        assert_same(model, refit, f"after slice {number}", save=True)
        assert trees(model) == trees(refit)
        for place, root in trees(model).items():
            assert (root == before[place]) == (place[0] != shard or place[1] < number)


def test_what_is_kept_is_neither_in_the_state_nor_in_a_pickle() -> None:
    X, y, ids, groups = table(GaussianNB())
    model = sliced(GaussianNB()).fit(X, y, ids=ids, groups=groups)
    kept = trees(model)
    assert len(kept) == 2 * (N_SLICES - 1)
    one = sliced(GaussianNB(), n_slices=1).fit(X, y, ids=ids, groups=groups)
    assert model.state().keys() == one.state().keys()
    copy = pickle.loads(pickle.dumps(model))
    assert copy._accelerator is None
    shard = int(assigned(5, groups[:1], 2)[0])
    for each in (model, copy):
        each.delete(ids[:1])
    assert_same(copy, model, "after a pickle", save=True)
    assert {place[0] for place in trees(copy)} == {shard}
    assert trees(copy) == {place: root for place, root in trees(model).items() if place[0] == shard}


def test_a_class_that_leaves_a_shard_has_it_begin_again() -> None:
    """Its last record may be in the last slice, and the first was told of the class."""
    X, y, ids, groups = table(GaussianNB())
    slices, shards = (assigned(5, groups, n, step) for n, step in ((N_SLICES, 1), (2, 0)))
    late = np.flatnonzero((slices == 3) & (shards == 1))[0]
    y[(shards == 1) & (y == "oak")] = "ash"
    y[late] = "oak"
    model = sliced(GaussianNB()).fit(X, y, ids=ids, groups=groups)
    assert model.estimators_[1].classes_.tolist() == ["ash", "elm", "oak"]
    deletion = model.delete([ids[late]])
    assert deletion.rows_touched == (shards == 1).sum() - 1
    left = np.delete(np.arange(60), late)
    refit = sliced(GaussianNB()).fit(X[left], y[left], ids=ids[left], groups=groups[left])
    assert_same(model, refit, "without the class", save=True)
    assert trees(model) == trees(refit)
    model.delete(ids[(shards == 1) & (y == "elm")])  # one class is left, which needs no slices
    assert model.estimators_[1].classes_.tolist() == ["ash"]
    assert {shard for shard, _ in trees(model)} == {0}


def test_slices_come_to_nothing() -> None:
    """The last, the first, and all of a shard."""
    X, y, ids, groups = table(GaussianNB())
    slices, shards = (assigned(5, groups, n, step) for n, step in ((N_SLICES, 1), (2, 0)))
    model = sliced(GaussianNB()).fit(X, y, ids=ids, groups=groups)
    left = np.ones(60, dtype=bool)
    for part in (slices == 3, slices == 0, shards == 0):
        model.delete(ids[left & part])
        left &= ~part
        refit = sliced(GaussianNB()).fit(X[left], y[left], ids=ids[left], groups=groups[left])
        assert_same(model, refit, "without a slice", save=True)
        for place, root in trees(refit).items():
            assert trees(model)[place] == root
    model.delete(ids[np.flatnonzero(left)[:1]])


def test_nobody_is_left_in_what_is_kept() -> None:
    """`GaussianNB` of one record keeps its values: they are found before, and not after."""
    (data, _) = suited(MARKED, ShardedClassifier(GaussianNB()))
    model = sliced(GaussianNB(), n_shards=1, n_slices=30)
    model.fit(data.X, data.y, ids=data.ids)
    row = int(np.argmin(assigned(5, data.ids, 30, step=1)))
    marks = Marks(data.ids.tolist()[row], tuple(data.X[row].tolist()))
    found = [shows(thing, marks) for _, thing in reachable(model._accelerator.trails)]
    assert any(found)
    model.delete(data.ids[[row]])
    assert not any(shows(thing, marks) for _, thing in reachable(model._accelerator.trails))


def test_weights_come_along() -> None:
    X, y, ids, _ = table(GaussianNB())
    w = np.arange(60) % 3 / 2.0
    model = sliced(GaussianNB()).fit(X, y, w, ids=ids)
    model.delete(ids[:5])
    refit = sliced(GaussianNB()).fit(X[5:], y[5:], w[5:], ids=ids[5:])
    assert_same(model, refit, "with weights", save=True)
    plain = sliced(GaussianNB()).fit(X[5:], y[5:], ids=ids[5:])
    assert plain.digest() != refit.digest()
    with pytest.raises(InvalidInputError, match="Unseeded takes none in partial_fit"):
        sliced(Unseeded()).fit(X, y, w, ids=ids)


def test_an_estimator_that_cannot_go_on_is_refused() -> None:
    X, y, _, _ = table(LogisticRegression())
    with pytest.raises(
        InvalidParameterError, match=r"LogisticRegression, which has no partial_fit"
    ):
        sliced(LogisticRegression()).fit(X, y)
    sliced(LogisticRegression(), n_slices=1).fit(X, y)


def test_resuming_after_the_slice_itself_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: what is known after the slice of the record is taken for good."""
    from erasable.ensemble._members import Trail

    def too_late(self: Trail, piece: int) -> dict[int, Any]:
        return {number: tree for number, tree in self.trees.items() if number <= piece}

    X, y, ids, groups = table(SGDClassifier())
    record = int(np.flatnonzero(assigned(5, groups, N_SLICES, step=1) == 1)[0])
    monkeypatch.setattr(Trail, "before", too_late)
    model = sliced(SGDClassifier()).fit(X, y, ids=ids, groups=groups)
    model.delete([ids[record]])
    left = np.delete(np.arange(60), record)
    refit = sliced(SGDClassifier()).fit(X[left], y[left], ids=ids[left], groups=groups[left])
    assert model.digest() != refit.digest()


@settings(max_examples=examples(10))
@given(
    n_slices=st.integers(2, 70),
    cuts=st.lists(st.integers(1, 54), max_size=4, unique=True),
    seed=st.integers(0, 2**32),
)
def test_any_portions_come_to_a_refit(n_slices: int, cuts: list[int], seed: int) -> None:
    base = SGDClassifier(max_iter=1, tol=None)
    X, y, ids, _ = table(base)
    order = np.random.default_rng(seed).permutation(60)
    model = sliced(base, 2, n_slices).fit(X, y, ids=ids)
    for portion in np.split(order[:55], sorted(cuts)):
        model.delete(ids[portion])
    rest = order[55:]
    refit = sliced(base, 2, n_slices).fit(X[rest], y[rest], ids=ids[rest])
    assert_same(model, refit, "from a refit", save=True)
    for place, root in trees(refit).items():
        assert trees(model).get(place, root) == root

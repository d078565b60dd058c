"""Trees and forests with weights: scikit-learn's, copies of records, the law, and whole numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.base import clone, is_classifier

from erasable import Records, load
from erasable.core.errors import ArtifactError, InvalidDataError, TooFewRecordsError
from erasable.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree._estimators import TreeModel
from erasable.tree._forest import Forest
from erasable.tree._rules import unit_for
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant
from naming import named
from weighing import Weighing

EVERY: dict[str, Any] = {"n_thresholds": 1023, "random_state": 0}
MODELS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(criterion="entropy", max_features=2, n_thresholds=9, random_state=0),
    DecisionTreeRegressor(random_state=0),
    DecisionTreeRegressor(min_impurity_decrease=0.01, random_state=0),
    RandomForestClassifier(3, class_weight={0: 2.5}, random_state=0),
    RandomForestRegressor(3, min_samples_leaf=4, random_state=0),
    ExtraTreesClassifier(3, random_state=0),
    ExtraTreesRegressor(3, bootstrap=True, random_state=0),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=named)


def table(model: Any, n: int = 300, seed: int = 0) -> tuple[Any, Any, Any]:
    """Values, targets, and weights that are multiples of a quarter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1] = X[:, 1].round()
    score = X[:, 0] + X[:, 1] * X[:, 2]
    y = (score > 0).astype(int) + (X[:, 3] > 1) if is_classifier(model) else score
    return X, y, rng.integers(1, 13, n) / 4.0


# --------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 0.5}, "balanced"], ids=str)
def test_classes_are_those_of_scikit_learn(criterion: str, class_weight: Any) -> None:
    said = {"criterion": criterion, "class_weight": class_weight, "max_depth": 4}
    said |= {"min_samples_leaf": 5, "min_impurity_decrease": 0.002}
    ours, theirs = DecisionTreeClassifier(**said, **EVERY), sklearn.tree.DecisionTreeClassifier
    X, y, w = table(ours)
    ours.fit(X, y, w)
    probabilities = theirs(**said, random_state=0).fit(X, y, w).predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), probabilities, rtol=1e-12)
    without = theirs(**said, random_state=0).fit(X, y).predict_proba(X)
    assert np.abs(probabilities - without).max() > 0.01  # weights make a difference
    kept = np.flatnonzero(np.arange(300) % 4)
    ours.delete(range(0, 300, 4))
    probabilities = theirs(**said, random_state=0).fit(X[kept], y[kept], w[kept]).predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), probabilities, rtol=1e-12)


def test_numbers_are_those_of_scikit_learn() -> None:
    said = {"max_depth": 4, "min_samples_leaf": 5, "min_impurity_decrease": 0.002}
    ours, theirs = DecisionTreeRegressor(**said, **EVERY), sklearn.tree.DecisionTreeRegressor
    X, y, w = table(ours)
    ours.fit(X, y, w)
    other = theirs(**said, random_state=0).fit(X, y, w)
    np.testing.assert_allclose(ours.predict(X), other.predict(X), rtol=1e-6)
    np.testing.assert_allclose(
        ours.feature_importances_, other.feature_importances_, rtol=1e-5, atol=1e-9
    )
    assert np.abs(ours.predict(X) - theirs(**said, random_state=0).fit(X, y).predict(X)).max() > 0.1
    assert ours.score(X, y, w) == pytest.approx(other.score(X, y, w), rel=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (RandomForestClassifier(30, random_state=0), sklearn.ensemble.RandomForestClassifier),
        (RandomForestRegressor(30, random_state=0), sklearn.ensemble.RandomForestRegressor),
        (ExtraTreesRegressor(30, random_state=0), sklearn.ensemble.ExtraTreesRegressor),
    ],
    ids=named,
)
def test_forests_score_as_scikit_learn(ours: Any, theirs: Any) -> None:
    """On records to which the weights lead: half of all have 20 times the weight of the others."""
    X, y, _ = table(ours, 1200)
    y = np.where(X[:, 3] < 0, y[::-1], y)  # nonsense for half of them
    w, new = np.where(X[:, 3] < 0, 0.05, 1.0), np.arange(1200) >= 900
    ours.set_params(max_depth=8).fit(X[~new], y[~new], w[~new])
    other = theirs(30, max_depth=8, random_state=0).fit(X[~new], y[~new], w[~new])
    scores = [model.score(X[new], y[new], w[new]) for model in (ours, other)]
    assert abs(scores[0] - scores[1]) < 0.06


# --------------------------------------------------------------------------- what a weight is


@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(**EVERY), DecisionTreeRegressor(**EVERY)], ids=named
)
def test_a_weight_is_that_many_copies(model: Any) -> None:
    X, y, w = table(model, 200)
    times = np.round(w).astype(int)
    ours = clone(model).fit(X, y, times)
    copies = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert (times == 0).any()
    assert np.array_equal(ours.predict(X), copies.predict(X))
    assert ours.set_params(max_depth=3).fit(X, y, times).predict(X) == pytest.approx(
        copies.set_params(max_depth=3).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        .predict(X), rel=1e-12,
    )  # fmt: skip
    plain = clone(model).set_params(max_depth=3).fit(X, y).predict(X)
    assert not np.array_equal(plain, ours.predict(X))  # the negative control


@each_model
def test_a_record_without_weight_teaches_nothing(model: Any) -> None:
    X, y, w = table(model)
    w[::3] = 0.0
    left, ids = w > 0, np.arange(300)
    ours = clone(model).fit(X, y, w)
    other = clone(model).fit(X[left], y[left], w[left], ids=ids[left])
    question = other.predict_proba if is_classifier(model) else other.predict
    mine = ours.predict_proba if is_classifier(model) else ours.predict
    assert np.array_equal(mine(X), question(X))
    assert ours.ids_.size == 300
    told = ours.delete(ids[~left][:9])
    assert told.counts["nodes"] == 0
    ours.delete(ids[~left][9:])
    assert ours.digest() == other.digest()


def test_records_are_counted_and_not_weighed_for_the_size_of_leaves() -> None:
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1]
    model = DecisionTreeClassifier(min_samples_leaf=2, random_state=0)
    assert model.fit(X, y, [1, 1, 1, 90]).predict_proba(X)[2].tolist() == [1 / 91, 90 / 91]
    model.set_params(min_samples_leaf=3).fit(X, y, [1, 1, 1, 90])
    assert model.predict_proba(X)[0].tolist() == [3 / 93, 90 / 93]


@pytest.mark.parametrize("bags", [False, True])
def test_no_sum_is_beyond_64_bits(bags: bool) -> None:
    """The largest of so many records, each with the heaviest weight and the largest target."""
    times, target = 2**5 - 1 if bags else 1, 2**27 - 1
    for n in (1, 2, 1000, 2**14, 2**20, 2**27 - 1):
        for largest in (1.0, 1.999, 1e-310, 1e300):
            for regression in (False, True):
                unit = unit_for(largest, n, regression=regression, bags=bags)
                heaviest = round(np.ldexp(np.longdouble(largest), -unit))
                assert 2**2 <= heaviest <= 2**16
                assert n * times * heaviest * (target if regression else 1) < 2**62


def test_large_sums_are_right() -> None:
    """Of equal targets, too: their means may then differ by rounding, and nothing is split."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(3000, 3)), rng.random(3000)
    X[:, 0] = X[:, 0] > 1.0
    y = np.where(X[:, 0], 0.37, 0.93)
    y[:5], X[:5, 0] = 0.7, 0.0
    left = np.arange(5, 3000)
    model = DecisionTreeRegressor(random_state=0).fit(X, y, w)
    assert model.delete(range(5)).action == "updated"
    fresh = DecisionTreeRegressor(random_state=0).fit(X[left], y[left], w[left], ids=left)
    assert model.digest() == fresh.digest()
    assert model.get_n_leaves() == 2
    assert model.predict([[2.0, 0.0, 0.0]]) == pytest.approx(0.37, rel=1e-7)


# --------------------------------------------------------------------------- the law


def _weighing(model: Any) -> Any:
    kind = type(model)
    made = type(f"Weighing{kind.__name__}", (Weighing, kind), {"__module__": __name__})
    globals()[made.__name__] = made
    return made(**model.get_params())


WEIGHING = [
    _weighing(model).set_params(random_state=None)
    for model in (
        DecisionTreeClassifier(), DecisionTreeRegressor(max_depth=4),
        RandomForestClassifier(3), RandomForestRegressor(2, bootstrap=False),
        ExtraTreesClassifier(3, bootstrap=True, min_samples_leaf=0.05), ExtraTreesRegressor(2),
    )
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.thorough
@parametrize_with_law_checks(WEIGHING, fast=True)
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


def live_through(model: Any, seed: int = 1) -> set[str]:
    """Compare a model with a fresh fit while records of any weight leave and come."""
    X, y, w = table(model, 1300)
    rng = np.random.default_rng(seed)
    w = rng.choice([0.0, 0.25, 1.0, 3.0, 1.7, 1e-9], 1300)
    left, ours = np.arange(1000), clone(model)
    ours.fit(X[left], y[left], w[left], ids=left)
    actions = set()
    for size in (1, 1, 2, 20):
        gone = rng.choice(left, size, replace=False)
        come = np.arange(1000, 1000 + size) + 20 * len(actions)
        actions.add(ours.delete(gone).action)
        left = np.setdiff1d(left, gone)
        come = np.setdiff1d(come, left)
        ours.add(X[come], y[come], ids=come, sample_weight=w[come])
        left = np.concatenate([left, come])
        w[left[0]] = 2.0
        ours.correct([left[0]], sample_weight=[2.0])
        fresh = clone(model).fit(X[left], y[left], w[left], ids=left)
        assert ours.digest() == fresh.digest()
        assert np.array_equal(ours.predict(X), fresh.predict(X))
    return actions


@each_model
def test_lives(model: Any) -> None:
    assert live_through(model) == {"updated"}


@each_model
def test_weights_may_come_later(model: Any) -> None:
    """Those that came without count 1."""
    X, y, w = table(model)
    ours, ids = clone(model).fit(X[:200], y[:200]), np.arange(300)
    ours.add(X[200:], y[200:], ids=ids[200:], sample_weight=w[200:])
    w[:200] = 1.0
    assert ours.digest() == clone(model).fit(X, y, w).digest()
    ours.correct([5], sample_weight=[0.5])
    ours.delete([6])
    w[5], left = 0.5, np.delete(ids, 6)
    assert ours.digest() == clone(model).fit(X[left], y[left], w[left], ids=left).digest()


@each_model
def test_the_heaviest_record_leaves(model: Any, tmp_path: Path) -> None:
    X, y, w = table(model)
    w[7], ids = 99.0, np.arange(300)
    ours = clone(model).fit(X, y, w)
    ours.save(tmp_path / "model")
    for other in (None, w + 1.0):
        with pytest.raises(ArtifactError):
            load(tmp_path / "model", Records(X, y, sample_weight=other, ids=ids))
    again = load(tmp_path / "model", Records(X, y, sample_weight=w, ids=ids))
    alone = load(tmp_path / "model")
    assert alone.digest() == ours.digest()
    assert np.array_equal(alone.predict(X), ours.predict(X))
    assert np.array_equal(alone.feature_importances_, ours.feature_importances_)
    rest = np.delete(ids, [3, 7])
    for each in (again, ours):
        assert each.delete([3]).action == "updated"
        assert each.delete([7]).action == "refit"
        assert each.digest() == clone(model).fit(X[rest], y[rest], w[rest], ids=rest).digest()


def test_a_unit_that_does_not_change_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: what weights count in depends on the heaviest."""
    unit = DecisionTreeClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1], [1, 99])._unit
    monkeypatch.setattr(TreeModel, "_find_unit", lambda self: unit)
    model = DecisionTreeClassifier(random_state=0)
    X, y, w = table(model)
    w[7] = 99.0
    model.fit(X, y, w).delete([7])
    monkeypatch.undo()
    rest = np.delete(np.arange(300), 7)
    fresh = DecisionTreeClassifier(random_state=0).fit(X[rest], y[rest], w[rest], ids=rest)
    assert model.digest() != fresh.digest()


def test_weights_that_are_not_put_in_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another: a record that comes has the weight that was left in its place."""
    update = Forest.update

    def heedless(self: Any, held: Any, leaving: Any, keys: Any, arriving: Any, n_jobs: Any) -> Any:
        arriving = arriving._replace(units=np.ones_like(arriving.units))
        return update(self, held, leaving, keys, arriving, n_jobs)

    monkeypatch.setattr(Forest, "update", heedless)
    with pytest.raises(AssertionError):
        live_through(DecisionTreeClassifier(random_state=0))


# --------------------------------------------------------------------------- refusals, members


@each_model
def test_weights_that_are_none_are_refused(model: Any) -> None:
    X, y, w = table(model, 20)
    for wrong in (-w, np.full(20, np.nan), w[:5]):
        with pytest.raises(InvalidDataError, match="sample_weight"):
            clone(model).fit(X, y, wrong)
    with pytest.raises(TooFewRecordsError, match="would be zero"):
        clone(model).fit(X, y, np.zeros(20))
    w[1:] = 0.0
    ours = clone(model).fit(X, y, w)
    before = ours.digest()
    with pytest.raises(TooFewRecordsError, match="would be zero"):
        ours.delete([0])
    assert ours.digest() == before
    assert ours.ids_.size == 20


def test_in_a_bag_of_an_ensemble_a_record_weighs_as_often_as_it_was_drawn() -> None:
    model = BaggingRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=3, random_state=0)
    X, y, w = table(model, 90)
    ours, rest = clone(model).fit(X, y, w), np.arange(9, 90)
    ours.delete(range(9))
    assert ours.digest() == clone(model).fit(X[rest], y[rest], w[rest], ids=rest).digest()
    assert ours.digest() != clone(model).fit(X[rest], y[rest], ids=rest).digest()

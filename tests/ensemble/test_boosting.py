"""Boosting is what a slow oracle makes of the same records, after `fit` and after deletions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
import sklearn.ensemble as peers
from hypothesis import given, settings
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import d2_tweedie_score

import erasable
from effort import examples
from ensemble.boosted import oracle, told
from erasable.core.errors import (
    ErasableError,
    InvalidDataError,
    InvalidParameterError,
    InvalidTypeError,
    TooFewRecordsError,
)
from erasable.ensemble import HistGradientBoostingClassifier as Classifier
from erasable.ensemble import HistGradientBoostingRegressor as Regressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from erasable.tree._boosted import _bins, _rounds
from erasable.tree._boosted._rounds import part_of

LOSSES = ("squared_error", "poisson")


def rates(signal: Any, rng: np.random.Generator) -> Any:
    """Draw how often something happens."""
    return rng.poisson(np.exp(np.clip(signal, -4, 4)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Draw a model, and records that it learns from."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 50)), draw(st.integers(1, 3))
    X = rng.normal(size=(n, d))
    if draw(st.booleans()):
        X = np.round(2 * X)
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.2] = np.nan
    signal = np.nan_to_num(X).sum(axis=1) + rng.normal(size=n)
    n_classes = draw(st.integers(0, 3))
    params: dict[str, Any] = {
        "learning_rate": draw(st.sampled_from([0.1, 0.5, 1.0])),
        "max_iter": draw(st.integers(1, 4)),
        "max_leaf_nodes": draw(st.sampled_from([None, 3, 6])),
        "max_depth": draw(st.sampled_from([None, 2])),
        "min_samples_leaf": draw(st.sampled_from([1, 3])),
        "l2_regularization": draw(st.sampled_from([0.0, 1.0])),
        "max_bins": draw(st.sampled_from([2, 6, 255])),
        "n_thresholds": draw(st.sampled_from([1, 3, 16])),
        "categorical_features": draw(st.sampled_from([None, [0]])),
        "random_state": draw(st.integers(0, 9)),
    }
    if not n_classes:
        loss, times = draw(st.sampled_from(LOSSES)), draw(st.sampled_from([1.0, 1e-9, 1e6]))
        signal = signal if loss == "squared_error" else rates(signal, rng)
        return Regressor(loss, **params), X, signal * times
    return Classifier(**params), X, np.digitize(signal, np.linspace(-1, 1, n_classes))


def expected(model: Any, X: Any, y: Any) -> list[Any]:
    """Ask the oracle, and tell it targets as the model counts them."""
    if isinstance(model, Classifier):
        return oracle(model, X, np.searchsorted(np.unique(y), y).tolist())
    held = model._attached()
    numbers = model._known_targets(held.live_rows())
    return oracle(model, X, numbers.tolist())


@settings(max_examples=examples(150), deadline=None)
@given(case=cases(), cuts=st.lists(st.integers(0, 50), max_size=3))
def test_trees_are_the_oracles(case: tuple[Any, Any, Any], cuts: list[int]) -> None:
    model, X, y = case
    ids = np.arange(len(X)) * 7 - 30
    model.fit(X, y, ids=ids)
    assert told(model) == expected(model, X, y)
    order = np.random.default_rng(0).permutation(len(X))
    for rows in np.split(order, sorted(cuts))[:-1]:
        rest = np.setdiff1d(np.flatnonzero(np.isin(ids, model.ids_)), rows)
        if not rest.size:
            break
        model.delete(ids[rows])
        assert told(model) == expected(model, X[rest], y[rest])


class Drawn(NamedTuple):
    """A model and records that were drawn, and what draws deletions."""

    kind: Any
    X: Any
    y: Any
    weights: Any
    ids: Any
    rng: np.random.Generator


def drawn(seed: int) -> Drawn:
    """Draw a model, and records that it learns from."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 250)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.5:
        X = np.round(X * rng.choice([1, 3]))
    if rng.random() < 0.4:
        X[rng.random(X.shape) < 0.2] = np.nan
    signal = np.nan_to_num(X).sum(axis=1) + rng.normal(size=n)
    cls: Any = Regressor if rng.random() < 0.4 else Classifier
    n_classes = int(rng.integers(1, 5))
    y = signal if cls is Regressor else np.digitize(signal, np.linspace(-1, 1, n_classes))
    weights = rng.choice([0.0, 0.5, 1.0, 7.0, 1e-3], size=n) if rng.random() < 0.4 else None
    # Of a generator of their own, so that lives are those that they were.
    other = np.random.default_rng([seed, 1])
    own: dict[str, Any] = {}
    if cls is Regressor and other.random() < 0.4:
        own, y = {"loss": "poisson"}, rates(signal, other) * other.choice([1.0, 0.3, 1e4])
    elif cls is Classifier and other.random() < 0.4:
        own["class_weight"] = ["balanced", {0: 0.3, 1: 2.0}, {1: 7}][other.integers(3)]
    kind = cls(
        **own,
        learning_rate=float(rng.choice([0.05, 0.2, 1.0, 3.0])),
        max_iter=int(rng.integers(1, 12)),
        max_leaf_nodes=[None, 2, 5, 31][rng.integers(4)],
        max_depth=[None, 1, 4][rng.integers(3)],
        min_samples_leaf=int(rng.choice([1, 3, 20])),
        l2_regularization=float(rng.choice([0, 1.5])),
        max_bins=int(rng.choice([2, 8, 255])),
        n_thresholds=int(rng.choice([1, 4, 16])),
        categorical_features=[None, [0]][rng.integers(2)],
        early_stopping=bool(rng.random() < 0.4),
        validation_fraction=0.3,
        n_iter_no_change=int(rng.integers(1, 4)),
        random_state=int(rng.integers(100)),
    )
    ids = np.array([f"id {i}" for i in range(n)]) if rng.random() < 0.3 else np.arange(n) * 3
    if weights is not None:
        weights[0] = 1.0
    return Drawn(kind, X, y, weights, ids, rng)


def lives(seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield a model after each of some deletions, and a fit on what is left."""
    kind, X, y, weights, ids, rng = drawn(seed)

    def fitted(rows: Any) -> Any:
        return clone(kind).fit(
            X[rows], y[rows], None if weights is None else weights[rows], ids=ids[rows]
        )

    left = np.arange(len(X))
    model = fitted(left)
    for _ in range(int(rng.integers(1, 6))):
        size = 1 if rng.random() < 0.6 else int(rng.integers(1, left.size + 1))
        rest = np.setdiff1d(left, rng.choice(left, size, replace=False))
        if not rest.size or (weights is not None and not weights[rest].any()):
            break
        model.delete(ids[np.setdiff1d(left, rest)])
        left = rest
        if rng.random() < 0.1:
            model = pickle.loads(pickle.dumps(model))
        yield model, fitted(rng.permutation(left))


def full_lives(seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield a model after each of some changes, and a fit on what is there."""
    kind, X, y, weights, ids, _ = drawn(seed)
    rng = np.random.default_rng([seed, 2])
    values = {int(row): int(row) for row in range(1 + int(rng.integers(len(X))))}

    def taken(rows: Any, at: Any = None) -> dict[str, Any]:
        at = rows if at is None else at
        own = {} if weights is None else {"sample_weight": weights[at]}
        return {"X": X[at], "y": y[at], "ids": ids[rows], **own}

    def fitted() -> Any:
        rows = rng.permutation(list(values))
        return clone(kind).fit(**taken(rows, [values[row] for row in rows.tolist()]))

    def drawn_from(rows: Any) -> Any:
        size = 1 if rng.random() < 0.7 else int(rng.integers(1, 1 + max(1, len(rows) // 2)))
        return np.sort(rng.choice(rows, min(size, len(rows)), replace=False))

    model = fitted()
    for _ in range(int(rng.integers(2, 9))):
        act = str(rng.choice(["add", "add", "delete", "correct", "replace"]))
        gone, others = drawn_from(list(values)), np.setdiff1d(np.arange(len(X)), list(values))
        come = drawn_from(others) if others.size else others
        after = dict(values)
        if act in ("delete", "replace"):
            after = {row: at for row, at in values.items() if row not in gone}
        if act in ("add", "replace"):
            after |= {row: row for row in come.tolist()}
        other = rng.integers(len(X), size=gone.size)
        if act == "correct":
            after |= dict(zip(gone.tolist(), other.tolist(), strict=True))
        if not after or (weights is not None and not weights[list(after.values())].any()):
            continue
        if act == "delete":
            model.delete(ids[gone])
        elif act == "correct":
            model.correct(**taken(gone, other))
        elif act == "add":
            model.add(**taken(come))
        else:
            model.replace(ids[gone], **taken(come))
        values = after
        if rng.random() < 0.1:
            model = pickle.loads(pickle.dumps(model))
        yield model, fitted()


def assert_equal(model: Any, fresh: Any) -> None:
    """Compare what models are, and the sums that their next deletions start from."""
    assert model.digest() == fresh.digest()
    mine, other = model._accelerator, fresh._accelerator
    if mine is None:
        return
    assert mine.losses == other.losses
    assert len(mine.trees) == len(other.trees)
    for i in range(len(mine.trees)):
        assert sums(mine.trees.tree(i)) == sums(other.trees.tree(i))


def live_through(seeds: range) -> None:
    """Compare a model with a fit after each deletion of some lives."""
    for seed in seeds:
        for model, fresh in lives(seed):
            assert_equal(model, fresh)


def live_fully(seeds: range) -> None:
    """Compare a model with a fit after each change of some lives."""
    for seed in seeds:
        for model, fresh in full_lives(seed):
            assert_equal(model, fresh)


def sums(tree: Any) -> dict[int, tuple[Any, ...]]:
    """Return the sums of each node by its key."""
    told = zip(tree.keys.tolist(), tree.sums.tolist(), strict=True)
    return {key: tuple(each) for key, each in told}


@pytest.mark.parametrize("part", range(10))
def test_any_life_ends_as_a_fit(part: int) -> None:
    live_through(range(part * 500, part * 500 + examples(100)))


@pytest.mark.parametrize("part", range(10))
def test_any_life_with_additions_ends_as_a_fit(part: int) -> None:
    live_fully(range(part * 500, part * 500 + examples(30)))


def test_records_that_are_not_followed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*arguments: Any) -> int:
        ends, raws = arguments[2], arguments[6]
        return (len(ends) - 1) // len(raws)

    monkeypatch.setattr(_rounds, "move_rows", nothing)
    for live in (live_through, live_fully):
        with pytest.raises(AssertionError):
            live(range(30))


def test_an_edge_that_is_missed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bins, "gain", lambda *arguments: None)
    with pytest.raises(AssertionError):
        live_fully(range(30))


def test_a_split_that_is_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _rounds.move_rows

    def kept(*arguments: Any) -> int:
        first = real(*arguments)
        np.minimum(arguments[-1], 1, out=arguments[-1])
        return first

    monkeypatch.setattr(_rounds, "move_rows", kept)
    for live in (live_through, live_fully):
        with pytest.raises(AssertionError):
            live(range(60))


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_records_that_come_are_followed(cls: Any) -> None:
    """Where no value is new, a record that comes seldom changes all rounds."""
    X, y = make_classification(4000, 8, random_state=0)
    X = np.clip(np.round(2 * X), -5, 5)
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    kind = cls(max_iter=8, min_samples_leaf=5, early_stopping=True, random_state=0)
    left = np.arange(3900)
    model = clone(kind).fit(X[left], y[left], ids=left)
    actions = []
    for row in range(3900, 3950):
        actions.append(model.add(X[[row]], y[[row]], ids=[row]).action)
        other = [row + 50]
        actions.append(model.replace([row - 3000], X[other], y[other], ids=other).action)
    assert actions.count("refit") < 5
    assert {"updated", "resumed"} <= set(actions)
    left = np.setdiff1d(np.arange(4000), np.arange(900, 950))
    assert_equal(model, clone(kind).fit(X[left], y[left], ids=left))


def test_a_first_gap_is_tried() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, 400), rng.integers(0, 9, 400)]).astype(float)
    y = (X[:, 0] > 2).astype(int) ^ (rng.random(400) < 0.1)
    gaps, ids = np.full((60, 2), np.nan), np.arange(400)
    kind = Classifier(max_iter=3, min_samples_leaf=10, random_state=0)
    model = clone(kind).fit(X, y, ids=ids)
    model.add(gaps, np.zeros(60, int), ids=np.arange(400, 460))
    fresh = clone(kind).fit(np.vstack([X, gaps]), np.append(y, np.zeros(60, int)))
    assert_equal(model, fresh)
    assert model.predict_proba([[np.nan, np.nan]])[0, 1] < 0.3


def test_of_trees_that_are_dropped_nothing_stays() -> None:
    X, y = make_classification(400, 5, random_state=0)
    trees = Classifier(max_iter=6, random_state=0).fit(X, y)._accelerator.trees
    first, others = trees.copy(0), [trees.copy(i) for i in range(1, 6)]
    arrays, ends = trees.end_to_end
    behind = part_of(arrays, *ends[[1, -1]].tolist())
    trees.cut(1)
    assert all(each.any() for each in behind)
    trees.overwrite()
    assert not any(each.any() for each in behind)
    assert sums(trees.tree(0)) == sums(first)
    for grown in others:
        trees.append(grown)
    assert [sums(trees.tree(i + 1)) for i in range(5)] == [sums(each) for each in others]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_are_told_as_by_the_twin(n_classes: int) -> None:
    X, y = make_classification(3000, 10, n_informative=6, n_classes=n_classes, random_state=0)
    params: dict[str, Any] = {"max_iter": 30, "learning_rate": 0.2}
    ours = Classifier(**params, random_state=0).fit(X[:2000], y[:2000])
    theirs = peers.HistGradientBoostingClassifier(**params).fit(X[:2000], y[:2000])
    assert ours.score(X[2000:], y[2000:]) > theirs.score(X[2000:], y[2000:]) - 0.03
    shares = ours.predict_proba(X[2000:])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert ours.decision_function(X[:5]).shape == theirs.decision_function(X[:5]).shape
    assert (np.asarray(ours.predict(X)) == ours.classes_[ours.predict_proba(X).argmax(1)]).all()
    staged = list(ours.staged_predict(X[:50]))
    assert len(staged) == ours.n_iter_ == 30
    np.testing.assert_array_equal(staged[-1], ours.predict(X[:50]))
    np.testing.assert_array_equal(
        list(ours.staged_predict_proba(X[:9]))[-1], ours.predict_proba(X[:9])
    )
    assert ours.feature_importances_.sum() == pytest.approx(1.0)


def test_numbers_are_told_as_by_the_twin() -> None:
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    y = y * 1e5 + 3e7
    ours = Regressor(random_state=0).fit(X[:2000], y[:2000])
    theirs = peers.HistGradientBoostingRegressor(max_iter=40, learning_rate=0.2)
    score = theirs.fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])
    assert ours.score(X[2000:], y[2000:]) > score - 0.03
    np.testing.assert_array_equal(list(ours.staged_predict(X[:9]))[-1], ours.predict(X[:9]))


def test_weights_count_records() -> None:
    X, y = make_friedman1(2000, noise=1.0, random_state=0)
    y = np.where(np.arange(2000) % 2, y, -y)
    weights = np.where(np.arange(2000) % 2, 1.0, 1e-3)
    model = Regressor(random_state=0).fit(X, y, weights)
    assert model.score(X[1::2], y[1::2]) > 0.8
    without = Regressor(random_state=0).fit(X, y, np.where(weights == 1.0, 1.0, 0.0))
    assert without.score(X[1::2], y[1::2]) > 0.8
    np.testing.assert_array_equal(
        Regressor(random_state=0).fit(X, y, 4.0 * weights).predict(X), model.predict(X)
    )


def test_rates_are_told_as_by_the_twin() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    for times in (0.05, 1.0, 1e4):
        y = rng.poisson(times * np.exp(0.7 * X[:, 0] + np.abs(X[:, 1]))).astype(float)
        params: dict[str, Any] = {"loss": "poisson", "max_iter": 40, "learning_rate": 0.2}
        ours = Regressor(**params, random_state=0).fit(X[:4000], y[:4000])
        theirs = peers.HistGradientBoostingRegressor(**params).fit(X[:4000], y[:4000])
        scores = [
            d2_tweedie_score(y[4000:], model.predict(X[4000:]), power=1) for model in (ours, theirs)
        ]
        assert scores[0] > scores[1] - 0.03
        assert np.mean(ours.predict(X)) == pytest.approx(np.mean(y), rel=0.1)
    nothing = Regressor("poisson", random_state=0).fit(X, np.zeros(6000))
    assert 0.0 < nothing.predict(X).max() < 1e-5
    with pytest.raises(InvalidDataError, match="from 0 on"):
        Regressor("poisson").fit(X, X[:, 0])


def test_classes_count_by_their_weights() -> None:
    X, y = make_classification(4000, 8, weights=[0.93], flip_y=0.05, random_state=0)
    given: dict[str, Any] = {"max_iter": 20, "random_state": 0}
    plain = Classifier(**given).fit(X, y)
    balanced = Classifier(**given, class_weight="balanced").fit(X, y)
    theirs = peers.HistGradientBoostingClassifier(
        max_iter=20, learning_rate=0.2, class_weight="balanced", random_state=0
    ).fit(X, y)
    shares = [float(np.mean(model.predict(X) == 1)) for model in (plain, balanced, theirs)]
    assert shares[0] + 0.03 < shares[1] == pytest.approx(shares[2], abs=0.03)
    weights = {0: 1.0, 1: 8.0}
    by_class = Classifier(**given, class_weight=weights).fit(X, y)
    by_record = Classifier(**given).fit(X, y, np.where(y == 1, 8.0, 1.0))
    assert any(balanced.delete([row]).action != "refit" for row in range(10))
    # They start elsewhere, from which rounds of either come to the same.
    np.testing.assert_allclose(
        by_class.predict_proba(X).mean(axis=0), by_record.predict_proba(X).mean(axis=0), atol=0.02
    )
    with pytest.raises(TooFewRecordsError):
        Classifier(class_weight={0: 0.0, 1: 0.0}).fit(X, y)
    model = Classifier(class_weight={0: 0.0}, max_iter=2).fit(X[:20], np.arange(20) % 10 == 0)
    with pytest.raises(TooFewRecordsError):
        model.delete([0, 10])
    with pytest.raises(InvalidParameterError, match="class_weight"):
        Classifier(class_weight={0: -1.0}).fit(X, y)


def test_categories_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (2000, 1)).astype(float)
    y = np.isin(X[:, 0], [3, 8, 21, 34]).astype(int)
    params: dict[str, Any] = {"max_iter": 10, "learning_rate": 1.0, "n_thresholds": 40}
    model = Classifier(**params, categorical_features=[0], random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.predict([[99.0]]) == [0]


def test_it_ends_early() -> None:
    X, y = make_classification(2000, 5, random_state=0, flip_y=0.3)
    model = Classifier(max_iter=200, early_stopping=True, random_state=0).fit(X, y)
    assert model.n_iter_ < 100


@pytest.mark.parametrize("cls", [Classifier, Regressor])
@pytest.mark.parametrize("records", [False, True])
def test_files_go_on(cls: Any, records: bool, tmp_path: Path) -> None:
    X, y = make_classification(400, 5, random_state=0)
    ids = np.arange(400)
    kind = cls(max_iter=8, early_stopping=True, random_state=0)
    model = clone(kind).fit(X, y, ids=ids)
    for done in (1, 5, 50):
        model.save(tmp_path / "model", records=records)
        told = True if records else (X[model.ids_], y[model.ids_], model.ids_)
        model = erasable.load(tmp_path / "model", told)
        model.delete(ids[:done][np.isin(ids[:done], model.ids_)])
        left = np.flatnonzero(np.isin(ids, model.ids_))
        assert model.digest() == clone(kind).fit(X[left], y[left], ids=ids[left]).digest()


def test_odd_tables_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    n = 60
    columns = {
        "constant": np.full(n, 3.0),
        "empty": np.full(n, np.nan),
        "huge": rng.normal(size=n) * 1e300,
        "tiny": rng.normal(size=n) * 5e-324,
        "zeros": np.where(rng.random(n) < 0.5, 0.0, -0.0),
    }
    X = np.column_stack(list(columns.values()))
    for kind, y in (
        (Classifier(max_iter=5, min_samples_leaf=1, random_state=0), X[:, 2] > 0),
        (Regressor(max_iter=5, min_samples_leaf=1, random_state=0), np.sign(X[:, 2]) * 1e100),
        (Regressor(max_iter=5, random_state=0), np.full(n, 3.7)),
    ):
        model = clone(kind).fit(X, y)
        assert np.mean(model.predict(X) == y) > 0.9 or model.score(X, y) > 0.5
        for left in (59, 30, 2, 1):
            model.delete(model.ids_[left:])
            fresh = clone(kind).fit(X[:left], y[:left])
            assert_equal(model, fresh)


def test_a_class_goes_with_its_last_record() -> None:
    X, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    model = Classifier(max_iter=4, min_samples_leaf=2, random_state=0).fit(X, y)
    for gone, left in ((2, [0, 1]), (0, [1])):
        model.delete(np.flatnonzero((y == gone) & np.isin(np.arange(90), model.ids_)))
        assert model.classes_.tolist() == left
    assert model.predict_proba(X).tolist() == [[1.0]] * 90
    assert model.n_iter_ == 0
    assert model.decision_function(X[:2]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_behind_a_scaler_nothing_changes(cls: Any) -> None:
    X, y = make_classification(300, 4, random_state=0)
    alone = cls(max_iter=5, random_state=0).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), cls(max_iter=5, random_state=0)).fit(X, y)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(X))
    pipeline.delete([5, 6])
    alone.delete([5, 6])
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(X))


def test_what_is_not_taken_is_refused() -> None:
    X, y = make_classification(50, 4, random_state=0)
    with pytest.raises(InvalidTypeError):
        Classifier().fit(csr_array(X), y)
    for given_, told_ in (([4], "4"), (["age"], "age"), ([-1], "-1"), ([True, False], "True")):
        with pytest.raises(InvalidParameterError, match=told_):
            Classifier(categorical_features=given_).fit(X, y)
    for name, value in (("max_bins", 256), ("max_leaf_nodes", 1), ("learning_rate", 0.0)):
        with pytest.raises(ErasableError, match=name):
            Classifier(**{name: value}).fit(X, y)


def test_categories_below_0_are_gaps() -> None:
    """As in scikit-learn, whose encoders write -1 for what is unknown."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(-1, 4, 200), rng.normal(size=200)]).astype(float)
    y = np.where(X[:, 0] < 0, 3.0, X[:, 0] % 2) + 0.1 * X[:, 1]
    gaps = X.copy()
    gaps[X[:, 0] < 0, 0] = np.nan
    params: dict[str, Any] = {"categorical_features": [0], "max_iter": 5, "random_state": 0}
    model, other = Regressor(**params).fit(X, y), Regressor(**params).fit(gaps, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_array_equal(model.predict(gaps), other.predict(gaps))
    model.delete(range(50))
    left = np.arange(50, 200)
    assert model.digest() == Regressor(**params).fit(X[left], y[left], ids=left).digest()
    numbers = Regressor(**{**params, "categorical_features": None})
    twice = clone(numbers).fit(gaps, y)
    assert numbers.fit(X, y).predict(X).tolist() != twice.predict(gaps).tolist()  # there they count

"""Records that come to a run: it is the run of all of them, and its files keep their promises."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from cluster import oracles
from cluster.files import filing_errors, fresh_run, label_errors, same_state
from cluster.test_filing import KINDS, make_data
from effort import examples, few
from erasable import load
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.cluster import _run as run_module
from erasable.cluster import _seeding as seeding_module
from erasable.cluster import _seeding_kernels as arrival_kernels
from erasable.cluster._distances import Points
from erasable.cluster._run import LloydRun, Terms
from erasable.cluster._seeding import Seeding
from erasable.core.tape import Tape
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are filed when it pays, however long the compiler takes in the background."""
    monkeypatch.setattr(run_module, "is_compiled", lambda *calls: True)


def start(
    X: np.ndarray, n: int, k: int, seed: int, pairs: bool, weights: np.ndarray | None = None
) -> LloydRun:
    """Fit a run on the first rows."""
    keys = Tape(seed).record_keys(np.arange(len(X)))
    points = Points(X, keys, np.arange(n))
    run = LloydRun(points, 8, Seeding(k, seed, oracles.quantum_of(X) / 64.0), weights)
    run._pairs = pairs
    return run.fit()


def change_some(
    run: LloydRun, absent: list[int], rng: np.random.Generator, **change: Any
) -> tuple[bool, Any]:
    """Add records or, more rarely, delete some; a row that left may come again."""
    size = int(rng.choice([1, 1, 1, 1, 5]))
    if absent and rng.random() < 0.6:
        rows = rng.permutation(absent)[:size]
        absent[:] = sorted(set(absent) - set(rows.tolist()))
        leaving = rows[:0]
        if size == 1 and rng.random() < 0.4:  # one for another
            leaving = run.points.rows[rng.choice(run.live(), 1)]
            absent += leaving.tolist()
        return True, run.exchange(leaving, rows, Terms(**change))
    size = min(size, run.n_alive - run.n_clusters)
    gone = np.sort(rng.choice(run.live(), size, replace=False))
    absent += run.points.rows[gone].tolist()
    return False, run.remove(run.points.rows[gone], Terms(**change))


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("metric", [None, 0.0, 1e-3], ids=["plain", "weighted", "turning"])
@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
@pytest.mark.parametrize("kind", KINDS)
def test_runs_that_grow_keep_their_promises(kind: str, pairs: bool, metric: float | None) -> None:
    rng = np.random.default_rng([KINDS.index(kind), pairs, metric is None])
    added = examined = 0
    for seed in range(few(5)):
        n, k = [(160, 3), (60, 2), (90, 5), (120, 7), (40, 4)][seed]
        X = make_data(kind, 2 * n, rng)
        weights = None if metric is None else rng.uniform(0.5, 2.0, X.shape[1])
        run, absent = start(X, n, k, seed, pairs, weights), list(range(n, 2 * n))
        for _ in range(few(40)):
            if weights is not None and metric:
                weights = weights * np.exp(metric * rng.normal(size=weights.size))
            came, report = change_some(run, absent, rng, weights=weights)
            assert not filing_errors(run)
            assert not label_errors(run)
            assert same_state(run, fresh_run(run, weights))
            rows = run.points.rows[run.live()]
            assert np.array_equal(run.positions(rows), run.live())
            if came and report.action == "updated" and report.examined < run.n_alive:
                added += 1
                examined += report.examined / (run.n_alive * (run.built + 1))
    assert added
    assert examined / added < 0.7


def test_one_exchange_is_a_deletion_and_an_addition() -> None:
    """Also of seeds, candidates and records that draw alike."""
    rng = np.random.default_rng(3)
    X = make_data("gaussian", 200, rng)
    once, twice = (start(X, 100, 4, 1, True) for _ in range(2))
    for row in range(100, 200):
        seeds = once.points.rows[once.seeding.candidates[once.seeding.candidates >= 0]]
        leaving = rng.permutation(seeds if row % 3 == 0 else once.points.rows[once.live()])[:1]
        once.exchange(leaving, np.array([row]))
        twice.remove(leaving)
        twice.exchange(leaving[:0], np.array([row]))
        assert same_state(once, twice)
        assert not label_errors(once)


def test_files_are_kept_when_positions_are_given_up() -> None:
    """A window over a stream: nobody is looked at who would not have been."""
    rng = np.random.default_rng(0)
    X = make_data("gaussian", 3_000, rng)
    run = start(X, 1_000, 3, 0, True)
    for row in range(1_000, 2_000):
        run.exchange(np.array([row - 1_000]), np.array([row]))
    assert run._filed
    assert run.alive.size < 1_300
    assert not filing_errors(run)
    assert not label_errors(run)
    assert same_state(run, fresh_run(run))


# -- seeds -----------------------------------------------------------------------------------------


@settings(max_examples=examples(40), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(12, 60),
    k=st.integers(1, 9),
    lattice=st.booleans(),
    weighted=st.booleans(),
)
def test_seeds_are_those_of_one_choice(
    seed: int, n: int, k: int, lattice: bool, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = make_data("lattice" if lattice else "gaussian", n, rng)
    mass = rng.integers(0, 4, n).astype(np.float64) if weighted else np.empty(0)
    points = Points(X, Tape(seed).record_keys(np.arange(n)), np.arange(n), mass)
    first = int(rng.integers(k, n))
    grown = Seeding(k, seed, oracles.quantum_of(X) / 64.0)
    grown.fit(points, np.arange(first))
    there = first
    while there < n:
        come = np.arange(there, min(n, there + int(rng.choice([1, 1, 7]))))
        there += come.size
        grown.change(points, come[:0], come, lambda: np.arange(there))  # noqa: B023
    whole = Seeding(k, seed, grown.quantum)
    whole.fit(points, np.arange(n))
    for name in ("chosen", "candidates", "potentials"):
        assert np.array_equal(getattr(grown, name), getattr(whole, name)), name


def test_a_race_that_nobody_runs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: without races, seeds are those of before and the potentials alone."""

    def admit(*args: Any) -> bool:
        stands = arrival_kernels.admit(*args)
        args[-1][:] = False
        return stands

    monkeypatch.setattr(seeding_module, "admit", admit)
    with pytest.raises(AssertionError, match=r"chosen|candidates|potentials"):
        test_seeds_are_those_of_one_choice()


# -- models ----------------------------------------------------------------------------------------

MODELS = [
    KMeans(4, random_state=0),
    KMeans(20, random_state=1),
    KMeans(3, tol=1e-3, random_state=2),
    QuantizedKMeans(3, random_state=3),
    QuantizedKMeans(3, epsilon=0.5, random_state=4),
    DivideAndConquerKMeans(3, random_state=5),
    DivideAndConquerKMeans(3, width=3, height=2, weight_by_mass=True, random_state=6),
    make_pipeline(StandardScaler(), KMeans(4, random_state=7)),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda each: " ".join(str(each).split()))
@settings(max_examples=examples(3), deadline=None)
@given(seed=st.integers(0, 2**31), kind=st.sampled_from(["gaussian", "lattice", "separated"]))
def test_models_that_grow_are_those_of_one_fit(
    model: Any, seed: int, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    X = make_data(kind, 700, rng)
    X[:2] = [X.min() - 1.0] * X.shape[1], [X.max() + 1.0] * X.shape[1]  # these stay
    model = model.fit(X[:300], ids=np.arange(300))
    live, added = set(range(300)), []
    for step in range(24):
        size = int(rng.choice([1, 1, 1, 6]))
        new = rng.permutation(np.setdiff1d(np.arange(700), list(live)))[:size].tolist()
        old = rng.permutation(sorted(live - {0, 1}))[:size].tolist()
        act = rng.choice(["add", "add", "delete", "replace", "correct", "save"])
        if act == "add":
            added.append(model.add(X[new], ids=new, digest=False).action)
            live |= set(new)
        elif act == "delete":
            model.delete(old, digest=False)
            live -= set(old)
        elif act == "replace":
            model.replace(old, X[new], ids=new, digest=False)
            live = live - set(old) | set(new)
        elif act == "correct":
            model.correct(old, X[::-1][old], digest=False)
            model.correct(old, X[old], digest=False)
        else:
            path = tmp_path_factory.mktemp("life") / "model"
            model.save(path, records=True)
            model = load(path, True, trusted=True)
        if step % 6 == 5:
            ids = sorted(live)
            fresh = _fitted_as(model, X[ids], ids)
            assert model.digest() == fresh.digest()
            if not isinstance(model, type(MODELS[-1])):
                order = np.argsort(model.ids_)
                assert np.array_equal(model.labels_[order], fresh.labels_)
    assert len(added) < 4 or set(added) != {"refit"}


def _fitted_as(model: Any, X: np.ndarray, ids: list[int]) -> Any:
    from sklearn.base import clone

    return clone(model).fit(X, ids=ids)


def test_a_grouped_record_comes_to_the_leaf_of_its_group() -> None:
    rng = np.random.default_rng(1)
    X = make_data("gaussian", 300, rng)
    X[:2] = [X.min() - 1.0] * 3, [X.max() + 1.0] * 3
    ids, groups = np.arange(300), np.arange(300) // 7
    model = DivideAndConquerKMeans(3, width=5, random_state=0)
    model.fit(X[:250], ids=ids[:250], groups=groups[:250])
    actions = {
        model.add(X[i : i + 1], ids=ids[i : i + 1], groups=groups[i : i + 1]).action
        for i in range(250, 300)
    }
    assert "updated" in actions
    fresh = DivideAndConquerKMeans(3, width=5, random_state=0).fit(X, ids=ids, groups=groups)
    assert model.digest() == fresh.digest()


def test_labels_are_in_the_order_of_ids() -> None:
    rng = np.random.default_rng(2)
    X = make_data("gaussian", 200, rng)
    model = KMeans(4, random_state=0).fit(X[:100])
    for i in range(100, 200):
        model.replace([i - 100], X[i : i + 1], ids=[i])
    assert np.array_equal(model.labels_, model.predict(X[model.ids_]))

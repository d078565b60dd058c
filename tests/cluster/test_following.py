"""Levels that are not filed keep bounds that hold, and labels that are right, batch after batch."""

from __future__ import annotations

import numpy as np
import pytest

from cluster import oracles
from cluster.files import fresh_run, label_errors, make_run, same_state
from erasable.cluster._levels import pays_to_follow
from erasable.cluster._run import _PATIENCE, LloydRun, Terms
from subroutines import standalone

pays_to_follow = standalone(pays_to_follow)


def bound_errors(run: LloydRun) -> list[str]:
    """Records whose margin, in extended precision, is below the bound that a level has."""
    X = run.points.X[run.points.rows].astype(np.longdouble)
    metric = run._weights if run._weights.size else np.ones(X.shape[1])
    live = run.live()
    errors = []
    for t in range(run.built + 1):
        own = run.levels.labels[t, live].astype(int)
        centers = run.levels.centers[t].astype(np.longdouble)
        far = np.sqrt(((X[live, None] - centers) ** 2 * metric).sum(axis=2))
        mine = far[np.arange(live.size), own].copy()
        far[np.arange(live.size), own] = np.inf
        bound = run.levels.bounds[t, live]
        low = far.min(axis=1) - mine < np.where(bound > 0.0, bound, -1e-12 * mine)
        group = run.levels.links[t, live]
        elsewhere = (group // run.n_clusters if run._pairs else group) != own
        errors += [f"level {t}: record {j}" for j in live[low | elsewhere].tolist()]
    return errors


def make_data(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, 9))
    if kind == "separated":
        X = 0.2 * X + 2.0 * rng.integers(0, 4, (n, 1))
    elif kind == "lattice":
        X = rng.integers(0, 3, (n, 9)).astype(float)
    elif kind == "duplicated":
        X = X[rng.integers(0, n // 4, n)]
    return oracles.on_grid(X)


KINDS = ("gaussian", "separated", "lattice", "duplicated")


@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_follow_until_filing_pays(kind: str, pairs: bool) -> None:
    rng = np.random.default_rng([KINDS.index(kind), pairs])
    skipped = flips = 0
    for seed in range(6):
        n, k = [(400, 6), (200, 3), (300, 9), (150, 2), (300, 5), (200, 8)][seed]
        run = make_run(make_data(kind, n, rng), k, seed, pairs=pairs, max_iter=8)
        assert not bound_errors(run)
        followed = 0
        for _ in range(6):
            size = int(rng.choice([2, 5, 20]))
            report = run.remove(np.sort(rng.choice(run.live(), size, replace=False)))
            assert not label_errors(run)
            assert same_state(run, fresh_run(run))
            followed = 0 if report.action == "refit" else followed + 1
            assert run._filed == (followed > _PATIENCE)
            if not run._filed:
                assert not bound_errors(run)
            if report.action == "updated":
                skipped += run.n_alive * run.built - report.examined
                flips += report.flips
    assert skipped > 0
    assert flips


def test_a_single_deletion_files_everybody() -> None:
    run = make_run(make_data("gaussian", 300, np.random.default_rng(0)), 4, 0)
    assert not run._filed
    run.remove(run.live()[:1])
    assert run._filed


@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
@pytest.mark.parametrize("spread", [2e-16, 1e-3, 0.3])
def test_a_metric_that_changes_is_followed(spread: float, pairs: bool) -> None:
    rng = np.random.default_rng([int(1e16 * spread), pairs])
    for seed in range(4):
        n, k = [(300, 3), (200, 2), (250, 5), (250, 8)][seed]
        X = make_data(KINDS[seed], n, rng)
        weights = rng.uniform(0.5, 2.0, X.shape[1])
        run = make_run(X, k, seed, pairs=pairs, weights=weights, max_iter=6)
        for step in range(8):
            weights = weights * np.exp(spread * rng.normal(size=weights.size))
            size = 3 if step < 6 else 1
            run.remove(np.sort(rng.choice(run.live(), size, replace=False)), Terms(weights=weights))
            assert not label_errors(run)
            assert same_state(run, fresh_run(run, weights))
            if not run._filed:
                assert not bound_errors(run)


def test_inflated_bounds_are_noticed_and_break_the_law() -> None:
    """The negative control."""
    noticed = broken = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        run = make_run(make_data("gaussian", 400, rng), 5, seed)
        for _ in range(3):
            run.levels.bounds[:] *= 20.0
            noticed += bool(bound_errors(run))
            run.remove(np.sort(rng.choice(run.live(), 12, replace=False)))
        broken += not same_state(run, fresh_run(run))
    assert noticed >= 8
    assert broken >= 4


def test_following_everybody_does_not_pay() -> None:
    live, bounds, groups = np.arange(500), np.ones(500, np.float32), np.zeros(500, np.int32)
    assert pays_to_follow(live, np.array([0.5]), bounds, groups, 5, 50, 1.0)
    assert pays_to_follow(live, np.array([0.0]), -bounds, groups, 5, 50, 1.0)
    assert not pays_to_follow(live, np.array([1.0]), bounds, groups, 5, 50, 1.0)
    bounds[::2] = 0.1
    assert pays_to_follow(live, np.array([0.5]), bounds, groups, 5, 50, 0.5)
    assert not pays_to_follow(live, np.array([0.5]), bounds, groups, 5, 50, 0.4)


def test_nothing_of_a_batch_is_left_in_the_levels() -> None:
    run = make_run(make_data("gaussian", 300, np.random.default_rng(1)), 4, 1)
    gone = np.arange(5, 305, 30)[:9]
    run.remove(gone)
    assert not run._filed
    assert not run.levels.labels[:, gone].any()
    assert not run.levels.bounds[:, gone].any()
    assert not run.levels.links[:, gone].any()

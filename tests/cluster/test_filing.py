"""The files decide only whom to look at: whoever is not looked at has kept its label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cluster import oracles
from cluster.files import filing_errors, fresh_run, label_errors, make_run, same_state
from effort import few
from erasable.cluster._filing import tile_bounds
from erasable.cluster._movement import movement, new_moves
from erasable.cluster._run import LloydRun, Terms
from subroutines import standalone

tile_bounds, movement, new_moves = map(standalone, (tile_bounds, movement, new_moves))


def make_data(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, 3))
    if kind == "separated":
        X = 0.2 * X + 4.0 * rng.integers(0, 4, (n, 1))
    elif kind == "lattice":
        return rng.integers(0, 4, (n, 2)).astype(float)
    elif kind == "line":
        return rng.integers(0, 40, (n, 1)).astype(float)
    elif kind == "duplicated":
        X = X[rng.integers(0, n // 4, n)]
    return oracles.on_grid(X)


KINDS = ("gaussian", "separated", "lattice", "line", "duplicated")


def delete_some(run: LloydRun, rng: np.random.Generator, **change: Any) -> Any:
    """Delete one record, or a few, leaving more than there are clusters."""
    live = run.live()
    size = min(int(rng.choice([1, 1, 1, 1, 5])), live.size - run.n_clusters)
    return run.remove(np.sort(rng.choice(live, size, replace=False)), Terms(**change))


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_their_promises(kind: str, pairs: bool) -> None:
    rng = np.random.default_rng([KINDS.index(kind), pairs])
    examined = possible = flips = 0
    for seed in range(5):
        n, k = [(160, 3), (60, 2), (90, 5), (120, 7), (40, 4)][seed]
        run = make_run(make_data(kind, n, rng), k, seed, pairs=pairs, max_iter=8)
        for _ in range(few(30)):
            report = delete_some(run, rng)
            assert not filing_errors(run)
            assert not label_errors(run)
            assert same_state(run, fresh_run(run))
            if report.action == "updated":
                examined += report.examined
                possible += run.n_alive * run.built
                flips += report.flips
    assert 0 < examined < 0.7 * possible  # some are looked at, and not all
    assert flips


@pytest.mark.parametrize("k", [2, 3, 20])
def test_larger_runs_file_as_models_do(k: int) -> None:
    rng = np.random.default_rng(k)
    n = 1_500
    run = make_run(make_data("gaussian", n, rng), k, 0)
    assert run._pairs == (k < 4)
    examined = 0
    for step in range(60):
        examined += delete_some(run, rng).examined
        if step % 20 == 19:
            assert not filing_errors(run)
            assert not label_errors(run)
            assert same_state(run, fresh_run(run))
    # More snapshots were taken than there are slots, so some were merged.
    assert run._clock > run._files.stamps.shape[1] + 10
    assert examined < 60 * n * run.built / 4


def test_mass_counts_as_many_records() -> None:
    rng = np.random.default_rng(3)
    X = make_data("gaussian", 70, rng)
    mass = rng.integers(1, 9, 70).astype(np.float64)
    run = make_run(X, 4, 1, mass=mass)
    levels = oracles.lloyd(X, run.points.values(run.seeding.chosen), 10, mass)
    path = run.state()["path"]
    assert len(levels) == len(path["centers"])
    assert np.array_equal(path["centers"][-1], levels[-1].centers)
    assert path["counts"][-1].tolist() == levels[-1].counts
    for _ in range(25):
        delete_some(run, rng)
        assert not filing_errors(run)
        assert same_state(run, fresh_run(run))


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
@pytest.mark.parametrize("spread", [2e-16, 1e-9, 1e-3, 0.2, 4.0])
def test_a_metric_that_changes_with_every_deletion(spread: float, pairs: bool) -> None:
    rng = np.random.default_rng([int(1e16 * spread), pairs])
    updated = 0
    for seed in range(few(4)):
        n, k = [(120, 3), (50, 2), (80, 5), (100, 8)][seed]
        X = make_data(["gaussian", "separated", "lattice", "duplicated"][seed], n, rng)
        weights = rng.uniform(0.5, 2.0, X.shape[1])
        run = make_run(X, k, seed, pairs=pairs, weights=weights, max_iter=6)
        for _ in range(25):
            weights = weights * np.exp(spread * rng.normal(size=weights.size))
            report = delete_some(run, rng, weights=weights)
            assert not filing_errors(run)
            assert not label_errors(run)
            assert same_state(run, fresh_run(run, weights))
            updated += report.action == "updated" and report.examined < run.n_alive
    assert updated or spread > 0.1


@pytest.mark.thorough
@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
def test_a_metric_that_grows_across_the_border_of_two_clusters(pairs: bool) -> None:
    """Far records tell two centroids apart by little, and see them move in the metric of now."""
    examined = flips = 0
    for seed in range(few(25)):
        rng = np.random.default_rng(seed)
        near = np.column_stack([rng.choice([-1.0, 1.0], 80), 0.01 * rng.normal(size=80)])
        far = np.column_stack([rng.normal(size=80) * 0.2, rng.uniform(-60.0, 60.0, 80)])
        X = oracles.on_grid(np.vstack([near, far]))
        weights = np.array([1.0, 1e-3])
        run = make_run(X, 2, seed, pairs=pairs, weights=weights, max_iter=4)
        for step in range(8):
            weights = weights * [1.0, 1.9 if step % 2 == 0 else 1 / 1.9]
            report = run.remove(np.array([rng.choice(run.live()[80:])]), Terms(weights=weights))
            assert not filing_errors(run)
            assert not label_errors(run)
            examined += report.examined
            flips += report.flips
    assert flips
    assert examined


@pytest.mark.parametrize("pairs", [True, False], ids=["pairs", "own"])
def test_a_movement_counts_in_the_metric_of_now(pairs: bool) -> None:
    """The metric grows across the border only; a centroid moves there, away from a record."""
    then, now = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    before, after = np.ones(2), np.array([1.0, 1.9])
    record = np.array([[-0.01, 50.0]])
    far = np.sqrt(oracles.distances(record, then))[0]
    margin = far[1] - far[0]
    now[0, 1] = -0.75 * margin
    assert oracles.nearest(record, then, before) != oracles.nearest(record, now, after)
    near, bounds = np.array([[far[0] ** 2], [far[1] ** 2], [1e300]]), np.empty(1, np.float32)
    tile_bounds(near, 1, 2, pairs, bounds)
    moves = new_moves(2, 2, pairs)
    movement(now, then, after, before, pairs, moves)
    assert 0.99 * margin < bounds[0] < margin
    assert bounds[0] <= moves.limits[1 if pairs else 0]


# -- negative controls -------------------------------------------------------------------------


def test_inflated_bounds_break_the_law() -> None:
    """Files that promise too much are noticed, and lead to labels that are wrong."""
    broken = noticed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        run = make_run(make_data("gaussian", 150, rng), 4, seed)
        for _ in range(15):
            delete_some(run, rng)
            run.levels.bounds[:] *= 1.5
        noticed += bool(filing_errors(run))
        broken += bool(label_errors(run)) and not same_state(run, fresh_run(run))
    assert noticed == 6
    assert broken >= 4


def test_a_record_that_is_lost_is_noticed() -> None:
    rng = np.random.default_rng(4)
    run = make_run(make_data("gaussian", 80, rng), 3, 0)
    run.remove(run.live()[:1])
    assert not filing_errors(run)
    slot, group, place = np.argwhere(run._files.head[1] >= 0)[0]
    run._files.head[1, slot, group, place] = -1
    assert any("is not filed" in text for text in filing_errors(run))


@pytest.mark.parametrize("size", [1, 2, 40])
def test_snapshots_forget_the_records_that_were_centroids(size: int) -> None:
    """A record far from all others is a cluster of its own, and so in every snapshot."""
    rng = np.random.default_rng(9)
    X = make_data("gaussian", 400, rng)
    X[17] = 900.0, -700.0, 5.0
    run = make_run(X, 4, 0)
    for _ in range(5):
        run.remove(np.array([run.live()[-1]]))
    assert run._filed
    snapshots = run._files.snapshots
    assert (snapshots == X[17]).all(axis=-1).any()
    # Were it still a seed, everything would be learned again.
    run.seeding.change = lambda *_: (False, 0)  # type: ignore[method-assign]
    run.remove(np.sort(np.append(rng.choice(np.arange(20, 300), size - 1, replace=False), 17)))
    assert run._files.snapshots is snapshots
    assert not (snapshots == X[17]).all(axis=-1).any()
    assert (snapshots == 1e150).any()


# -- bounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-140, 1e-44, 1e-38, 1e-20, 1.0, 1e20, 1e38, 1e60, 1e140])
def test_bounds_hold_at_any_scale(scale: float) -> None:
    """They are kept in float32, which ends long before float64 does."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 3))
    exponent = np.frexp(scale)[1]
    run = make_run(np.ldexp(oracles.on_grid(X), exponent), 4, 2)
    twin = make_run(oracles.on_grid(X), 4, 2)
    for _ in range(30):
        gone = np.sort(rng.choice(run.live(), 2, replace=False))
        run.remove(gone)
        twin.remove(gone)
        assert not label_errors(run)
        assert np.array_equal(run.levels.labels[: run.built], twin.levels.labels[: twin.built])
        assert np.array_equal(run.centers, np.ldexp(twin.centers, exponent))

"""Seeds equal those of plain greedy k-means++ by races, before and after deletions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cluster import oracles
from erasable.cluster import KMeans
from erasable.cluster._distances import Points
from erasable.cluster._seeding import Seeding, quantum_for
from erasable.core.errors import ErasableError
from erasable.core.tape import Stream, Tape

NO_FLOATS = np.empty(0)


def make_data(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, 3))
    if kind == "skewed":
        X = np.exp(2.0 * X)
    elif kind == "duplicated":
        X = X[rng.integers(0, max(1, n // 8), n)]
    elif kind == "lattice":
        X = rng.integers(0, 3, (n, 2)).astype(float)
    elif kind == "constant":
        X = np.full((n, 2), 2.5)
    elif kind == "one column":
        X = X[:, :1] * 100.0
    elif kind == "integers":
        X = rng.integers(-50, 50, (n, 4)).astype(float)
    return oracles.on_grid(X)


KINDS = ("gaussian", "skewed", "duplicated", "lattice", "constant", "one column", "integers")


def points_of(X: np.ndarray, seed: int, mass: np.ndarray = NO_FLOATS) -> Points:
    ids = np.arange(100, 100 + len(X))
    return Points(X, Tape(seed).record_keys(ids), np.arange(len(X)), mass)


def fitted(points: Points, live: Any, k: int, seed: int, quantum: float, **options: Any) -> Seeding:
    seeding = Seeding(k, seed, quantum, **options)
    seeding.fit(points, np.asarray(live, np.int64))
    return seeding


def assert_same_seeds(a: Seeding, b: Seeding) -> None:
    assert np.array_equal(a.chosen, b.chosen)
    assert np.array_equal(a.candidates, b.candidates)
    assert np.array_equal(a.potentials, b.potentials)


def compare_with_oracle(seeding: Seeding, expected: oracles.Seeds) -> None:
    assert seeding.chosen.tolist() == expected.chosen
    for step, tried in enumerate(expected.candidates):
        assert seeding.candidates[step, : len(tried)].tolist() == tried
        assert (seeding.candidates[step, len(tried) :] == -1).all()
        assert seeding.potentials[step, : len(tried)].tolist() == expected.potentials[step]


@pytest.mark.parametrize("kind", KINDS)
def test_seeding_is_plain_greedy_kmeans_plus_plus(kind: str) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        X = make_data(kind, 90, rng)
        points = points_of(X, seed)
        quantum = oracles.quantum_of(X)
        k, n_candidates = [(6, None), (3, 1), (4, 7), (1, None)][seed]
        seeding = fitted(points, np.arange(90), k, seed, quantum, n_candidates=n_candidates)
        expected = oracles.greedy_seeds(
            X, points.keys.tolist(), seed, k, seeding.n_candidates, quantum
        )
        compare_with_oracle(seeding, expected)


@pytest.mark.parametrize("kind", ["gaussian", "lattice"])
def test_mass_and_weights_of_the_metric(kind: str) -> None:
    rng = np.random.default_rng(5)
    X = make_data(kind, 70, rng)
    weights = np.ldexp(1.0, rng.integers(-3, 4, X.shape[1]))
    mass = rng.integers(1, 40, 70).astype(np.float64)
    quantum = oracles.quantum_of(X) / 16.0
    plain = fitted(points_of(X, 9), np.arange(70), 5, 9, quantum)
    seen = [plain.chosen.tolist()]
    for some_mass in (None, mass):
        for some_weights in (None, weights):
            points = points_of(X, 9, NO_FLOATS if some_mass is None else some_mass)
            seeding = fitted(points, np.arange(70), 5, 9, quantum, weights=some_weights)
            expected = oracles.greedy_seeds(
                X, points.keys.tolist(), 9, 5, seeding.n_candidates, quantum,
                some_mass, some_weights,
            )  # fmt: skip
            compare_with_oracle(seeding, expected)
            seen.append(seeding.chosen.tolist())
    assert len({tuple(chosen) for chosen in seen}) > 1


def test_seeds_of_a_model_are_those_of_the_oracle() -> None:
    rng = np.random.default_rng(3)
    X = oracles.on_grid(rng.normal(size=(80, 3)))
    ids = [f"patient {i}" for i in range(80)]
    model = KMeans(5, random_state=11).fit(X, ids=ids)
    keys = Tape(11).record_keys(np.array(ids, object))
    expected = oracles.greedy_seeds(
        X, keys.tolist(), 11, 5, 2 + int(math.log(5)), oracles.quantum_of(X)
    )
    seeds = model.state()["seeds"]
    assert np.array_equal(model.init_centers_, X[expected.chosen])
    assert seeds["chosen"].tolist() == keys[expected.chosen].tolist()
    for step, tried in enumerate(expected.candidates):
        assert seeds["candidates"][step, : len(tried)].tolist() == keys[tried].tolist()
        assert seeds["potentials"][step, : len(tried)].tolist() == expected.potentials[step]


def test_uniforms_of_a_race_come_from_the_published_stream() -> None:
    assert int(Stream.RACE) == oracles.RACE
    # Random123's known answer: counter and key of all ones.
    ones = 2**32 - 1
    answer = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
    assert oracles.philox((ones,) * 4, (ones, ones)) == answer


# -- deletions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("massive", [False, True])
def test_removing_equals_a_fresh_fit(kind: str, massive: bool) -> None:
    rng = np.random.default_rng([KINDS.index(kind), massive])
    changes = stays = reruns = 0
    for seed in range(6):
        n, k = 60, int(rng.integers(1, 7))
        X = make_data(kind, n, rng)
        mass = rng.integers(1, 9, n).astype(np.float64) if massive else NO_FLOATS
        points = points_of(X, seed, mass)
        weights = None if seed % 2 else np.ldexp(1.0, rng.integers(-2, 3, X.shape[1]))
        quantum = oracles.quantum_of(X) / 16.0
        seeding = fitted(points, np.arange(n), k, seed, quantum, weights=weights)
        left = np.arange(n)
        while len(left) > k:
            size = min(int(rng.choice([1, 1, 1, 4])), len(left) - k)
            gone = np.sort(rng.choice(left, size, replace=False))
            if rng.random() < 0.3:
                tried = np.unique(seeding.candidates[seeding.candidates >= 0])
                gone = rng.choice(tried, 1)
            left = np.setdiff1d(left, gone)
            before = seeding.chosen.copy()
            changed, steps = seeding.change(points, gone, gone[:0], lambda left=left: left)
            fresh = fitted(points, left, k, seed, quantum, weights=weights)
            assert_same_seeds(seeding, fresh)
            assert changed == (not np.array_equal(before, seeding.chosen))
            assert 0 <= steps <= k
            changes += changed
            stays += not changed
            reruns += steps > 0 and not changed
    assert changes
    assert stays
    if kind == "gaussian":
        assert reruns  # a candidate that had lost went, and the seeds stayed


def test_a_deletion_that_concerns_no_candidate_asks_for_nobody() -> None:
    rng = np.random.default_rng(8)
    X = make_data("gaussian", 200, rng)
    points = points_of(X, 1)
    seeding = fitted(points, np.arange(200), 4, 1, oracles.quantum_of(X))
    others = np.setdiff1d(np.arange(200), seeding.candidates)

    def nobody() -> np.ndarray:
        raise AssertionError("no step had to be run again")

    before = seeding.potentials.copy()
    assert seeding.change(points, others[:1], others[:0], nobody) == (False, 0)
    assert (seeding.potentials[1:] <= before[1:]).all()
    assert (seeding.potentials != before).any()


def test_a_large_batch_is_taken_in_parts() -> None:
    rng = np.random.default_rng(9)
    n = 9_500  # more than twice what is held at once
    X = make_data("gaussian", n, rng)
    points = points_of(X, 2)
    quantum = oracles.quantum_of(X)
    seeding = fitted(points, np.arange(n), 3, 2, quantum)
    gone = np.setdiff1d(np.arange(n), seeding.candidates)[:9_000]
    left = np.setdiff1d(np.arange(n), gone)
    seeding.change(points, gone, gone[:0], lambda: left)
    assert_same_seeds(seeding, fitted(points, left, 3, 2, quantum))


@pytest.mark.parametrize("d", [1, 2, 3, 8, 784])
def test_potentials_cannot_overflow(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(20):
        tops = rng.integers(-480, 481, d)
        # A scaler makes columns of about one size; its weights undo the exponents.
        weights = np.ldexp(1.0, rng.integers(-20, 20, d) - 2 * tops)
        for metric in (None, weights):
            factor = quantum_for(tops, metric)
            assert math.frexp(factor)[0] == 0.5
            scale = np.ones(d) if metric is None else metric
            farthest = sum(
                oracles.Fraction(float(w)) * oracles.Fraction(4) ** int(t + 1)
                for t, w in zip(tops, scale, strict=True)
            )
            assert farthest * oracles.Fraction(factor) <= 2**35


def test_two_ids_with_one_key_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Tape.record_keys
    monkeypatch.setattr(Tape, "record_keys", lambda self, ids: real(self, ids) // np.uint64(2**62))
    with pytest.raises(ErasableError, match="share a 64-bit record key"):
        KMeans(2, random_state=0).fit(np.arange(20.0)[:, None])

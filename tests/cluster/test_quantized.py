"""QuantizedKMeans equals the corrected Algorithm 4 of Ginart et al., written out plainly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest

from cluster import oracles
from erasable import Records, load
from erasable.cluster import QuantizedKMeans
from erasable.cluster._quantized import default_exponent
from erasable.core.tape import Stream, Tape


@dataclass
class Plain:
    """What the plain algorithm kept."""

    centers: list[np.ndarray]
    losses: list[float]
    counts: list[list[int]]
    corrected: int
    stopped: bool
    closest: float


def plain_algorithm(
    X: np.ndarray, seeds: np.ndarray, phases: np.ndarray, epsilon: float, gamma: float, rounds: int
) -> Plain:
    """Algorithm 4, with the balance correction as a mean, and phases from outside.

    `closest` is how near, in steps, a centroid came to a boundary of the lattice, and how near,
    relatively, two losses that were compared came: where it is tiny, rounding decides.
    """
    k = len(seeds)
    floor = Fraction(gamma) * len(X) / k
    level = oracles.partition(X, seeds)
    result = Plain([seeds], [oracles.loss(X, seeds)], [level.counts], 0, False, math.inf)
    for t in range(1, rounds + 1):
        centers = level.centers.copy()
        for c, m in enumerate(level.counts):
            mean = [Fraction(float(x)) for x in level.centers[c]]
            if m:
                mean = [s / m for s in level.sums[c]]
            if m < floor:
                result.corrected += 1
                old = [Fraction(float(x)) for x in level.centers[c]]
                mean = [(m * a + (floor - m) * b) / floor for a, b in zip(mean, old, strict=True)]
            for f, x in enumerate(mean):
                place = float(x) / epsilon - phases[t, f]
                centers[c, f] = epsilon * (phases[t, f] + round(place))
                result.closest = min(result.closest, abs(abs(place - math.floor(place)) - 0.5))
        level = oracles.partition(X, centers)
        loss = oracles.loss(X, centers)
        result.closest = min(result.closest, abs(loss / result.losses[-1] - 1.0))
        if not loss < result.losses[-1]:
            result.stopped = True
            break
        result.centers.append(centers)
        result.losses.append(loss)
        result.counts.append(level.counts)
    return result


def phases_of(model: QuantizedKMeans, names: list[str]) -> np.ndarray:
    """Phases as published: a draw for the name of a feature, at the step of the iteration."""
    tape = Tape(model.seed_)
    keys = np.array([tape.key_of(name) for name in names], np.uint64)
    steps = range(model.max_iter + 1)
    return np.array([tape.uniform(keys, Stream.PHASE, t) - 0.5 for t in steps])


def test_every_iteration_is_that_of_the_plain_algorithm() -> None:
    stopped = corrected = full = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(60, 200)), int(rng.integers(1, 5)), int(rng.integers(2, 7))
        X = oracles.on_grid(rng.normal(size=(n, d)) + 3.0 * (rng.random((n, 1)) < 0.08))
        names = [f"column {f}" for f in range(d)]
        epsilon, gamma = [(0.25, 0.2), (0.05, 0.9), (0.5, 0.0), (0.01, 0.5)][seed % 4]
        model = QuantizedKMeans(k, epsilon=epsilon, gamma=gamma, random_state=seed)
        model.fit(pd.DataFrame(X, columns=names))
        phases = phases_of(model, names)
        assert (np.abs(phases) <= 0.5).all()
        plain = plain_algorithm(X, model.init_centers_, phases, epsilon, gamma, 10)
        assert plain.closest > 1e-9, "rounding would decide; choose other data"
        path = model.state()["path"]
        assert np.allclose(path["centers"], plain.centers, rtol=1e-12, atol=1e-12)
        assert path["counts"].tolist() == plain.counts
        assert np.allclose(model.losses_, plain.losses, rtol=1e-9)
        assert model.n_iter_ == len(plain.centers) - 1 + plain.stopped
        assert model.inertia_ == pytest.approx(plain.losses[-1], rel=1e-12)
        assert np.array_equal(model.labels_, oracles.nearest(X, model.cluster_centers_))
        assert np.array_equal(model.labels_, model.predict(pd.DataFrame(X, columns=names)))
        assert (np.diff(model.losses_) < 0).all()
        stopped += plain.stopped
        corrected += plain.corrected
        full += not plain.stopped
    assert stopped
    assert corrected
    assert full


def test_centroids_lie_on_the_lattice_of_their_iteration() -> None:
    X = np.random.default_rng(1).normal(size=(300, 3))
    model = QuantizedKMeans(4, epsilon=0.125, random_state=5)
    model.fit(pd.DataFrame(X, columns=list("abc")))
    phases = phases_of(model, list("abc"))
    assert len(model.losses_) > 2
    for t, centers in enumerate(model.state()["path"]["centers"]):
        steps = centers / 0.125 - phases[t]
        assert np.allclose(steps, np.rint(steps), atol=1e-9) == (t > 0)


def test_phases_belong_to_names_not_to_positions() -> None:
    frame = pd.DataFrame(np.random.default_rng(2).normal(size=(200, 3)), columns=list("abc"))
    model = QuantizedKMeans(3, epsilon=0.3, random_state=1).fit(frame)
    turned = QuantizedKMeans(3, epsilon=0.3, random_state=1).fit(frame[["c", "a", "b"]])
    assert len(model.losses_) == len(turned.losses_) > 1
    assert np.allclose(turned.cluster_centers_, model.cluster_centers_[:, [2, 0, 1]])
    other = QuantizedKMeans(3, epsilon=0.3, random_state=1)
    other.fit(frame.rename(columns={"a": "z"}))
    assert not np.allclose(other.cluster_centers_, model.cluster_centers_)


# -- the rule for epsilon ----------------------------------------------------------------------


def test_default_exponent_is_the_papers_rule() -> None:
    """Appendix D.1.2: the nearest integer to ``-log10(n / (k d**1.5)) - 3``."""
    rng = np.random.default_rng(3)
    with mpmath.workdps(60):
        for _ in range(1_500):
            n = int(10 ** rng.uniform(0, 8))
            k, d = int(10 ** rng.uniform(0, 3)), int(10 ** rng.uniform(0, 4))
            exact = -mpmath.log10(mpmath.mpf(n) / (k * mpmath.sqrt(mpmath.mpf(d) ** 3))) - 3
            assert default_exponent(n, k, d) == int(mpmath.floor(exact + mpmath.mpf(1) / 2))


def test_default_exponent_at_exact_halves() -> None:
    """At d = 10, n / (k d**1.5) is an odd power of sqrt(10) where n / k is a power of 10."""
    for power in range(2, 9):
        n = 10**power
        half = Fraction(3, 2) - power - 3
        assert half.denominator == 2
        assert default_exponent(n, 1, 10) == math.floor(half + Fraction(1, 2))
        assert default_exponent(n + 1, 1, 10) == default_exponent(n, 1, 10) - 1
        assert default_exponent(n - 1, 1, 10) == default_exponent(n, 1, 10)
    assert default_exponent(1, 1, 1) == -3


def test_default_epsilon_is_in_units_of_the_widest_feature() -> None:
    rng = np.random.default_rng(4)
    X = rng.random((500, 3))
    X[0], X[1] = 1.0, 0.0
    model = QuantizedKMeans(3, random_state=0).fit(X)
    assert model.epsilon_ == 2.0 ** default_exponent(500, 3, 3)
    for factor in (1.0, 0.75, 8.0, 100.0, 2.0**-20):
        scaled = QuantizedKMeans(3, random_state=0).fit(X * [1.0, factor, 1.0])
        covers = 2.0 ** math.ceil(math.log2(max(1.0, factor)))
        assert scaled.epsilon_ == model.epsilon_ * covers
    shifted = QuantizedKMeans(3, random_state=0).fit(X + 1e6)
    assert shifted.epsilon_ == model.epsilon_
    assert QuantizedKMeans(3, epsilon=0.1, random_state=0).fit(X).epsilon_ == 0.1


# -- deletions ---------------------------------------------------------------------------------


def fit_again(model: QuantizedKMeans, X: np.ndarray) -> QuantizedKMeans:
    params = {**model.get_params(), "random_state": model.seed_}
    return QuantizedKMeans(**params).fit(X[model.ids_], ids=model.ids_)


def test_a_stable_deletion_touches_nobody() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2_000, 4)) * 0.1 + rng.integers(0, 3, (2_000, 1)) * 2.0
    model = QuantizedKMeans(3, epsilon=0.5, random_state=0).fit(X)
    before = model.cluster_centers_
    stable = 0
    for record in rng.permutation(2_000)[:40].tolist():
        deletion = model.delete([record])
        assert deletion.digest_before != deletion.digest_after
        if deletion.action == "updated" and np.array_equal(before, model.cluster_centers_):
            assert deletion.rows_touched == 0
            stable += 1
        before = model.cluster_centers_
    assert stable > 25
    assert model.digest() == fit_again(model, X).digest()


def test_a_deletion_flips_the_early_stop() -> None:
    """The loss changes at every iteration, so a stop can come earlier or later than before."""
    earlier = later = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 2))
        model = QuantizedKMeans(3, epsilon=0.3, random_state=seed).fit(X)
        for record in rng.permutation(60)[:8].tolist():
            before, seeds = model.n_iter_, model.state()["seeds"]["chosen"].tolist()
            action = model.delete([record]).action
            assert model.digest() == fit_again(model, X).digest()
            if seeds == model.state()["seeds"]["chosen"].tolist() and action != "refit":
                earlier += model.n_iter_ < before
                later += model.n_iter_ > before
    assert earlier
    assert later


def test_a_balance_correction_moves_clusters_that_lost_nobody() -> None:
    """It depends on n: a deletion elsewhere can move every imbalanced cluster."""
    rng = np.random.default_rng(6)
    X = np.vstack([rng.normal(size=(200, 2)), rng.normal(size=(4, 2)) * 0.7 + 8.0])
    moved = 0
    for seed in range(12):
        model = QuantizedKMeans(3, epsilon=0.001, gamma=0.9, random_state=seed).fit(X)
        small = int(np.argmin(np.bincount(model.labels_, minlength=3)))
        if np.bincount(model.labels_, minlength=3)[small] > 10:
            continue
        path = model.state()["path"]["centers"][:, small]
        elsewhere = int(np.flatnonzero(model.labels_ != small)[seed])
        model.delete([elsewhere])
        after = model.state()["path"]["centers"][:, small]
        moved += len(path) == len(after) > 1 and not np.array_equal(path, after)
        assert model.digest() == fit_again(model, X).digest()
    assert moved


def test_a_new_default_epsilon_is_a_new_model() -> None:
    rng = np.random.default_rng(7)
    X = rng.random((80, 2))
    model = QuantizedKMeans(2, random_state=0).fit(X)
    seen = {model.epsilon_}
    refits = 0
    for record in range(77):
        n, epsilon = len(model.ids_), model.epsilon_
        action = model.delete([record]).action
        assert model.digest() == fit_again(model, X).digest()
        seen.add(model.epsilon_)
        if default_exponent(n, 2, 2) != default_exponent(n - 1, 2, 2):
            assert action == "refit"
            assert model.epsilon_ == 2.0 * epsilon
            refits += 1
    assert refits
    assert len(seen) > 1


def test_a_loss_that_is_rounded_below_zero_is_saved_and_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2, 1))[rng.integers(0, 2, 40)]
    model = QuantizedKMeans(2, random_state=0).fit(X)
    assert (model.losses_ < 0).any()
    model.save(tmp_path / "model.erasable")
    loaded = load(tmp_path / "model.erasable", Records(X))
    assert loaded.digest() == model.digest()

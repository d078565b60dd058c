"""Certificates hold for whatever is selected, in all budgets at once; the exact laws are exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bounds
import numpy as np
import pytest
from scipy import stats

from effort import few
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.removal import (
    Moments,
    certificate,
    certificate_from_moments,
    certificates,
    random_removal_law,
)
from removal.brute_force import kl_of_gaussians

DELTA, N_RUNS = 0.2, 500
# Of a binomial with the promised probability, all but one in ten thousand are above this.
ENOUGH = stats.binom.ppf(1e-4, N_RUNS, 1 - DELTA) / N_RUNS

# What the function itself looks up, however often its module was imported for its examples.
INSIDE = certificate_from_moments.__globals__


def orders(forget: np.ndarray, retain: np.ndarray, truth: np.ndarray) -> Iterator[np.ndarray]:
    """Yield orders of deletion: by distance, by projection, and by whoever knows the truth."""
    apart = retain.mean(axis=0) - forget.mean(axis=0)
    yield np.argsort(-((forget - retain.mean(axis=0)) ** 2).sum(axis=1))
    yield np.argsort(forget @ apart)
    yield np.argsort(forget @ -apart)
    # Moves the refit where the error of the forget mean flatters it most.
    yield np.argsort(forget @ (forget.mean(axis=0) - truth))
    yield np.argsort(forget @ -(forget.mean(axis=0) - truth))


def holds(
    rng: np.random.Generator, one: Any, two: Any, n: tuple[int, int], sigma: Any
) -> tuple[bool, bool]:
    """Draw both domains, and say whether alpha and epsilon hold for all orders and budgets."""
    d = len(one[0])
    forget = one[0] + rng.normal(size=(n[0], d)) @ np.linalg.cholesky(one[1]).T
    retain = two[0] + rng.normal(size=(n[1], d)) @ np.linalg.cholesky(two[1]).T
    of_forget, of_retain = Moments.of(forget), Moments.of(retain)
    held = [True, True]
    kept = [np.arange(n[0]), np.arange(0)]
    for order in orders(forget, retain, one[0]):
        budgets = [n[0] // 2] if d == 3 else [n[0] // 5, 4 * n[0] // 5]
        kept += [order[budget:] for budget in budgets]
    for rows in kept:
        refit = Moments.of(forget[rows]) + of_retain
        found = certificate_from_moments(of_forget, of_retain, refit, DELTA, sigma)
        covariance = sigma**2 * np.eye(d) if sigma else refit.scatter / refit.n
        held[0] &= found.alpha <= kl_of_gaussians(*one, refit.mean, covariance)
        held[1] &= kl_of_gaussians(*two, refit.mean, covariance) <= found.epsilon
    return held[0], held[1]


def domains(d: int, *, alike: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(d)
    root = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    other = np.eye(d) if alike else root @ root.T
    return (np.zeros(d), np.eye(d)), (np.full(d, 0.8 / np.sqrt(d)), other)


CASES = [(1, 1.0), (1, None), (5, 1.0), (3, None)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("d", "sigma"), CASES)
def test_certificates_hold_whatever_is_selected(d: int, sigma: float | None) -> None:
    rng = np.random.default_rng([d, sigma is None])
    one, two = domains(d, alike=sigma is not None)
    held = np.array([holds(rng, one, two, (60, 80), sigma) for _ in range(N_RUNS)])
    assert held.all(axis=1).mean() >= ENOUGH


@pytest.mark.parametrize(("d", "sigma"), CASES)
def test_without_their_regions_they_do_not_hold(
    d: int, sigma: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INSIDE, "_radius", lambda *arguments: 0.0)
    monkeypatch.setitem(INSIDE, "_ellipsoid", lambda *arguments: 1e-12)
    monkeypatch.setitem(INSIDE, "_eigenvalue_ends", lambda *arguments: (1.0, 1.0))
    monkeypatch.setitem(INSIDE, "_stein_radius", lambda *arguments: 1e-12)
    rng = np.random.default_rng([d, sigma is None])
    one, two = domains(d, alike=sigma is not None)
    held = np.array([holds(rng, one, two, (60, 80), sigma) for _ in range(60)])
    assert held.all(axis=1).mean() < ENOUGH / 2


@pytest.mark.parametrize(
    ("d", "event", "nothing"),
    [(1, "_ellipsoid", 1e-12), (1, "_eigenvalue_ends", (1.0, 1.0)), (3, "_stein_radius", 1e-12)],
)
def test_no_region_can_be_spared(
    d: int, event: str, nothing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INSIDE, event, lambda *arguments: nothing)
    rng = np.random.default_rng(1)
    one, two = domains(d, alike=False)
    held = np.array([holds(rng, one, two, (60, 80), None) for _ in range(60)])
    assert held.all(axis=1).mean() < ENOUGH


def promised(
    mean: float, n: tuple[int, int], seed: int, *, told: bool
) -> Iterator[tuple[Any, Any]]:
    """Yield certificates and the paper's bounds, told the true KL(p1, p2) or what the data tell."""
    rng = np.random.default_rng(seed)
    forget, retain, delta = rng.normal(size=n[0]), rng.normal(mean, 1, n[1]), 0.05
    apart = abs(forget.mean() - retain.mean())
    error = 0.0 if told else stats.norm.ppf(1 - delta / 2) * np.sqrt(1 / n[0] + 1 / n[1])
    roots = [mean, mean] if told else [max(apart - error, 0.0), apart + error]
    by_distance = np.argsort(-np.abs(forget - retain.mean()))
    for order, bound in (
        (by_distance, bounds.selective_removal_bounds),
        (rng.permutation(n[0]), bounds.random_removal_bounds),
    ):
        for n_deleted in range(0, n[0] + 1, n[0] // 10):
            found = certificate(forget, retain, order[:n_deleted], delta, 1.0)
            papers = [bound(*n, n_deleted, root**2 / 2, delta) for root in roots]
            yield found, bounds.RemovalBounds(papers[0].alpha, papers[1].epsilon)


@pytest.mark.thorough
@pytest.mark.parametrize("mean", [0.2, 0.5, 1.0, 2.5, 5.0])
@pytest.mark.parametrize("n", [(1000, 1000), (300, 300), (1000, 5000), (5000, 1000), (100, 10**4)])
def test_they_are_tighter_than_what_the_paper_makes_of_the_same_data(
    mean: float, n: tuple[int, int]
) -> None:
    for seed in range(few(9)):
        for found, paper in promised(mean, n, seed, told=False):
            assert paper.alpha.is_vacuous or found.alpha > paper.alpha.value
            assert paper.epsilon.is_vacuous or found.epsilon < paper.epsilon.value


@pytest.mark.thorough
@pytest.mark.parametrize("mean", [0.5, 2.5, 5.0])
def test_in_the_set_ups_of_the_paper_they_are_tighter_although_it_is_told_the_divergence(
    mean: float,
) -> None:
    better = []
    for seed in range(few(9)):
        for found, paper in promised(mean, (1000, 1000), seed, told=True):
            if not paper.alpha.is_vacuous:
                better.append(found.alpha > paper.alpha.value)
            if not paper.epsilon.is_vacuous:
                better.append(found.epsilon < paper.epsilon.value)
    assert len(better) > 30
    # At 0.5 the means of a thousand draws may be nearer to each other than is likely.
    assert np.mean(better) > (0.95 if mean == 0.5 else 1 - 1e-9)


def test_where_the_paper_knows_more_it_promises_more() -> None:
    """Its bounds take KL(p1, p2) as known; ten records do not tell it."""
    rng = np.random.default_rng(0)
    forget, retain = rng.normal(size=10), rng.normal(0.5, 1, 10_000)
    paper = bounds.random_removal_bounds(10, 10_000, 10, 0.125, 0.05)
    found = certificate(forget, retain, np.arange(10), 0.05, 1.0)
    assert found.is_vacuous
    assert paper.alpha.value > 0


def test_a_fifth_deleted_at_half_a_standard_deviation() -> None:
    alphas = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        forget, retain = rng.normal(size=1000), rng.normal(0.5, 1, 1000)
        farthest = np.argsort(-np.abs(forget - retain.mean()))[:200]
        alphas.append(certificate(forget, retain, farthest, 0.05, 1.0).alpha)
    assert 0.04 < np.mean(alphas) < 0.08
    paper = bounds.selective_removal_bounds(1000, 1000, 200, 0.125, 0.05)
    assert paper.alpha.value == pytest.approx(-0.76, abs=0.005)


def test_one_dimension_by_hand() -> None:
    forget, retain = np.array([0.0, 2.0, 4.0]), np.array([10.0, 12.0])
    found = certificate(forget, retain, [2], 0.1, 2.0)
    mean, z = (0 + 2 + 10 + 12) / 4, stats.norm.ppf(1 - 0.1 / 4)
    assert found.alpha == pytest.approx(((mean - 2) / 2 - z / np.sqrt(3)) ** 2 / 2)
    assert found.epsilon == pytest.approx(((11 - mean) / 2 + z / np.sqrt(2)) ** 2 / 2)


def test_one_dimension_of_unknown_variance_by_hand() -> None:
    rng = np.random.default_rng(3)
    forget, retain, delta = rng.normal(0, 2, 40), rng.normal(9, 1, 50), 0.1
    found = certificate(forget, retain, np.arange(35), delta)
    left = np.concatenate([forget[35:], retain])
    mean, variance = left.mean(), left.var()

    def ends(x: np.ndarray) -> tuple[float, float, np.ndarray]:
        half = stats.t.ppf(1 - delta / 8, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
        away = abs(mean - x.mean())
        chi = stats.chi2.ppf([1 - delta / 8, delta / 8], len(x) - 1)
        scales = np.linspace(*((x**2).sum() - len(x) * x.mean() ** 2) / chi / variance, 100_001)
        return max(away - half, 0.0), away + half, scales - 1 - np.log(scales)

    near, _, least = ends(forget)
    _, far, largest = ends(retain)
    assert found.alpha == pytest.approx((near**2 / variance + least.min()) / 2, abs=1e-6)
    assert found.epsilon == pytest.approx((far**2 / variance + largest.max()) / 2, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(few(9)))
def test_distances_to_an_ellipsoid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    away, spread, size = 2 * rng.normal(size=2), rng.uniform(0.1, 2, 2), rng.uniform(0.01, 4)
    if seed == 0:
        away = np.zeros(2)
    if seed == 1:
        away = np.array([0.0, 0.1])
        spread = np.array([2.0, 0.1])
    turn = np.linspace(0, 2 * np.pi, 200_001)
    rim = np.sqrt(size * spread) * np.column_stack([np.cos(turn), np.sin(turn)])
    squares = ((away - rim) ** 2).sum(axis=1)
    inside = (away**2 / spread).sum() <= size
    near, far = (
        certificates._nearest(away, spread, size),
        certificates._farthest(away, spread, size),
    )
    assert near == pytest.approx(0.0 if inside else squares.min(), abs=1e-6)
    assert far == pytest.approx(squares.max(), rel=1e-6)


@pytest.mark.parametrize(("d", "n_deleted"), [(1, 0), (1, 700), (4, 500), (4, 1000)])
def test_the_law_of_random_removal(d: int, n_deleted: int) -> None:
    rng = np.random.default_rng(d)
    n_forget, n_retain, mean = 1000, 600, np.full(d, 0.7 / np.sqrt(d))
    law = random_removal_law(n_forget, n_retain, n_deleted, 0.49 / 2, n_features=d)
    kept = n_forget - n_deleted
    total = kept + n_retain
    sums = np.sqrt(kept) * rng.normal(size=(2000, d))
    sums += n_retain * mean + np.sqrt(n_retain) * rng.normal(size=(2000, d))
    fitted = sums / total
    alpha = (fitted**2).sum(axis=1) / 2
    epsilon = ((fitted - mean) ** 2).sum(axis=1) / 2
    assert stats.kstest(alpha, law.alpha.cdf).pvalue > 1e-3
    assert stats.kstest(epsilon, law.epsilon.cdf).pvalue > 1e-3
    assert stats.kstest(alpha * 1.05 + 0.002, law.alpha.cdf).pvalue < 1e-3


def test_moments_are_those_of_all_records_whatever_the_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = 1e4 + rng.normal(size=(50, 3)).astype(np.float32)
    monkeypatch.setattr("erasable.removal._gaussians._BLOCK", 21)
    found = Moments.of(X[:20]) + Moments.of(X[20:])
    assert found.n == 50
    np.testing.assert_allclose(found.mean, X.astype(np.float64).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.scatter / 49, np.cov(X.T.astype(np.float64)), rtol=1e-9)
    mask = rng.random(50) < 0.4
    some, none = Moments.of(X, mask), Moments.of(X, np.zeros(50, dtype=bool))
    np.testing.assert_allclose(some.scatter, Moments.of(X[mask]).scatter, rtol=1e-12)
    assert (none + some).mean.tolist() == (some + none).mean.tolist() == some.mean.tolist()


def test_a_mask_is_as_good_as_rows() -> None:
    rng = np.random.default_rng(0)
    forget, retain = rng.normal(size=(30, 2)), rng.normal(2, 1, (30, 2))
    mask = np.zeros(30, dtype=bool)
    mask[[4, 7]] = True
    assert certificate(forget, retain, mask, 0.1) == certificate(forget, retain, [7, 4], 0.1)
    assert certificate(forget.tolist(), retain, [], 0.1) == certificate(
        forget, retain, np.zeros(30, dtype=bool), 0.1
    )


def test_a_covariance_is_a_matrix_too() -> None:
    rng = np.random.default_rng(0)
    root = np.array([[2.0, 0.0], [1.0, 0.5]])
    forget, retain = rng.normal(size=(50, 2)), rng.normal(2, 1, (50, 2))
    plain = certificate(forget, retain, np.arange(20), 0.1, 1.0)
    turned = certificate(forget @ root.T, retain @ root.T, np.arange(20), 0.1, root @ root.T)
    assert turned.alpha == pytest.approx(plain.alpha)
    assert turned.epsilon == pytest.approx(plain.epsilon)
    # So does the one that fits the covariance: no axis is special.
    free = certificate(forget, retain, np.arange(20), 0.1)
    moved = certificate(forget @ root.T + 3, retain @ root.T + 3, np.arange(20), 0.1)
    assert moved.alpha == pytest.approx(free.alpha)
    assert moved.epsilon == pytest.approx(free.epsilon)


X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.mark.parametrize(
    ("arguments", "kind", "told"),
    [
        ((np.zeros((0, 2)), X, [], 0.1), InvalidDataError, "forget: Found array with 0 sample"),
        ((X, np.zeros((0, 2)), [], 0.1), InvalidDataError, "retain: Found array with 0 sample"),
        ((X, X[:, :1], [0], 0.1), InvalidDataError, "forget has 2 features and retain 1"),
        ((X[:1], X, [0], 0.1), InvalidDataError, "forget has 1 records of 2 features"),
        ((X, X[:2], [0], 0.1), InvalidDataError, "retain has 2 records of 2 features"),
        ((X * [np.nan, 1], X, [0], 0.1), InvalidDataError, "forget: X contains NaN: 12 values"),
        ((X * [0, 1], X, [0], 0.1), InvalidDataError, "the covariance of forget is singular"),
        ((X * [0, 1], X * [0, 1], [0], 0.1), InvalidDataError, "of the edited data is singular"),
        ((X, X, [12], 0.1), InvalidInputError, "expected rows from 0 to 11"),
        ((X, X, [0.5], 0.1), InvalidInputError, "expected rows from 0 to 11"),
        ((X, X, [1, 1], 0.1), InvalidInputError, "deleted names 2 rows and 1 of them differ"),
        ((X, X, [0], 1.0), InvalidParameterError, "delta=1.0; expected a number in (0, 1)"),
        ((X, X, [0], 0.1, 0.0), InvalidParameterError, "sigma=0.0"),
        ((X, X, [0], 0.1, np.eye(3)), InvalidParameterError, "covariance of shape (2, 2)"),
        ((X, X, [0], 0.1, np.ones((2, 2))), InvalidParameterError, "of sigma is singular"),
        ((X, X, [0], 0.1, [[1, 0.5], [0, 1]]), InvalidParameterError, "not symmetric"),
        ((X, X, [0], 0.1, 1e-200), InvalidParameterError, "sigma=1e-200"),
        ((X, X, [0], 0.1, [[1, 2], [3]]), InvalidParameterError, "covariance of shape (2, 2)"),
        ((X, X, [[1, 2], [3]], 0.1), InvalidInputError, "expected rows from 0 to 11"),
        ((X, X, [0], 10**400), InvalidParameterError, "delta="),
        ((X, "text", [0], 0.1), InvalidDataError, "retain: "),
    ],
)
def test_bad_input(arguments: Any, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind) as caught:
        certificate(*arguments)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_moments_without_their_scatter() -> None:
    bare = Moments.of(X, scatter=False)
    with pytest.raises(InvalidDataError, match="the moments forget have no scatter"):
        certificate_from_moments(bare, bare, bare + bare, 0.1)

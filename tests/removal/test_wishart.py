"""Regions of covariances: simulated Wishart matrices, and the worst of a ball by search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from effort import few
from erasable.removal import certificates

DELTA, N_RUNS = 0.2, 500
ENOUGH = stats.binom.ppf(1e-4, N_RUNS, 1 - DELTA) / N_RUNS


def eigenvalues(d: int, nu: int) -> np.ndarray:
    roots = np.random.default_rng(d).normal(size=(N_RUNS, nu, d))
    return np.linalg.eigvalsh(np.einsum("rni,rnj->rij", roots, roots) / nu)


@pytest.mark.parametrize(("d", "nu"), [(1, 20), (2, 30), (5, 5), (5, 60), (10, 200)])
def test_both_regions_hold(d: int, nu: int) -> None:
    values = eigenvalues(d, nu)
    low, high = certificates._eigenvalue_ends(d, nu, DELTA)
    assert ((values[:, 0] >= low) & (values[:, -1] <= high)).mean() >= ENOUGH
    loss = (values - 1 - np.log(values)).sum(axis=1)
    radius = certificates._stein_radius(d, nu, DELTA)
    assert (loss <= radius).mean() >= ENOUGH
    if d > 1:  # one is never asked for
        assert radius < 3 * np.quantile(loss, 1 - DELTA)  # and not because it is so large
    assert (loss <= loss.mean() / 2).mean() < ENOUGH


def test_the_moments_that_the_stein_radius_is_made_of() -> None:
    """At small s the logarithm of the generating function is s times the mean loss."""
    d, nu = 3, 40
    values = eigenvalues(d, nu)
    loss = (values - 1 - np.log(values)).sum(axis=1)
    digammas = sum(
        np.log(2 / nu) + float(stats.chi2(nu - j).expect(np.log)) - np.log(2) for j in range(d)
    )
    assert loss.mean() == pytest.approx(-digammas, rel=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("seed", range(few(9)))
def test_the_worst_of_a_stein_ball(d: int, seed: int) -> None:
    rng = np.random.default_rng([d, seed])
    values, radius = rng.uniform(0.3, 2.5, d), 10 ** rng.uniform(-3, 0)
    if seed == 0:
        values = np.ones(d)
    bound = certificates._largest_excess(values, radius)
    best = 0.0
    limit = {"type": "ineq", "fun": lambda y: radius - (np.expm1(-y) + y).sum()}
    for _ in range(20):
        found = minimize(
            lambda y: -(values * np.exp(y) - 1 - np.log(values) - y).sum(),
            rng.normal(size=d) * np.sqrt(radius / d),
            method="SLSQP",
            bounds=[(-4.0, 4.0)] * d,
            constraints=[limit],
        )
        if limit["fun"](found.x) > -1e-7:
            best = max(best, -found.fun)
    assert bound >= best - 1e-5
    assert bound <= 1.1 * best + 1e-7


def test_no_axes_are_worse_than_aligned_ones() -> None:
    rng = np.random.default_rng(0)
    values, radius = np.array([0.6, 1.0, 1.7]), 0.2
    bound = certificates._largest_excess(values, radius)
    for _ in range(300):
        y = rng.normal(size=3)
        while (np.expm1(-y) + y).sum() > radius:
            y *= 0.9
        axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        product = np.linalg.eigvals(np.diag(values) @ axes @ np.diag(np.exp(y)) @ axes.T).real
        assert (product - 1 - np.log(product)).sum() <= bound

"""Frontiers against brute force over the family, inside the mean space and at its ends."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit

from effort import few
from erasable.core.errors import InvalidParameterError
from erasable.removal import exponential_family_frontier, gaussian_frontier
from removal import brute_force

CLOSE = 1e-4


def bernoulli(p: float, odds: float) -> float:
    return float(
        p * (np.log(p) + np.logaddexp(0, -odds)) + (1 - p) * (np.log1p(-p) + np.logaddexp(0, odds))
    )


def poisson(mean: float, log_mean: float) -> float:
    return float(mean * (np.log(mean) - log_mean) - mean + np.exp(log_mean))


def exponential(mean: float, log_mean: float) -> float:
    return float(log_mean - np.log(mean) + mean * np.exp(-log_mean) - 1)


ONE_NUMBER = {
    "bernoulli": (bernoulli, (-60.0, 60.0), (0.02, 0.98)),
    "poisson": (poisson, (-60.0, 8.0), (0.1, 20.0)),
    "exponential": (exponential, (-8.0, 60.0), (0.1, 20.0)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("family", ONE_NUMBER)
@pytest.mark.parametrize("seed", range(few(9)))
def test_families_of_one_number(family: str, seed: int) -> None:
    divergence, ends, (low, high) = ONE_NUMBER[family]
    rng = np.random.default_rng(seed)
    theta1, theta2 = rng.uniform(low, high, 2)
    if seed == 0:
        theta2 = theta1 * (1 + 1e-7)
    if seed == 1:
        theta1, theta2 = high, low
    places = tuple(logit(t) if family == "bernoulli" else np.log(t) for t in (theta1, theta2))
    for alpha in (0.0, 0.02, 0.3, 1.0, 2.5, 6.0):
        expected = brute_force.one_number(divergence, theta1, theta2, places, alpha, ends)
        found = exponential_family_frontier(family, theta1, theta2, alpha)
        assert found == pytest.approx(expected, abs=CLOSE)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(few(9)))
def test_categories(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p1, p2 = rng.dirichlet(np.ones(4), 2)
    if seed == 0:
        p2 = p1 * (1 + 1e-4 * np.array([1, -1, 1, -1]))
        p2 /= p2.sum()
    if seed == 1:
        p1, p2 = np.array([0.97, 0.01, 0.01, 0.01]), np.array([0.01, 0.01, 0.01, 0.97])
    for more in (0.02, 0.4, 2.0):
        alpha = brute_force.kl_of_categories(p1, np.log(p2)) + more
        expected = brute_force.categories(p1, p2, alpha, rng)
        found = exponential_family_frontier("categorical", p1, p2, alpha)
        assert found == pytest.approx(expected, abs=CLOSE)


def covariance(rng: np.random.Generator, d: int) -> np.ndarray:
    root = rng.normal(size=(d, d)) / np.sqrt(d)
    return root @ root.T + 0.3 * np.eye(d)


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(few(7)))
def test_gaussians_of_free_mean_and_covariance(d: int, seed: int) -> None:
    rng = np.random.default_rng([d, seed])
    one = rng.normal(size=d), covariance(rng, d)
    two = rng.normal(size=d), covariance(rng, d)
    if seed == 0:
        two = one[0] + 1e-5, one[1] * (1 + 1e-5)
    if seed == 1:
        two = one[0], one[1] * 2  # nothing is shifted: the line goes on for ever
    if seed == 2:
        two = one[0], one[1] / 2
    for more in (0.02, 0.4, 2.0):
        alpha = brute_force.kl_of_gaussians(*one, *two) + more
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the search tries what is no covariance
            expected = brute_force.gaussians(one, two, alpha, rng)
        assert exponential_family_frontier("gaussian", one, two, alpha) == pytest.approx(
            expected, abs=CLOSE
        )


@given(st.floats(0.01, 30), st.floats(0.01, 3), st.floats(0, 100))
def test_gaussians_of_one_covariance(shift: float, deviation: float, alpha: float) -> None:
    apart = shift**2 / (2 * deviation**2)
    means = np.concatenate([-np.geomspace(1e-3, 1e3, 4001), np.geomspace(1e-3, 1e3, 4001)])
    enough = means**2 / (2 * deviation**2) >= alpha
    found = gaussian_frontier(alpha, apart)
    costs = (means[enough] - shift) ** 2 / (2 * deviation**2)
    assert costs.size == 0 or found <= costs.min() + 1e-9
    mean = max(shift, deviation * np.sqrt(2 * alpha))
    assert found == pytest.approx((mean - shift) ** 2 / (2 * deviation**2), abs=1e-9, rel=1e-9)


# Pairs of a family, and how their divergence is computed.
PAIRS: list[tuple[str, Any, Any]] = [
    ("bernoulli", 0.5, 0.1),
    ("bernoulli", 1e-9, 1 - 1e-9),
    ("poisson", 2.0, 5.0),
    ("poisson", 5.0, 1e-6),
    ("exponential", 1.0, 2.0),
    ("exponential", 1e6, 1e-6),
    ("categorical", [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ("gaussian", (0.0, 1.0), (2.0, 1.0)),
    ("gaussian", (0.0, 1.0), (1e-6, 0.5)),
    ("gaussian", (np.zeros(2), np.eye(2)), (np.zeros(2), np.diag([1.0, 4.0]))),
]


@pytest.mark.parametrize(("family", "theta1", "theta2"), PAIRS)
def test_a_frontier_rises_from_nothing_and_bends_upwards(
    family: str, theta1: Any, theta2: Any
) -> None:
    alpha = np.concatenate([np.linspace(0, 40, 161), np.geomspace(50, 1e12, 40)])
    cost = exponential_family_frontier(family, theta1, theta2, alpha)
    assert cost[0] == 0.0
    assert np.isfinite(cost).all()
    assert (cost <= alpha).all()
    rise = np.diff(cost) / np.diff(alpha)
    assert ((rise >= -1e-12) & (rise <= 1 + 1e-12)).all()  # its slope is a multiplier below 1
    assert (np.diff(rise) >= -1e-9).all()


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "exponential", "gaussian"])
def test_at_the_divergence_of_the_domains_nothing_is_paid(family: str) -> None:
    theta1, theta2 = {"bernoulli": (0.3, 0.6), "gaussian": ((0.0, 1.0), (1.0, 3.0))}.get(
        family, (2.0, 5.0)
    )
    apart = {
        "bernoulli": bernoulli(0.3, np.log(1.5)),
        "poisson": poisson(2.0, np.log(5.0)),
        "exponential": exponential(2.0, np.log(5.0)),
        "gaussian": brute_force.kl_of_gaussians(np.zeros(1), np.eye(1), np.ones(1), 3 * np.eye(1)),
    }[family]
    alphas = apart * np.array([0.5, 1.0, 1 + 1e-4])
    before, there, after = exponential_family_frontier(family, theta1, theta2, alphas)
    assert before == 0.0
    assert there == pytest.approx(0.0, abs=1e-15)
    assert 0.0 < after < 1e-7


def test_the_value_that_the_paper_prints_is_another_one() -> None:
    # KL(p2,p1) + alpha + (theta2 - theta1)(E2 - E1)/(lambda - 1), at the lambda of the paper.
    apart, back = poisson(2.0, np.log(5.0)), poisson(5.0, np.log(2.0))
    alpha = 1.2 * apart
    mean = np.exp(brute_force.brentq(lambda x: poisson(2.0, x) - alpha, np.log(5), 5))
    multiplier = (5 - mean) / (2 - mean)
    printed = back + alpha + (np.log(5) - np.log(2)) * 3 / (multiplier - 1)
    assert printed == pytest.approx(-0.115, abs=1e-3)
    found = exponential_family_frontier("poisson", 2.0, 5.0, alpha)
    assert found == pytest.approx(0.0137, abs=1e-4)
    assert found == pytest.approx(poisson(5.0, np.log(mean)), abs=1e-9)


def test_a_gaussian_family_pays_no_more_when_its_covariance_is_free() -> None:
    alpha = np.linspace(0, 10, 21)
    free = exponential_family_frontier("gaussian", (0.0, 1.0), (2.0, 1.0), alpha)
    assert (free <= gaussian_frontier(alpha, 2.0) + 1e-12).all()
    assert (free[alpha > 3] < gaussian_frontier(alpha, 2.0)[alpha > 3] * 0.99).all()


def test_the_same_domain_twice() -> None:
    for family, theta in (
        ("poisson", 2.0),
        ("categorical", [0.5, 0.5]),
        ("gaussian", (np.zeros(2), np.eye(2))),
    ):
        assert exponential_family_frontier(family, theta, theta, [0.0, 3.0]).tolist() == [0.0, 3.0]
    nearly = exponential_family_frontier("gaussian", (0.0, 1.0), (1e-12, 1.0), 3.0)
    assert nearly == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize(
    ("family", "theta1", "theta2", "alpha", "told"),
    [
        ("weibull", 1.0, 2.0, 1.0, "family='weibull'; expected one of 'bernoulli'"),
        ("bernoulli", 0.0, 0.5, 1.0, "theta1=0.0, which is outside the mean space"),
        ("bernoulli", 0.5, 1.0, 1.0, "theta2=1.0"),
        ("poisson", -1.0, 2.0, 1.0, "theta1=-1.0"),
        ("poisson", [1.0, 2.0], 2.0, 1.0, "theta1="),
        ("exponential", 1.0, float("nan"), 1.0, "theta2=nan"),
        ("categorical", [0.5, 0.6], [0.5, 0.5], 1.0, "add up to 1"),
        ("categorical", [0.5, 0.5], [0.2, 0.3, 0.5], 1.0, "theta2="),
        ("categorical", [1.0, 0.0], [0.5, 0.5], 1.0, "leave out what never occurs"),
        ("gaussian", (0.0, 0.0), (1.0, 1.0), 1.0, "the covariance of theta1 is singular"),
        ("gaussian", (0.0, 1.0), (np.zeros(2), np.eye(2)), 1.0, "a Gaussian of 1 features"),
        ("gaussian", (0.0, 1.0), 3.0, 1.0, "(mean, covariance)"),
        ("gaussian", (np.zeros(2), [[1, 2], [0, 9]]), (0.0, 1.0), 1.0, "symmetric"),
        ("poisson", 1.0, 2.0, -0.1, "alpha=-0.1; expected finite numbers from 0"),
        ("poisson", 1.0, 2.0, float("inf"), "alpha=inf"),
        ("poisson", 1.0, 2.0, "much", "alpha='much'"),
        ("poisson", 1.0, 2.0, [[1.0], [1.0, 2.0]], "alpha=a list"),
        ("poisson", 1.0, 10**400, 1.0, "theta2="),
    ],
)
def test_bad_input(family: str, theta1: Any, theta2: Any, alpha: Any, told: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        exponential_family_frontier(family, theta1, theta2, alpha)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_input_of_the_gaussian_frontier() -> None:
    for alpha, divergence in ((-1.0, 1.0), (1.0, -1.0), (1.0, np.nan), (True, 1.0)):
        with pytest.raises(InvalidParameterError):
            gaussian_frontier(alpha, divergence)

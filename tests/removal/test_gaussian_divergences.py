"""Divergences of Gaussians against numerical integration, and their frontiers against a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal, norm

from erasable.core.errors import InvalidParameterError
from erasable.removal import gaussian_divergence, gaussian_frontier
from removal.brute_force import kl_of_gaussians

ONE, TWO = (0.3, 0.8), (1.5, 1.7)  # means and variances
PAIRS = [(ONE, TWO), (TWO, ONE), ((0.0, 1.0), (2.0, 1.0)), ((0.0, 1.0), (0.0, 1.9))]


def integrated(theta1: Any, theta2: Any, function: Callable[[Any, Any], Any]) -> float:
    """Integrate a function of two log densities over the line."""
    one, two = (norm(mean, np.sqrt(variance)) for mean, variance in (theta1, theta2))
    return float(
        quad(lambda x: function(one.logpdf(x), two.logpdf(x)), -40, 40, limit=500, points=(0, 2))[0]
    )


def integrated_renyi(theta1: Any, theta2: Any, order: float) -> float:
    power = integrated(theta1, theta2, lambda a, b: np.exp(order * a + (1 - order) * b))
    return float(np.log(power) / (order - 1))


@pytest.mark.parametrize(("theta1", "theta2"), PAIRS)
def test_kinds_are_their_integrals(theta1: Any, theta2: Any) -> None:
    found = gaussian_divergence(theta1, theta2)
    assert found == pytest.approx(integrated(theta1, theta2, lambda a, b: np.exp(a) * (a - b)))
    for order in (0.1, 0.5, 0.9, 1.3, 1.8):
        found = gaussian_divergence(theta1, theta2, "renyi", order=order)
        assert found == pytest.approx(integrated_renyi(theta1, theta2, order))
        assert found != pytest.approx(integrated_renyi(theta1, theta2, order + 0.05), rel=1e-3)
    if 2 * theta2[1] > theta1[1]:
        found = gaussian_divergence(theta1, theta2, "chi-squared")
        assert found == pytest.approx(
            integrated(theta1, theta2, lambda a, b: np.exp(2 * a - b)) - 1
        )
    coupled = quad(
        lambda u: (norm.ppf(u, theta1[0], theta1[1] ** 0.5)
                   - norm.ppf(u, theta2[0], theta2[1] ** 0.5)) ** 2,
        0, 1, limit=500,
    )[0]  # fmt: skip
    found = gaussian_divergence(theta1, theta2, "wasserstein")
    assert found == pytest.approx(np.sqrt(coupled), rel=1e-5)


def test_an_integral_that_does_not_converge_is_infinite() -> None:
    wide, narrow = (0.0, 4.0), (1.0, 1.0)
    assert gaussian_divergence(wide, narrow, "chi-squared") == np.inf
    assert gaussian_divergence(wide, narrow, "renyi", order=1.34) == np.inf
    assert np.isfinite(gaussian_divergence(wide, narrow, "renyi", order=1.33))
    assert np.isfinite(gaussian_divergence(narrow, wide, "chi-squared"))


def random_gaussians(seed: int, d: int) -> Any:
    rng = np.random.default_rng(seed)
    halves = rng.normal(size=(2, d, d + 2))
    means = rng.normal(size=(2, d))
    return tuple((m, h @ h.T / d) for m, h in zip(means, halves, strict=True))


@pytest.mark.parametrize("d", [2, 4])
def test_many_features_are_the_textbook(d: int) -> None:
    one, two = random_gaussians(d, d)
    for order in (0.2, 0.7):
        mixed = (1 - order) * one[1] + order * two[1]
        apart = one[0] - two[0]
        dets = [np.linalg.slogdet(each)[1] for each in (mixed, one[1], two[1])]
        expected = order / 2 * apart @ np.linalg.solve(mixed, apart)
        expected -= (dets[0] - (1 - order) * dets[1] - order * dets[2]) / (2 * (order - 1))
        assert gaussian_divergence(one, two, "renyi", order=order) == pytest.approx(expected)
    root = sqrtm(two[1])
    cross = np.trace(sqrtm(root @ one[1] @ root)).real
    squared = np.sum((one[0] - two[0]) ** 2) + np.trace(one[1]) + np.trace(two[1]) - 2 * cross
    assert gaussian_divergence(one, two, "wasserstein") == pytest.approx(np.sqrt(squared))
    assert gaussian_divergence(one, two) == pytest.approx(kl_of_gaussians(*one, *two))


def test_two_features_are_integrals_on_a_grid() -> None:
    one, two = random_gaussians(0, 2)
    two = (two[0], two[1] + one[1])  # wide enough for the integral to converge
    axis = np.linspace(-25, 25, 1001)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1)
    a, b = (multivariate_normal(*each).logpdf(grid) for each in (one, two))
    cell = (axis[1] - axis[0]) ** 2
    chi = float(np.exp(2 * a - b).sum() * cell - 1)
    assert gaussian_divergence(one, two, "chi-squared") == pytest.approx(chi, rel=1e-6)
    half = float(-2 * np.log(np.exp((a + b) / 2).sum() * cell))
    assert gaussian_divergence(one, two, "renyi", order=0.5) == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize("d", [1, 3])
def test_renyi_goes_to_kullback_and_leibler_where_its_order_goes_to_one(d: int) -> None:
    one, two = random_gaussians(7, d)
    kl = gaussian_divergence(one, two)
    assert gaussian_divergence(one, two, "renyi", order=1.0) == kl
    far = [
        abs(gaussian_divergence(one, two, "renyi", order=1 + step) - kl) / kl
        for step in (-1e-2, -1e-4, -1e-6, -1e-9, -1e-12)
    ]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 1e-11  # without cancellation
    assert far[0] > 1e-4


def test_order_half_is_symmetric_and_orders_grow() -> None:
    one, two = random_gaussians(3, 3)
    halves = [gaussian_divergence(a, b, "renyi", order=0.5) for a, b in ((one, two), (two, one))]
    assert halves[0] == pytest.approx(halves[1])
    grown = [gaussian_divergence(one, two, "renyi", order=a) for a in np.linspace(0.05, 1.0, 20)]
    assert (np.diff(grown) > 0).all()


@pytest.mark.parametrize("kind", ["kl", "renyi", "chi-squared", "wasserstein"])
def test_close_gaussians_keep_their_digits(kind: str) -> None:
    order = 0.5 if kind == "renyi" else None
    step = 1e-9
    of_mean = gaussian_divergence((0.0, 1.0), (step, 1.0), kind, order=order)
    expected = {"kl": step**2 / 2, "renyi": step**2 / 4, "chi-squared": step**2,
                "wasserstein": step}[kind]  # fmt: skip
    assert of_mean == pytest.approx(expected, rel=1e-6)
    of_variance = gaussian_divergence((0.0, 1.0), (0.0, 1 + step), kind, order=order)
    expected = {"kl": step**2 / 4, "renyi": step**2 / 8, "chi-squared": step**2 / 2,
                "wasserstein": step / 2}[kind]  # fmt: skip
    assert of_variance == pytest.approx(expected, rel=1e-6)
    assert gaussian_divergence((1.0, 2.0), (1.0, 2.0), kind, order=order) < 1e-15


@pytest.mark.parametrize(
    ("kind", "order"),
    [("kl", None), ("renyi", 0.5), ("renyi", 3.0), ("chi-squared", None), ("wasserstein", None)],
)
def test_frontiers_are_the_least_of_a_search(kind: str, order: float | None) -> None:
    covariance = np.array([[1.0, 0.3], [0.3, 0.5]])
    one, two = np.zeros(2), np.array([0.7, -0.4])

    def apart(a: Any, b: Any) -> float:
        return gaussian_divergence((a, covariance), (b, covariance), kind, order=order)

    between = apart(one, two)
    angles, steps = np.linspace(0, 2 * np.pi, 73), np.linspace(0, 1.6, 81)
    places = [
        two + step * np.array([np.cos(angle), np.sin(angle)]) for angle in angles for step in steps
    ]
    places += [two + t * (two - one) for t in np.linspace(0, 1.5, 601)]
    removal = np.array([apart(one, each) for each in places])
    cost = np.array([apart(two, each) for each in places])
    for alpha in (0.5 * between, between, 1.5 * between, 2.5 * between):
        found = gaussian_frontier(alpha, between, kind)
        there = removal >= alpha * (1 - 1e-9)
        assert found <= cost[there].min() + 1e-9
        assert found == pytest.approx(cost[there].min(), abs=0.03 * between)
        if alpha <= between:
            assert found == 0.0


def test_frontiers_differ_by_kind() -> None:
    by_kind = [gaussian_frontier(6.0, 2.0, kind) for kind in ("kl", "chi-squared", "wasserstein")]
    assert by_kind == pytest.approx(
        [(6**0.5 - 2**0.5) ** 2, np.exp((np.log(7) ** 0.5 - np.log(3) ** 0.5) ** 2) - 1, 4.0]
    )
    assert gaussian_frontier(6.0, 2.0, "renyi") == gaussian_frontier(6.0, 2.0)
    assert gaussian_frontier([1.0, 3.0], 2.0, "wasserstein").tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("theta1", "theta2", "kind", "order", "told"),
    [
        (ONE, TWO, "hellinger", None, "kind='hellinger'; expected one of 'kl', 'renyi'"),
        (ONE, TWO, None, None, "kind=None"),
        (ONE, TWO, "renyi", None, "order=None; expected an order with 'renyi' alone"),
        (ONE, TWO, "kl", 2.0, "order=2.0; expected an order with 'renyi' alone"),
        (ONE, TWO, "renyi", 0.0, "order=0.0; expected a number"),
        (ONE, TWO, "renyi", np.nan, "order=nan"),
        (ONE, (1.0, -1.0), "kl", None, "the covariance of theta2 is singular"),
        ((1.0,), TWO, "kl", None, "theta1="),
        (ONE, (np.zeros(2), np.eye(2)), "kl", None, "expected a Gaussian of 1 features"),
    ],
)
def test_bad_input(theta1: Any, theta2: Any, kind: Any, order: Any, told: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        gaussian_divergence(theta1, theta2, kind, order=order)
    assert told in str(caught.value)


def test_bad_input_of_the_frontier() -> None:
    with pytest.raises(InvalidParameterError, match="kind='kL'; expected one of"):
        gaussian_frontier(1.0, 1.0, "kL")

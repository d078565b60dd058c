"""One step by influence functions: against derivatives, weights and refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.removal import influence_removal
from removal.brute_force import kl_of_gaussians


def data(seed: int, d: int = 2, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(1, 2, (n + 10, d))


def weighted(forget: np.ndarray, retain: np.ndarray, rows: list[int], weight: float) -> Any:
    """Fit with the deleted rows at a weight, by NumPy."""
    X, weights = np.vstack([forget, retain]), np.ones(len(forget) + len(retain))
    weights[rows] = weight
    mean = np.average(X, axis=0, weights=weights)
    covariance = np.cov(X.T, aweights=weights, ddof=0).reshape(X.shape[1], -1)
    return mean, covariance


@pytest.mark.parametrize("d", [1, 3])
def test_the_step_is_the_derivative_by_the_weight_of_what_leaves(d: int) -> None:
    forget, retain = data(0, d)
    rows, h = [3, 11, 30], 1e-5
    up, down = (weighted(forget, retain, rows, 1 + sign * h) for sign in (1, -1))
    mean, covariance = weighted(forget, retain, rows, 1.0)
    found = influence_removal(forget, retain, rows)
    np.testing.assert_allclose(found.mean, mean - (up[0] - down[0]) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(
        found.covariance, covariance - (up[1] - down[1]) / (2 * h), atol=1e-8
    )
    refit = weighted(forget, retain, rows, 0.0)
    np.testing.assert_allclose(found.refit_mean, refit[0])
    np.testing.assert_allclose(found.refit_covariance, refit[1])
    assert found.error == pytest.approx(kl_of_gaussians(*refit, found.mean, found.covariance))
    assert found.error > 0


@given(st.integers(0, 10_000), st.integers(1, 40))
def test_the_mean_falls_short_by_the_share_that_leaves(seed: int, n_deleted: int) -> None:
    forget, retain = data(seed)
    found = influence_removal(forget, retain, np.arange(n_deleted), sigma=1.0)
    before, share = np.vstack([forget, retain]).mean(axis=0), n_deleted / 90
    went, wanted = found.mean - before, found.refit_mean - before
    np.testing.assert_allclose(went, (1 - share) * wanted, atol=1e-12)
    assert found.error == pytest.approx(((share * wanted) ** 2).sum() / 2, abs=1e-12)


def test_damping_solves_with_a_damped_hessian() -> None:
    """In one dimension: the Hessian of the log-loss is 1 / v for the mean, 1 / (2 v^2) for v."""
    forget, retain = data(1, 1)
    rows, damping = [0, 5], 0.3
    mean, covariance = (float(each.squeeze()) for each in weighted(forget, retain, rows, 1.0))
    away = forget[rows, 0] - mean
    slopes = -away / covariance, (covariance - away**2) / (2 * covariance**2)
    found = influence_removal(forget, retain, rows, damping=damping)
    step = slopes[0].sum() / 90 / (1 / covariance + damping)
    assert found.mean[0] == pytest.approx(mean + step)
    step = slopes[1].sum() / 90 / (1 / (2 * covariance**2) + damping)
    assert found.covariance[0, 0] == pytest.approx(covariance + step)


def test_damping_turns_with_the_axes() -> None:
    forget, retain = data(2)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    plain = influence_removal(forget, retain, [1, 2], damping=0.5)
    turned = influence_removal(forget @ turn.T, retain @ turn.T, [1, 2], damping=0.5)
    np.testing.assert_allclose(turned.mean, turn @ plain.mean)
    np.testing.assert_allclose(turned.covariance, turn @ plain.covariance @ turn.T)


def test_nothing_deleted_changes_nothing() -> None:
    forget, retain = data(3)
    found = influence_removal(forget, retain, [])
    assert found.error == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_array_equal(found.mean, found.refit_mean)


def test_a_damped_step_may_leave_no_covariance() -> None:
    """Undamped it cannot: what leaves scatters no more than everything did."""
    kept = np.array([0.52, 0.47, -0.71])
    axes = np.linalg.qr(np.column_stack([kept, np.eye(3)[:, :2]]))[0].T
    # Two of three directions are in records that leave, the third in some that stay.
    rows = np.sqrt(500) * np.vstack([axes, -axes]) * np.sqrt([1e-3, 1, 1e3])
    rest = np.vstack([np.zeros((990, 3)), 1e-3 * np.vstack([np.eye(3), -np.eye(3)])])
    forget, retain = rows[[1, 2, 4, 5]], np.vstack([rows[[0, 3]], rest])
    damped = influence_removal(forget, retain, np.arange(4), damping=0.0077)
    assert np.linalg.eigvalsh(damped.covariance)[0] < 0
    assert damped.error == np.inf
    assert np.isfinite(influence_removal(forget, retain, np.arange(4)).error)


def test_what_random_deletion_needs_by_influence() -> None:
    """Half of the removal at mu = 0.5 takes 58.6 % by refits, and 82.8 % by one step."""
    n = 1000
    forget, retain = np.zeros(n), np.full(n, 0.5)  # in expectation

    def removal(n_deleted: float, *, refit: bool) -> float:
        found = influence_removal(forget, retain, np.arange(int(n_deleted)), sigma=1.0)
        return float((found.refit_mean if refit else found.mean)[0]) ** 2 / 2

    for refit, share in ((True, 2 - np.sqrt(2)), (False, 2 * (np.sqrt(2) - 1))):
        assert removal(share * n - 5, refit=refit) < 0.5**2 / 4
        assert removal(share * n + 5, refit=refit) > 0.5**2 / 4


X, Y = data(4)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "told"),
    [
        ((X[:0], Y, []), {}, InvalidDataError, "forget: Found array with 0"),
        ((X, Y[:0], []), {}, InvalidDataError, "retain: Found array with 0"),
        ((X * np.nan, Y, []), {}, InvalidDataError, "forget: X contains NaN"),
        ((X, Y[:1], range(40)), {}, InvalidDataError, "the records that are left is singular"),
        ((X * 0, Y * 0, []), {}, InvalidDataError, "the covariance of the records is singular"),
        ((X, Y, [40]), {}, InvalidInputError, "expected rows from 0 to 39"),
        ((X, Y, [0]), {"damping": -1.0}, InvalidParameterError, "damping=-1.0"),
        ((X, Y, [0]), {"sigma": -1.0}, InvalidParameterError, "sigma=-1.0"),
    ],
)
def test_bad_input(
    arguments: Any, options: dict[str, Any], kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind) as caught:
        influence_removal(*arguments, **options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)

"""The frontier at every budget, against refits by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from erasable.removal import DomainRemoval, MaxShift, _frontier
from erasable.removal._frontier import trace
from erasable.removal._sets import Sets
from removal import plain_scores as plain


def refit(forget: Any, retain: Any, order: Any, full: bool) -> tuple[Any, Any]:
    """Fit a mean to what is left, at each budget, and compare it with both in one covariance."""
    m1, m2 = forget.mean(axis=0), retain.mean(axis=0)
    apart = np.concatenate([forget - m1, retain - m2])
    n = len(apart) - 2
    variance = (apart**2).sum(axis=0) / n
    keep = variance > 0
    spread = np.sqrt(variance[keep])
    white = apart[:, keep] / spread
    correlation = white.T @ white / n
    rho = max(plain.oas(correlation, n), 1e-6) if full else 1.0
    shrunk = (1 - rho) * correlation + rho * np.eye(keep.sum())
    alpha, epsilon = [], []
    for budget in range(len(order) + 1):
        mean = np.concatenate([forget[order[budget:]], retain]).mean(axis=0)
        for values, centre in ((alpha, m1), (epsilon, m2)):
            z = (mean - centre)[keep] / spread
            values.append(z @ np.linalg.solve(shrunk, z) / 2)
    return alpha, epsilon


@given(
    seed=st.integers(0, 2**32 - 1), n1=st.integers(2, 40), n2=st.integers(2, 40),
    d=st.integers(1, 6),
)  # fmt: skip
def test_every_budget_is_a_refit(seed: int, n1: int, n2: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    unit = 10.0 ** rng.integers(-3, 4, d)
    forget = (rng.normal(size=(n1, d)) + 5.0) * unit
    retain = rng.normal(size=(n2, d)) * unit
    order = rng.permutation(n1)
    found = trace(Sets(forget, retain), order, np.ones(n1))
    alpha, epsilon = refit(forget, retain, order, full=True)
    # Whole numbers of 22 bits: what is rounded is a share of a column's range.
    np.testing.assert_allclose(found.alpha, alpha, rtol=2e-4, atol=1e-5 * max(alpha))
    np.testing.assert_allclose(found.epsilon, epsilon, rtol=2e-4, atol=1e-5 * max(epsilon))
    np.testing.assert_allclose(found.share, np.arange(n1 + 1) / n1)


@pytest.mark.parametrize("n1", [511, 512, 513, 1025])
def test_the_ends_of_blocks(n1: int) -> None:
    rng = np.random.default_rng(n1)
    forget, retain = rng.normal(size=(n1, 2)), rng.normal(size=(30, 2)) + 1
    order = rng.permutation(n1)
    found = trace(Sets(forget, retain), order, np.ones(n1))
    alpha, epsilon = refit(forget, retain, order, full=True)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-5)
    np.testing.assert_allclose(found.epsilon, epsilon, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_wide_and_sparse_sets_have_a_diagonal(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_frontier, "FULL_COVARIANCE", 3)
    rng = np.random.default_rng(0)
    forget, retain = (rng.random((n, 9)) * (rng.random((n, 9)) < 0.4) for n in (1100, 40))
    order = rng.permutation(1100)
    found = trace(Sets(kind(forget), kind(retain)), order, np.ones(1100))
    alpha, epsilon = refit(forget, retain, order, full=False)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-5)
    np.testing.assert_allclose(found.epsilon, epsilon, rtol=1e-5, atol=1e-8)


def free(forget: Any, retain: Any, order: Any, full: bool) -> tuple[Any, Any]:
    """Refit a Gaussian at each budget, all covariances shrunk to that within the sets."""
    apart = np.concatenate([forget - forget.mean(axis=0), retain - retain.mean(axis=0)])
    n, d = len(apart) - 2, forget.shape[1]
    within = apart.T @ apart / n
    spread = np.sqrt(np.diag(within))
    correlation = within / np.outer(spread, spread)
    rho = max(plain.oas(correlation, n), 1e-6) if full else 1.0
    target = ((1 - rho) * correlation + rho * np.eye(d)) * np.outer(spread, spread)
    prior = d if full else 1

    def fit(rows: Any) -> tuple[Any, Any]:
        away = rows - rows.mean(axis=0)
        covariance = (away.T @ away + prior * target) / (len(rows) + prior)
        return rows.mean(axis=0), covariance if full else np.diag(np.diag(covariance))

    def divergence(p: Any, q: Any) -> float:
        inverse, away = np.linalg.inv(q[1]), q[0] - p[0]
        logs = np.linalg.slogdet(q[1])[1] - np.linalg.slogdet(p[1])[1]
        return (np.trace(inverse @ p[1]) + away @ inverse @ away - d + logs) / 2

    left = [fit(np.concatenate([forget[order[b:]], retain])) for b in range(len(order) + 1)]
    return tuple([divergence(fit(X), p) for p in left] for X in (forget, retain))


@pytest.mark.parametrize(("n1", "n2", "d"), [(2, 3, 4), (40, 9, 5), (255, 20, 2), (513, 60, 3)])
def test_free_covariances_are_refitted(n1: int, n2: int, d: int) -> None:
    rng = np.random.default_rng(n1)
    mix = rng.normal(size=(d, d)) * 10.0 ** np.arange(d)
    forget, retain = rng.normal(size=(n1, d)) @ mix + 1, (2 * rng.normal(size=(n2, d)) + 1) @ mix
    order = rng.permutation(n1)
    found = trace(Sets(forget, retain), order, np.ones(n1), "free")
    alpha, epsilon = free(forget, retain, order, full=True)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.epsilon, epsilon, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_free_variances_of_wide_and_sparse_sets(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_frontier, "FULL_COVARIANCE", 3)
    rng = np.random.default_rng(0)
    forget, retain = (rng.random((n, 9)) * (rng.random((n, 9)) < 0.4) for n in (600, 40))
    order = rng.permutation(600)
    found = trace(Sets(kind(forget), kind(retain)), order, np.ones(600), "free")
    alpha, epsilon = free(forget, retain, order, full=False)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(found.epsilon, epsilon, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("full", [True, False])
def test_sets_that_are_far_apart(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As columns of time are: nothing is lost when the farther set has left, nor is there a gap."""
    monkeypatch.setattr(_frontier, "FULL_COVARIANCE", 512 if full else 0)
    rng = np.random.default_rng(3)
    forget, retain = rng.normal(size=(300, 3)) + 1e5, rng.normal(size=(300, 3))
    order = rng.permutation(300)
    found = trace(Sets(forget, retain), order, np.ones(300), "free")
    alpha, epsilon = free(forget, retain, order, full=full)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-3)
    np.testing.assert_allclose(found.epsilon, epsilon, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("covariance", ["shared", "free"])
@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_nothing_of_forget_left_shifts_nothing(kind: Any, covariance: str) -> None:
    rng = np.random.default_rng(1)
    forget, retain = kind(rng.random((30, 3))), kind(rng.random((40, 3)) + 0.3)
    removal = DomainRemoval(
        "random", budget=MaxShift(0.0), covariance=covariance, random_state=0
    ).fit(forget, retain)
    assert len(removal.selected_) == 30
    assert removal.epsilon_ == 0.0


def test_only_a_free_covariance_shows_a_spread() -> None:
    """The retain set is wider, around the same mean."""
    rng = np.random.default_rng(0)
    forget, retain = rng.normal(size=(400, 3)), 2 * rng.normal(size=(400, 3))
    shared, own = (
        DomainRemoval("random", budget=1, covariance=each, random_state=0).fit(forget, retain)
        for each in ("shared", "free")
    )
    assert shared.frontier_.alpha[-1] < 0.05
    expected = 3 * (1 / 4 - 1 + np.log(4)) / 2
    assert abs(own.frontier_.alpha[-1] - expected) < 0.1


def test_columns_that_do_not_vary_are_left_out() -> None:
    rng = np.random.default_rng(0)
    forget, retain = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) + 1
    order = np.arange(30)
    expected = trace(Sets(forget, retain), order, np.ones(30))
    more = [np.column_stack([X, np.full(len(X), 7.0)]) for X in (forget, retain)]
    found = trace(Sets(*more), order, np.ones(30))
    np.testing.assert_allclose(found.alpha, expected.alpha, rtol=1e-5)


def test_the_frontier_is_that_of_the_order() -> None:
    """The control: another order of the same records has another frontier, with the same ends."""
    rng = np.random.default_rng(0)
    forget, retain = rng.normal(size=(50, 1)), rng.normal(size=(50, 1)) + 1
    near, far = (
        DomainRemoval(score, budget=1, random_state=0).fit(forget, retain).frontier_
        for score in ("coreset", "mu2-distance")
    )
    assert far.alpha[10] > near.alpha[10]
    np.testing.assert_allclose(far.alpha[[0, -1]], near.alpha[[0, -1]], rtol=1e-9)
    assert far.epsilon[-1] == 0.0

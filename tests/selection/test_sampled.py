"""Sample averages lie within their stated error of the exact value; CVaR is its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.selection._objectives import CVaR
from erasable.selection._optimizers import Budget, maximize
from erasable.selection._sampled import SampledFunction, cvar
from erasable.selection.staying import Sampler, Staying
from erasable.selection.utilities import NaiveBayes, NearestNeighbor
from selection.models import CLASSED, MODELS, NAMES, K, N


@pytest.mark.parametrize("utility", ["nearest", "sparse", "bayes"])
@pytest.mark.parametrize("staying", CLASSED, ids=NAMES)
def test_samples_come_to_the_exact_value(staying: Staying, utility: str) -> None:
    rng = np.random.default_rng(7)
    y = [0, 1, 0, 0, 1, 1, 0]
    if utility == "bayes":
        problem = NaiveBayes().problem(rng.integers(0, 3, (N, 3)), y)
    else:
        import scipy.sparse

        similarity = rng.random((N, N)) * (rng.random((N, N)) < 0.7)
        given_as = scipy.sparse.csr_array(similarity) if utility == "sparse" else similarity
        problem = NearestNeighbor("precomputed").problem(given_as, y)
    bound = staying.bind(N, k=K, labels=y)
    exact = problem.expected(bound, K)
    if exact is None:
        return
    n_samples = 4000
    sampled = SampledFunction(problem.samples(n_samples, K), Sampler(bound, n_samples, 1), N)
    for j in range(K):
        gain, near = exact.gains(np.array([j]))[0], sampled.gains(np.array([j]))[0]
        assert near == pytest.approx(gain, abs=0.08 * max(gain, 0.2))
        exact.add(j)
        sampled.add(j)
    error = abs(sampled.value - exact.value)
    assert error <= 4.5 * sampled.standard_error + 1e-12
    if sampled.standard_error:
        # An error that is stated far too large would be no statement.
        assert sampled.standard_error < 0.05 * exact.value


@settings(max_examples=50)
@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=12),
    st.floats(0.05, 1.0),
)
def test_cvar_is_the_best_threshold(values: list[float], alpha: float) -> None:
    """Equation 3: the maximum over tau, which lies at one of the values."""
    u = np.array(values)
    best = max(tau - np.maximum(0, tau - u).mean() / alpha for tau in u)
    assert cvar(u, alpha) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("optimizer", ["lazy", "greedy", "stochastic", "random-greedy"])
@pytest.mark.parametrize("staying", MODELS[:3], ids=NAMES[:3])
def test_optimizers_choose_within_the_budget(staying: Staying, optimizer: str) -> None:
    rng = np.random.default_rng(0)
    problem = NearestNeighbor("precomputed").problem(rng.random((N, 20)))

    def run(budget: Budget) -> tuple[list[int], float]:
        function = problem.expected(staying.bind(N, k=K), N)
        assert function is not None
        chosen = maximize(function, np.arange(N), budget, optimizer, np.random.default_rng(1))
        assert function.value == pytest.approx(sum(gain for _, gain in chosen))
        return [j for j, _ in chosen], function.value

    chosen, _ = run(Budget(3))
    assert len(chosen) == len(set(chosen)) <= 3
    assert run(Budget(3))[0] == chosen
    costs = np.array([1.0, 5.0, 1.0, 1.0, 9.0, 1.0, 2.0])
    bought, _ = run(Budget(4.0, costs))
    assert 0 < costs[bought].sum() <= 4
    assert 4 not in bought
    if optimizer in ("lazy", "greedy"):
        assert chosen == _by_hand(problem, staying, 3)


def _by_hand(problem: object, staying: Staying, k: int) -> list[int]:
    """Nemhauser's greedy, from values of whole sets alone."""
    chosen: list[int] = []
    for _ in range(k):
        values = []
        for j in range(N):
            function = problem.expected(staying.bind(N, k=K), N)  # type: ignore[attr-defined]
            for each in [*chosen, j]:
                function.add(each)
            values.append(function.value if j not in chosen else -1.0)
        chosen.append(int(np.argmax(values)))
    return chosen


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(0, 100), min_size=2, max_size=30), st.floats(0.05, 0.95))
def test_the_best_threshold_is_searched_where_it_is(values: list[float], alpha: float) -> None:
    """Equation 3 is maximal at the quantile alpha of the values."""
    u = np.array(values)
    low, high = CVaR(alpha)._thresholds(u)
    worth = [tau - np.maximum(0, tau - u).mean() / alpha for tau in u]
    best = u[np.array(worth) >= max(worth) - 1e-9]
    assert low - 1e-6 <= best.max()
    assert best.min() <= high + 1e-6


def test_thresholds_are_searched_in_a_part_of_the_values() -> None:
    u = np.linspace(0, 100, 1001)
    low, high = CVaR(0.2)._thresholds(u)
    assert 9 < low < 20 < high < 61


def test_no_threshold_is_searched_where_all_cases_count() -> None:
    low, high = CVaR(1.0)._thresholds(np.array([1.0, 3.0]))
    assert low == high == 2.0


@pytest.mark.parametrize("n_targets", [5, 8, 19])
def test_gains_in_samples_are_those_of_numpy(n_targets: int) -> None:
    rng = np.random.default_rng(n_targets)
    similarity = rng.random((6, n_targets))
    samples = NearestNeighbor("precomputed").problem(similarity).samples(4, 3)
    best = np.zeros((4, n_targets))
    for j in (2, 0, 5):
        wanted = np.maximum(similarity[j] - best, 0).sum(axis=1)
        np.testing.assert_allclose(samples.gains(j), wanted, rtol=1e-13)
        stays = rng.random(4) < 0.6
        samples.add(j, stays)
        best[stays] = np.maximum(best[stays], similarity[j])
    assert np.ptp(samples.gains(1)) > 0

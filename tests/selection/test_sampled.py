"""Sample averages lie within their stated error of the exact value; CVaR is its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.selection import CVaR
from erasable.selection._optimizers import CostBudget, maximize
from erasable.selection._sampled import SampledFunction, cvar
from erasable.selection.staying import Sampler, Staying
from erasable.selection.utilities import Custom, NaiveBayes, NearestNeighbor, Problem
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

    def run(budget: CostBudget) -> tuple[list[int], float]:
        function = problem.expected(staying.bind(N, k=K), N)
        assert function is not None
        chosen = maximize(function, np.arange(N), budget, optimizer, np.random.default_rng(1))
        assert function.value == pytest.approx(sum(gain for _, gain in chosen))
        return [j for j, _ in chosen], function.value

    chosen, _ = run(CostBudget(3))
    assert len(chosen) == len(set(chosen)) <= 3
    assert run(CostBudget(3))[0] == chosen
    costs = np.array([1.0, 5.0, 1.0, 1.0, 9.0, 1.0, 2.0])
    bought, _ = run(CostBudget(4.0, costs))
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


class Crowd:
    """Records are worth something until there are too many: gains may be below 0."""

    def __init__(self, X: np.ndarray, y: object = None) -> None:
        self.X, self.have, self.worth = X, 0.0, 0.0

    def gain(self, j: int) -> float:
        return float((self.have + self.X[j]) * (7 - self.have - self.X[j]) - self.worth)

    def add(self, j: int) -> None:
        self.worth += self.gain(j)
        self.have += float(self.X[j])


@pytest.mark.parametrize("utility", ["nearest", "bayes", "crowd"])
@pytest.mark.parametrize("staying", MODELS[1:], ids=NAMES[1 : len(MODELS)])
@pytest.mark.parametrize("share", [-0.5, 0.3, 0.7])
def test_gains_below_a_threshold(staying: Staying, utility: str, share: float) -> None:
    """Equation 3, from values of whole sets: what a sample has above the threshold is not counted.

    A utility that may shrink can fall below the threshold again.
    """
    rng, n_samples, alpha, chosen = np.random.default_rng(5), 60, 0.3, [3, 1, 5, 0]
    if utility == "nearest":
        problem: Problem = NearestNeighbor("precomputed").problem(rng.random((N, 8)))
    elif utility == "bayes":
        problem = NaiveBayes().problem(rng.integers(0, 3, (N, 3)), [0, 1, 0, 0, 1, 1, 0])
    else:
        problem = Custom(Crowd).problem(rng.integers(1, 4, N).astype(float))
    bound = staying.bind(N, k=K)
    threshold = share * problem.value(np.array([3, 1]))
    function = SampledFunction(
        problem.samples(n_samples, K), Sampler(bound, n_samples, 1), N,
        threshold=threshold, alpha=alpha,
    )  # fmt: skip
    sampler = Sampler(bound, n_samples, 1)

    def below(*who: int) -> float:
        value = problem.value(np.array(who, dtype=np.int64))
        return threshold - max(0.0, threshold - value) / alpha

    stay: list[list[int]] = [[] for _ in range(n_samples)]
    for j in chosen:
        for i in set(range(N)) - set(chosen):
            of = np.broadcast_to(sampler.probability(i), n_samples)
            wanted = np.mean([
                p * (below(*who, i) - below(*who))
                for p, who in zip(of, stay, strict=True)
            ])  # fmt: skip
            assert function.gains(np.array([i]))[0] == pytest.approx(wanted, abs=1e-9)
        function.add(j)
        for who, stays in zip(stay, sampler.add(j), strict=True):
            who += [j] if stays else []
        now = np.mean([below(*who) for who in stay])
        assert function.value == pytest.approx(now, abs=1e-9)


def test_samples_that_are_left_out_too_soon_are_missed() -> None:
    """The check above has work to do: at 0.3 and 0.7 some samples are below, and some above."""
    similarity = np.random.default_rng(5).random((N, 8))
    problem = NearestNeighbor("precomputed").problem(similarity)
    bound = MODELS[1].bind(N, k=K)
    threshold = 0.7 * problem.value(np.array([3, 1]))
    function = SampledFunction(
        problem.samples(60, K), Sampler(bound, 60, 1), N, threshold=threshold, alpha=0.3
    )
    for j in (3, 1):
        function.add(j)
    assert 0 < len(function.short) < 60
    right = function.gains(np.array([5]))
    function.short = np.flatnonzero(function.values >= threshold)
    assert function.gains(np.array([5])) != pytest.approx(right, abs=1e-3)

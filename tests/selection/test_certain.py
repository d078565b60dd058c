"""Where nobody leaves, a selection that anticipates deletions is the one that does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from erasable.selection import (
    BetaBinomial,
    Certain,
    Custom,
    CVaR,
    Exchangeable,
    Expected,
    Groups,
    Independent,
    MutualInformation,
    NaiveBayes,
    NearestNeighbor,
    NeuralVariance,
    PerClass,
    PointMass,
    SubsetSelector,
    Uniform,
    VarianceReduction,
    expected_utility,
    semivalues,
    utility_distribution,
)
from erasable.selection.utilities import Utility

N, K = 40, 9


class Spread:
    """The distance of each record to the others, as far as it is new."""

    def __init__(self, X: np.ndarray, y: object) -> None:
        self.X, self.best = X, np.zeros(len(X))

    def gain(self, j: int) -> float:
        return float(np.maximum(np.abs(self.X @ self.X[j]) - self.best, 0).sum())

    def add(self, j: int) -> None:
        self.best = np.maximum(self.best, np.abs(self.X @ self.X[j]))


def _points(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(N, 3))


def _similarities(rng: np.random.Generator) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(rng.random((N, N)) * (rng.random((N, N)) < 0.4))


def _gram(rng: np.random.Generator) -> np.ndarray:
    J = _points(rng)
    return np.asarray(J @ J.T)


UTILITIES: dict[str, tuple[Utility, Callable[[np.random.Generator], Any]]] = {
    "nearest": (NearestNeighbor(), _points),
    "nearest, some": (NearestNeighbor(n_neighbors=6), _points),
    "nearest, sparse": (NearestNeighbor("precomputed"), _similarities),
    "bayes": (NaiveBayes(0.1), lambda rng: rng.integers(0, 4, (N, 3))),
    "information": (MutualInformation(gamma=3.0), _points),
    "variance": (VarianceReduction(noise=0.2), _points),
    "neural": (NeuralVariance(noise=0.2), _gram),
    "custom": (Custom(Spread), _points),
}
LAWS: dict[str, Any] = {
    "certain": Certain(),
    "independent": Independent(1.0),
    "each": np.ones(N),
    "by class": {0: 1.0, 1: 1.0},
    "models by class": PerClass({0: Certain(), 1: 1.0}),
    "point": PointMass(K),
    "uniform": Uniform(K, K),
    "given": Exchangeable([0.0] * K + [1.0]),
    "groups": Groups(np.arange(N) // 3, 1.0),
    "groups each": Groups(np.arange(N) % 7, {g: 1.0 for g in range(7)}),
    "as good as certain": BetaBinomial(1e30, 1e-3),
}
OBJECTIVES = {
    "expected": Expected(20),
    "worst": CVaR(0.3, 20),
    "judged": CVaR(0.3, 20, n_judged=9),
    "as in the paper": CVaR(0.3, 20, n_judged=0),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("optimizer", "objective"),
    [
        ("lazy", "expected"),
        ("greedy", "expected"),
        ("auto", "worst"),
        ("lazy", "judged"),
        ("auto", "as in the paper"),
    ],
)
@pytest.mark.parametrize("name", UTILITIES)
def test_all_models_agree_to_the_last_bit(name: str, optimizer: str, objective: str) -> None:
    utility, data = UTILITIES[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = data(rng), rng.permutation(np.arange(N) % 2)
        plain = SubsetSelector(utility, k=K, optimizer=optimizer).fit(X, y)
        chosen = plain.selected_
        assert plain.utility_error_ == 0.0
        worth = utility.problem(X, y).value(np.sort(chosen))
        assert plain.utility_ == pytest.approx(worth, rel=1e-11)
        for law, staying in LAWS.items():
            goal = OBJECTIVES[objective]
            found = SubsetSelector(
                utility, k=K, staying=staying, optimizer=optimizer, objective=goal, random_state=5
            ).fit(X, y)
            assert found.selected_.tolist() == chosen.tolist(), law
            assert found.gains_.tolist() == plain.gains_.tolist(), law
            assert (found.utility_, found.utility_error_) == (plain.utility_, 0.0), law
            value = expected_utility(
                chosen, X, y, utility=utility, staying=staying, objective=goal, random_state=5
            )
            assert (value.value, value.standard_error) == (plain.utility_, 0.0), law
            drawn = utility_distribution(
                chosen, X, y, utility=utility, staying=staying, n_samples=4, random_state=5
            )
            assert drawn.tolist() == [plain.utility_] * 4, law
            assert found.value(random_state=6) == value, law
            assert found.distribution(n_samples=4, random_state=6).tolist() == drawn.tolist(), law
            assert found.utility_exact_, law
            assert value.exact, law


@pytest.mark.parametrize("name", UTILITIES)
def test_what_is_held_and_stays_counts_alike(name: str) -> None:
    utility, data = UTILITIES[name]
    rng = np.random.default_rng(11)
    X, y, held = data(rng), np.arange(N) % 2, [3, 8, 17]
    plain = SubsetSelector(utility, k=K - 3).fit(X, y, selected=held)
    for law, staying in LAWS.items():
        found = SubsetSelector(utility, k=K - 3, staying=staying, random_state=0).fit(
            X, y, selected=held
        )
        assert found.gains_.tolist() == plain.gains_.tolist(), law
        assert found.utility_ == plain.utility_, law


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", UTILITIES)
def test_somebody_who_may_leave_makes_a_difference(name: str) -> None:
    utility, data = UTILITIES[name]
    rng = np.random.default_rng(0)
    X, y = data(rng), np.arange(N) % 2
    plain = SubsetSelector(utility, k=K).fit(X, y)
    for staying in (0.9, Uniform(K - 1, K), Groups(np.arange(N) // 3, 0.9)):
        objective = Expected(300)
        found = SubsetSelector(
            utility, k=K, staying=staying, objective=objective, random_state=0
        ).fit(X, y)
        assert found.utility_ < 0.999 * plain.utility_


def test_models_that_are_not_kept_as_one_differ_in_the_last_bit() -> None:
    """The cause: each model was computed in its own way, and rounded in its own way."""
    n, differ = 300, 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        problem = NearestNeighbor().problem(rng.normal(size=(n, 3)))
        bound = Groups(np.arange(n) // 3, 1.0).bind(n)
        assert bound.unit is None
        as_one = problem.expected(bound, K)
        apart = copy.copy(bound)
        object.__setattr__(apart, "unit", np.arange(n) // 3)
        as_groups = problem.expected(apart, K)
        assert as_one is not None
        assert as_groups is not None
        for j in range(K):
            as_one.add(j)
            as_groups.add(j)
        assert as_groups.value == pytest.approx(as_one.value, rel=1e-12)
        differ += as_groups.value != as_one.value
    assert differ


UNCERTAIN: dict[str, Any] = {
    "independent": Independent(0.9),
    "each": np.linspace(0.1, 0.9, N),
    "by class": {0: 0.5, 1: 0.9},
    "models by class": PerClass({0: BetaBinomial(2, 1), 1: 0.8}),
    "point": PointMass(K - 1),
    "uniform": Uniform(2, K),
    "given": Exchangeable([0.5] + [0.0] * (K - 1) + [0.5]),
    "beta": BetaBinomial(3, 2),
    "groups": Groups(np.arange(N) // 3, 0.9),
    "groups each": Groups(np.arange(N) % 3, {0: 0.8, 1: 0.5, 2: 0.2}),
}


@pytest.mark.parametrize("law", UNCERTAIN)
@pytest.mark.parametrize("name", UTILITIES)
def test_what_is_exact_and_what_is_sampled(name: str, law: str) -> None:
    """The table in docs/selection.md; that exact values are right is tested by utility."""
    utility, data = UTILITIES[name]
    X, y = data(np.random.default_rng(4)), np.arange(N) % 2
    found = SubsetSelector(
        utility, k=K, staying=UNCERTAIN[law], objective=Expected(50), random_state=0
    ).fit(X, y)
    is_exact = name.startswith(("nearest", "bayes"))
    assert (found.utility_error_ == 0.0) == is_exact


@pytest.mark.parametrize("name", UTILITIES)
def test_leave_one_out_is_not_sampled(name: str) -> None:
    utility, data = UTILITIES[name]
    X, y = data(np.random.default_rng(2)), np.arange(N) % 2
    problem, everybody = utility.problem(X, y), np.arange(N)
    right = [problem.value(everybody) - problem.value(np.delete(everybody, j)) for j in everybody]
    once = semivalues(utility, X, y, weights=Certain())
    np.testing.assert_allclose(once, right, atol=1e-9)
    for law in ("independent", "each", "groups"):
        many = semivalues(utility, X, y, weights=LAWS[law], n_samples=10**6)
        assert many.tolist() == once.tolist()

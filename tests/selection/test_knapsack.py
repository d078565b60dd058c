"""Selections under costs against the best there is, by listing all that can be paid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from erasable.core.errors import InvalidInputError
from erasable.selection import BetaBinomial, CVaR, Expected, NearestNeighbor, SubsetSelector
from erasable.selection._knapsack import best_of_greedy
from erasable.selection._objectives import SelectionTask, sampled
from erasable.selection._optimizers import OPTIMIZERS, CostBudget, maximize
from erasable.selection.staying import as_staying
from selection import enumeration

GIVEN = NearestNeighbor("precomputed")
ONE = 1 - 1 / math.e
ENUMERATED = "partial-enumeration"
# similarities, costs, budget: by ratio the first is bad, and by gain the second
RATIO_IS_BAD = (np.diag([1.1, 10.0]), [1.0, 10.0], 10.0)
GAIN_IS_BAD = (np.diag([1.0, *[0.9] * 10]), [10.0, *[1.0] * 10], 10.0)


def _worth(similarity: np.ndarray, staying: Any, rows: tuple[int, ...], most: int) -> float:
    problem = GIVEN.problem(similarity)
    function = problem.expected(as_staying(staying).bind(len(similarity), k=most), most)
    assert function is not None
    for j in rows:
        function.add(j)
    return float(function.value)


def _best(similarity: np.ndarray, costs: Any, k: float, staying: Any = 1.0) -> float:
    """The best by enumeration."""
    most = len(similarity)
    return max(
        _worth(similarity, staying, rows, most)
        for rows in enumeration.subsets(range(most))
        if sum(costs[j] for j in rows) <= k + 1e-9
    )


def _chosen(similarity: np.ndarray, costs: Any, k: float, **params: Any) -> SubsetSelector:
    selector = SubsetSelector(GIVEN, k=k, costs=costs, random_state=0, **params).fit(similarity)
    assert np.asarray(costs)[selector.selected_].sum() <= k + 1e-9
    return selector


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", [RATIO_IS_BAD, GAIN_IS_BAD], ids=["ratio", "gain"])
@pytest.mark.parametrize("optimizer", ["auto", "lazy", "greedy", ENUMERATED])
@pytest.mark.parametrize("objective", [None, CVaR(0.5, 200)], ids=["expected", "cvar"])
def test_where_one_way_is_bad_the_other_is_taken(case: Any, optimizer: str, objective: Any) -> None:
    found = _chosen(*case, optimizer=optimizer, objective=objective)
    assert found.utility_ == pytest.approx(_best(*case))
    assert sum(found.gains_) == pytest.approx(found.utility_)


def _one_way(case: Any, by_ratio: bool) -> float:
    similarity, costs, k = case
    problem, bound = GIVEN.problem(similarity), as_staying(1.0).bind(len(similarity))
    budget = CostBudget(k, np.asarray(costs), by_ratio=by_ratio)
    function = problem.expected(bound, len(costs))
    maximize(function, np.arange(len(costs)), budget)
    return float(function.value)


def test_either_way_alone_misses_one_of_them() -> None:
    """The cases above have work to do; the first is as bad as one likes it to be."""
    assert _one_way(RATIO_IS_BAD, True) == 1.1
    assert _one_way(GAIN_IS_BAD, False) == 1.0
    worse = (np.diag([1.001, 1000.0]), [1.0, 1000.0], 1000.0)
    assert _one_way(worse, True) == 1.001
    assert _chosen(*worse).utility_ == 1000.0


@pytest.mark.parametrize("staying", [1.0, 0.4, BetaBinomial(2, 1)], ids=str)
def test_bounds_hold_against_all_that_can_be_paid(staying: Any) -> None:
    n, strictly_better = 7, 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        costs = np.round(rng.uniform(1, 5, n), 2)
        similarity = np.diag(costs * rng.uniform(0.9, 1.1, n)) + 0.3 * rng.random((n, n))
        k = float(np.round(rng.uniform(costs.max(), costs.sum() * 0.7), 2))
        best = _best(similarity, costs, k, staying)
        found = {
            optimizer: _chosen(similarity, costs, k, staying=staying, optimizer=optimizer).utility_
            for optimizer in ("auto", ENUMERATED)
        }
        assert best >= found["auto"] - 1e-9 >= ONE / 2 * best - 2e-9
        assert best >= found[ENUMERATED] - 1e-9 >= ONE * best - 2e-9
        assert found[ENUMERATED] >= found["auto"] - 1e-9
        strictly_better += found[ENUMERATED] > found["auto"] + 1e-9
    assert strictly_better >= 2


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_equal_costs_are_no_costs(optimizer: str) -> None:
    similarity = np.random.default_rng(1).random((12, 12))
    given: dict[str, Any] = {"optimizer": optimizer, "staying": 0.5, "random_state": 0}
    plain = SubsetSelector(GIVEN, k=4, **given).fit(similarity)
    priced = SubsetSelector(GIVEN, k=10.0, costs=np.full(12, 2.5), **given).fit(similarity)
    assert priced.selected_.tolist() == plain.selected_.tolist()
    assert priced.n_evaluations_ == plain.n_evaluations_  # nothing is done twice


def test_an_enumeration_may_do_without_costs() -> None:
    similarity = np.random.default_rng(2).random((8, 8)) ** 3
    found = SubsetSelector(GIVEN, k=3, staying=0.5, optimizer=ENUMERATED).fit(similarity)
    best = max(
        _worth(similarity, 0.5, rows, 8) for rows in enumeration.subsets(range(8)) if len(rows) <= 3
    )
    assert found.utility_ == pytest.approx(best)  # of three all are listed


def test_what_is_held_is_no_start_and_costs_nothing() -> None:
    similarity, costs, k = np.diag([5.0, 1.1, 10.0]), [1.0, 1.0, 10.0], 10.0
    for optimizer in ("auto", ENUMERATED):
        selector = SubsetSelector(GIVEN, k=k, costs=costs, optimizer=optimizer)
        selector.fit(similarity, selected=[0])
        assert selector.selected_.tolist() == [2]
        assert selector.utility_ == 15.0


def test_too_many_starts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="would make 20,833,750 selections from 500"):
        SubsetSelector(GIVEN, k=2.0, costs=np.ones(500), optimizer=ENUMERATED).fit(np.eye(500))


def test_samples_of_both_ways_are_the_same() -> None:
    """Which of them is better is no matter of luck: they are valued on the same samples."""
    problem = GIVEN.problem(RATIO_IS_BAD[0])
    budget = CostBudget(10.0, np.array(RATIO_IS_BAD[1]))
    none, items = np.zeros(0, dtype=np.int64), np.arange(2)
    task = SelectionTask(problem, as_staying(0.5).bind(2, k=2), none, items, budget, "lazy", 3, 2)
    best = best_of_greedy(lambda: sampled(task, 50), items, budget, "lazy", 3)
    assert [j for j, _ in best.chosen] == [1]
    assert best.function is not None
    assert best.function.value == sampled_value(task, 1)
    assert Expected(50).solve(task).value == pytest.approx(5.0)


def sampled_value(task: Any, j: int) -> float:
    function = sampled(task, 50)
    function.add(j)
    return float(function.value)

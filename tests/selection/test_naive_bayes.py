"""The expected naive Bayes utility against a list of all who may stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.selection import (
    BetaBinomial,
    Certain,
    Groups,
    Independent,
    PerClass,
    PointMass,
    SubsetSelector,
    Uniform,
)
from erasable.selection._optimizers import CostBudget, maximize
from erasable.selection.staying import Staying
from erasable.selection.utilities import NaiveBayes
from selection import enumeration
from selection.models import CLASSED, NAMES, K, N, oracle

OWNERS = Groups(np.arange(100) // 3, {owner: 0.2 + 0.02 * owner for owner in range(34)})


def utility(X: np.ndarray, y: Sequence[int], stay: Sequence[int], smoothing: float = 1.0) -> float:
    """u_NB as it is printed, with log(m + smoothing) for log(m), less its value for nobody."""
    total = 0.0
    for label in set(y):
        for column in X.T:
            for value in set(column.tolist()):
                everybody = [i for i in range(len(y)) if y[i] == label and column[i] == value]
                count = len(set(everybody) & set(stay))
                total += len(everybody) * (np.log(count + smoothing) - np.log(smoothing))
    return total


@pytest.mark.parametrize("y", [[1] * N, [0, 1, 0, 0, 1, 1, 0]], ids=["one", "two"])
@pytest.mark.parametrize("smoothing", [1.0, 0.01])
@pytest.mark.parametrize("staying", CLASSED, ids=NAMES)
def test_exact_values_are_those_of_enumeration(
    staying: Staying, smoothing: float, y: list[int]
) -> None:
    if isinstance(staying, PerClass) and len(set(y)) == 1:
        return
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (N, 3))
    problem = NaiveBayes(smoothing).problem(X, y)
    ours = problem.expected(staying.bind(N, k=K, labels=y), K)
    assert ours is not None
    chosen: list[int] = []
    for j in rng.permutation(N)[:K].tolist():
        gains = ours.gains(np.arange(N))
        for i in set(range(N)) - set(chosen):
            more = [*chosen, i]
            then = enumeration.expectation(
                more, oracle(staying, more, y), lambda stay: utility(X, y, stay, smoothing)
            )
            assert ours.value + gains[i] == pytest.approx(then, abs=1e-11)
        ours.add(j)
        chosen.append(j)
    assert problem.value(np.array(chosen)) == pytest.approx(utility(X, y, chosen, smoothing))


@pytest.mark.parametrize("seed", range(12))
def test_groups_of_any_size_are_those_of_enumeration(seed: int) -> None:
    """Few values, so that several groups, and several records of one, count in a cell."""
    rng = np.random.default_rng(seed)
    n, n_groups = 9, int(rng.integers(1, 6))
    X, y = rng.integers(0, 2, (n, 2)), rng.integers(0, 2, n).tolist()
    labels = rng.integers(0, n_groups, n)
    s = {group: float(rng.choice([0.0, 0.2, 0.7, 1.0, rng.random()])) for group in range(n_groups)}
    staying = Groups(labels, s)
    problem = NaiveBayes(0.3).problem(X, y)
    bound = staying.bind(n)
    if bound.is_certain:
        return
    ours, chosen = problem.expected(bound, 6), list[int]()
    assert ours is not None
    for j in rng.permutation(n)[:6].tolist():
        gains = ours.gains(np.arange(n))
        for i in set(range(n)) - set(chosen):
            more = [*chosen, i]
            then = enumeration.expectation(
                more, oracle(staying, more, y), lambda stay: utility(X, y, stay, 0.3)
            )
            assert ours.value + gains[i] == pytest.approx(then, abs=1e-11)
        ours.add(j)
        chosen.append(j)


def test_groups_are_not_records_that_decide_alone() -> None:
    X, y = [["red"], ["red"], ["blue"]], [1, 1, 1]
    problem = NaiveBayes().problem(X, y)
    values = []
    for staying in (Groups(["a", "a", "b"], 0.5), Groups(["a", "b", "b"], 0.5), Independent(0.5)):
        ours = problem.expected(staying.bind(3), 3)
        assert ours is not None
        for j in range(3):
            ours.add(j)
        values.append(ours.value)
    alone = 2 * (np.log(2) / 2 + np.log(3) / 4) + np.log(2) / 2
    assert values == pytest.approx([np.log(3) + np.log(2) / 2, alone, alone])
    assert values[0] != pytest.approx(alone, rel=1e-3)


@pytest.mark.parametrize("costs", [None, np.array([1.0, 2.0, 1.5, 1.0, 3.0] * 20)])
@pytest.mark.parametrize("staying", [1.0, 0.5, BetaBinomial(2, 2), PointMass(9), OWNERS])
def test_lazy_chooses_what_greedy_does(staying: Any, costs: np.ndarray | None) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 4, (100, 3)), rng.integers(0, 2, 100)
    lazy, greedy = (
        SubsetSelector(
            NaiveBayes(0.1), k=20, staying=staying, optimizer=optimizer, costs=costs
        ).fit(X, y)
        for optimizer in ("lazy", "greedy")
    )
    assert lazy.selected_.tolist() == greedy.selected_.tolist()
    assert lazy.gains_.tolist() == greedy.gains_.tolist()


def test_gains_are_not_computed_when_nothing_can_be_paid() -> None:
    rng = np.random.default_rng(2)
    problem = NaiveBayes().problem(rng.integers(0, 4, (50, 3)), rng.integers(0, 2, 50))
    function = problem.expected(Independent(0.5).bind(50), 3)
    assert function is not None
    bought = maximize(function, np.arange(50), CostBudget(3.5, np.ones(50)))
    assert len(bought) == 3
    assert function.n_evaluations == 3 * 50


def test_samples_count_who_stays() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 3, (30, 4)), rng.integers(0, 2, 30).tolist()
    samples = NaiveBayes(0.3).problem(X, y).samples(8, 10)
    stayed: list[list[int]] = [[] for _ in range(8)]
    for j in rng.permutation(30)[:10].tolist():
        stays = rng.random(8) < 0.6
        more = [utility(X, y, [*stay, j], 0.3) - utility(X, y, stay, 0.3) for stay in stayed]
        np.testing.assert_allclose(samples.gains(j), more, atol=1e-11)
        samples.add(j, stays)
        for stay, here in zip(stayed, stays.tolist(), strict=True):
            stay += [j] * here


def test_texts_are_categories() -> None:
    X = np.array([["a", "x"], ["a", "y"], ["b", "y"]], dtype=object)
    problem = NaiveBayes().problem(X, ["n", "n", "p"])
    assert problem.value(np.array([0])) == pytest.approx(2 * np.log(2) + np.log(2))
    ours = problem.expected(Independent(0.5).bind(3), 2)
    assert ours is not None
    np.testing.assert_allclose(ours.gains(np.arange(3)), np.log(2) / 2 * np.array([3, 3, 2]))


def test_bad_input_is_told() -> None:
    with pytest.raises(InvalidInputError, match="pass y"):
        NaiveBayes().problem([[1]])
    with pytest.raises(InvalidInputError, match="expected one class for each"):
        NaiveBayes().problem([[1]], [1, 2])
    with pytest.raises(InvalidDataError):
        NaiveBayes().problem([[np.nan]], [1])
    for smoothing in (0, -1.0, np.nan, np.inf, "1", True):
        with pytest.raises(InvalidParameterError, match="smoothing="):
            NaiveBayes(smoothing).problem([[1]], [1])
    assert NaiveBayes().problem([[1]], [1]).expected(Certain().bind(1), 1) is not None


@pytest.mark.parametrize(
    "staying", [Certain(), Independent(0.6), BetaBinomial(2, 1), Uniform(1, 4)]
)
def test_all_of_one_cell_are_chosen(staying: Staying) -> None:
    """Tables end with as many as can be chosen; the last of them counts."""
    selector = SubsetSelector(NaiveBayes(0.5), k=4, staying=staying).fit([["red"]] * 4, [1] * 4)
    worth = 4 * np.log1p(np.arange(5) / 0.5)
    assert selector.utility_ == pytest.approx(staying.size_pmf(4, k=4) @ worth, abs=1e-12)

"""Budgets: what they take, and targets that cannot be reached."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import ErasableError, InvalidInputError, InvalidParameterError
from erasable.removal import Cost, Count, Coverage, Frontier, MaxShift, MinRemoval, Share
from erasable.removal.budgets import Curve, as_budget

ALPHA = np.array([0.1, 0.3, 0.2, 0.6, 0.5])
EPSILON = np.array([0.5, 0.4, 0.1, 0.3, 0.0])
ORDER = np.array([2, 0, 3, 1])
WEIGHTS = np.array([3.0, 0.0, 5.0, 2.0])


def curve(weights: Any = WEIGHTS) -> Curve:
    frontier = Frontier(np.arange(5), ALPHA, EPSILON, np.zeros(5))
    return Curve(ORDER, weights, lambda: frontier)


@pytest.mark.parametrize(
    ("budget", "rows"),
    [
        (Count(1), [2]), (Count(np.int64(4)), [2, 0, 3, 1]), (3, [2, 0, 3]),
        (Share(0.25), [2]), (Share(0.26), [2, 0]), (1.0, [2, 0, 3, 1]), (np.float32(0.5), [2, 0]),
        (Coverage(0.5), [2]), (Coverage(0.51), [2, 0]), (Coverage(), [2, 0]),
        (Coverage(1.0), [2, 0, 3]),
        (Cost([2.0, 1.0, 3.0, 4.0], 5.0), [2, 0]), (Cost([9.0, 1.0, 3.0, 9.0], 4), [2, 1]),
        (Cost([0.1, 0.1, 0.1, 0.1], 0.3), [2, 0, 3]), (Cost([0.1, 0.1, 0.1, 0.1], 0.2999), [2, 0]),
        (MinRemoval(0.0), []), (MinRemoval(0.1), []), (MinRemoval(0.3), [2]),
        (MinRemoval(0.31), [2, 0, 3]), (MinRemoval(0.6), [2, 0, 3]),
        (MaxShift(0.0), [2, 0, 3, 1]), (MaxShift(0.29), [2, 0, 3, 1]), (MaxShift(0.3), [2, 0, 3]),
        (MaxShift(9.0), [2, 0, 3]),
    ],
)  # fmt: skip
def test_what_a_budget_takes(budget: Any, rows: list[int]) -> None:
    assert as_budget(budget).choose(curve()).tolist() == rows


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (MinRemoval(0.61), "alpha=0.61 cannot be reached; expected at most 0.6, which deleting 3"),
        (Cost(np.full(4, 2.0), 1.0), "the cheapest record costs 2"),
        (Cost(np.ones(3), 1.0), r"an array of shape \(3,\)"),
        (Cost([1, 1, 0, np.nan], 1.0), "2 that are not above 0"),
        (Cost("dear", 1.0), "expected a number above 0 for each of the 4 records"),
        (Count(0), "n=0 records"), (Count(5), "from 1 to 4"), (Count(True), "n=True"),
        (Share(0.0), "share=0.0"), (Share(1.1), r"in \(0, 1\]"), (Share(np.nan), "share=nan"),
        (Coverage(-1), "share=-1"), (MinRemoval(-0.1), "alpha=-0.1"), (MaxShift("1"), "'1'"),
        (MaxShift(-1e-9), "epsilon"), (Cost(np.ones(4), np.inf), "budget=inf"),
        (Share(10**40), "share="), (Cost([10**400] * 4, 1.0), "4 records of forget"),
    ],
)  # fmt: skip
def test_what_a_budget_refuses(budget: Any, message: str) -> None:
    with pytest.raises(ErasableError, match=message) as caught:
        budget.choose(curve())
    assert "\n" not in str(caught.value)


def test_a_shift_that_is_never_so_small() -> None:
    frontier = Frontier(np.arange(2), np.zeros(2), np.array([0.4, 0.2]), np.zeros(2))
    with pytest.raises(InvalidInputError, match=r"expected 0\.2 or more, which deleting 1 of 1"):
        MaxShift(0.1).choose(Curve(np.array([0]), np.ones(1), lambda: frontier))


def test_coverage_of_scores_that_are_all_zero() -> None:
    with pytest.raises(InvalidInputError, match="all scores are equal"):
        Coverage().choose(curve(np.zeros(4)))


@pytest.mark.parametrize("given", [True, "10 %", None, [3], Count])
def test_what_is_no_budget(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match="expected an integer"):
        as_budget(given)


@given(n=st.integers(1, 400), k=st.integers(1, 400))
def test_a_share_is_rounded_up_but_not_for_rounding(n: int, k: int) -> None:
    if k <= n:
        order = np.arange(n)
        assert len(Share(k / n).choose(Curve(order, np.ones(n), lambda: None))) == k


@given(weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=30), share=st.floats(0.01, 1))
def test_coverage_is_the_least_that_is_enough(weights: list[float], share: float) -> None:
    total = float(np.sum(weights))
    if total > 0:
        order = np.argsort(-np.array(weights), kind="stable")
        taken = Coverage(share).choose(Curve(order, np.array(weights), lambda: None))
        held = [float(np.sum(np.array(weights)[order[:k]])) for k in range(len(order) + 1)]
        assert held[len(taken)] >= share * total * (1 - 1e-9)
        assert held[len(taken) - 1] <= share * total * (1 + 1e-9)

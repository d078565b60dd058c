"""Budgets are kept to the cent, in whatever money they are counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.selection import BetaBinomial, NearestNeighbor, SubsetSelector
from erasable.selection._optimizers import OPTIMIZERS

GIVEN = NearestNeighbor("precomputed")


@pytest.mark.parametrize("optimizer", ["lazy", "greedy", "stochastic"])
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.sampled_from([1, 2, 3, 7, 11]), min_size=1, max_size=25), st.integers(1, 60))
def test_a_budget_is_kept_to_the_cent(optimizer: str, tenths: list[int], budget: int) -> None:
    """Held against whole numbers: three of 0.1 cost 0.3, though not in floats."""
    if budget < min(tenths):
        return
    similarity = np.random.default_rng(len(tenths)).random((len(tenths), 9))
    costs = np.array([0.1 * each for each in tenths])
    chosen = (
        SubsetSelector(
            GIVEN, k=0.1 * budget, costs=costs, staying=BetaBinomial(2, 1), optimizer=optimizer,
            random_state=0,
        ).fit(similarity).selected_.tolist()
    )  # fmt: skip
    left = budget - sum(tenths[j] for j in chosen)
    assert left >= 0
    assert all(cost > left for j, cost in enumerate(tenths) if j not in chosen)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_currency_changes_nothing(optimizer: str) -> None:
    rng = np.random.default_rng(3)
    similarity, costs = rng.random((30, 12)), rng.integers(1, 5, 30)

    def chosen(unit: float, k: float) -> list[int]:
        selector = SubsetSelector(
            GIVEN, k=k * unit, costs=costs * unit, optimizer=optimizer, staying=0.5, random_state=1
        )
        return selector.fit(similarity).selected_.tolist()

    assert chosen(2.0**-8, 9) == chosen(1.0, 9) == chosen(2.0**8, 9) != chosen(1.0, 4)
    assert len(chosen(1.0, 9)) > 1


def test_where_records_are_worth_the_same_the_first_is_taken() -> None:
    """49 for 49 is 1 for 1, whichever optimiser divides."""
    similarity = np.diag([1.0, 49.0, 1.0, 7.0])
    for costs in ([1.0, 49.0, 1.0, 7.0], [49.0, 49.0 * 49, 49.0, 49.0 * 7]):
        selections = [
            SubsetSelector(GIVEN, k=2 * costs[1], costs=costs, optimizer=optimizer).fit(similarity)
            for optimizer in ("lazy", "greedy")
        ]
        assert selections[0].selected_.tolist() == selections[1].selected_.tolist()

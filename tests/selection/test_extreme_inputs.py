"""What no float64 holds, and what a mask hides: refused, by an error of erasable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from erasable.core.errors import ErasableError
from erasable.core.ids import as_id_array
from erasable.selection import (
    BetaBinomial,
    Custom,
    MutualInformation,
    NaiveBayes,
    NearestNeighbor,
    SubsetSelector,
    VarianceReduction,
    expected_utility,
    tradeoff,
)

X = np.arange(8.0).reshape(4, 2)
HUGE = 10**400
HIDDEN = np.ma.array([0, 1], mask=[False, True])
CLASSES = np.arange(4) % 2


class _Adds:
    def __init__(self, given: Any, y: Any) -> None:
        pass

    def gain(self, j: int) -> int:
        return HUGE

    def add(self, j: int) -> None:
        pass


@pytest.mark.parametrize(
    "ask",
    [
        lambda: BetaBinomial(HUGE, 1),
        lambda: SubsetSelector(MutualInformation(gamma=HUGE), k=1).fit(X),
        lambda: SubsetSelector(VarianceReduction(noise=HUGE), k=1).fit(X),
        lambda: SubsetSelector(NaiveBayes(smoothing=HUGE), k=1).fit(X, CLASSES),
        lambda: SubsetSelector(NaiveBayes(smoothing=1e-320), k=1).fit(X, CLASSES),
        lambda: SubsetSelector(k=1.0, costs=[HUGE] * 4).fit(X),
        lambda: SubsetSelector(k=2, costs=[5e-324] * 4).fit(X),
        lambda: BetaBinomial(1, 1).size_pmf([2]),
        lambda: BetaBinomial(1, 1).size_pmf("2"),
        lambda: BetaBinomial(1, 1).subset_pmf(1.5),
        lambda: BetaBinomial(1, 1).subset_pmf(1, k=1e308),
        lambda: BetaBinomial(1, 1).sample(-1),
        lambda: BetaBinomial(1, 1).sample(1.5),
        lambda: BetaBinomial(1, 1).sample(2, 0),
        lambda: BetaBinomial(1, 1).sample(2, "3"),
        lambda: SubsetSelector(k=1, staying=[HUGE] * 4).fit(X),
        lambda: SubsetSelector(Custom(_Adds), k=1).fit(X),
        lambda: tradeoff([0, 1], lambda left: HUGE),
        lambda: SubsetSelector(k=1).fit(X * 1e154),
        lambda: SubsetSelector(NearestNeighbor("sqeuclidean"), k=1).fit(X * 1e160),
        lambda: expected_utility(rows=HIDDEN, X=X, utility=NearestNeighbor()),
        lambda: expected_utility(HIDDEN, X, utility=NearestNeighbor()),
        lambda: expected_utility(
            rows=np.ma.array([True] * 4, mask=[1, 0, 0, 0]), X=X, utility=NearestNeighbor()
        ),
        lambda: as_id_array(HIDDEN),
    ],
)
def test_it_is_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(ErasableError, match="expected") as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_a_masked_array_that_hides_nothing_is_read() -> None:
    """A control."""
    rows = np.ma.array([0, 1], mask=False)
    found = as_id_array(rows)
    assert type(found) is np.ndarray
    assert found.tolist() == [0, 1]
    value = expected_utility(rows=rows, X=X, utility=NearestNeighbor()).value
    assert value == expected_utility(rows=[0, 1], X=X, utility=NearestNeighbor()).value
    assert np.isfinite(SubsetSelector(k=1).fit(X * 1e150).utility_)

"""A selection is named by ids, or by positions as `rows`; the two are never taken for each other.

The ids are a permutation of the positions, the hardest case: every position is an id, of another
record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from erasable.core.errors import ErasableError, InvalidIdsError
from erasable.selection import (
    BetaBinomial,
    CVaR,
    Expected,
    NearestNeighbor,
    SubsetSelector,
    balance,
    expected_utility,
    plot_tradeoff,
    tradeoff,
    utility_distribution,
)

N = 12
RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(N, 2)), RNG.permutation(np.repeat([0, 1], N // 2))
IDS = RNG.permutation(N)
ROWS = np.flatnonzero(Y == 0)[:3]
UTILITY = NearestNeighbor()


def _label(left: np.ndarray) -> float:
    """A metric that depends on which records are left: of their ids."""
    return float(np.sum(np.sqrt(left + 1.0)))


def _of_rows(rows: np.ndarray) -> float:
    return _label(IDS[rows])


WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    # by ids, by rows
    "expected_utility": (
        lambda s: expected_utility(s, X, Y, utility=UTILITY, staying=0.5, ids=IDS),
        lambda s: expected_utility(rows=s, X=X, y=Y, utility=UTILITY, staying=0.5, ids=IDS),
    ),
    "utility_distribution": (
        lambda s: utility_distribution(
            s, X, Y, utility=UTILITY, staying=0.5, ids=IDS, n_samples=40, random_state=0
        ).tolist(),
        lambda s: utility_distribution(
            rows=s, X=X, y=Y, utility=UTILITY, staying=0.5, ids=IDS, n_samples=40, random_state=0
        ).tolist(),
    ),
    "balance": (
        lambda s: [each.n_selected for each in balance(Y, s, ids=IDS)],
        lambda s: [each.n_selected for each in balance(Y, rows=s)],
    ),
    "balance of a series": (
        lambda s: [each.n_selected for each in balance(pd.Series(Y, index=IDS), s)],
        lambda s: [each.n_selected for each in balance(pd.Series(Y, index=IDS), rows=s)],
    ),
    "tradeoff": (
        lambda s: tradeoff(s, _label, n_deletions=[0], n_simulations=2).mean.tolist(),
        lambda s: tradeoff(
            rows=s, metric=_of_rows, n_deletions=[0], n_simulations=2
        ).mean.tolist(),
    ),
    "plot_tradeoff": (
        lambda s: plot_tradeoff({"a": s}, _label, n_deletions=[0], n_simulations=2)
        .get_lines()[0].get_ydata().tolist(),
        lambda s: plot_tradeoff(rows={"a": s}, metric=_of_rows, n_deletions=[0], n_simulations=2)
        .get_lines()[0].get_ydata().tolist(),
    ),
    "fit": (
        lambda s: SubsetSelector(k=2).fit(X, Y, ids=IDS, selected=s).selected_.tolist(),
        lambda s: SubsetSelector(k=2).fit(X, Y, ids=IDS, rows=s).selected_.tolist(),
    ),
}  # fmt: skip


def _same(left: Any, right: Any) -> bool:
    left, right = (getattr(each, "value", each) for each in (left, right))
    return bool(np.allclose(left, right, rtol=1e-12))


@pytest.mark.parametrize("name", WAYS)
def test_ids_and_rows_of_the_same_records_say_the_same(name: str) -> None:
    by_ids, by_rows = WAYS[name]
    right = by_ids(IDS[np.sort(ROWS)])
    assert _same(right, by_rows(np.sort(ROWS)))
    assert _same(right, by_rows(np.isin(np.arange(N), ROWS)))
    # A negative control: what is taken for the other is other records.
    assert not _same(right, by_ids(np.sort(ROWS)))


MASK = np.isin(np.arange(N), ROWS)
WRONG = {
    "mask": (MASK, "boolean mask; expected ids"),
    "list of booleans": (MASK.tolist(), "boolean mask; expected ids"),
    "series of booleans": (pd.Series(MASK), "boolean mask; expected ids"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", WAYS)
def test_a_mask_is_no_list_of_ids(name: str, wrong: str) -> None:
    given, told = WRONG[wrong]
    with pytest.raises(InvalidIdsError, match=told):
        WAYS[name][0](given)


ROWS_WRONG = {
    "numbers for a mask": (MASK.astype(int), "repeated"),
    "below 0": ([-1], "rows has -1"),
    "floats": (np.array([1.0, 2.0]), "dtype float64"),
    "text": (["a"], "hold text"),
    "two dimensions": (np.eye(2, dtype=int), "one dimension"),
    "a number": (3, "rows"),
}


@pytest.mark.parametrize("wrong", ROWS_WRONG)
@pytest.mark.parametrize("name", WAYS)
def test_rows_are_positions(name: str, wrong: str) -> None:
    given, told = ROWS_WRONG[wrong]
    with pytest.raises(ErasableError, match=told):
        WAYS[name][1](given)


@pytest.mark.parametrize("name", [each for each in WAYS if "tradeoff" not in each])
def test_rows_lie_among_the_records(name: str) -> None:
    for given, told in (([N], f"from 0 to {N - 1}"), (MASK[:-1], f"for {N} records")):
        with pytest.raises(ErasableError, match=told):
            WAYS[name][1](given)


@pytest.mark.parametrize("given", [{}, {"selected": IDS[:2], "rows": [0, 1]}])
def test_a_selection_is_given_once(given: dict[str, Any]) -> None:
    for call in (
        lambda: expected_utility(X=X, utility=UTILITY, **given),
        lambda: utility_distribution(X=X, utility=UTILITY, **given),
        lambda: balance(Y, **given),
        lambda: tradeoff(metric=len, **given),
        lambda: plot_tradeoff(metric=len, **given),
    ):
        with pytest.raises(ErasableError, match="expected one of them"):
            call()


def test_a_fitted_selector_says_what_the_functions_say() -> None:
    names = [f"p{i}" for i in range(N)]
    held = ["p3", "p8"]
    model = {0: 0.4, 1: 0.9}
    selector = SubsetSelector(UTILITY, k=3, staying=model, random_state=5)
    selector.fit(X, Y, ids=names, selected=held)
    whole = [*held, *selector.selected_ids_.tolist()]
    assert selector.held_.tolist() == [3, 8]
    given: dict[str, Any] = {"X": X, "y": Y, "utility": UTILITY, "ids": names}
    assert selector.value() == expected_utility(whole, **given, staying=model)
    assert selector.value().value == pytest.approx(selector.utility_)
    assert selector.value(staying=1.0) == expected_utility(whole, **given)
    drawn = selector.distribution(n_samples=30, random_state=1)
    right = utility_distribution(whole, **given, staying=model, n_samples=30, random_state=1)
    assert drawn.tolist() == right.tolist()
    assert selector.balance() == balance(Y, whole, ids=names, staying=model, y=Y)
    regions = [f"r{i % 3}" for i in range(N)]
    assert selector.balance(regions) == balance(regions, whole, ids=names, staying=model, y=Y)

    def metric(left: np.ndarray) -> float:
        return float(sum(int(each[1:]) for each in left))

    found = selector.tradeoff(metric, n_simulations=3, random_state=2)
    assert found.mean.tolist() == tradeoff(
        whole, metric, n_simulations=3, random_state=2
    ).mean.tolist()  # fmt: skip
    problem = UTILITY.problem(X, Y)
    alone = selector.tradeoff(n_deletions=[0])
    assert alone.mean[0] == pytest.approx(
        problem.value(np.concatenate([selector.held_, selector.selected_]))
    )
    selector.set_params(staying=0.1, utility=NearestNeighbor("cosine"), k=1)
    assert selector.value() == expected_utility(whole, **given, staying=model)


def test_groups_in_another_order_than_the_ids_are_refused() -> None:
    frame = pd.DataFrame(X, index=IDS)
    selector = SubsetSelector(k=3, staying=BetaBinomial(2, 1)).fit(frame)
    groups = pd.Series(Y, index=IDS)
    assert selector.balance(groups) == selector.balance(Y)
    with pytest.raises(ErasableError, match="in another order"):
        selector.balance(groups.sort_index())
    with pytest.raises(ErasableError, match="there are no groups"):
        selector.balance()


def test_a_selector_that_is_not_fitted_says_so() -> None:
    from sklearn.exceptions import NotFittedError

    selector = SubsetSelector(k=1)
    for call in (selector.value, selector.distribution, selector.tradeoff, selector.balance):
        with pytest.raises(NotFittedError):
            call()


def test_classes_that_went_by_position_do_so_again() -> None:
    series = pd.Series(Y, index=IDS)
    selector = SubsetSelector(k=3, staying={0: 0.5, 1: 0.9}).fit(X, series)
    plain = SubsetSelector(k=3, staying={0: 0.5, 1: 0.9}).fit(X, Y)
    assert selector.balance() == plain.balance()
    series[:] = 0  # what was fitted stays what it was
    assert selector.balance() == plain.balance()
    assert selector.value() == plain.value()


# -- what is drawn depends on ids, not on rows -----------------------------------------------------

MANY = 40
DRAWN_IDS: list[Any] = [
    np.random.default_rng(2).permutation(1000)[:MANY], [f"r{i}" for i in range(MANY)]
]  # fmt: skip
WHOLE = np.random.default_rng(4).integers(0, 1000, (MANY, 60)).astype(float)  # no ties, exact sums


@pytest.mark.parametrize("names", DRAWN_IDS, ids=["numbers", "text"])
@pytest.mark.parametrize(
    ("optimizer", "objective", "staying"),
    [
        ("stochastic", Expected(), 0.7),
        ("random-greedy", Expected(), 0.7),
        ("greedy", CVaR(0.3, 50), 0.7),
        ("lazy", CVaR(0.3, 50), BetaBinomial(3, 1)),
        ("stochastic", CVaR(0.3, 50), 0.7),
    ],
)
def test_the_order_of_rows_does_not_show(
    names: Any, optimizer: str, objective: Any, staying: Any
) -> None:
    ids, utility = np.asarray(names), NearestNeighbor("precomputed")

    def fit(rows: Any, ids: Any) -> Any:
        selector = SubsetSelector(
            utility, k=6, optimizer=optimizer, objective=objective, staying=staying, random_state=0
        ).fit(WHOLE[rows], ids=ids)
        value = selector.value(random_state=1)
        drawn = selector.distribution(n_samples=20, random_state=1)
        return (
            selector.selected_ids_.tolist(), selector.gains_.tolist(), float(value), drawn.tolist()
        )  # fmt: skip

    first = fit(np.arange(MANY), ids)
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(MANY)
        assert fit(rows, ids[rows]) == first
    # The control: with ids by position, the rows are other records.
    if optimizer != "random-greedy" and not isinstance(objective, Expected):
        rows = np.random.default_rng(0).permutation(MANY)
        assert fit(rows, np.arange(MANY))[3] != fit(np.arange(MANY), np.arange(MANY))[3]


def test_positions_are_ids_by_default() -> None:
    given: dict[str, Any] = {"k": 6, "objective": CVaR(0.3, 50), "staying": 0.7, "random_state": 0}
    both = [
        SubsetSelector(NearestNeighbor("precomputed"), **given).fit(WHOLE, ids=ids)
        for ids in (None, np.arange(MANY))
    ]
    assert both[0].gains_.tolist() == both[1].gains_.tolist()

"""Quantiles under deletion, against NumPy's on what is left."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from effort import examples
from erasable.core import quantiles as module
from erasable.core.quantiles import Quantiles
from erasable.core.tables import Table

SHARES = [0.0, 0.25, 0.37, 0.5, 0.75, 1.0]


def of(table: np.ndarray, live: Any) -> Table:
    return Table(table, lambda: np.flatnonzero(live))


def assert_numpys(quantiles: Quantiles, rest: np.ndarray, shares: list[float] = SHARES) -> None:
    """Bit for bit those of NumPy, column by column, without NaN."""
    linear = quantiles.linear()
    for j, column in enumerate(rest.astype(np.float64).T):
        values = column[~np.isnan(column)]
        if values.size == 0:
            assert np.isnan(linear[:, j]).all()
            continue
        # Shares and not percents: 37 / 100 need not be the float 0.37.
        wanted = np.quantile(values, shares, method="linear")
        assert linear[:, j].tobytes() == np.asarray(wanted).tobytes()
        if 0.5 in shares:
            assert quantiles.middle(shares.index(0.5))[j] == np.median(values)


def delete_all(table: np.ndarray, order: Any, sizes: list[int]) -> int:
    """Forget rows in portions until none is left; return how often a column was read again."""
    live = np.ones(len(table), dtype=np.bool_)
    quantiles = Quantiles.fit(of(table, live), SHARES, np.nan)
    assert_numpys(quantiles, table)
    read_again, start, turn = 0, 0, 0
    while start < len(order):
        rows = np.asarray(order[start : start + sizes[turn % len(sizes)]])
        start, turn = start + rows.size, turn + 1
        live[rows] = False
        read_again += quantiles.subtract(of(table, live), rows)
        assert_numpys(quantiles, table[live])
        assert_holds_only(quantiles, table[live])
    return read_again


def assert_holds_only(quantiles: Quantiles, rest: np.ndarray) -> None:
    """What the windows hold are values that are left, or zeros."""
    for j, column in enumerate(rest.astype(np.float64).T):
        held = np.concatenate([quantiles.runs[j].ravel(), quantiles.bounds[:, j].ravel()])
        assert np.isin(held[~np.isnan(held)], np.append(column, 0.0)).all()


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    values = (
        st.integers(-2, 2).map(float)
        | st.floats(-1e300, 1e300, allow_nan=False)
        | st.sampled_from([np.nan, 0.1, 5e-324])
    )
    return draw(hnp.arrays(np.float64, shape, elements=values)) + 0.0


@given(table=tables(), data=st.data())
@settings(max_examples=examples(150))
def test_any_deletions_leave_numpys_quantiles(table: np.ndarray, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(table))))
    delete_all(table, order, data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))


@given(
    values=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=60),
    percents=st.lists(st.floats(0, 100), min_size=1, max_size=3),
)
@settings(max_examples=examples(200))
def test_percentiles_are_numpys_bit_for_bit(values: list[float], percents: list[float]) -> None:
    column = np.array(values) + 0.0  # records hold no -0.0
    shares = np.true_divide(percents, 100.0)
    found = Quantiles.fit(Table(column[:, None]), shares).linear()[:, 0]
    assert found.tobytes() == np.percentile(column, percents, method="linear").tobytes()


@pytest.mark.parametrize("kind", ["normal", "few", "half constant", "float32"])
@pytest.mark.parametrize("way", ["at random", "from below", "from above", "from the middle"])
def test_windows_that_run_out_are_filled_again(kind: str, way: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_NEAREST", 4)
    rng = np.random.default_rng(3)
    table = rng.normal(size=(400, 2))
    if kind == "few":
        table = rng.integers(0, 6, size=(400, 2)).astype(np.float64)
    elif kind == "half constant":
        table[rng.random((400, 2)) < 0.5] = 1.25
    elif kind == "float32":
        table = table.astype(np.float32)
    rank = np.argsort(table[:, 0], kind="stable")
    order = {
        "at random": rng.permutation(400),
        "from below": rank,
        "from above": rank[::-1],
        "from the middle": rank[np.argsort(np.abs(np.arange(400) - 200), kind="stable")],
    }[way]
    read_again = delete_all(table, order, [1, 1, 2])
    assert read_again > 0 or kind == "few"
    assert read_again < 400


def test_a_column_is_read_again_only_where_its_window_runs_out() -> None:
    table = np.arange(20_000.0).reshape(-1, 2)
    live = np.ones(len(table), dtype=np.bool_)
    quantiles = Quantiles.fit(of(table, live), [0.5])
    asked: list[int] = []

    class Asked(Table):
        def reader(self, marker: float | None = None) -> Any:
            read = super().reader(marker)
            return lambda j: asked.append(j) or read(j)

    told = Asked(table, lambda: np.flatnonzero(live))
    for row in range(150):
        live[row] = False
        quantiles.subtract(told, np.array([row]))
    assert asked == []
    for row in range(150, 400):  # the median moves by half a rank, of 78 to either side
        live[row] = False
        quantiles.subtract(told, np.array([row]))
    assert sorted(set(asked)) == [0, 1]
    assert len(asked) <= 6
    assert_numpys(quantiles, table[live], [0.5])


def test_gaps_are_no_values_and_a_column_may_have_none() -> None:
    table = np.array([[np.nan, np.nan], [3.0, np.nan], [5.0, np.nan]])
    live = np.ones(3, dtype=np.bool_)
    quantiles = Quantiles.fit(of(table, live), [0.5], np.nan)
    assert quantiles.n_values.tolist() == [2, 0]
    for row, wanted in ((0, 4.0), (2, 3.0), (1, np.nan)):
        live[row] = False
        quantiles.subtract(of(table, live), np.array([row]))
        assert np.array_equal(quantiles.linear(), [[wanted, np.nan]], equal_nan=True)
        assert np.array_equal(quantiles.middle(0), [wanted, np.nan], equal_nan=True)


def test_the_middle_of_two_values_whose_sum_overflows() -> None:
    column = np.array([1.5e308, 1.7e308])
    assert Quantiles.fit(Table(column[:, None]), [0.5]).middle(0).tolist() == [1.6e308]


def test_nothing_wanted_is_nothing_found() -> None:
    table = np.array([[1.0] * 3, [2.0] * 3])
    quantiles = Quantiles.fit(Table(table), [])
    assert quantiles.linear().shape == (0, 3)
    assert quantiles.subtract(Table(table, lambda: np.array([1])), np.array([0])) == 0


def test_a_window_that_forgot_nothing_would_be_seen() -> None:
    """Negative control: quantiles whose windows keep what is gone."""
    table = np.arange(40.0).reshape(-1, 1)
    quantiles = Quantiles.fit(Table(table), SHARES)
    quantiles.n_values -= 10
    quantiles._find()
    with pytest.raises(AssertionError):
        assert_numpys(quantiles, table[10:])
    with pytest.raises(AssertionError):
        assert_holds_only(quantiles, table[10:])

"""Ranks by digits against NumPy's, which compares."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from erasable.tree._columns import turn
from erasable.tree._rank_kernels import rank

numbers = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    st.sampled_from([5e-324, -5e-324, 1.7e308, -1.7e308, 1.0, np.nextafter(1.0, 2.0)]),
)


@given(st.lists(numbers, min_size=1, max_size=60))
def test_ranks_are_those_of_numpy(column: list[float]) -> None:
    values, counts, codes = rank(np.array(column))
    wanted = np.unique(column, return_inverse=True, return_counts=True)
    for found, other in zip((values, codes, counts), wanted, strict=True):
        assert found.tolist() == other.tolist()


def test_many_ranks_are_those_of_numpy() -> None:
    column = np.random.default_rng(0).normal(size=70_000).round(3) * 1e3
    column[column == 0] = 0.0
    values, counts, codes = rank(column)
    wanted = np.unique(column, return_inverse=True, return_counts=True)
    assert np.array_equal(values, wanted[0])
    assert np.array_equal(codes, wanted[1])
    assert np.array_equal(counts, wanted[2])


def test_what_ranks_do_not_see() -> None:
    """A negative control: of 0 and -0, which records never have, they make two values."""
    assert rank(np.array([0.0, -0.0]))[0].size == 2


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (63, 2), (64, 5), (130, 3)])
def test_a_table_is_turned(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(1).normal(size=shape)
    out = np.zeros(shape[::-1])
    turn(table, out)
    assert np.array_equal(out, table.T)

"""Windows of sorted values, found where rows are: those of a column that is here."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core import _grid_passes
from erasable.core._grid_passes import RemoteColumns, key_of, value_of
from erasable.core.passes import Block, Remote
from erasable.core.quantiles import Quantiles

VALUES = st.one_of(
    st.floats(-3, 3).map(lambda x: round(x, 1) + 0.0),
    st.floats(allow_nan=True, allow_infinity=False).map(lambda x: x + 0.0),
)


class Pieces(Remote):
    """A matrix in pieces, whose passes are merged in another order."""

    def __init__(self, matrix: Any, cuts: list[int]) -> None:
        self._matrix, self.shape = matrix, matrix.shape
        self._cuts = sorted({0, len(matrix), *(cut % (len(matrix) + 1) for cut in cuts)})
        self.runs = 0

    def run(
        self, pass_: Any, live_rows: Any = None, columns: Any = None, n_jobs: Any = None
    ) -> Any:
        self.runs += 1
        found = []
        for first, stop in pairwise(self._cuts):
            own = live_rows[(live_rows >= first) & (live_rows < stop)] - first
            part = self._matrix[first:stop][:, columns]
            found.append(pass_.of_block(Block(part, own, False, first)))
        total = found.pop()
        while found:
            total = pass_.merge(total, found.pop())
        return total


@st.composite
def cases(draw: Any) -> Any:
    d = draw(st.integers(1, 2))
    rows = draw(st.lists(st.lists(VALUES, min_size=d, max_size=d), min_size=1, max_size=200))
    matrix = np.array(rows)
    live = np.flatnonzero(draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    cuts = draw(st.lists(st.integers(0, 300), max_size=4))
    return matrix, live, cuts, draw(st.sampled_from([np.nan, 1.0]))


def both(matrix: Any, live: Any, cuts: list[int], gap: float) -> tuple[Quantiles, Quantiles]:
    def column(j: int) -> Any:
        values = matrix[live, j]
        return values[(values == values) & (values != gap)].copy()

    shares = [0.0, 0.3, 0.5, 1.0]
    there = RemoteColumns(Pieces(matrix, cuts), lambda: live, gap)
    d = matrix.shape[1]
    return Quantiles.fit(there, d, shares), Quantiles.fit(column, d, shares)


@given(cases())
@settings(max_examples=examples(200), deadline=None)
def test_windows_are_those_of_sorted_columns(case: Any) -> None:
    found, wanted = both(*case)
    for name in ("n_values", "sizes", "cursors", "before", "runs", "counts", "bounds", "weights"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name), equal_nan=True), name


@given(st.lists(st.floats(allow_nan=False).map(lambda x: x + 0.0), min_size=2))
def test_keys_have_the_order_of_values(values: list[float]) -> None:
    array = np.array(values)
    keys = key_of(array)
    assert np.array_equal(value_of(keys), array)
    assert np.array_equal(np.argsort(keys, kind="stable"), np.argsort(array, kind="stable"))


def test_a_pass_that_forgets_a_block_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_grid_passes, "_joined", lambda one, other: one)
    rng = np.random.default_rng(0)
    found, wanted = both(rng.normal(size=(300, 1)), np.arange(300), [150], np.nan)
    assert not np.array_equal(found.runs, wanted.runs)


def test_readings_do_not_depend_on_the_number_of_columns() -> None:
    matrix = np.random.default_rng(0).normal(size=(500, 30))
    pieces = Pieces(matrix, [100, 200])
    Quantiles.fit(RemoteColumns(pieces, lambda: np.arange(500)), 30, [0.25, 0.5, 0.75])
    assert pieces.runs == 5

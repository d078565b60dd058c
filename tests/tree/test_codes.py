"""Codes of values: they ascend with them, whatever comes and goes."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from effort import examples
from erasable.core.tape import Tape
from erasable.tree._codes import values_of
from erasable.tree._columns import TreeColumns


def check(columns: TreeColumns, matrix: np.ndarray, live: list[int]) -> None:
    low = columns.packed[:, :-1] & np.uint64(0xFFFFFFFF)
    for j in range(matrix.shape[1]):
        values, counts = np.unique(matrix[live, j], return_counts=True)
        assert np.array_equal(values_of(columns.codes, j), values)
        codes = low[live, j][np.argsort(matrix[live, j], kind="stable")].astype(np.int64)
        ranks = np.repeat(np.arange(values.size), counts)
        assert np.array_equal(np.diff(codes) > 0, np.diff(ranks) > 0)
        assert (np.diff(codes) >= 0).all()
        assert codes.max() < columns.codes.n_codes[j]


@given(
    seed=st.integers(0, 2**31),
    n=st.sampled_from([2, 40, 1200]),
    order=st.sampled_from(["up", "down", "between", "random"]),
)
@settings(max_examples=examples(25), deadline=None)
def test_codes_ascend_with_values(seed: int, n: int, order: str) -> None:
    rng = np.random.default_rng(seed)
    coming = {
        "up": np.arange(300.0) + 10,
        "down": -np.arange(300.0) - 10,
        "between": 1.0 / (2.0 + np.arange(300.0)),
        "random": rng.normal(size=300),
    }[order]
    first = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n)])
    then = np.column_stack([coming, rng.integers(0, 40, 300)])
    matrix = np.concatenate([first, then])
    columns, live = TreeColumns.fit(first, np.arange(n), Tape(0)), list(range(n))
    for at in range(n, n + 300, 3):
        rows = np.arange(at, at + 3)
        columns.make_room(n + 300)
        live += rows.tolist()
        for _ in columns.take(matrix, rows, lambda live=live: np.array(live)):
            pass
        gone = rng.choice(live, 2, replace=False)
        live = [row for row in live if row not in set(gone.tolist())]
        columns.forget(gone)
        assert not columns.packed[gone].any()
    check(columns, matrix, live)


def test_values_of_nobody_are_overwritten() -> None:
    matrix = np.arange(80.0)[:, np.newaxis] * 3.0
    columns = TreeColumns.fit(matrix, np.arange(80), Tape(0))
    columns.forget(np.arange(0, 80, 2))
    left = columns.codes.values[columns.codes.values != 0.0]
    assert sorted(left.tolist()) == matrix[1::2, 0].tolist()
    assert columns.codes.sizes.sum() == 40

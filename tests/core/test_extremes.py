"""Extremes of columns that lose them often, as a window over timestamps does, or seldom."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from effort import examples
from erasable.core.extremes import Extremes
from erasable.core.tables import Table


def table(seed: int, n: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = [
        np.arange(n) // rng.integers(1, 4),
        -np.arange(n),
        rng.integers(0, 4, n),
        rng.normal(size=n),
        np.zeros(n),
    ]
    return np.column_stack(columns).astype(kind)


def check(found: Extremes, rows: np.ndarray) -> None:
    low, high = rows.min(axis=0), rows.max(axis=0)
    assert np.array_equal(found.low, low)
    assert np.array_equal(found.high, high)
    assert np.array_equal(found.counts, [(rows == low).sum(axis=0), (rows == high).sum(axis=0)])


@given(
    seed=st.integers(0, 2**31), n=st.sampled_from([5, 80, 600]), kind=st.sampled_from(["f4", "f8"])
)
@settings(max_examples=examples(40), deadline=None)
def test_a_window_knows_its_extremes(seed: int, n: int, kind: str) -> None:
    rng, matrix = np.random.default_rng(seed), table(seed, 2 * n, kind)
    found, live, coming = Extremes.fit(matrix, np.arange(n)), list(range(n)), n
    for _ in range(120):
        before = found.low.copy(), found.high.copy()
        size = int(rng.integers(1, 3))
        if rng.random() < 0.6 and len(live) > 3:
            oldest = rng.random() < 0.8
            rows = np.array(live[:size] if oldest else rng.choice(live, size, replace=False))
            live = [row for row in live if row not in set(rows.tolist())]
            changed = found.subtract(Table(matrix, lambda live=live: np.array(live)), rows)
        else:
            rows = np.arange(coming, min(coming + size, 2 * n))
            coming += rows.size
            live += rows.tolist()
            changed = found.add(Table(matrix), rows)
        check(found, matrix[live].astype(np.float64))
        moved = (before[0] != found.low) | (before[1] != found.high)
        assert not (moved & (False if changed is None else changed) ^ moved).any()


def test_a_window_over_timestamps_is_not_scanned_at_every_step() -> None:
    matrix, scans = np.arange(3000.0)[:, np.newaxis], []
    found = Extremes.fit(matrix, np.arange(1000))
    for step in range(500):
        found.add(Table(matrix), np.array([1000 + step]))

        def live(step: int = step) -> np.ndarray:
            scans.append(step)
            return np.arange(step + 1, 1001 + step)

        found.subtract(Table(matrix, live), np.array([step]))
    assert found.low == 500
    assert len(scans) < 10


def test_nothing_near_an_extreme_outlives_its_record() -> None:
    matrix = np.arange(600.0)[:, np.newaxis]
    found = Extremes.fit(matrix, np.arange(500))
    for step in range(20):
        found.subtract(Table(matrix, lambda step=step: np.arange(step + 1, 500)), np.array([step]))
    assert found.near[0][0] == 20.0
    found.subtract(Table(matrix, lambda: np.setdiff1d(np.arange(20, 500), [30])), np.array([30]))
    assert 30.0 not in found.near[0]


def test_a_value_that_is_left_near_an_extreme_is_found() -> None:
    matrix = np.arange(600.0)[:, np.newaxis]
    found = Extremes.fit(matrix, np.arange(500))
    for step in range(20):
        found.subtract(Table(matrix, lambda step=step: np.arange(step + 1, 500)), np.array([step]))
    found.near[0].insert(0, 3.0)
    found.subtract(Table(matrix, lambda: np.arange(21, 500)), np.array([20]))
    with pytest.raises(AssertionError):
        check(found, matrix[21:500])

"""A hint to read memory ahead reaches the processor, and changes nothing."""

from __future__ import annotations

import re
from typing import Any

import numba
import numpy as np
import pytest

from erasable.core._prefetching import prefetch_row

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def total(X: Any, rows: Any) -> float:
    found = 0.0
    for row in rows:
        found += X[row, 0]
    return found


def total_ahead(X: Any, rows: Any) -> float:
    found = 0.0
    for row in rows:
        prefetch_row(X, row)
        found += X[row, 0]
    return found


def told(function: Any) -> bool:
    """Tell whether there is an instruction for it, of x86-64 or of aarch64."""
    found = [
        re.search(r"^\s+(prefetch\w+|prfm)\s", code, re.MULTILINE)
        for code in function.inspect_asm().values()
    ]
    return any(found)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_rows_are_read_ahead_and_stay_what_they_were(dtype: Any) -> None:
    X = np.arange(700).reshape(100, 7).astype(dtype)[::2]
    rows, before = np.array([49, 0, 3, 3, 17]), X.copy()
    ahead, plain = numba.njit(total_ahead), numba.njit(total)
    assert ahead(X, rows) == plain(X, rows) == X[rows, 0].sum()
    assert np.array_equal(X, before)
    alone = numba.njit(prefetch_row.py_func)
    alone(X, 0)
    assert told(alone)
    assert not told(plain)
    assert ahead(X, rows[:0]) == 0.0

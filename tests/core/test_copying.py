"""Copies inside of kernels, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core._copying import copy
from naming import named
from subroutines import standalone

copy = standalone(copy)

SOME = np.random.default_rng(0).normal(size=(3, 2, 5)) * 100


@pytest.mark.parametrize(
    "source",
    [SOME, SOME[1], SOME[1, 1], SOME[0].astype(np.float32), SOME[:0], SOME[2].astype(np.int64)],
    ids=named,
)
def test_a_copy_is_numpys(source: Any) -> None:
    for dtype in {source.dtype, np.dtype(np.float64)}:
        target = np.full(source.shape, 7, dtype)
        copy(source, target)
        assert target.tobytes() == source.astype(dtype).tobytes()


def test_what_is_beyond_stays() -> None:
    target = np.full(9, 7.0)
    copy(SOME[0, 0], target)
    np.testing.assert_array_equal(target, [*SOME[0, 0], 7.0, 7.0, 7.0, 7.0])

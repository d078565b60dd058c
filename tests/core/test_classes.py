"""The classes of live records: found, counted, forgotten."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from erasable.core.classes import GONE, Classes
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.targets import read_target

LABELS = st.sampled_from(
    [
        [3, 1, 3, 2, 1],
        ["b", "a", "b", "c", "a"],
        [True, False, True, True, False],
        [0.5, 2.0, 0.5, -1.0, 2.0],
        [2**63, 1, 2**63, 5, 1],
    ]
)


@given(labels=LABELS, order=st.permutations(range(5)), cuts=st.lists(st.integers(0, 5), max_size=3))
def test_what_is_left_is_what_a_fit_would_find(labels: Any, order: Any, cuts: Any) -> None:
    array = np.array(labels, dtype=np.uint64) if labels[0] == 2**63 else np.array(labels)
    y = read_target(array, 5)
    classes = Classes.fit(y, np.arange(5))
    gone: list[int] = []
    for portion in np.split(np.array(order), sorted(cuts)):
        gone += portion.tolist()
        rest = np.setdiff1d(np.arange(5), gone)
        if not rest.size:
            return
        before = classes.labels
        assert classes.left(portion) == np.unique(y[rest].astype(str)).size
        kept = classes.remove(portion) if portion.size else None
        fresh = Classes.fit(read_target(array[rest], rest.size), np.arange(rest.size))
        assert classes.labels.tolist() == fresh.labels.tolist()
        assert classes.labels.dtype == fresh.labels.dtype
        assert classes.counts.tolist() == fresh.counts.tolist()
        assert classes.codes[rest].tolist() == fresh.codes.tolist()
        assert (classes.codes[gone] == GONE).all()
        if kept is not None:
            assert before[kept].tolist() == classes.labels.tolist()


def test_fixed_classes_stay() -> None:
    classes = Classes.fit(read_target(["a", "b"], 2), np.arange(2), ["c", "b", "a"])
    assert classes.labels.tolist() == ["a", "b", "c"]
    assert classes.remove(np.array([0])) is None
    assert classes.counts.tolist() == [0, 1, 0]
    assert classes.left(np.array([1])) == 0


@pytest.mark.parametrize("fixed", [["a"], [1, 1], [], [[1, 2]]])
def test_classes_that_cannot_be_fixed(fixed: Any) -> None:
    with pytest.raises(InvalidInputError, match="classes="):
        Classes.fit(np.array([1, 2]), np.arange(2), fixed)


def test_records_of_other_classes_are_counted() -> None:
    with pytest.raises(InvalidDataError, match="1 records have labels that are not among the 1"):
        Classes.fit(np.array([1, 2]), np.arange(2), [2])

"""Trees of data with missing values are those that a slow oracle grows, whatever comes and goes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone, is_classifier

from effort import examples
from naming import named
from tree.test_oracle import MODELS, PHASES
from tree.trees import assert_grown, tables


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("kind", MODELS, ids=named)
@settings(max_examples=examples(25), phases=PHASES)
@given(
    table=tables(gaps=True), seed=st.integers(0, 9), cuts=st.lists(st.integers(0, 40), max_size=4)
)
def test_trees_are_the_oracles(kind: Any, table: Any, seed: int, cuts: list[int]) -> None:
    X, y = table
    if not is_classifier(kind):
        y = y * 0.75
    ids = np.arange(len(X)) * 7 - 30
    model = clone(kind).set_params(random_state=seed).fit(X, y, ids=ids)
    assert_grown(model, X, y, ids.tolist())
    order = np.random.default_rng(seed).permutation(len(X))
    done = 0
    for rows in np.split(order, sorted(cuts)):
        done += len(rows)
        left = np.sort(order[done:])
        if not len(left):
            break
        model.delete(ids[rows])
        assert_grown(model, X[left], y[left], ids[left].tolist())

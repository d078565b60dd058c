"""Numbers that are measured are no classes and no categories: scikit-learn's rule for targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.utils.multiclass import type_of_target

from erasable.core.errors import InvalidInputError
from erasable.selection import (
    NaiveBayes,
    NearestNeighbor,
    SelectionWarning,
    SubsetSelector,
    VarianceReduction,
    expected_utility,
    semivalues,
)

RNG = np.random.default_rng(2)
X = RNG.integers(0, 3, (50, 4))
MEASURED = RNG.normal(size=50)
ROUNDED = RNG.permutation(1000)[:50]  # whole numbers, each of them once
READERS: dict[str, Callable[[Any], object]] = {
    "nearest": lambda v: SubsetSelector(NearestNeighbor(), k=3).fit(X, v),
    "given": lambda v: SubsetSelector(NearestNeighbor("precomputed"), k=3).fit(np.eye(50), v),
    "bayes": lambda v: SubsetSelector(NaiveBayes(), k=3).fit(X, v),
    "bayes, a feature": lambda v: SubsetSelector(NaiveBayes(), k=3).fit(
        pd.DataFrame({"a": X[:, 0], "b": v}), X[:, 1]
    ),
    "semivalues": lambda v: semivalues(NearestNeighbor(), X, v),
    "expected_utility": lambda v: expected_utility([1, 2], X, v, utility=NearestNeighbor()),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "values",
    [MEASURED, MEASURED.astype(np.float32), MEASURED.round(1), np.array(MEASURED, dtype=object)],
    ids=["float64", "float32", "rounded", "object"],
)
def test_numbers_with_a_fraction_are_refused(reader: str, values: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"with a fraction, .* in 50 records"):
        READERS[reader](values)


@pytest.mark.parametrize("reader", READERS)
def test_a_class_for_each_record_is_told(reader: str) -> None:
    with pytest.warns(SelectionWarning, match="50 different values in 50 records"):
        READERS[reader](ROUNDED)


CLASSES = {
    "integers": X[:, 3],
    "floats": X[:, 3] * 1.0,
    "booleans": X[:, 3] > 0,
    "texts": X[:, 3].astype(str),
    "texts of fractions": (X[:, 3] / 4).astype(str),
    "mixed": np.array(["a", 1, 2], dtype=object)[X[:, 3]],
}


PAIRS = [(reader, kind) for reader in READERS for kind in CLASSES]
PAIRS.remove(("bayes, a feature", "mixed"))  # a frame has no such column


@pytest.mark.parametrize(("reader", "kind"), PAIRS)
def test_classes_are_taken_without_a_word(reader: str, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        READERS[reader](CLASSES[kind])


@pytest.mark.parametrize("kind", ["measured", *(each for each in CLASSES if each != "mixed")])
def test_the_rule_is_that_of_scikit_learn(kind: str) -> None:
    given = CLASSES.get(kind, MEASURED)
    theirs = type_of_target(given)
    try:
        READERS["nearest"](given)
    except InvalidInputError:
        assert theirs == "continuous"
    else:
        assert theirs != "continuous"


def test_a_few_records_may_each_have_a_class() -> None:
    SubsetSelector(k=2).fit(np.eye(3), ["a", "b", "c"])


def test_utilities_without_classes_take_any_target() -> None:
    """And a regression target is well served by one of them, or without y."""
    data = load_diabetes()
    y = data.target + 0.5
    SubsetSelector(VarianceReduction(), k=2, staying=1.0, optimizer="lazy").fit(
        data.data[:40], y[:40]
    )
    with pytest.raises(InvalidInputError, match="leave y out"):
        SubsetSelector(k=5).fit(data.data, y)
    assert SubsetSelector(k=5).fit(data.data).utility_ > 0

"""The expected naive Bayes utility against a list of all who may stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.selection import Certain, Groups, Independent, PerClass
from erasable.selection.staying import Staying
from erasable.selection.utilities import NaiveBayes
from selection import enumeration
from selection.models import CLASSED, NAMES, K, N, oracle


def utility(X: np.ndarray, y: Sequence[int], stay: Sequence[int]) -> float:
    """u_NB as it is printed, with log(1 + m) for log(m)."""
    total = 0.0
    for label in set(y):
        for column in X.T:
            for value in set(column.tolist()):
                everybody = [i for i in range(len(y)) if y[i] == label and column[i] == value]
                total += len(everybody) * np.log(1 + len(set(everybody) & set(stay)))
    return total


@pytest.mark.parametrize("y", [[1] * N, [0, 1, 0, 0, 1, 1, 0]], ids=["one", "two"])
@pytest.mark.parametrize("staying", CLASSED, ids=NAMES)
def test_exact_values_are_those_of_enumeration(staying: Staying, y: list[int]) -> None:
    if isinstance(staying, PerClass) and len(set(y)) == 1:
        return
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (N, 3))
    problem = NaiveBayes().problem(X, y)
    ours = problem.expected(staying.bind(N, k=K, labels=y), K)
    if isinstance(staying, Groups):
        assert ours is None  # no closed form: it is sampled
        return
    assert ours is not None
    chosen: list[int] = []
    for j in rng.permutation(N)[:K].tolist():
        gains = ours.gains(np.arange(N))
        for i in set(range(N)) - set(chosen):
            more = [*chosen, i]
            then = enumeration.expectation(
                more, oracle(staying, more, y), lambda stay: utility(X, y, stay)
            )
            assert ours.value + gains[i] == pytest.approx(then, abs=1e-11)
        ours.add(j)
        chosen.append(j)
    assert problem.value(np.array(chosen)) == pytest.approx(utility(X, y, chosen))


def test_texts_are_categories() -> None:
    X = np.array([["a", "x"], ["a", "y"], ["b", "y"]], dtype=object)
    problem = NaiveBayes().problem(X, ["n", "n", "p"])
    assert problem.value(np.array([0])) == pytest.approx(2 * np.log(2) + np.log(2))
    ours = problem.expected(Independent(0.5).bind(3), 2)
    assert ours is not None
    np.testing.assert_allclose(ours.gains(np.arange(3)), np.log(2) / 2 * np.array([3, 3, 2]))


def test_bad_input_is_told() -> None:
    with pytest.raises(InvalidInputError, match="pass y"):
        NaiveBayes().problem([[1]])
    with pytest.raises(InvalidInputError, match="expected one class for each"):
        NaiveBayes().problem([[1]], [1, 2])
    with pytest.raises(InvalidDataError):
        NaiveBayes().problem([[np.nan]], [1])
    assert NaiveBayes().problem([[1]], [1]).expected(Certain().bind(1), 1) is not None

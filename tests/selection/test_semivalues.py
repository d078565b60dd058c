"""Semivalues against their definition: a sum over every part of the others."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.special import beta

from erasable.core.errors import InvalidParameterError
from erasable.selection import (
    BetaBinomial,
    Certain,
    CVaR,
    Independent,
    NaiveBayes,
    NearestNeighbor,
    Uniform,
    expected_utility,
    semivalues,
    utility_distribution,
)
from selection import enumeration

N = 6
RNG = np.random.default_rng(4)
SIMILARITY = np.round(RNG.random((N, N)), 1)
CLASSES = [0, 1, 0, 0, 1, 0]


def definition(weight: Any, classes: list[int]) -> np.ndarray:
    utility = enumeration.nearest(SIMILARITY, classes)
    out = np.zeros(N)
    for j in range(N):
        for part in enumeration.subsets([i for i in range(N) if i != j]):
            out[j] += weight(j, part) * (utility([*part, j]) - utility(part))
    return out


def shapley(j: int, part: tuple[int, ...]) -> float:
    return 1 / (N * comb(N - 1, len(part)))


def beta_shapley(j: int, part: tuple[int, ...]) -> float:
    """Kwon and Zou, equation 6, for alpha = 4 and beta = 2, over binom(n - 1, |part|)."""
    place = len(part) + 1
    return float(beta(place + 2 - 1, N - place + 4) / beta(4, 2))


S = [0.0, 1.0, 0.3, 0.9, 0.5, 0.7]


def multinomial(j: int, part: tuple[int, ...]) -> float:
    return float(np.prod([S[i] if i in part else 1 - S[i] for i in range(N) if i != j]))


def leave_one_out(j: int, part: tuple[int, ...]) -> float:
    return float(len(part) == N - 1)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [[0] * N, CLASSES], ids=["one", "two"])
@pytest.mark.parametrize(
    ("weights", "weight"),
    [
        ("shapley", shapley),
        (BetaBinomial(2, 4), beta_shapley),
        (Independent(S), multinomial),
        (Certain(), leave_one_out),
    ],
    ids=["shapley", "beta-shapley", "multinomial", "leave-one-out"],
)
def test_exact_values_are_their_definition(
    weights: Any, weight: Any, classes: list[int], sparse: bool
) -> None:
    given_as = scipy.sparse.csr_array(SIMILARITY) if sparse else SIMILARITY
    ours = semivalues(NearestNeighbor("precomputed"), given_as, classes, weights=weights)
    np.testing.assert_allclose(ours, definition(weight, classes), atol=1e-12)


def test_shapley_values_share_out_the_whole() -> None:
    values = semivalues(NearestNeighbor("precomputed"), SIMILARITY)
    assert values.sum() == pytest.approx(SIMILARITY.max(axis=0).sum())


def test_without_a_formula_they_are_sampled() -> None:
    X = RNG.integers(0, 2, (N, 3))
    ours = semivalues(NaiveBayes(), X, CLASSES, n_samples=3000, random_state=0)
    problem = NaiveBayes().problem(X, CLASSES)
    everything = problem.value(np.arange(N))
    assert ours.sum() == pytest.approx(everything, rel=0.03)
    exact = np.zeros(N)
    for j in range(N):
        for part in enumeration.subsets([i for i in range(N) if i != j]):
            gain = problem.value(np.array([*part, j])) - problem.value(np.array(part, dtype=int))
            exact[j] += shapley(j, part) * gain
    np.testing.assert_allclose(ours, exact, rtol=0.08)
    with pytest.raises(InvalidParameterError, match="weights='banzhaf'"):
        semivalues(NaiveBayes(), X, CLASSES, weights="banzhaf")


def test_expected_utility_of_any_selection() -> None:
    utility = NearestNeighbor("precomputed")
    chosen = [4, 0, 2]
    staying = Uniform(1, 3)
    exact = expected_utility(chosen, SIMILARITY, utility=utility, staying=staying)
    listed = enumeration.expectation(
        chosen,
        enumeration.alike(list(staying.subset_pmf(3))),
        enumeration.nearest(SIMILARITY, [0] * N),
    )
    assert float(exact) == pytest.approx(listed)
    assert exact.standard_error == 0
    drawn = utility_distribution(
        chosen, SIMILARITY, utility=utility, staying=staying, n_samples=4000, random_state=0
    )
    assert drawn.mean() == pytest.approx(listed, rel=0.03)
    worst = expected_utility(
        chosen, SIMILARITY, utility=utility, staying=staying, objective=CVaR(1.0), random_state=0
    )
    assert worst.value == pytest.approx(listed, abs=5 * worst.standard_error)
    names = [f"p{i}" for i in range(N)]
    by_name = expected_utility(
        ["p4", "p0", "p2"], SIMILARITY, utility=utility, staying=staying, ids=names
    )
    assert by_name == exact

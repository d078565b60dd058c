"""Gains computed share by share are those of a look at everything, and of sparse similarities."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.selection import BetaBinomial, Certain, Independent, PointMass, Uniform
from erasable.selection._functions import SetFunction
from erasable.selection._optimizers import Choice, CostBudget, maximize
from erasable.selection.staying import Staying
from erasable.selection.utilities import NearestNeighbor, _ranked

N_TARGETS, N, K = 37, 24, 12
OWNERS = np.random.default_rng(0).choice([0.0, 0.05, 0.3, 0.6, 0.9, 1.0], N)
MODELS: list[Staying] = [
    Certain(),
    Independent(0.6),
    Independent(OWNERS),
    Uniform(6, K),
    PointMass(2),
    PointMass(K),
    BetaBinomial(4, 2),
]


def similarities(seed: int, dtype: type = np.float64) -> np.ndarray:
    """With ties, zeros, and records that are alike."""
    rng = np.random.default_rng(seed)
    similarity = np.round(rng.random((N, N_TARGETS)), int(rng.integers(1, 4)))
    similarity *= rng.random((N, N_TARGETS)) < rng.random()
    similarity[rng.integers(0, N, 4)] = similarity[rng.integers(0, N, 4)]
    return similarity.astype(dtype)


def made(similarity: object, staying: Staying, width: int = 8, k: int = K) -> SetFunction:
    with mock.patch.multiple(_ranked, _WIDTH=width, _WIDTH_OF_ONE_RANK=width):
        problem = NearestNeighbor("precomputed").problem(similarity)
        function = problem.expected(staying.bind(N, k=k), k)
    assert function is not None
    return function


def chosen(function: SetFunction, optimizer: str) -> tuple[Choice, float]:
    return maximize(function, np.arange(N), CostBudget(K), optimizer), function.value


@settings(max_examples=examples(200))
@given(st.integers(0, 10**6), st.sampled_from(MODELS), st.sampled_from([8, 16, 40]), st.booleans())
def test_share_by_share_chooses_what_all_gains_do(
    seed: int, staying: Staying, width: int, single: bool
) -> None:
    similarity = similarities(seed, np.float32 if single else np.float64)
    lazy, greedy = (made(similarity, staying, width) for _ in range(2))
    assert chosen(lazy, "lazy") == chosen(greedy, "greedy")
    assert lazy.n_evaluations <= greedy.n_evaluations


@settings(max_examples=examples(100))
@given(st.integers(0, 10**6), st.sampled_from(MODELS))
def test_dense_is_sparse(seed: int, staying: Staying) -> None:
    """Counts kept from round to round against a count anew, by other kernels."""
    similarity = similarities(seed)
    dense, sparse = made(similarity, staying), made(scipy.sparse.csr_array(similarity), staying)
    rng = np.random.default_rng(seed)
    for j in rng.permutation(N)[:K].tolist():
        some = rng.permutation(N)[: int(rng.integers(0, N))]
        assert dense.gains(some) == pytest.approx(sparse.gains(some), abs=1e-11)
        dense.add(j)
        sparse.add(j)
    assert dense.value == pytest.approx(sparse.value, abs=1e-11)


@pytest.mark.parametrize("staying", MODELS, ids=range(len(MODELS)))
def test_counts_that_find_no_room_change_nothing(staying: Staying) -> None:
    similarity = similarities(5)
    kept = made(similarity, staying)
    with mock.patch.object(_ranked, "_rows_of_counts", return_value=1):
        anew = made(similarity, staying)
    assert anew.parts[0].targets.counts.shape == (1, N_TARGETS)  # type: ignore[attr-defined]
    assert chosen(kept, "lazy") == chosen(anew, "lazy")


def test_shares_that_are_out_of_date_are_noticed() -> None:
    """The negative control: shares that claim to be of this round."""
    function = made(similarities(5), Independent(0.6))
    before = function.gains(np.arange(N))
    function.add(0)
    after = made(similarities(5), Independent(0.6))
    after.add(0)
    function.parts[0].targets.seen[:] = 1  # type: ignore[attr-defined]
    assert (function.gains(np.arange(N)) == before).all()
    assert (after.gains(np.arange(N)) < before).any()


def test_more_than_there_is_room_for_is_refused() -> None:
    function = made(similarities(5), Independent(0.6), k=2)
    function.add(0)
    function.add(1)
    with pytest.raises(IndexError, match="2 records of the class were added; expected no more"):
        function.add(2)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_only_one_that_is_chosen_may_leave(sparse: bool) -> None:
    similarity = similarities(1) + 0.01
    given_as = scipy.sparse.csr_array(similarity) if sparse else similarity
    function = made(given_as, BetaBinomial(4, 2), k=1)
    assert function.gains(np.arange(N)) == pytest.approx(2 / 3 * similarity.sum(axis=1))


def test_owners_who_stay_with_one_probability_are_alike() -> None:
    """One weight for a rank, where each record has a probability and all are equal."""
    block = NearestNeighbor("precomputed").problem(np.eye(N)).blocks[0]  # type: ignore[attr-defined]
    n_ranks, weights, factor = _ranked.ranks_needed(Independent(0.5).bind(N), block, 5)
    assert n_ranks == 5
    assert weights == pytest.approx([1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 0])
    assert (factor == 0.5).all()
    assert _ranked.ranks_needed(Independent(OWNERS).bind(N), block, 5)[1] is None

"""Scores against their definitions, whatever the order of the rows, and on bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from effort import few
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.removal import DomainRemoval
from erasable.removal import _covariance as covariance
from erasable.removal._sets import Sets
from erasable.removal.scores import (
    CCS,
    SCORES,
    Custom,
    GradMatch,
    MeanDistance,
    MeanMargin,
    NeighborRatio,
    as_score,
)
from removal import plain_scores as plain

BY_MOMENTS = ["mu2-distance", "cos-mu2", "maha-mu2", "lr-cos", "lr-maha", "coreset", "norm"]


def draw(seed: int, n1: int = 60, n2: int = 40, d: int = 3) -> tuple[Any, Any]:
    """Correlated columns of different units, away from 0."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) + np.eye(d)
    forget = rng.normal(size=(n1, d)) @ mix * 10.0 ** np.arange(-1, d - 1) + 1.0
    retain = (rng.normal(size=(n2, d)) + 0.7) @ mix * 10.0 ** np.arange(-1, d - 1) + 1.0
    return forget, retain


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 3, 11])
@pytest.mark.parametrize("name", list(plain.SCORES))
def test_scores_are_what_they_are_defined_to_be(name: str, d: int, dtype: Any) -> None:
    forget, retain = (X.astype(dtype) for X in draw(1, d=d))
    found = SCORES[name].rank(Sets(forget, retain), 0).scores
    expected = plain.SCORES[name](forget.astype(float), retain.astype(float))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-12 + 2e-5 * np.ptp(expected))


def test_another_definition_is_told_apart() -> None:
    forget, retain = draw(1)
    found = SCORES["maha-mu2"].rank(Sets(forget, retain), 0).scores
    wrong = plain.SCORES["maha-mu2"](forget, forget)
    assert not np.allclose(found, wrong, rtol=1e-2)


@pytest.mark.parametrize(
    "name", ["mu2-distance", "cos-mu2", "lr-cos", "knn-ratio", *BY_MOMENTS[-2:]]
)
def test_sparse_rows_score_like_dense_ones(name: str) -> None:
    rng = np.random.default_rng(3)
    forget, retain = (rng.random((n, 8)) * (rng.random((n, 8)) < 0.4) for n in (50, 30))
    forget[:, 0], retain[:, 1] = 1.0, 0.5
    sparse = SCORES[name].rank(Sets(csr_array(forget), csr_array(retain)), 0).scores
    expected = plain.SCORES[name](forget, retain)
    np.testing.assert_allclose(sparse, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(plain.ORDERS))
@pytest.mark.parametrize("seed", range(few(6)))
def test_greedy_orders_are_those_of_enumeration(name: str, seed: int) -> None:
    forget, retain = draw(seed, n1=25)
    ranking = SCORES[name].rank(Sets(forget, retain), 0)
    assert ranking.order.tolist() == plain.ORDERS[name](forget)
    assert (np.diff(ranking.scores[ranking.order]) <= 1e-9).all()


@pytest.mark.parametrize("name", list(plain.ORDERS))
def test_greedy_orders_of_sparse_rows(name: str) -> None:
    rng = np.random.default_rng(5)
    forget = rng.random((20, 6)) * (rng.random((20, 6)) < 0.6)
    ranking = SCORES[name].rank(Sets(csr_array(forget), csr_array(forget[:3])), 0)
    assert ranking.order.tolist() == plain.ORDERS[name](forget)


@pytest.mark.parametrize("name", list(SCORES))
def test_every_score_is_an_order_of_all(name: str) -> None:
    forget, retain = draw(2)
    first, again = (SCORES[name].rank(Sets(forget, retain), 7) for _ in range(2))
    assert sorted(first.order.tolist()) == list(range(60))
    assert first.order.tolist() == again.order.tolist()
    assert first.scores.tolist() == again.scores.tolist()
    assert (first.weights >= 0).all()


@given(seed=st.integers(0, 2**32 - 1), block=st.sampled_from([1, 3, 7, 64, 512]))
def test_moments_give_the_same_bits_in_any_order_and_sharding(seed: int, block: int) -> None:
    """Also where the middle shard is cut elsewhere, and where BLAS is handed other blocks."""
    rng = np.random.default_rng(seed)
    forget, retain = draw(seed, n1=int(rng.integers(2, 90)), n2=int(rng.integers(5, 90)), d=9)
    forget[rng.integers(len(forget))] = forget[0]  # a tie
    mixed = rng.permutation(len(forget))
    for name in BY_MOMENTS:
        score = SCORES[name]
        whole = score.rank(Sets(forget, retain), 0).scores
        before, covariance.BLOCK = covariance.BLOCK, block
        try:
            other = score.rank(Sets(forget[mixed], retain[rng.permutation(len(retain))]), 0).scores
        finally:
            covariance.BLOCK = before
        assert other.tolist() == whole[mixed].tolist(), name


def test_plain_sums_depend_on_the_order() -> None:
    """The control: what NumPy sums differs in its last bits, so that bits are worth a test."""
    rng = np.random.default_rng(0)
    retain = rng.normal(size=(1001, 9))
    means = {tuple(retain[rng.permutation(1001)].mean(axis=0)) for _ in range(20)}
    assert len(means) > 1


@pytest.mark.parametrize("name", [*BY_MOMENTS, "knn-ratio", "k-center", "craig"])
def test_ties_go_to_the_earlier_record(name: str) -> None:
    forget, retain = draw(4, n1=40, d=16)
    doubled = np.concatenate([forget, forget])
    order = SCORES[name].rank(Sets(doubled, retain), 0).order.tolist()
    for row in range(40):
        assert order.index(row) < order.index(row + 40)


def test_exact_products_are_those_of_integers() -> None:
    forget, retain = draw(6, n1=600, n2=1300, d=4)
    sets = Sets(forget, retain)
    scatter = covariance.Scatter.fit(sets, retain)
    whole = np.rint((retain - scatter.origin) / scatter.quantum).astype(np.int64).astype(object)
    upper = np.triu_indices(4)
    high, low = (part[upper].astype(object) for part in scatter.products)
    assert (high * 2**26 + low).tolist() == (whole.T @ whole)[upper].tolist()
    assert scatter.sums.tolist() == whole.sum(axis=0).tolist()
    expected = np.cov(retain.T, bias=True) * 1300
    np.testing.assert_allclose(scatter.centred(), expected, rtol=1e-5)


def test_shrinkage_may_be_given() -> None:
    forget, retain = draw(8)
    for shrinkage in (0.0, 0.3, 1.0):
        found = MeanDistance("mahalanobis", shrinkage=shrinkage).rank(Sets(forget, retain), 0)
        inverse = np.linalg.inv(plain.shrunk_covariance(retain, shrinkage))
        away = forget - retain.mean(axis=0)
        expected = np.sqrt(np.einsum("ij,jk,ik->i", away, inverse, away))
        np.testing.assert_allclose(found.scores, expected, rtol=1e-4)


def test_ccs_takes_from_every_stratum_in_turn() -> None:
    """At each budget a stratum has given as many as any other, or all it has."""
    difficulty = np.array([0.0] * 20 + [1.0] * 5 + [2.0] * 9 + [50.0, 60.0])
    rows = difficulty[:, None]
    score = CCS(n_strata=2, hardest=2 / 36, difficulty=lambda forget: forget[:, 0])
    order = score.rank(Sets(rows, rows), 3).order
    assert set(order[-2:].tolist()) == {34, 35}
    stratum = np.minimum((difficulty[:34]) // 1.0, 1)
    sizes = np.array([(stratum == s).sum() for s in (0, 1)])
    for budget in range(1, 35):
        given_by = np.array([(stratum[order[:budget]] == s).sum() for s in (0, 1)])
        level = given_by.max()
        assert (given_by >= np.minimum(level - 1, sizes)).all()
    assert order.tolist() != score.rank(Sets(rows, rows), 4).order.tolist()


def test_a_callable_is_a_score() -> None:
    forget, retain = draw(9)
    score = as_score(lambda F, R: F[:, 0] - R[:, 0].mean())
    assert score.rank(Sets(forget, retain), 0).order.tolist() == np.argsort(-forget[:, 0]).tolist()


LINE = np.arange(6.0)[:, None]


@pytest.mark.parametrize(
    ("score", "forget", "retain", "message"),
    [
        (MeanDistance("cosine"), LINE, LINE, "1 of 6 records of forget are all zero"),
        (MeanDistance("cosine"), LINE + 1, LINE - 2.5, "the mean of retain is all zero"),
        (MeanMargin("cosine"), LINE - 2.5, LINE + 1, "the mean of forget is all zero"),
        (
            MeanMargin(),
            LINE,
            LINE[:1].repeat(3, 0),
            r"retain is singular: 1 of 1 columns are constant in retain and vary in the other",
        ),
        (MeanMargin(), csr_array(LINE), csr_array(LINE), "retain is sparse"),
        (
            MeanMargin(shrinkage=0.0),
            np.column_stack([LINE, 2 * LINE]),
            np.column_stack([LINE, 2 * LINE]),
            r"singular: columns depend on each other linearly \(0, 1\)",
        ),
        (MeanDistance("mahalanobis"), np.ones((2, 1025)), np.ones((2, 1025)), "1025 columns"),
        (NeighborRatio(), LINE[:1], LINE, "forget has 1 record"),
        (Custom(lambda F, R: F), LINE, LINE, r"an array of shape \(6, 1\)"),
        (Custom(lambda F, R: F[:, 0] * np.nan), LINE, LINE, r"expected a finite number, up to"),
        (Custom(lambda F, R: F[:, 0] + 1e308), LINE, LINE, r"expected a finite number, up to"),
        (Custom(lambda F, R: "high"), LINE, LINE, "'high'"),
        (CCS(difficulty=lambda F: F), LINE, LINE, r"shape \(6, 1\)"),
    ],
)
def test_data_that_a_score_cannot_use(score: Any, forget: Any, retain: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        score.rank(Sets(forget, retain), 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "score",
    [
        MeanDistance("manhattan"), MeanMargin(3), MeanDistance(shrinkage=1.5),
        MeanDistance(shrinkage="ledoit"), NeighborRatio(0), NeighborRatio(True), CCS(0),
        CCS(hardest=1.0), CCS(hardest="half"), CCS(difficulty=3), GradMatch(-1.0),
        GradMatch("much"), NeighborRatio(algorithm="fast"), MeanDistance(np.ones(2)),
        MeanDistance(shrinkage=np.ones(2)),
    ],
)  # fmt: skip
def test_parameters_that_a_score_cannot_use(score: Any) -> None:
    with pytest.raises(InvalidParameterError, match="expected") as caught:
        score.rank(Sets(LINE, LINE), 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("score", ["density", 3, None, MeanDistance])
def test_what_is_no_score(score: Any) -> None:
    with pytest.raises(InvalidParameterError, match="expected one of density-ratio, mu2-distance"):
        as_score(score)


@pytest.mark.parametrize("score", ["random", "ccs"])
@pytest.mark.parametrize("kind", [int, str])
def test_what_is_drawn_depends_on_ids_and_not_on_rows(score: str, kind: type) -> None:
    rng = np.random.default_rng(3)
    forget, ids = rng.normal(size=(60, 2)), np.array(rng.permutation(500)[:60].astype(kind))
    first = DomainRemoval(score, budget=60, random_state=5).fit(forget, ids=ids).selected_ids_
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(60)
        again = DomainRemoval(score, budget=60, random_state=5).fit(forget[rows], ids=ids[rows])
        assert again.selected_ids_.tolist() == first.tolist()
        # The control: by positions, other records leave first.
        plain = DomainRemoval(score, budget=60, random_state=5).fit(forget[rows])
        assert ids[rows][plain.selected_].tolist() != first.tolist()
    other = DomainRemoval(score, budget=60, random_state=6).fit(forget, ids=ids)
    assert other.selected_ids_.tolist() != first.tolist()
    if score == "random":  # and not on which others there are
        part = np.sort(rng.permutation(60)[:40])
        some = DomainRemoval("random", budget=40, random_state=5).fit(forget[part], ids=ids[part])
        left = [each for each in first.tolist() if each in set(ids[part].tolist())]
        assert some.selected_ids_.tolist() == left

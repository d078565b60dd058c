"""Similarities of the nearest alone, found by scikit-learn or by a transformer of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.neighbors import KNeighborsTransformer, RadiusNeighborsTransformer

from effort import examples
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.selection import NearestNeighbor, SubsetSelector

Blocks = list[Any]


def dense(blocks: Blocks, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return similarities, rows records, and which pairs there are."""
    values, there = np.zeros((n, n)), np.zeros((n, n), dtype=bool)
    for block in blocks:
        if not len(block.starts):
            values[np.ix_(block.records, block.records)] = block.dense
            there[np.ix_(block.records, block.records)] = True
            continue
        for place, j in enumerate(block.records):
            part = slice(block.starts[place], block.starts[place + 1])
            targets = block.records[block.targets[part]]
            values[j, targets], there[j, targets] = block.values[part], True
    return values, there


class Some(BaseEstimator):
    """Finds some of the records, and none to be itself: worse than any library."""

    def __init__(self, share: float = 0.5, seed: int = 0) -> None:
        self.share, self.seed = share, seed

    def fit_transform(self, X: np.ndarray) -> Any:
        self.distances_ = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
        found = np.random.default_rng(self.seed).random(self.distances_.shape) < self.share
        np.fill_diagonal(found, False)
        rows, columns = np.nonzero(found)
        return scipy.sparse.coo_matrix((self.distances_[found], (rows, columns)), found.shape)


@settings(max_examples=examples(40))
@given(st.integers(0, 10**6), st.integers(1, 25), st.sampled_from([0.0, 0.3, 1.0]))
def test_what_was_found_is_kept_and_each_record_itself(seed: int, n: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 2)))  # with twins, whose distance is 0
    y = rng.integers(0, 3, n)
    finder = Some(share, seed)
    values, there = dense(NearestNeighbor(neighbors=finder).problem(X, y).blocks, n)
    distances, expected = np.zeros((n, n)), np.eye(n, dtype=bool)
    for label in np.unique(y):
        of_class = np.flatnonzero(y == label)
        graph = clone(finder).fit_transform(X[of_class])
        expected[of_class[graph.col], of_class[graph.row]] = True
        distances[of_class[graph.col], of_class[graph.row]] = graph.data
    np.testing.assert_array_equal(there, expected)
    np.testing.assert_allclose(values[there], (distances.max() - distances)[there])
    assert not hasattr(finder, "distances_")  # it was copied


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
def test_a_transformer_that_is_exact_finds_what_the_search_does(metric: str, kind: type) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)).astype(kind), rng.integers(0, 3, 60)
    y[:3] = 3  # fewer than neighbours
    finder = KNeighborsTransformer(n_neighbors=4, metric=metric)
    ours = NearestNeighbor(metric, n_neighbors=5).problem(X, y)
    theirs = NearestNeighbor(metric, neighbors=finder).problem(X, y)
    for mine, other in zip(dense(ours.blocks, 60), dense(theirs.blocks, 60), strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-3 if kind == np.float32 else 1e-7)
    assert {block.values.dtype for block in theirs.blocks} == {np.dtype(kind)}
    selector = SubsetSelector(NearestNeighbor(metric, neighbors=finder), k=6, staying=0.5)
    assert len(selector.fit(X, y).selected_) == 6
    other = NearestNeighbor(metric, neighbors=clone(finder).set_params(n_neighbors=7))
    found = dense(other.problem(X, y).blocks, 60)[1]
    assert found.sum() > dense(ours.blocks, 60)[1].sum()


def test_what_is_within_a_radius_will_do() -> None:
    X = np.arange(6.0)[:, None]
    finder = RadiusNeighborsTransformer(radius=1.5)
    values, there = dense(NearestNeighbor(neighbors=finder).problem(X).blocks, 6)
    np.testing.assert_array_equal(there, np.abs(X - X.T) <= 1)
    np.testing.assert_allclose(values, np.eye(6))  # the largest distance kept is 1


class Returns(BaseEstimator):
    def __init__(self, found: Any = None) -> None:
        self.found = found

    def fit_transform(self, X: Any) -> Any:
        return self.found


X = np.random.default_rng(0).normal(size=(9, 2))
BAD: list[tuple[Callable[[], NearestNeighbor], type[Exception], str]] = [
    (lambda: NearestNeighbor(neighbors=3), InvalidParameterError, "neighbors=3; expected a"),
    (
        lambda: NearestNeighbor(neighbors=KNeighborsTransformer),  # not made
        InvalidParameterError, "expected a transformer",
    ),
    (
        lambda: NearestNeighbor(n_neighbors=3, neighbors=Some()),
        InvalidParameterError, "expected one of them",
    ),
    (
        lambda: NearestNeighbor("precomputed", neighbors=Some()),
        InvalidParameterError, "neighbors=a Some with metric='precomputed'",
    ),
    (
        lambda: NearestNeighbor("cosine", neighbors=KNeighborsTransformer(n_neighbors=2)),
        InvalidParameterError, "of metric='minkowski'; expected the same",
    ),
    (
        lambda: NearestNeighbor(neighbors=KNeighborsTransformer(n_neighbors=2, p=1)),
        InvalidParameterError, "metric='minkowski', p=1",
    ),
    (
        lambda: NearestNeighbor(
            neighbors=KNeighborsTransformer(n_neighbors=2, mode="connectivity")
        ),
        InvalidInputError, "pass mode='distance'",
    ),
    (lambda: NearestNeighbor(neighbors=Returns(np.eye(9))), InvalidInputError, "shape (9, 9) for"),
    (lambda: NearestNeighbor(neighbors=Returns(None)), InvalidInputError, "returned None for 9"),
    (
        lambda: NearestNeighbor(neighbors=Returns(scipy.sparse.eye_array(8))),
        InvalidInputError, "returned shape (8, 8)",
    ),
    *(
        (
            lambda value=value: NearestNeighbor(
                neighbors=Returns(scipy.sparse.csr_array(np.diag(np.full(8, value), 1)))
            ),
            InvalidInputError, "below 0, NaN",
        )
        for value in (-1.0, np.nan, np.inf)
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "told"), BAD, ids=range(len(BAD)))
def test_bad_neighbors_are_told(
    make: Callable[[], NearestNeighbor], error: type[Exception], told: str
) -> None:
    with pytest.raises(error) as caught:
        make().problem(X)
    assert told in str(caught.value)


def test_what_would_not_fit_is_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.selection import _memory

    monkeypatch.setattr(_memory, "available_memory", lambda: 1e3)
    for utility in (
        NearestNeighbor(n_neighbors=5),
        NearestNeighbor(neighbors=KNeighborsTransformer(n_neighbors=4)),
    ):
        with pytest.raises(InvalidInputError, match=r"the 5 nearest of each of 9 records would"):
            utility.problem(X)

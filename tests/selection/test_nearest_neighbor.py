"""The expected nearest neighbour utility against a list of all who may stay."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.selection import (
    Certain,
    Independent,
    PerClass,
    expected_utility,
)
from erasable.selection._functions import Queue, SetFunction
from erasable.selection.staying import Staying
from erasable.selection.utilities import NearestNeighbor
from erasable.selection.utilities import _similarities as similarities
from selection import enumeration
from selection.models import CLASSED, MODELS, NAMES, K, N, oracle


def function(
    similarity: np.ndarray, staying: Staying, classes: Sequence[int] | None = None, k: int = K
) -> SetFunction:
    problem = NearestNeighbor(metric="precomputed").problem(similarity, classes)
    made = problem.expected(staying.bind(similarity.shape[0], k=k, labels=classes), k)
    assert made is not None
    return made


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.0, 0.5, 0.999, 1.0]), min_size=7, max_size=7), st.booleans()
)
def test_who_never_stays_takes_nobodys_place(s: list[float], sparse: bool) -> None:
    """Who is sure to leave, and nearer, must not push out who stays."""
    rng = np.random.default_rng(int(1000 * sum(s)))
    similarity = np.round(rng.random((N, N)), 1)
    given_as = scipy.sparse.csr_array(similarity) if sparse else similarity
    chosen = rng.permutation(N)[:K].tolist()
    worth = expected_utility(chosen, given_as, utility=NearestNeighbor("precomputed"), staying=s)
    wanted = enumeration.expectation(
        chosen, enumeration.independent(s, chosen), enumeration.nearest(similarity, [0] * N)
    )
    assert worth.value == pytest.approx(wanted, abs=1e-11)


@pytest.mark.parametrize("classes", [None, [0, 1, 0, 0, 1, 1, 0]], ids=["one", "two"])
@pytest.mark.parametrize("staying", CLASSED, ids=NAMES)
def test_exact_values_are_those_of_enumeration(staying: Staying, classes: list[int] | None) -> None:
    if classes is None and isinstance(staying, PerClass):
        return
    rng = np.random.default_rng(3)
    labels = [0] * N if classes is None else classes
    for _ in range(6):
        similarity = np.round(rng.random((N, N)) * rng.integers(0, 2, (N, N)), 2)  # with ties
        utility = enumeration.nearest(similarity, labels)
        ours = function(similarity, staying, classes)
        chosen: list[int] = []
        for j in rng.permutation(N)[:K]:
            gains = ours.gains(np.arange(N))
            for i in set(range(N)) - set(chosen):
                more = [*chosen, i]
                then = enumeration.expectation(more, oracle(staying, more, labels), utility)
                assert ours.value + gains[i] == pytest.approx(then, abs=1e-12)
            ours.add(int(j))
            chosen.append(int(j))
        now = enumeration.expectation(chosen, oracle(staying, chosen, labels), utility)
        assert ours.value == pytest.approx(now, abs=1e-12)


def test_the_check_finds_a_wrong_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = function(np.eye(N), Independent(0.6))
    ours.parts[0].factor = ours.parts[0].factor ** 2  # type: ignore[attr-defined]
    wrong = ours.gains(np.array([0]))[0]
    right = enumeration.expectation(
        [0], enumeration.independent([0.6] * N, [0]), enumeration.nearest(np.eye(N), [0] * N)
    )
    assert wrong != pytest.approx(right, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(MODELS), st.booleans())
def test_lazy_is_greedy(seed: int, staying: Staying, sparse: bool) -> None:
    """A heap of bounds chooses what a look at every gain does, with ties to the first."""
    rng = np.random.default_rng(seed)
    similarity = np.round(rng.random((N, 9)) * (rng.random((N, 9)) < 0.6), 1)
    given_as = scipy.sparse.csr_array(similarity) if sparse else similarity.astype(np.float32)
    lazy, greedy = (function(given_as, staying) for _ in range(2))
    ours, theirs = lazy.queue(np.arange(N)), Queue(greedy, np.arange(N))
    left = list(range(N))
    for _ in range(K):
        gains = greedy.gains(np.array(left))
        expected = left[int(np.argmax(np.round(gains, 9)))]
        j, gain = ours.pop()
        assert gain == pytest.approx(max(gains), abs=1e-9)
        assert theirs.pop()[1] == pytest.approx(gain, abs=1e-9)
        assert abs(gains[left.index(j)] - gains[left.index(expected)]) < 1e-9
        for function_, queue in ((lazy, ours), (greedy, theirs)):
            function_.add(j, gain)
            queue.next_round()
        left.remove(j)
        theirs.heap = [each for each in theirs.heap if each[1] in left]
        heapq.heapify(theirs.heap)
    assert lazy.value == pytest.approx(greedy.value)


def test_many_ranks_that_hardly_matter_are_left_out() -> None:
    rng = np.random.default_rng(0)
    similarity = rng.random((300, 50))
    ours = function(similarity, Independent(0.6), k=300)
    for j in range(300):
        ours.add(j)
    assert ours.parts[0].targets.ranks.shape[1] == 33  # type: ignore[attr-defined]
    in_order = -np.sort(-similarity, axis=0)
    exact = (in_order * (0.6 * 0.4 ** np.arange(300))[:, None]).sum()
    assert ours.value == pytest.approx(exact, rel=1e-11)


def test_classes_share_nothing_and_features_become_similarities() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    distance = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    same = y[:, None] == y[None]
    similarity = np.where(same, distance[same].max() - distance, 0)
    np.fill_diagonal(similarity, distance[same].max())
    chosen = np.array([3, 5, 8, 21])
    expected = similarity[chosen].max(axis=0).sum()
    problem = NearestNeighbor().problem(X, y)
    assert problem.value(chosen) == pytest.approx(expected)
    assert NearestNeighbor(n_neighbors=40).problem(X, y).value(chosen) == pytest.approx(expected)
    ours = problem.expected(Certain().bind(40), 4)
    assert ours is not None
    for j in chosen:
        ours.add(j)
    assert ours.value == pytest.approx(expected)
    squared = np.where(same, (distance**2)[same].max() - distance**2, 0)
    problem = NearestNeighbor("sqeuclidean").problem(X, y)
    assert problem.value(chosen) == pytest.approx(squared[chosen].max(axis=0).sum())
    kept = NearestNeighbor("sqeuclidean", n_neighbors=39).problem(X[y == 0])
    assert kept.value(np.arange(3)) < problem.value(np.flatnonzero(y == 0)[:3])
    cosine = NearestNeighbor(metric="cosine").problem(X)
    norms = X / np.linalg.norm(X, axis=1, keepdims=True)
    half = (1 + norms @ norms.T) / 2
    assert cosine.value(chosen) == pytest.approx(half[chosen].max(axis=0).sum())


def test_truncated_similarities_keep_the_nearest() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2)).astype(np.float32)
    (block,) = NearestNeighbor(n_neighbors=5).problem(X).blocks  # type: ignore[attr-defined]
    assert len(block.values) == 150
    assert block.values.dtype == np.float32
    assert (np.bincount(block.targets) == 5).all()
    distance = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    fifth = np.sort(distance, axis=0)[4]
    for j in range(30):
        for i in block.targets[block.starts[j] : block.starts[j + 1]]:
            assert distance[j, i] <= fifth[i] + 1e-5


BAD = [
    (lambda: NearestNeighbor("manhattan").problem([[1.0]]), InvalidParameterError, "metric="),
    (lambda: NearestNeighbor(n_neighbors=0).problem([[1.0]]), InvalidParameterError, "=0"),
    (
        lambda: NearestNeighbor("precomputed", n_neighbors=3).problem([[1.0]]),
        InvalidParameterError, "taken as they are",
    ),
    (lambda: NearestNeighbor("precomputed").problem([[-1.0]]), InvalidDataError, "1 numbers below"),
    (lambda: NearestNeighbor("precomputed").problem([[np.nan]]), InvalidDataError, "NaN"),
    (lambda: NearestNeighbor("precomputed").problem([1.0]), InvalidInputError, "shape (1,)"),
    (lambda: NearestNeighbor("precomputed").problem([["a"]]), InvalidInputError, "numbers"),
    (
        lambda: NearestNeighbor("precomputed").problem([[1.0, 2.0]], ["a"]),
        InvalidInputError, "pass a square one",
    ),
    (lambda: NearestNeighbor().problem([[1.0], [2.0]], [1]), InvalidInputError, "y has shape (1,)"),
    (
        lambda: NearestNeighbor().problem(scipy.sparse.csr_array([[1.0]])),
        InvalidDataError, "Sparse data was passed",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "error", "told"), BAD, ids=[each[2] for each in BAD])
def test_bad_input_is_told(wrong: Callable[[], object], error: type[Exception], told: str) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert told in str(caught.value)
    assert "expected" in str(caught.value) or "required" in str(caught.value)


def test_what_would_not_fit_is_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.selection import _memory

    monkeypatch.setattr(_memory, "available_memory", lambda: 1e5)
    monkeypatch.setattr(similarities, "check_memory", _memory.check_memory)
    with pytest.raises(InvalidInputError, match=r"would take 0.0 GiB.*n_neighbors=64"):
        NearestNeighbor().problem(np.zeros((200, 2)))
    with pytest.raises(InvalidInputError, match="choose fewer"):
        function(np.ones((60, 60)), Independent(0.1), k=60)

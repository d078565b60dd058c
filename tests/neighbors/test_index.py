"""The index finds what a search of everything finds, to the last bit, whatever it has forgotten."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import Phase, given, settings

from effort import examples
from erasable.neighbors import _index_kernels as index_kernels
from erasable.neighbors._distance_kernels import (
    CHEBYSHEV,
    EUCLIDEAN,
    MANHATTAN,
    block_distances,
    box_distance,
)
from erasable.neighbors._index import Index
from neighbors.oracle import plain_neighbors
from subroutines import standalone

block_distances, box_distance = map(standalone, (block_distances, box_distance))

METRICS = {"euclidean": EUCLIDEAN, "manhattan": MANHATTAN, "chebyshev": CHEBYSHEV}
LEAVES = (None, 1, 5, 64)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def _values(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Any:
    if kind == "ties":
        return rng.integers(-2, 3, size=shape).astype(np.float64)
    if kind == "skewed":
        return np.exp(9.0 * rng.normal(size=shape)) * rng.choice([-1.0, 1.0], shape)
    return rng.normal(size=shape)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["ties", "skewed", "normal"])
def test_the_nearest_are_those_of_a_plain_search(kind: str, metric: str) -> None:
    rng = np.random.default_rng(3)
    for d in (1, 3, 11):
        X, queries = _values(rng, kind, (90, d)), _values(rng, kind, (6, d))
        inverse = np.exp(rng.normal(size=d))
        order = rng.permutation(90)[:80]
        found = {leaf: Index(X, order, leaf) for leaf in LEAVES}
        left = order.tolist()
        for gone in ([], [0], list(range(5, 30)), list(range(40))):
            rows = [left[i] for i in gone]
            left = [row for row in left if row not in rows]
            for scales in (None, inverse):
                factors = np.ones(d) if scales is None else scales
                want = [plain_neighbors(X, left, q, 4, factors, metric) for q in queries]
                want_distances = np.array([[near for near, _ in line] for line in want])
                want_rows = [[row for _, row in line] for line in want]
                for leaf, index in found.items():
                    if rows and scales is None:
                        index.remove(np.array(rows))
                    distances, nearest = index.nearest(queries, 4, scales, METRICS[metric])
                    assert distances.tobytes() == want_distances.tobytes(), (d, leaf)
                    assert nearest.tolist() == want_rows, (d, leaf)


@settings(max_examples=examples(60), phases=PHASES)
@given(data=st.data(), metric=st.sampled_from(list(METRICS)))
def test_no_record_is_nearer_than_its_box(data: st.DataObject, metric: str) -> None:
    """Rounded, too: otherwise a box could be passed over that holds the nearest."""
    numbers = st.floats(-1e150, 1e150) | st.floats(-1.0, 1.0, width=32)
    d = data.draw(st.integers(1, 9))
    block = data.draw(hnp.arrays(np.float64, (d, 5), elements=numbers))
    query = data.draw(hnp.arrays(np.float64, d, elements=numbers))
    scales = data.draw(hnp.arrays(np.float64, d, elements=st.floats(1e-3, 1e3)))
    out = np.zeros(5)
    for inverse in (np.zeros(0), scales):
        which = METRICS[metric]
        block_distances(block, query, inverse, which, np.finfo(np.float64).max, out)
        assert (
            box_distance(block.min(axis=1), block.max(axis=1), query, inverse, which) <= out.min()
        )


def test_a_record_as_near_as_the_last_is_not_passed_over() -> None:
    """Ties lie in other leaves than what was found first, at the very distance of their boxes."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]] * 8)
    for order in (np.arange(32), np.arange(32)[::-1].copy()):
        for leaf in LEAVES:
            _, rows = Index(X, order, leaf).nearest(np.zeros((1, 2)), 3)
            assert rows[0].tolist() == order[:3].tolist()


@pytest.mark.parametrize("leaf", LEAVES)
def test_what_was_removed_is_overwritten_with_the_sides_of_boxes(leaf: int | None) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 3))
    index, left = Index(X, np.arange(40), leaf), set(range(40))
    for rows in ([int(X[:, 0].argmax()), int(X[:, 1].argmin())], [3], list(range(10, 30))):
        rows = [row for row in rows if row in left]
        left -= set(rows)
        index.remove(np.array(rows))
        held = {value for part in index.tree for value in part.ravel().tolist()}
        assert not held & set(X[sorted(set(range(40)) - left)].ravel().tolist())
        _, _, lower, upper = index.tree
        if leaf is not None:
            some = X[sorted(left)]
            assert lower[0].tolist() == some.min(axis=0).tolist()
            assert upper[0].tolist() == some.max(axis=0).tolist()


def test_a_side_that_is_left_standing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control of the test above."""
    X = np.random.default_rng(8).normal(size=(40, 3))
    monkeypatch.setattr(index_kernels, "forget", _forget_without_boxes)
    index = Index(X, np.arange(40), 5)
    index.remove(np.array([int(X[:, 0].argmax())]))
    assert X[:, 0].max() in index.tree[3]


def _forget_without_boxes(rows: Any, tree: Any, slots: Any) -> None:
    blocks = tree[0]
    for slot in slots[rows].tolist():
        blocks[slot // blocks.shape[2], :, slot % blocks.shape[2]] = np.inf


def test_fewer_records_than_asked_for() -> None:
    for leaf in LEAVES:
        index = Index(np.array([[0.0], [1.0]]), np.arange(2), leaf)
        index.remove(np.array([0]))
        assert index.nearest(np.zeros((1, 1)), 2)[1].tolist() == [[1, -1]]
        index.remove(np.array([1]))
        assert index.nearest(np.zeros((1, 1)), 1)[1].tolist() == [[-1]]

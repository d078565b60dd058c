"""Who is not at risk keeps its cluster: against distances of all records, in changing metrics."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from effort import examples
from erasable.cluster._distances import TILE, Points, measure, new_scratch, rank_nearest
from erasable.cluster._filing import tile_bounds
from erasable.cluster._movement import MOST_GROWTH, movement, new_moves
from subroutines import standalone

measure, rank_nearest, tile_bounds, movement, new_moves = map(
    standalone, (measure, rank_nearest, tile_bounds, movement, new_moves)
)

NONE = np.empty(0)


def nearest(X: Any, centers: Any, weights: Any, pairs: bool) -> tuple[Any, Any, Any]:
    """Cluster, group and bound of every record, by the kernels of the real thing."""
    n, d = X.shape
    k = len(centers)
    points = Points.queries(X)
    labels, groups, bounds = np.empty(n, int), np.empty(n, int), np.empty(n)
    near, who, here = np.empty((3, TILE)), np.empty((2, TILE), np.int64), np.empty(TILE, np.float32)
    scratch = new_scratch(d, k)
    for start in range(0, n, TILE):
        m = measure(points, points.rows, start, centers, weights, scratch)
        rank_nearest(scratch.distances, m, near, who)
        tile_bounds(near, m, d, pairs, here)
        part = slice(start, start + m)
        labels[part] = who[0, :m]
        groups[part] = who[0, :m] * k + who[1, :m] if pairs else who[0, :m]
        bounds[part] = here[:m]
    return labels, groups, bounds


def moved(now: Any, then: Any, w_now: Any, w_then: Any, pairs: bool) -> tuple[Any, float]:
    k, d = now.shape
    moves = new_moves(k, d, pairs)
    stretch = movement(now, then, w_now, w_then, pairs, moves)
    return moves.limits, stretch


def scene(seed: int, size: float) -> tuple[NDArray[Any], ...]:
    """Records, and centroids and metrics at three times; many records lie near borders."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 7)), int(rng.integers(1, 9))
    weights = 4.0 ** rng.integers(-8, 9, size=d) * rng.uniform(1, 4, size=d)
    width = 1 / np.sqrt(weights)
    centers = rng.normal(size=(k, d)) * width
    X = rng.normal(size=(300, d)) * width * rng.choice([1.0, 30.0], size=(300, 1))
    ends = centers[rng.integers(0, k, 200)], centers[rng.integers(0, k, 200)]
    X[:200] = (ends[0] + ends[1]) / 2 + size * X[:200]
    path = [centers, weights]
    for _ in range(2):
        lone = rng.random(d) < 0.3
        centers = centers + size * rng.normal(size=(k, d)) * width * (rng.random((k, 1)) < 0.7)
        weights = weights * np.exp(size * rng.normal(size=d) * np.where(lone, 10.0, 0.1))
        path += [centers, weights]
    return X, *path


@pytest.mark.parametrize("pairs", [True, False])
@settings(max_examples=examples(150))
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0.3, 1e-2, 1e-4, 1e-8, 1e-15]))
def test_who_is_not_at_risk_keeps_its_cluster(pairs: bool, seed: int, size: float) -> None:
    X, c0, w0, c1, w1, c2, w2 = scene(seed, size)
    for metrics in ((w0, w1, w2), (w0, w0, w0), (NONE, NONE, NONE)):
        before, groups, bounds = nearest(X, c0, metrics[0], pairs)
        limits, stretch = moved(c1, c0, metrics[1], metrics[0], pairs)
        after = nearest(X, c1, metrics[1], pairs)[0]
        assert not ((before != after) & (bounds > limits[groups])).any()
        if stretch**2 > MOST_GROWTH:
            assert np.isinf(limits).all()
            continue
        # Filed under the snapshot in between, less the movement until then.
        left = np.maximum(bounds - limits[groups], 0.0) / stretch
        limits, _ = moved(c2, c1, metrics[2], metrics[1], pairs)
        later = nearest(X, c2, metrics[2], pairs)[0]
        assert not ((before != later) & (left > limits[groups]) & (left > 0)).any()


@pytest.mark.parametrize("part", ["metric", "centroids"])
def test_a_movement_left_out_would_be_seen(part: str) -> None:
    """Negative control: the scenes hold records that only the part left out puts at risk."""
    wrong = 0
    for seed in range(40):
        X, c0, w0, c1, w1, *_ = scene(seed, 1e-2)
        c1 = c1 if part == "centroids" else c0
        w1 = w1 if part == "metric" else w0
        before, groups, bounds = nearest(X, c0, w0, True)
        limits = moved(c0 if part == "centroids" else c1, c0, w0, w0, True)[0]
        wrong += int(((before != nearest(X, c1, w1, True)[0]) & (bounds > limits[groups])).sum())
    assert wrong > 20


def test_a_metric_that_grew_too_much_puts_everybody_at_risk() -> None:
    centers = np.array([[0.0, 1.0], [1.0, 0.0]])
    for factor in (2.1, 1e200, 1e308):
        limits, _ = moved(centers, centers, np.array([1.0, factor]), np.ones(2), True)
        assert np.isinf(limits).all()
    limits, _ = moved(centers, centers, np.ones(2), np.array([1e-300, 1.0]), True)
    assert np.isinf(limits).all()


def test_the_least_change_of_a_metric_puts_ties_at_risk() -> None:
    """Where no centroid is told from another by what changed, rounding still may."""
    centers = np.array([[0.0, 5.0], [1.0, 5.0]])
    limits, _ = moved(centers, centers, np.array([1.0, 1.0 + 2**-50]), np.ones(2), True)
    assert (limits > 0).all()
    limits, _ = moved(centers, centers, np.ones(2), np.ones(2), True)
    assert not limits.any()


@pytest.mark.parametrize("weights", [NONE, np.array([1.0, 4.0])], ids=["plain", "weighted"])
def test_a_movement_whose_square_underflows_counts(weights: Any) -> None:
    then = np.array([[0.0, 1.0], [3.0, 1.0]])
    now = then.copy()
    now[0, 0] = 1e-180
    limits, _ = moved(now, then, weights, weights, True)
    assert limits[0 * 2 + 1] >= 1e-180
    assert limits[1 * 2 + 0] >= 1e-180
    assert not moved(then, then, weights, weights, True)[0].any()

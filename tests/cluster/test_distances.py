"""Distances have the same bits wherever a record sits, and ranks are those of sorting."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from cluster.oracles import distance, distances, nearest
from effort import examples
from erasable.cluster._distances import TILE, Points, distances_to, new_scratch, rank_nearest
from erasable.cluster._lloyd import assign_some
from subroutines import standalone

rank_nearest = standalone(rank_nearest)

NO_WEIGHTS = np.empty(0)


def kernel_distances(
    X: np.ndarray, picks: np.ndarray, centers: np.ndarray, weights: np.ndarray = NO_WEIGHTS
) -> np.ndarray:
    k, d = centers.shape
    out = np.full((len(picks), k), np.nan)
    distances_to(Points.queries(X), picks, centers, weights, new_scratch(d, k), out)
    return out


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [*range(1, 10), 33])
def test_every_position_of_a_tile_gives_the_scalar_sum(d: int, weighted: bool) -> None:
    rng = np.random.default_rng(d)
    n = 2 * TILE + 13
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d)
    centers = X[rng.integers(0, n, 3)] + rng.normal(size=(3, d)) / 3.0
    weights = rng.uniform(0.1, 3.0, d) if weighted else NO_WEIGHTS
    scalar = np.array([[distance(x, c, weights if weighted else None) for c in centers] for x in X])
    assert same_bits(scalar, distances(X, centers, weights if weighted else None))
    for m in (1, 5, 7, 8, 9, 15, TILE - 1, TILE, TILE + 1, n):
        picks = rng.permutation(n)[:m]
        assert same_bits(kernel_distances(X, picks, centers, weights), scalar[picks])
    whole = np.arange(n)
    for shift in range(0, TILE, 5):
        picks = np.roll(whole, shift)
        assert same_bits(kernel_distances(X, picks, centers, weights), scalar[picks])


def test_narrow_storage_computes_in_float64() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, 5)).astype(np.float32)
    centers = rng.normal(size=(4, 5))
    expected = distances(X.astype(np.float64), centers)
    assert same_bits(kernel_distances(X, np.arange(70), centers), expected)


@settings(max_examples=examples(40))
@given(data=st.data())
def test_any_values_give_the_scalar_sum(data: st.DataObject) -> None:
    n, d, k = (data.draw(st.integers(1, high)) for high in (20, 6, 4))
    values = st.floats(-1e9, 1e9)
    X = data.draw(hnp.arrays(np.float64, (n, d), elements=values))
    centers = data.draw(hnp.arrays(np.float64, (k, d), elements=values))
    picks = np.arange(n)
    assert same_bits(kernel_distances(X, picks, centers), distances(X, centers))


@settings(max_examples=examples(80))
@given(data=st.data())
def test_ranks_are_those_of_a_stable_sort(data: st.DataObject) -> None:
    k, m = data.draw(st.integers(1, 9)), data.draw(st.integers(1, TILE))
    elements = st.sampled_from([0.0, 1.0, 1.0 + 2.0**-52, 2.0, 3.0, 7.5])
    dist = data.draw(hnp.arrays(np.float64, (k, m), elements=elements))
    near, who = np.full((3, TILE), np.nan), np.full((2, TILE), -1)
    padded = np.full((k, TILE), np.nan)
    padded[:, :m] = dist
    rank_nearest(padded, m, near, who)
    order = np.argsort(dist, axis=0, kind="stable")
    ranked = np.vstack([np.sort(dist, axis=0), np.full((3, m), 1e300)])[:3]
    assert np.array_equal(near[:, :m], ranked)
    assert np.array_equal(who[0, :m], order[0])
    if k > 1:
        assert np.array_equal(who[1, :m], order[1])


def test_ties_go_to_the_lower_index() -> None:
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, (200, 2)).astype(np.float64)
    centers = rng.integers(0, 4, (7, 2)).astype(np.float64)
    picks = np.arange(200)
    labels, squared = np.empty(200, np.int32), np.empty(200)
    assign_some(Points.queries(X), picks, centers, NO_WEIGHTS, new_scratch(2, 7), labels, squared)
    table = distances(X, centers)
    assert (np.sort(table, axis=1)[:, 0] == np.sort(table, axis=1)[:, 1]).mean() > 0.3
    assert np.array_equal(labels, nearest(X, centers))
    assert np.array_equal(squared, table.min(axis=1))

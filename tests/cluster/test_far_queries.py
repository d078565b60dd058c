"""Queries far from all records find the centroid that exact arithmetic finds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

MAGNITUDES = (1e3, 1e10, 1e16, 1e50, 1e153, 1e200, 1e300)


def exact_squares(x: np.ndarray, centers: np.ndarray) -> list[Fraction]:
    """Squared distances of one query to all centroids, in rational numbers."""
    return [
        sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x.tolist(), c, strict=True))
        for c in centers.tolist()
    ]


def queries(rng: np.random.Generator, d: int, size: float) -> np.ndarray:
    """Random directions, single axes, and points on both."""
    random = rng.normal(size=(30, d)) * size
    axes = np.vstack([np.eye(d), -np.eye(d)]) * size
    mixed = np.where(rng.random((20, d)) < 0.5, rng.normal(size=(20, d)), size)
    return np.vstack([random, axes, mixed])


@pytest.mark.parametrize("size", MAGNITUDES)
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("maker", [KMeans, QuantizedKMeans, DivideAndConquerKMeans])
def test_far_queries_are_compared_exactly(maker: Any, offset: float, size: float) -> None:
    rng = np.random.default_rng(3)
    model = maker(5, random_state=0).fit(rng.normal(size=(400, 3)) + offset)
    # The model's centroids are these plus the origin, as real numbers.
    centers = model._centers
    X = queries(rng, 3, size)
    labels, far = model.predict(X), model.transform(X)
    for i, x in enumerate(X):
        apart = [Fraction(a) - Fraction(b) for a, b in zip(x, model._grid.origin, strict=True)]
        squares = [
            sum((a - Fraction(b)) ** 2 for a, b in zip(apart, c, strict=True))
            for c in centers.tolist()
        ]
        assert labels[i] == squares.index(min(squares))
        for square, distance in zip(squares, far[i].tolist(), strict=True):
            error = Fraction(distance) ** 2 / square - 1
            assert abs(error) < Fraction(1, 10**6)


@pytest.mark.parametrize("size", MAGNITUDES)
def test_far_queries_that_tie_take_the_lower_index(size: float) -> None:
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [-1.0, -5.0], [1.0, -5.0]])
    model = KMeans(5, random_state=0).fit(np.repeat(X, 3, axis=0))
    query = np.array([[0.0, size], [0.0, -size], [size, 0.0], [-size, -5.0 * size]])
    for x, label in zip(query, model.predict(query), strict=True):
        squares = exact_squares(x, model.cluster_centers_)
        assert label == squares.index(min(squares))


@pytest.mark.parametrize("size", [1e12, 1e150, 1e290])
def test_far_queries_of_a_pipeline(size: float) -> None:
    rng = np.random.default_rng(4)
    scales = np.array([1e-3, 1.0, 1e4])
    model = make_pipeline(StandardScaler(), KMeans(4, random_state=0))
    model.fit(rng.normal(size=(300, 3)) * scales)
    X = queries(rng, 3, size)
    last = model.steps[-1][1]
    metric = [Fraction(w) for w in last._metric().tolist()]
    labels = model.predict(X)
    for x, label in zip(X, labels, strict=True):
        squares = [
            sum(
                w * (Fraction(a) - Fraction(o) - Fraction(b)) ** 2
                for w, a, o, b in zip(metric, x, last._grid.origin, c, strict=True)
            )
            for c in last._centers.tolist()
        ]
        assert label == squares.index(min(squares))


def test_training_records_are_never_far() -> None:
    rng = np.random.default_rng(5)
    for scale in (1e-140, 1.0, 1e140):
        X = np.exp(2.0 * rng.normal(size=(300, 3))) * scale
        model = KMeans(4, random_state=0).fit(X)
        assert np.array_equal(model.labels_, model.predict(X))
        assert np.array_equal(model.transform(X).argmin(axis=1), model.labels_)
        model.delete(np.argsort(X[:, 0])[-100:])
        assert np.array_equal(model.labels_, model.predict(X[model.ids_]))
        assert np.isfinite(model.transform(X)).all()


def test_float32_queries_and_none() -> None:
    rng = np.random.default_rng(6)
    model = KMeans(3, random_state=0).fit(rng.normal(size=(60, 2)))
    query = np.array([[3e38, 1.0], [-3e38, 1e30]], np.float32)
    assert np.array_equal(model.predict(query), model.predict(query.astype(np.float64)))
    assert np.isinf(model.score(np.array([[1e300, 0.0]])))

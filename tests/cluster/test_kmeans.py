"""KMeans equals a naive Lloyd's algorithm at every level, and scikit-learn's from equal seeds."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans as ScikitKMeans

from cluster import oracles
from erasable.audit import refit
from erasable.cluster import KMeans
from erasable.cluster._layout import new_levels


def blobs(rng: np.random.Generator, n: int, d: int, k: int, spread: float) -> np.ndarray:
    centers = rng.normal(size=(k, d)) * 3.0
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, d)) * spread


def cases() -> dict[str, tuple[np.ndarray, int, int]]:
    """Data on the grid, number of clusters, iterations."""
    rng = np.random.default_rng(41)
    normal = rng.normal(size=(400, 3))
    return {
        "overlapping": (oracles.on_grid(normal), 5, 10),
        "separated": (oracles.on_grid(blobs(rng, 300, 4, 4, 0.05)), 4, 10),
        "one iteration": (oracles.on_grid(normal), 3, 1),
        "until it stands": (oracles.on_grid(normal), 4, 200),
        "lattice": (rng.integers(0, 4, (300, 2)).astype(float), 6, 10),
        "one column of ties": (np.repeat(np.arange(12.0), 9)[:, None], 5, 10),
        "duplicates": (oracles.on_grid(rng.normal(size=(9, 2)))[rng.integers(0, 9, 120)], 12, 10),
        "one cluster": (oracles.on_grid(normal[:50]), 1, 10),
        "a cluster each": (oracles.on_grid(normal[:30]), 30, 10),
        "more than 16": (oracles.on_grid(rng.normal(size=(500, 2))), 23, 10),
        "more than 256": (oracles.on_grid(rng.normal(size=(700, 2))), 300, 4),
    }


CASES = cases()


def kinds() -> list[Any]:
    """Every case in either type; kernels for narrow values and wide labels take long to compile."""
    soaked = {("more than 256", np.float32): pytest.mark.soak}
    return [
        pytest.param(name, dtype, marks=soaked.get((name, dtype), ()))
        for name in CASES
        for dtype in (np.float64, np.float32)
    ]


@pytest.mark.parametrize(("name", "dtype"), kinds())
def test_every_level_is_that_of_naive_lloyd(name: str, dtype: Any) -> None:
    X, k, max_iter = CASES[name]
    model = KMeans(k, max_iter=max_iter, random_state=0).fit(X.astype(dtype))
    levels = oracles.lloyd(X, model.init_centers_, max_iter)
    path = model.state()["path"]
    assert len(path["centers"]) == len(levels)
    for t, level in enumerate(levels):
        assert np.array_equal(path["centers"][t], level.centers)
        assert path["sums"][t].tolist() == level.sums
        assert path["counts"][t].tolist() == level.counts
    assert np.array_equal(model.cluster_centers_, levels[-1].centers)
    assert np.array_equal(model.labels_, levels[-1].labels)
    assert model.labels_.dtype == np.int32
    assert model.inertia_ == oracles.loss(X, levels[-1].centers)
    assert model.n_iter_ == min(len(levels), max_iter)


def test_the_cases_are_what_they_say() -> None:
    def fit(name: str) -> KMeans:
        X, k, max_iter = CASES[name]
        return KMeans(k, max_iter=max_iter, random_state=0).fit(X)

    assert (fit("duplicates").state()["path"]["counts"][-1] == 0).any()
    assert 16 < fit("until it stands").n_iter_ < 200
    assert fit("overlapping").n_iter_ == 10
    assert fit("separated").n_iter_ < 10
    assert fit("more than 256").labels_.max() > 255
    for name in ("lattice", "one column of ties"):
        table = np.sort(oracles.distances(CASES[name][0], fit(name).init_centers_), axis=1)
        assert (table[:, 0] == table[:, 1]).any()


def test_an_empty_cluster_keeps_its_centroid() -> None:
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 10, axis=0)
    model = KMeans(5, random_state=1).fit(X)
    path = model.state()["path"]
    empty = path["counts"][-1] == 0
    assert empty.sum() == 3
    assert np.array_equal(model.cluster_centers_[empty], model.init_centers_[empty])


@pytest.mark.parametrize("k", [1, 2, 256, 257, 65_536, 65_537])
def test_labels_have_room_for_every_cluster(k: int) -> None:
    """A fit with so many clusters would take minutes; the type of the labels decides it."""
    assert np.iinfo(new_levels(1, 1, k, 1).labels.dtype).max >= k - 1


# -- scikit-learn ------------------------------------------------------------------------------


def from_our_seeds(model: KMeans, X: np.ndarray, **options: Any) -> ScikitKMeans:
    return ScikitKMeans(
        model.n_clusters, init=model.init_centers_, n_init=1, max_iter=model.max_iter, **options
    ).fit(X)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("seed", range(5))
def test_inertia_is_scikit_learns_from_the_same_seeds(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    for spread in (0.1, 1.0):
        X = blobs(rng, 500, 4, 6, spread) + offset
        model = KMeans(6, random_state=seed).fit(X)
        peer = from_our_seeds(model, X, tol=0)
        assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-6)
        assert -model.score(X) == pytest.approx(-peer.score(X), rel=1e-6)


@pytest.mark.parametrize("tol", [1e-5, 1e-4, 1e-3, 1e-2, 0.1])
def test_a_tolerance_stops_where_scikit_learn_stops(tol: float) -> None:
    iterations = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = oracles.on_grid(rng.normal(size=(400, 3)))
        model = KMeans(4, max_iter=100, tol=tol, random_state=seed).fit(X)
        peer = from_our_seeds(model, X, tol=tol)
        assert model.n_iter_ == peer.n_iter_
        assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-12)
        assert np.allclose(model.cluster_centers_, peer.cluster_centers_, rtol=1e-9, atol=1e-9)
        iterations.add(model.n_iter_)
    assert len(iterations) > 2


@pytest.mark.parametrize("max_iter", [1, 2, 300])
def test_iterations_are_counted_as_scikit_learn_counts_them(max_iter: int) -> None:
    for seed in range(6):
        X = oracles.on_grid(np.random.default_rng(seed).normal(size=(200, 2)))
        for tol in (0.0, 1e-3):
            model = KMeans(3, max_iter=max_iter, tol=tol, random_state=seed).fit(X)
            assert model.n_iter_ == from_our_seeds(model, X, tol=tol).n_iter_


def test_seeding_is_as_good_as_scikit_learns() -> None:
    rng = np.random.default_rng(12)
    for X, k in (
        (blobs(rng, 900, 5, 10, 0.15), 10),
        (rng.normal(size=(800, 4)), 6),
        (np.exp(rng.normal(size=(800, 3))), 8),
    ):
        ours = [KMeans(k, random_state=seed).fit(X).inertia_ for seed in range(20)]
        theirs = [
            ScikitKMeans(k, n_init=1, max_iter=10, tol=0, random_state=seed).fit(X).inertia_
            for seed in range(20)
        ]
        assert np.mean(ours) <= 1.02 * np.mean(theirs)


# -- what a model answers ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_answers_about_data(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    X = (
        (1.7e9 + 1e3 * rng.normal(size=(300, 3))).astype(dtype)
        if dtype is np.float64
        else (rng.normal(size=(300, 3)).astype(dtype))
    )
    model = KMeans(4, random_state=0).fit(X)
    assert np.array_equal(model.labels_, model.predict(X))
    far = model.transform(X)
    assert far.shape == (300, 4)
    exact = np.sqrt(oracles.distances(X.astype(float), model.cluster_centers_))
    scale = X.astype(float).std()
    assert np.allclose(far, exact, rtol=1e-6, atol=1e-6 * scale)
    assert np.array_equal(far.argmin(axis=1), model.predict(X))
    assert model.score(X) == -model.inertia_
    assert model.inertia_ == pytest.approx(float((exact.min(axis=1) ** 2).sum()), rel=1e-5)
    fresh = KMeans(4, random_state=0)
    assert np.array_equal(fresh.fit_predict(X), model.labels_)
    assert np.array_equal(KMeans(4, random_state=0).fit_transform(X), far)
    new = rng.normal(size=(50, 3)) * scale * 5.0 + X.mean(axis=0)
    assert np.array_equal(model.predict(new), model.transform(new).argmin(axis=1))
    assert model.get_feature_names_out().tolist() == [f"kmeans{i}" for i in range(4)]


def test_answers_stay_when_a_model_is_kept_without_its_files() -> None:
    X = np.random.default_rng(6).normal(size=(120, 2))
    model = KMeans(3, random_state=0).fit(X)
    model.delete([3, 50])
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.labels_, model.labels_)
    assert again.inertia_ == model.inertia_
    assert again.n_iter_ == model.n_iter_
    assert np.array_equal(again.init_centers_, model.init_centers_)
    again.delete([7])
    model.delete([7])
    assert again.digest() == model.digest()


def test_a_seed_drawn_from_the_system_can_be_used_again() -> None:
    X = np.random.default_rng(6).normal(size=(60, 2))
    for given in (None, np.random.default_rng(0), np.random.RandomState(0), 2**64 - 1):
        model = KMeans(3, random_state=given).fit(X)
        assert KMeans(3, random_state=model.seed_).fit(X).digest() == model.digest()
        model.delete([4])
        assert refit(model).digest() == model.digest()

"""Deletions that change what a model takes for granted: grids, levels, seeds, whole clusters."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.lawful import assert_lawful, seeds_of
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.core.errors import ArtifactError
from erasable.core.records import Records

Make = Callable[..., Any]
ALL = [KMeans, QuantizedKMeans, DivideAndConquerKMeans]
every_model = pytest.mark.parametrize("make", ALL, ids=lambda cls: cls.__name__)


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def top(model: Any) -> list[int]:
    return model.state()["grid"]["top"].tolist()


# -- the grid ----------------------------------------------------------------------------------


@every_model
def test_a_lossless_column_that_narrows_is_carried_through(make: Make) -> None:
    """Integers stay what they are on a finer grid; only the exponent in the state changes."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(-9, 10, 200), rng.integers(-100, 101, 200)]).astype(float)
    X[17, 0] = 60.0
    model = make(3, random_state=0).fit(X)
    before = top(model)
    deletion = model.delete([17])
    assert top(model)[0] < before[0]
    assert top(model)[1] == before[1]
    assert deletion.action != "refit" or 17 in seeds_of(make(3, random_state=0).fit(X))
    assert_lawful(model, X)


@every_model
def test_a_column_that_is_rounded_anew_is_learned_again(make: Make) -> None:
    X = normal(200, 2)
    X[17, 0] = 2e4
    model = make(3, random_state=0).fit(X)
    before = top(model)
    assert model.delete([17]).action == "refit"
    assert top(model)[0] < before[0] - 10
    assert_lawful(model, X)


@every_model
@pytest.mark.parametrize("gap", [3.0e4, 3.0e7])
def test_an_origin_that_changes(make: Make, gap: float) -> None:
    X = np.column_stack([1.7e9 + 100.0 * normal(150, 1)[:, 0], normal(150, 1, 2)[:, 0]])
    X[[3, 90], 0] += gap
    model = make(3, random_state=0).fit(X)
    before = model.state()["grid"]
    for record in (3, 90, 5):
        model.delete([record])
        assert_lawful(model, X)
    after = model.state()["grid"]
    assert before["top"][0] != after["top"][0]
    if gap > 1e7:
        assert before["origin"][0] != after["origin"][0]


@every_model
def test_a_column_that_becomes_constant(make: Make) -> None:
    X = np.column_stack([np.full(120, 2.5), normal(120, 1)[:, 0]])
    X[[8, 60], 0] = [2.0, 3.0]
    model = make(3, random_state=4).fit(X)
    for record in (8, 60, 2):
        model.delete([record])
        assert_lawful(model, X)
    assert model.state()["grid"]["origin"][0] == 2.5


@every_model
@pytest.mark.parametrize("tol", [0.0, 1e-3])
def test_extremes_of_every_column_one_after_the_other(make: Make, tol: float) -> None:
    X = np.exp(normal(160, 3))
    options = {"tol": tol} if make is KMeans else {}
    model = make(3, random_state=0, **options).fit(X)
    for step in range(24):
        ids = model.ids_
        column = X[ids, step % 3]
        model.delete([int(ids[column.argmax() if step % 2 else column.argmin()])])
        assert_lawful(model, X)


# -- levels ------------------------------------------------------------------------------------


def drifting(seed: int) -> np.ndarray:
    """Clusters that touch: the run goes on for many iterations."""
    return np.random.default_rng(seed).normal(size=(90, 2)) * [3.0, 1.0]


@pytest.mark.parametrize("k", [2, 4])
def test_runs_that_stood_still_move_again_and_the_other_way_round(k: int) -> None:
    longer = shorter = beyond = 0
    for seed in range(12):
        X = drifting(seed)
        model = KMeans(k, max_iter=100, random_state=seed).fit(X)
        for record in np.random.default_rng(seed).permutation(90)[:12].tolist():
            before = model.n_iter_
            action = model.delete([record]).action
            after = assert_lawful(model, X).n_iter_
            if action != "refit":
                longer += after > before
                shorter += after < before
                beyond += (before <= 16) != (after <= 16)  # where there was room at first
    assert longer
    assert shorter
    assert beyond or k == 2


def test_separated_clusters_that_begin_to_share_records() -> None:
    """They converge at once; deleting one side of a cluster moves the others' borders."""
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(80, 2)) * 0.8 + [4.0 * c, 0.0] for c in range(4)])
    model = KMeans(4, random_state=2).fit(X)
    early = model.n_iter_
    assert early < 10
    order = np.argsort(X[80:160, 0])[:55] + 80  # the left side of the second cluster
    keep = set(seeds_of(model)) | set(seeds_of(model, "candidates"))
    seen = set()
    for record in order.tolist():
        if record in keep:
            continue
        seen.add(model.delete([record]).action)
        assert_lawful(model, X)
    assert "refit" not in seen
    assert model.n_iter_ >= 1


@every_model
def test_clusters_that_become_empty(make: Make) -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (60, 2)).astype(float)
    empty = 0
    for seed in range(3):
        model = make(8, random_state=seed).fit(X)
        for record in rng.permutation(60)[:45].tolist():
            model.delete([record])
            assert_lawful(model, X)
            nodes = model.state().get("nodes", {"all": model.state()})
            empty += any((node["path"]["counts"] == 0).any() for node in nodes.values() if node)
    assert empty


@every_model
def test_a_record_that_was_a_cluster_alone(make: Make) -> None:
    X = normal(100, 2) * 0.1
    X[:4] = [[9.0, 9.0], [-9.0, 9.0], [9.0, -9.0], [-9.0, -9.0]]
    model = make(5, random_state=1).fit(X)
    for record in (2, 0, 50, 3, 1):
        model.delete([record])
        assert_lawful(model, X)


# -- how many ----------------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("k", [1, 17, *(pytest.param(k, marks=pytest.mark.soak) for k in (2, 40))])
def test_down_to_one_record_a_cluster(make: Make, k: int) -> None:
    X = np.round(normal(40, 2), 1)
    model = make(k, random_state=0).fit(X)
    for record in np.random.default_rng(k).permutation(40)[: 40 - k].tolist():
        model.delete([record], digest=False)
        if record % 3 == 0:
            assert_lawful(model, X)
    assert_lawful(model, X)
    assert len(model.ids_) == k
    assert model.inertia_ >= 0.0


@pytest.mark.soak
@every_model
def test_more_than_256_clusters(make: Make) -> None:
    X = normal(330, 2)
    options = {"width": 1} if make is DivideAndConquerKMeans else {}
    model = make(300, random_state=0, **options).fit(X)
    assert model.labels_.max() > 255
    spare = np.setdiff1d(np.arange(330), seeds_of(model))
    for record in [*spare[:6].tolist(), seeds_of(model)[250]]:
        model.delete([record])
        assert_lawful(model, X)


@every_model
def test_batches_singles_and_order_are_one(make: Make) -> None:
    X = normal(260, 3, 8)
    gone = np.random.default_rng(0).permutation(260)[:60].tolist()
    batch, singles, mixed = (make(4, random_state=3).fit(X) for _ in range(3))
    batch.delete(gone)
    for record in gone[::-1]:
        singles.delete([record], digest=False)
    for start in (0, 1, 2, 30):
        mixed.delete(gone[start : {0: 1, 1: 2, 2: 30, 30: 60}[start]])
    assert batch.digest() == singles.digest() == mixed.digest()
    assert_lawful(batch, X)


# -- what stays fixed --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (KMeans, {"n_clusters": 5}),
        (KMeans, {"max_iter": 2, "tol": 0.1}),
        (QuantizedKMeans, {"epsilon": 0.5}),
        (QuantizedKMeans, {"gamma": 0.9, "n_clusters": 2}),
        (DivideAndConquerKMeans, {"n_clusters": 5}),
        (DivideAndConquerKMeans, {"width": 3, "height": 2, "weight_by_mass": True}),
    ],
)
def test_parameters_set_after_fit_are_for_the_next_fit(make: Make, change: Any) -> None:
    X = normal(200, 2)
    X[7] *= 1e4  # when it goes, everything is learned again
    model, twin = (make(3, random_state=0).fit(X) for _ in range(2))
    model.set_params(**change)
    for record in (11, 7, 12):
        model.delete([record])
        twin.delete([record])
        assert model.digest() == twin.digest()
        assert model.n_iter_ == twin.n_iter_
    again = pickle.loads(pickle.dumps(model))
    again.delete([13])
    twin.delete([13])
    assert again.digest() == twin.digest()
    assert_lawful(twin, X)


@every_model
def test_records_shared_with_a_model_that_has_deleted(make: Make) -> None:
    X = normal(150, 2)
    records = Records(X)
    first = make(3, random_state=0).fit(records)
    first.delete([0, 7, 149])
    second = make(3, random_state=0).fit(records)
    assert second.digest() == first.digest()
    for record in (60, 8):
        second.delete([record])
        assert_lawful(second, X)
    assert_lawful(first, X)


@every_model
def test_records_that_were_altered_are_refused(make: Make, tmp_path: Path) -> None:
    """A file and the right ids with other values are not the model, even if centroids agree."""
    X = normal(40, 2)
    model = make(4, random_state=0).fit(X)
    model.save(tmp_path / "model")
    agree = 0
    for a in range(0, 40, 3):
        for b in range(a + 1, 40, 5):
            Y = X.copy()
            Y[[a, b]] = X[[b, a]]
            with pytest.raises(ArtifactError, match=r"other values than|another X"):
                make.load(tmp_path / "model", (Y, np.arange(40)))
            agree += make(4, random_state=0).fit(Y).digest() == model.digest()
    assert agree

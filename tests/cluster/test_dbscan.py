"""Density clustering: scikit-learn's labels, the definition, and the law on lists of neighbours."""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

import erasable
from effort import examples
from erasable import Records
from erasable.cluster import DBSCAN
from erasable.core.errors import (
    DetachedError,
    InvalidDataError,
    InvalidInputError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
)
from erasable.neighbors import _near as near_module
from erasable.neighbors import _near_kernels as near_kernels
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

KINDS = ["blobs", "moons", "grid", "copies", "noise", "one", "wide"]


def drawn(kind: str, seed: int, n: int = 200) -> tuple[Any, float]:
    """Records of a kind, and a distance that leaves some of it noise."""
    rng = np.random.default_rng(seed)
    if kind == "blobs":
        return make_blobs(n, 3, centers=4, cluster_std=1.5, random_state=seed)[0], 1.2
    if kind == "moons":
        return make_moons(n, noise=0.08, random_state=seed)[0], 0.12
    if kind == "grid":  # distances of exactly eps, and records in one place
        return rng.integers(0, 12, size=(n, 2)).astype(float), 1.0
    if kind == "copies":
        return rng.normal(size=(5, 4))[rng.integers(0, 5, size=n)], 1e-9
    if kind == "noise":
        return rng.normal(size=(n, 6)) * 1e3, 0.5
    if kind == "one":
        return rng.normal(size=(1, 2)), 0.5
    return make_blobs(n, 20, centers=3, random_state=seed)[0], 5.5


def theirs(X: Any, weights: Any = None, **params: Any) -> Any:
    """scikit-learn's model, which computes distances as sums of squares where it has a tree."""
    return sklearn.cluster.DBSCAN(algorithm="kd_tree", **params).fit(X, sample_weight=weights)


def defined(X: Any, ids: Any, weights: Any, eps: float, least: int) -> tuple[list[int], list[Any]]:
    """Labels and ids of core records by the definition: all pairs, components, smallest ids."""
    near = [
        [sum((a - b) * (a - b) for a, b in zip(x, y, strict=True)) <= eps * eps for y in X.tolist()]
        for x in X.tolist()
    ]
    table = np.array(near)
    core = np.array([math.fsum(weights[each]) >= least for each in table])
    _, component = connected_components(csr_array(table & core & core[:, None]), directed=False)
    order = sorted(range(len(ids)), key=lambda i: (isinstance(ids[i], str), ids[i]))
    numbers: dict[int, int] = {}
    for i in order:
        if core[i]:
            numbers.setdefault(int(component[i]), len(numbers))
    labels = []
    for i in range(len(ids)):
        touched = [i] if core[i] else np.flatnonzero(table[i] & core).tolist()
        labels.append(min((numbers[int(component[j])] for j in touched), default=-1))
    return labels, [ids[i] for i in order if core[i]]


def told(model: Any) -> list[Any]:
    """Everything that can be asked, by id."""
    labels = dict(zip(model.ids_.tolist(), model.labels_.tolist(), strict=True))
    core = model.core_sample_ids_
    return [labels, core.dtype, core.tolist(), model.components_.tolist(), model.digest()]


@parametrize_with_checks([DBSCAN(), DBSCAN(2.0, min_samples=1)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_those_of_scikit_learn(kind: str, seed: int) -> None:
    """To the number, where ids ascend; before and after deletions."""
    X, eps = drawn(kind, seed)
    gone = np.random.default_rng(seed).permutation(len(X))[: len(X) // 3]
    for least in (1, 2, 5):
        model = DBSCAN(eps, min_samples=least).fit(X)
        for leaving in (gone[:0], gone):
            model.delete(leaving)
            twin = theirs(X[model.ids_], eps=eps, min_samples=least)
            assert model.labels_.tolist() == twin.labels_.tolist()
            assert model.labels_.dtype == twin.labels_.dtype
            found = model.ids_[twin.core_sample_indices_]
            assert model.core_sample_ids_.tolist() == found.tolist()
            assert model.components_.tolist() == twin.components_.tolist()
        own, labels = DBSCAN(eps, min_samples=least), theirs(X, eps=eps, min_samples=least).labels_
        assert own.fit_predict(X).tolist() == labels.tolist()


def test_what_is_drawn_has_all_kinds_of_records() -> None:
    """The comparison is of something: core records, borders of two clusters, and noise."""
    shared = noise = 0
    for kind in ("blobs", "moons", "grid", "wide"):
        X, eps = drawn(kind, 0)
        model = DBSCAN(eps).fit(X)
        labels, core = model.labels_, np.isin(model.ids_, model.core_sample_ids_)
        noise += int(np.count_nonzero(labels == -1))
        assert core.any()
        assert (~core & (labels >= 0)).any()
        for x in X[~core]:
            within = ((X - x) ** 2).sum(axis=1) <= eps * eps
            shared += len(set(labels[core & within].tolist())) > 1
    assert shared
    assert noise
    X, eps = drawn("noise", 0)
    assert set(DBSCAN(eps).fit(X).labels_.tolist()) == {-1}


@pytest.mark.parametrize("kind", ["blobs", "grid", "wide"])
def test_clusters_are_the_definition(kind: str) -> None:
    """With ids of any kind in any order, and weights."""
    X, eps = drawn(kind, 7, n=90)
    rng = np.random.default_rng(0)
    numbers = rng.permutation(900)[:90] - 400
    mixed = [int(i) if i % 3 else f"p{i}" for i in numbers.tolist()]
    weights = rng.choice([0.0, 0.1, 0.5, 1.0, 2.5], size=90)
    for ids in (numbers.tolist(), mixed):
        for some in (None, weights):
            model = DBSCAN(eps, min_samples=4).fit(X, sample_weight=some, ids=ids)
            model.delete(ids[:10])
            counted = np.ones(80) if some is None else some[10:]
            labels, core = defined(X[10:], ids[10:], counted, eps, 4)
            assert model.labels_.tolist() == labels
            assert model.core_sample_ids_.tolist() == core


def test_whole_weights_are_copies() -> None:
    X, eps = drawn("blobs", 3, n=80)
    weights = np.random.default_rng(1).integers(0, 4, size=80)
    model = DBSCAN(eps).fit(X, sample_weight=weights)
    assert model.labels_.tolist() == theirs(X, weights, eps=eps).labels_.tolist()
    many = np.repeat(np.arange(80), weights)
    copied = DBSCAN(eps).fit(X[many])
    own, first = np.unique(many, return_index=True)
    assert model.labels_[own].tolist() == copied.labels_[first].tolist()


def test_a_sum_of_weights_is_rounded_once() -> None:
    """Ten times 0.1 is 1, in any order: added one by one it is less."""
    assert sum([0.1] * 10) < 1.0
    model = DBSCAN(1.0, min_samples=1).fit(np.zeros((10, 1)), sample_weight=0.1)
    assert model.labels_.tolist() == [0] * 10
    weights = np.array([1e16, 1.0, 1.0, 2.0**53 - 2.0])
    least = int(math.fsum(weights))
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]):
        model = DBSCAN(1.0, min_samples=least).fit(np.zeros((4, 1)), sample_weight=weights[order])
        assert model.labels_.tolist() == [0] * 4
        model = DBSCAN(1.0, min_samples=least + 4).fit(np.zeros((4, 1)), sample_weight=weights)
        assert model.labels_.tolist() == [-1] * 4


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    d=st.sampled_from([1, 2, 17]),
    least=st.integers(1, 6),
    eps=st.sampled_from([0.3, 1.0, 1.5, 4.0]),
    weighted=st.booleans(),
    texts=st.booleans(),
    narrow=st.booleans(),
    asked=st.booleans(),
    steps=st.lists(st.sampled_from("darcs"), min_size=1, max_size=8),
)
@settings(max_examples=examples(300), deadline=None)
def test_a_life_ends_as_a_fresh_fit(
    seed: int, n: int, d: int, least: int, eps: float, weighted: bool, texts: bool, narrow: bool,
    asked: bool, steps: list[str],
) -> None:  # fmt: skip
    """Deletions, additions, replacements, corrections and copies, in any order."""
    rng = np.random.default_rng(seed)

    def records(m: int) -> tuple[Any, Any]:
        X = rng.integers(0, 4, size=(m, d)) + rng.choice([0.0, 0.0, 0.25], size=(m, d))
        weights = rng.choice([0.1, 0.1, 1.0, 3.0], size=m)
        return X.astype(np.float32 if narrow else np.float64), weights

    def names(m: int) -> list[Any]:
        nonlocal used
        used += m
        found = fresh_ids[used - m : used].tolist()
        return [f"p{i}" for i in found] if texts else found

    fresh_ids, used = rng.permutation(4000), 0
    X, weights = records(n)
    ids = names(n)
    held = dict(zip(ids, zip(X, weights, strict=True), strict=True))
    given_weights = {"sample_weight": weights} if weighted else {}
    model = DBSCAN(eps, min_samples=least).fit(X, ids=ids, **given_weights)
    for step in steps:
        if asked:
            _ = model.labels_
        gone = rng.permutation(list(held))[: int(rng.integers(0, max(1, len(held) // 2) + 1))]
        leaving = [each if texts else int(each) for each in gone.tolist()]
        if len(leaving) == len(held):
            continue
        come = int(rng.integers(1, 6))
        if step == "s":
            model = pickle.loads(pickle.dumps(model))
        elif step == "d":
            model.delete(leaving, digest=False)
        else:
            X, weights = records(len(leaving) if step == "c" else come)
            more = {"sample_weight": weights} if weighted else {}
            if step == "c":
                model.correct(leaving, X, **more, digest=False)
                held.update(zip(leaving, zip(X, weights, strict=True), strict=True))
                continue
            new = names(come)
            if step == "a":
                model.add(X, ids=new, **more, digest=False)
                leaving = []
            else:
                model.replace(leaving, X, ids=new, **more, digest=False)
            held.update(zip(new, zip(X, weights, strict=True), strict=True))
        if step in "dr":
            for each in leaving:
                del held[each]
    left = rng.permutation(list(held)).tolist()
    X = np.array([held[each][0] for each in left]).reshape(len(left), d)
    weights = np.array([held[each][1] for each in left])
    fresh = DBSCAN(eps, min_samples=least)
    fresh.fit(X, ids=left, **({"sample_weight": weights} if weighted else {}))
    assert told(model) == told(fresh)
    counted = weights if weighted else np.ones(len(left))
    labels, core = defined(X.astype(float), left, counted, eps, least)
    assert fresh.labels_.tolist() == labels
    assert fresh.core_sample_ids_.tolist() == core
    assert _entries(model) == _entries(fresh)


def _entries(model: Any) -> dict[Any, list[Any]]:
    """Return the ids that the lists of neighbours hold, by id."""
    near, names = model._near(), model._memory.ids
    assert (near.counts[~model._memory.live] == 0).all()
    return {
        names[row]: sorted(
            names[near.rows[near.starts[row] : near.starts[row] + near.counts[row]]].tolist()
        )
        for row in np.flatnonzero(model._memory.live).tolist()
    }


def test_a_list_that_keeps_a_deleted_record_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a deletion that leaves the record in the lists of its neighbours."""

    def wrong(leaving: Any, starts: Any, counts: Any, rows: Any) -> None:
        counts[leaving] = 0

    X = np.zeros((5, 1))
    fresh = DBSCAN().fit(X[:4])
    model = DBSCAN().fit(X)
    model.delete([4])
    assert told(model) == told(fresh)
    monkeypatch.setattr(near_kernels, "leave_lists", wrong)
    model = DBSCAN().fit(X, sample_weight=[1.0, 1.0, 1.0, 1.0, 1.0])
    model.delete([4])
    with pytest.raises(AssertionError):
        assert _entries(model) == _entries(fresh)


def test_a_deletion_updates_the_lists_and_searches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, eps = drawn("blobs", 1)
    model = DBSCAN(eps).fit(X)
    near = model._near()
    monkeypatch.delattr(type(model._memory), "_within")
    for gone in ([3], [5, 9], list(range(20, 60))):
        assert model.delete(gone).action == "updated"
        _ = model.labels_
    assert model._near() is near
    left = np.setdiff1d(np.arange(200), [3, 5, 9, *range(20, 60)])
    assert model.labels_.tolist() == theirs(X[left], eps=eps).labels_.tolist()
    assert not np.isin(near.rows[near.rows >= 0], [3, 5, 9]).any()


def test_lists_move_when_half_of_the_records_are_gone() -> None:
    X, eps = drawn("blobs", 1)
    model = DBSCAN(eps).fit(X)
    model.delete(np.arange(0, 200, 2))
    assert model._memory.live.size == 100
    assert model._memory._near is not None
    model.delete([1, 3])
    assert told(model) == told(DBSCAN(eps).fit(X[5::2], ids=np.arange(5, 200, 2)))


@pytest.mark.parametrize("n", [1, 63, 700])
def test_lists_that_fill_the_room_for_them(n: int) -> None:
    """All records are near each other."""
    model = DBSCAN(9.0, min_samples=n).fit(np.random.default_rng(0).random((n, 2)))
    assert model.labels_.tolist() == [0] * n
    assert (model._near().counts == n).all()
    if n > 1:
        model.delete([0])
        assert model.labels_.tolist() == [-1] * (n - 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_and_threads_do_not_show(n_jobs: int) -> None:
    X, eps = drawn("grid", 2)
    ids = np.random.default_rng(4).permutation(200)
    model = DBSCAN(eps).fit(X, ids=ids)
    for order in (np.argsort(ids), np.arange(200)[::-1]):
        other = DBSCAN(eps, n_jobs=n_jobs).fit(X[order], ids=ids[order])
        assert told(other) == told(model)


def test_behind_a_scaler() -> None:
    """The scale changes with every deletion; clusters are those of scaled records."""
    X, _ = drawn("blobs", 5)
    X = X * [1.0, 100.0, 0.01]
    model = make_pipeline(StandardScaler(), DBSCAN(0.3)).fit(X)
    for gone in (np.array([0]), np.arange(50, 90)):
        model.delete(gone)
        kept = model.ids_
        fresh = make_pipeline(StandardScaler(), DBSCAN(0.3)).fit(X[kept], ids=kept)
        assert model.digest() == fresh.digest()
        assert model[-1].labels_.tolist() == fresh[-1].labels_.tolist()
        scaled = model[0].transform(X[kept])
        assert model[-1].labels_.tolist() == theirs(scaled, eps=0.3).labels_.tolist()
        core = np.isin(kept, model[-1].core_sample_ids_)
        assert model[-1].components_ == pytest.approx(scaled[core])


@pytest.mark.parametrize("row_group", [1, 7, 1000])
def test_records_in_files(tmp_path: Path, row_group: int) -> None:
    """The model of memory, through deletions, saved and loaded."""
    X, eps = drawn("grid", 6, n=60)
    ids = np.random.default_rng(1).permutation(300)[:60]
    table = pa.table({"id": ids, "a": X[:, 0], "b": X[:, 1]})
    pq.write_table(table, tmp_path / "records.parquet", row_group_size=row_group)
    stored = DBSCAN(eps, min_samples=3).fit(Records.from_parquet(tmp_path, ids="id"))
    twin = DBSCAN(eps, min_samples=3).fit(pd.DataFrame(X, columns=["a", "b"]), ids=ids)
    for gone in (ids[:0], ids[:1], ids[5:30]):
        for each in (stored, twin):
            each.delete(gone)
        assert told(stored) == told(twin)
    file = io.BytesIO()
    stored.save(file)
    again = erasable.load(io.BytesIO(file.getvalue()))
    assert told(again) == told(twin)


def test_a_file_answers_and_deletes_once_it_has_records() -> None:
    X, eps = drawn("blobs", 2)
    model = DBSCAN(eps).fit(X)
    model.delete([3, 4])
    file = io.BytesIO()
    model.save(file)
    alone = erasable.load(io.BytesIO(file.getvalue()))
    assert told(alone) == told(model)
    with pytest.raises(DetachedError):
        alone.delete([5])
    kept = model.ids_
    whole = erasable.load(io.BytesIO(file.getvalue()), (X[kept], kept))
    for each in (whole, model):
        each.delete([5, 6])
    assert told(whole) == told(model)
    again = io.BytesIO()
    whole.save(again)
    model.save(file := io.BytesIO())
    assert again.getvalue() == file.getvalue()


def test_lists_are_kept_with_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is read with its records deletes from the lists in the file."""
    X, eps = drawn("blobs", 2)
    model = DBSCAN(eps).fit(X)
    model.save(tmp_path / "model", records=True)
    monkeypatch.delattr(type(model._memory), "_within")
    for gone in ([1], [5, 8, 9]):
        again = DBSCAN.load(tmp_path / "model", True)
        for each in (again, model):
            each.delete(gone)
        assert told(again) == told(model)
        assert _entries(again) == _entries(model)
        again.save(tmp_path / "model", records=True)


def test_weights_of_one_are_none() -> None:
    X, eps = drawn("blobs", 2)
    model = DBSCAN(eps).fit(X[:100])
    model.add(X[100:], ids=range(100, 200), sample_weight=np.full(100, 0.25))
    weights = np.repeat([1.0, 0.25], 100)
    assert told(model) == told(DBSCAN(eps).fit(X, sample_weight=weights))


@pytest.mark.parametrize("eps", [0.0, -1.0, np.nan, np.inf, 1e200, True, "auto"])
def test_distances_that_are_none(eps: Any) -> None:
    with pytest.raises(InvalidParameterError, match="'eps' parameter of DBSCAN"):
        DBSCAN(eps).fit([[0.0]])


@pytest.mark.parametrize("metric", ["manhattan", "precomputed", "cosine"])
def test_other_metrics_are_refused(metric: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"'metric' parameter of DBSCAN.*'euclidean'"):
        DBSCAN(metric=metric).fit([[0.0]])


@pytest.mark.parametrize("least", [0, 2.5, True])
def test_numbers_of_records_that_are_none(least: Any) -> None:
    with pytest.raises(InvalidParameterError, match="'min_samples' parameter of DBSCAN"):
        DBSCAN(min_samples=least).fit([[0.0]])


def test_what_is_refused() -> None:
    model = DBSCAN().fit([[0.0], [1.0]])
    with pytest.raises(TooFewRecordsError):
        model.delete([0, 1])
    with pytest.raises(TooFewRecordsError, match="weights of all 2 records would be zero"):
        DBSCAN().fit([[0.0], [1.0]], sample_weight=0.0)
    with pytest.raises(TooFewRecordsError, match="weights of all 1 records would be zero"):
        DBSCAN().fit([[0.0], [1.0]], sample_weight=[1.0, 0.0]).delete([0])
    with pytest.raises(InvalidDataError, match="negative"):
        DBSCAN().fit([[0.0], [1.0]], sample_weight=[1.0, -1.0])
    with pytest.raises(MagnitudeError, match="X holds numbers beyond"):
        DBSCAN().fit([[1e200], [1.0]])
    with pytest.raises(MagnitudeError, match="sample_weight holds numbers beyond"):
        DBSCAN().fit([[0.0], [1.0]], sample_weight=[1.0, 1e200])
    with pytest.raises(InvalidInputError):
        DBSCAN().fit(csr_array(np.eye(3)))
    assert model.labels_.tolist() == [-1, -1]


def test_the_largest_distances_and_numbers() -> None:
    X = np.array([[-(2.0**500)], [0.0], [2.0**500]])
    assert DBSCAN(2.0**500, min_samples=3).fit(X).labels_.tolist() == [0, 0, 0]
    assert DBSCAN(2.0**499, min_samples=1).fit(X).labels_.tolist() == [0, 1, 2]
    assert DBSCAN(1.0, min_samples=10**400).fit(X).labels_.tolist() == [-1, -1, -1]


def test_too_many_neighbours_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before lists are made of them; in an addition, too, which changes nothing."""
    monkeypatch.setattr(near_module, "MOST_NEAR", 100)
    with pytest.raises(MagnitudeError, match=r"more than 100 neighbours in all.*a smaller eps"):
        DBSCAN().fit(np.zeros((11, 1)))
    model = DBSCAN().fit(np.zeros((10, 1)))
    before = told(model)
    with pytest.raises(MagnitudeError, match="more than 100 neighbours"):
        model.add([[0.0]], ids=[10])
    assert told(model) == before
    model.delete([0])
    assert model.labels_.tolist() == [0] * 9

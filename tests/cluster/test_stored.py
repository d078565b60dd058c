"""k-means of stored records is k-means of records in memory, however they are cut into blocks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from cluster.lawful import leaves, same, seeds_of
from erasable import Records
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans, _tree
from erasable.cluster._run import SAME
from erasable.cluster._seeding import Seeding, metric_for
from erasable.cluster._stored import StoredRun
from erasable.cluster._table import RecordGrid
from erasable.core.errors import InvalidDataError
from erasable.core.grid import Grid
from erasable.core.inputs import RecordArrays
from erasable.core.passes import Stored, run
from erasable.core.remote._matrix import Call, hidden, shown
from erasable.core.tape import Tape
from erasable.utils._checks.reach import reachable
from simulated_workers import Simulated, spread


class Blocks(Stored):
    """A table in memory that is only handed out in blocks; it counts how often all are read."""

    def __init__(self, matrix: np.ndarray, cuts: Any) -> None:
        self.matrix, self.dtype, self.shape = matrix, matrix.dtype, matrix.shape
        self.starts = np.array([0, *cuts, len(matrix)], np.int64)
        self.n_read = 0

    def block(self, number: int, columns: Any = None) -> np.ndarray:
        self.n_read += 1
        found = self.matrix[self.starts[number] : self.starts[number + 1]]
        return found.copy() if columns is None else np.ascontiguousarray(found[:, list(columns)])

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self.matrix[rows]


def records_of(matrix: Stored, ids: Any = None) -> Records:
    ids = np.arange(matrix.shape[0]) if ids is None else ids
    return Records.from_table(RecordArrays(matrix, None, ids, None, feature_names=None))


def stored(X: np.ndarray, cuts: Any, ids: Any = None) -> Records:
    return records_of(Blocks(X, cuts), ids)


def assert_same(model: Any, twin: Any) -> None:
    mine, theirs = leaves(model.state()), leaves(twin.state())
    assert mine.keys() == theirs.keys()
    assert not [name for name in mine if not same(mine[name], theirs[name])]
    assert model.digest() == twin.digest()
    for name in ("labels_", "inertia_", "cluster_centers_", "init_centers_", "n_iter_"):
        assert same(getattr(model, name), getattr(twin, name)), name
    assert same(model.labels_, model.predict(model._held.records.matrix.matrix[model._held.live]))


def table(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "ties":
        return rng.integers(0, 3, (n, d)).astype(float)
    if kind == "repeated":
        return np.repeat(rng.normal(size=(-(-n // 5), d)), 5, axis=0)[:n]
    if kind == "float32":
        return rng.normal([[3.0] * d], 2.0, (n, d)).astype(np.float32)
    if kind == "far":
        return rng.normal(size=(n, d)) * 10.0 ** np.arange(d) + 1e7
    return rng.normal(size=(n, d)) + 4 * rng.integers(0, 3, (n, 1))


CASES = [
    ("clusters", 400, 3, KMeans(4)),
    ("clusters", 400, 7, KMeans(25, max_iter=2)),  # a race in two lots
    ("clusters", 90, 2, KMeans(3, max_iter=40)),  # stands still before, in more levels than 16
    ("clusters", 300, 4, KMeans(5, tol=1e-3, max_iter=60)),
    ("ties", 200, 2, KMeans(5)),
    ("ties", 60, 2, KMeans(20)),  # more clusters than different records: empty ones
    ("repeated", 120, 3, KMeans(6, tol=0.01)),
    ("float32", 300, 5, KMeans(3)),
    ("far", 150, 3, KMeans(3)),
    ("clusters", 12, 2, KMeans(12)),  # every record is a cluster
    ("clusters", 50, 2, KMeans(1)),
    ("clusters", 500, 3, QuantizedKMeans(4)),
    ("ties", 200, 2, QuantizedKMeans(6, gamma=0.5)),
    ("float32", 200, 3, QuantizedKMeans(3, epsilon=0.01, max_iter=20)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "n", "d", "model"), CASES)
def test_it_is_the_model_of_memory_through_deletions(
    kind: str, n: int, d: int, model: Any, seed: int
) -> None:
    rng = np.random.default_rng([seed, n, d])
    X = table(kind, n, d, rng)
    cuts = np.sort(rng.integers(0, n + 1, 5))  # also blocks of no rows
    model, twin = (copy.deepcopy(model).set_params(random_state=seed) for _ in range(2))
    model.fit(stored(X, cuts))
    assert_same(model, twin.fit(X))
    k = model.n_clusters
    while len(model.ids_) > k + 4:
        left = model.ids_
        far = left[np.abs(X[left] - X[left].mean(axis=0)).argmax(axis=0)]
        for gone in (left[:1], seeds_of(model)[:1], seeds_of(model, "candidates")[-1:],
                     far, rng.choice(left, len(left) // 9 + 1, replace=False)):  # fmt: skip
            gone = np.unique(np.intersect1d(gone, model.ids_))
            if 0 < gone.size <= len(model.ids_) - k:
                model.delete(gone)
                twin.delete(gone)
        assert_same(model, twin)
        X_left, ids = X[model.ids_], model.ids_
        fresh = copy.deepcopy(model).set_params(random_state=seed)
        fresh.fit(stored(X_left, [len(ids) // 2], ids))
        assert fresh.digest() == model.digest()


@pytest.mark.parametrize("model", [KMeans(3, random_state=1), QuantizedKMeans(3, random_state=1)])
def test_neither_blocks_nor_threads_show(model: Any) -> None:
    X = table("clusters", 80, 3, np.random.default_rng(0))
    digests = set()
    for cuts in ([], range(1, 80), [0, 0, 40, 40, 80], [79]):
        for n_jobs in (1, 3):
            records = stored(X, cuts)
            made = clone(model).set_params(n_jobs=n_jobs).fit(records)
            made.delete([3, 70])
            digests.add(made.digest())
    assert len(digests) == 1


def test_a_fit_reads_the_files_as_often_as_it_says() -> None:
    X = table("clusters", 600, 3, np.random.default_rng(2))
    for k, tol in ((1, 0.0), (5, 0.0), (5, 1e-4)):
        records = stored(X, [200, 400])
        model = KMeans(k, max_iter=4, tol=tol, random_state=0).fit(records)
        levels = len(model.state()["path"]["counts"])
        assert records.matrix.n_read == 3 * (1 + k + levels)


def test_a_deletion_reads_only_for_levels_that_change() -> None:
    X = table("clusters", 2000, 3, np.random.default_rng(3))
    model = KMeans(4, max_iter=5, random_state=0).fit(stored(X, [1000]))
    quantized = QuantizedKMeans(4, epsilon=1.0, random_state=0).fit(stored(X, [1000]))
    gone = sorted(set(range(2000)) - set(seeds_of(model, "candidates")) - set(
        seeds_of(quantized, "candidates")))[7:8]  # fmt: skip
    for each, n_passes in ((model, 5), (quantized, 0)):
        each._held.records.matrix.n_read = 0
        deletion = each.delete(gone)
        assert each._held.records.matrix.n_read == 2 * n_passes
        assert deletion.action == ("resumed" if n_passes else "updated")
        assert deletion.counts["passes"] == n_passes


class Twice(Blocks):
    """Its second block is that of the first rows again."""

    def block(self, number: int, columns: Any = None) -> np.ndarray:
        return super().block(0 if number == 1 else number, columns)


def test_a_block_that_is_counted_twice_is_found() -> None:
    X = table("clusters", 400, 3, np.random.default_rng(4))
    records = records_of(Twice(X, [200]))
    twice = KMeans(3, random_state=0).fit(records)
    assert twice.digest() != KMeans(3, random_state=0).fit(X).digest()


def test_a_race_of_all_is_that_of_the_winners_of_blocks() -> None:
    """Against exponential draws by the tape, in NumPy."""
    rng = np.random.default_rng(5)
    X = table("clusters", 300, 2, rng)
    keys = Tape(9).record_keys(np.arange(300))
    matrix = Blocks(X, [50, 51, 200])
    held = KMeans(3, random_state=9).fit(records_of(matrix))._attached()
    records = RecordGrid(held, keys)
    lloyd = StoredRun(records, Seeding(3, 9, 1.0), 1, np.empty(0))
    first = lloyd.begin(lambda grid: metric_for(grid.top, np.empty(0)))
    records.grid = grid = Grid.fit(matrix)
    sums, winners = run(first(grid), matrix)
    lloyd.seed((sums, winners), 1)
    lloyd.fit(SAME)
    gridded = grid.apply(X)
    nearest = np.full(300, np.inf)
    for step, seed in enumerate(lloyd.seeding.chosen.tolist()):
        tried = lloyd.seeding.candidates[step]
        for row, potential in zip(tried, lloyd.seeding.potentials[step], strict=True):
            if row >= 0:
                reached = np.minimum(nearest, ((gridded - gridded[row]) ** 2).sum(axis=1))
                exact = np.rint(reached * lloyd.seeding.quantum).sum()
                assert abs(potential - exact) <= 300  # rounded otherwise, by one each
        nearest = np.minimum(nearest, ((gridded - gridded[seed]) ** 2).sum(axis=1))
    assert winners.rows.shape == (1, lloyd.seeding.n_candidates)
    assert np.array_equal(winners.keys, keys[winners.rows])
    assert same(winners.values, gridded[winners.rows])


# -- divide and conquer ----------------------------------------------------------------------------


def stored_groups(X: np.ndarray, cuts: Any, groups: Any, *, remote: bool) -> Records:
    if not remote:
        return Records.from_table(
            RecordArrays(Blocks(X, cuts), None, np.arange(len(X)), groups, feature_names=None)
        )
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    others = {"id": np.arange(len(X)), "label": np.zeros(len(X)), "person": groups}
    return spread(pa.table({**columns, **others}), cuts, Simulated(2))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(
    ("kind", "n", "options"),
    [
        ("clusters", 300, {"width": 4}),
        ("ties", 200, {"width": 3, "height": 2, "weight_by_mass": True}),
        ("float32", 150, {"width": 40}),  # leaves with few records, or none
        ("far", 120, {}),  # as many leaves as the records that are left are given
    ],
)
def test_a_tree_is_that_of_memory_through_deletions(
    kind: str, n: int, options: Any, remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tree, "_AT_ONCE", 250)  # values: some leaves together, others alone
    monkeypatch.setattr(_tree, "_SENT", 120)
    rng = np.random.default_rng(n)
    X, groups = table(kind, n, 3, rng), np.arange(n) // 3
    cuts = np.sort(rng.integers(0, n + 1, 5)).tolist()
    model = DivideAndConquerKMeans(4, random_state=1, n_jobs=2, **options)
    named = pd.DataFrame(X, columns=[f"x{j}" for j in range(3)]) if remote else X
    twin = clone(model).fit(named, groups=groups)
    records = stored_groups(X, cuts, groups, remote=remote)
    model.fit(records)
    while len(model.ids_) > 20:
        left = model.ids_
        far = left[np.abs(X[left] - X[left].mean(axis=0)).argmax(axis=0)]
        for gone in (seeds_of(model)[:1], far, rng.choice(left, len(left) // 6, replace=False)):
            gone = np.unique(np.intersect1d(gone, model.ids_))
            for each in (model, twin):
                each.delete(gone)
            assert model.digest() == twin.digest()
        one = groups[model.ids_[0]]
        for each in (model, twin):
            each.delete(groups=[one])
        assert model.digest() == twin.digest()
    assert same(model.labels_, twin.labels_)
    assert model.inertia_ == twin.inertia_
    assert not np.isin(model._accelerator._leaf_of, -1)[model._held.live].any()
    assert (model._accelerator._leaf_of[~model._held.live] == -1).all()


def test_a_deletion_reads_the_leaf_of_the_record_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    X = table("clusters", 400, 3, np.random.default_rng(7))
    model = DivideAndConquerKMeans(3, width=8, random_state=0).fit(stored(X, [100, 200, 300]))
    of_leaf = np.flatnonzero(model._accelerator._leaf_of == 5)
    read: list[np.ndarray] = []
    right = Blocks.__getitem__
    monkeypatch.setattr(Blocks, "__getitem__", lambda *of: (read.append(of[1]), right(*of))[1])
    deletion = model.delete([int(of_leaf[3])])
    assert set(np.concatenate(read).tolist()) == set(of_leaf.tolist())
    assert dict(deletion.counts) == {"leaves": 1, "centroids_merged": 24}
    assert deletion.rows_touched == of_leaf.size - 1


def test_small_leaves_are_learned_together() -> None:
    X = table("clusters", 400, 3, np.random.default_rng(8))
    records = stored_groups(X, [100, 200, 300], np.arange(400), remote=True)
    asked = records.matrix._workers.asked
    DivideAndConquerKMeans(3, width=100, random_state=0).fit(records).delete(range(100))
    assert asked["Call"] == 2  # one for the fit, and one for the deletion


def test_workers_learn_the_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they say is what the model is; a deletion asks them for one."""
    monkeypatch.setattr(_tree, "_SENT", 150)
    X = table("clusters", 400, 3, np.random.default_rng(8))
    records = stored_groups(X, [100, 200, 300], np.arange(400), remote=True)
    workers = records.matrix._workers
    model = DivideAndConquerKMeans(3, width=8, random_state=0).fit(records)
    assert clone(model).fit(records).digest() == model.digest()
    ask = workers.ask

    def lie(jobs: Any, aside: bool = False) -> Any:
        """Answer for each leaf what the first of a worker has learned."""
        found = ask(jobs, aside)
        for name, job in jobs.items():
            if isinstance(job, Call):
                number, data = next(iter(found[name].items()))
                first = shown(data, job.pad, number)
                found[name] = {n: hidden(first, job.pad, n) for n in found[name]}
        return found

    workers.ask = lie
    assert clone(model).fit(records).digest() != model.digest()
    workers.ask = ask
    n_calls = workers.asked["Call"]
    model.delete([5])
    assert workers.asked["Call"] == n_calls + 1


@pytest.mark.parametrize("remote", [False, True])
def test_nothing_is_left_of_a_record_where_the_tree_is(remote: bool) -> None:
    rng = np.random.default_rng(9)
    X, ids = rng.normal(size=(200, 3)), np.arange(200)
    X[17] = [0.7654321 * 2**-2, -0.5678901 * 2**-1, 0.9753187 * 2**-3]
    model = DivideAndConquerKMeans(30, width=4, random_state=0)
    model.fit(stored_groups(X, [60, 120], ids, remote=remote))
    on_grid = np.abs(np.frexp(model._grid.apply(X[[17]])[0])[0])

    def places() -> list[str]:
        found = []
        for path, thing in reachable([model._accelerator, model.state()]):
            if isinstance(thing, np.ndarray) and thing.dtype.kind == "f" and thing.size:
                found += [path] * bool(np.isin(np.abs(np.frexp(thing)[0]), on_grid).any())
        return found

    assert places()  # it is a candidate for a seed of its leaf
    model.delete([17])
    assert not places()
    if remote:
        assert model._held.records.matrix._last is None


class Breaking(Blocks):
    """It cannot be read any more, from some reading on."""

    left = 10**9

    def block(self, number: int, columns: Any = None) -> np.ndarray:
        self.left -= 1
        if self.left < 0:
            raise InvalidDataError("the file is gone")
        return super().block(number, columns)


def test_a_deletion_that_cannot_read_changes_nothing_it_can_keep() -> None:
    X = table("clusters", 400, 3, np.random.default_rng(6))
    matrix = Breaking(X, [200])
    model = KMeans(3, random_state=0).fit(records_of(matrix))
    digest = model.digest()
    matrix.left, matrix.prepare = 0, lambda rows: matrix.block(0)  # type: ignore[method-assign]
    with pytest.raises(InvalidDataError):
        model.delete([5])
    matrix.left = 10**9
    assert model.digest() == digest
    assert 5 in model.ids_
    model.delete([5])
    left = np.delete(np.arange(400), 5)
    assert model.digest() == KMeans(3, random_state=0).fit(X[left], ids=left).digest()

"""k-means of stored records is k-means of records in memory, however they are cut into blocks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from cluster.lawful import leaves, same, seeds_of
from erasable import Records
from erasable.cluster import KMeans, QuantizedKMeans
from erasable.cluster._run import plain_rule
from erasable.cluster._stored import StoredLloyd
from erasable.core.errors import InvalidDataError
from erasable.core.grid import Grid
from erasable.core.inputs import Table
from erasable.core.passes import Stored, run
from erasable.core.tape import Tape


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
    return Records.from_table(Table(matrix, None, ids, None, feature_names=None))


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
    lloyd = StoredLloyd(3, 1, 9, np.empty(0))
    matrix = Blocks(X, [50, 51, 200])
    first = lloyd.begin(matrix, None, keys)
    grid = Grid.fit(matrix)
    sums, winners = run(first(grid), matrix)
    lloyd.seed(grid, (sums, winners), matrix, None, 1)
    lloyd.descend(plain_rule, matrix, None, 1)
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

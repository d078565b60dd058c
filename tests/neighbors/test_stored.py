"""Nearest neighbours of records in files: those of memory, to the last bit."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import erasable
from effort import examples
from erasable import Records
from erasable.core.errors import ErasableError, MagnitudeError
from erasable.core.passes import run
from erasable.neighbors import KNeighborsClassifier, KNeighborsRegressor
from erasable.neighbors import _stored as stored
from erasable.neighbors._stored import StoredMemory
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from simulated_workers import Simulated, spread

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def write(folder: Any, X: Any, y: Any, ids: Any, row_group: int) -> Records:
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    table = pa.table({"id": ids, "y": y, **columns})
    pq.write_table(table, Path(folder) / "records.parquet", row_group_size=row_group)
    return Records.from_parquet(folder, ids="id", target="y")


def in_memory(X: Any, y: Any, ids: Any) -> Records:
    return Records(pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y, ids=ids)


def outcome(action: Any) -> Any:
    try:
        return [np.asarray(each).tobytes() for each in action()]
    except ErasableError as error:
        return type(error), str(error)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(8, 60),
    d=st.sampled_from([1, 2, 9, 17]),
    k=st.integers(1, 4),
    metric=st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
    algorithm=st.sampled_from(["auto", "brute", "kd_tree"]),
    weights=st.sampled_from(["uniform", "distance"]),
    row_group=st.sampled_from([1, 3, 16, 1000]),
    ties=st.booleans(),
    narrow=st.booleans(),
    behind=st.booleans(),
    many=st.booleans(),
    classes=st.booleans(),
)
@settings(max_examples=examples(80), deadline=None)
def test_answers_are_those_of_memory(
    seed: int, n: int, d: int, k: int, metric: str, algorithm: str, weights: str, row_group: int,
    ties: bool, narrow: bool, behind: bool, many: bool, classes: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)).astype(float) if ties else rng.normal(size=(n, d))
    X = X.astype(np.float32) if narrow else X
    ids = rng.permutation(5 * n)[:n]
    y = rng.integers(0, 3, n) if classes else rng.normal(size=n)
    cls = KNeighborsClassifier if classes else KNeighborsRegressor
    plain = cls(k, metric=metric, algorithm=algorithm, weights=weights, leaf_size=4)
    queries = np.vstack([X[:5], rng.normal(size=(200 if many else 3, d))]).astype(float)
    models = [
        make_pipeline(StandardScaler(), each) if behind else each
        for each in (plain, cls(**plain.get_params()), cls(**plain.get_params()))
    ]
    with tempfile.TemporaryDirectory() as folder:
        ours = models[0].fit(write(folder, X, y, ids, row_group))
        twin = models[1].fit(in_memory(X, y, ids))
        for gone in (ids[:0], ids[:1], ids[1:3], ids[3 : n // 2]):
            for each in (ours, twin):
                each.delete(gone)
            assert ours.digest() == twin.digest()
            if behind:
                assert ours.predict(queries).tobytes() == twin.predict(queries).tobytes()
            else:
                for asked in (queries, None):
                    found = [
                        outcome(lambda m=m, x=asked: [*m.kneighbors(x), m.predict(x)])
                        for m in (ours, twin)
                    ]
                    assert found[0] == found[1]
        left = np.isin(ids, ours.ids_)
        fresh = models[2].fit(in_memory(X[left], y[left], ids[left]))
        assert fresh.digest() == ours.digest()


def test_a_wrong_merge_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties that are merged in the order of blocks, and not of the ids' hashes, are found."""

    def wrong(self: Any, one: Any, other: Any) -> Any:
        distances, ranks = (np.hstack(both) for both in zip(one, other, strict=True))
        first = np.argsort(distances, axis=1, kind="stable")[:, : self._k]
        return np.take_along_axis(distances, first, 1), np.take_along_axis(ranks, first, 1)

    rng = np.random.default_rng(0)
    X, ids, y = rng.integers(0, 2, (60, 2)).astype(float), np.arange(60), rng.normal(size=60)
    ours = KNeighborsRegressor(3).fit(write(tmp_path, X, y, ids, 7))
    twin = KNeighborsRegressor(3).fit(in_memory(X, y, ids))
    assert ours.predict(X).tobytes() == twin.predict(X).tobytes()
    monkeypatch.setattr(stored._Nearest, "merge", wrong)
    assert ours.predict(X).tobytes() != twin.predict(X).tobytes()


def test_merges_have_no_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 2)).astype(float)
    ranks = rng.permutation(60)
    wanted = stored._Nearest(ranks, X[:5], 4, None, None, 0)
    parts = [run(wanted, X, np.arange(start, start + 20)) for start in (0, 20, 40)]
    whole = run(wanted, X)
    for a, b, c in [(0, 1, 2), (2, 0, 1), (1, 2, 0)]:
        one = wanted.merge(parts[a], wanted.merge(parts[b], parts[c]))
        other = wanted.merge(wanted.merge(parts[c], parts[a]), parts[b])
        for found in (one, other):
            assert all(np.array_equal(x, w) for x, w in zip(found, whole, strict=True))


def test_threads_and_row_groups_do_not_show(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, ids, y = rng.normal(size=(500, 4)), np.arange(500), rng.integers(0, 3, 500)
    answers = set()
    for number, row_group in enumerate((1000, 50, 13)):
        (folder := tmp_path / str(number)).mkdir()
        for n_jobs in (1, 2):
            records = write(folder, X, y, ids, row_group)
            model = KNeighborsClassifier(5, n_jobs=n_jobs).fit(records)
            assert isinstance(model._accelerator, StoredMemory)
            model.delete(ids[:40])
            answers.add((model.digest(), model.kneighbors(X)[0].tobytes()))
    assert len(answers) == 1


@pytest.mark.parametrize("row", [0, 59])
def test_magnitudes_are_refused_in_the_words_of_memory(row: int, tmp_path: Path) -> None:
    X, ids, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60), np.arange(60.0)
    X[row, 1] = -(2.0**501)
    told = [
        outcome(lambda r=records: [KNeighborsRegressor().fit(r)])
        for records in (write(tmp_path, X, y, ids, 7), in_memory(X, y, ids))
    ]
    assert told[0] == told[1]
    assert told[0][0] is MagnitudeError


def test_a_file_holds_the_records_and_loads_without_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, ids, y = rng.normal(size=(60, 3)), rng.permutation(60), rng.normal(size=60)
    ours = KNeighborsRegressor(3).fit(write(tmp_path, X, y, ids, 7))
    twin = KNeighborsRegressor(3).fit(in_memory(X, y, ids))
    for each, name in ((ours, "ours"), (twin, "twin")):
        each.delete([5, 17])
        each.save(tmp_path / name)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "twin").read_bytes()
    (tmp_path / "records.parquet").unlink()
    alone = KNeighborsRegressor.load(tmp_path / "ours")
    assert alone.predict(X).tobytes() == twin.predict(X).tobytes()


def test_records_of_workers_are_in_a_file_with_them_and_are_asked_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, ids, y = rng.normal(size=(60, 3)), rng.permutation(60), rng.normal(size=60)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    table = pa.table({"id": ids, "label": y, "person": ids, **columns})
    model = KNeighborsRegressor(3).fit(spread(table, [20, 40], Simulated(2), list(columns)))
    model.save(tmp_path / "with", records=True)
    known = erasable.load(tmp_path / "with", True)
    for each, name in ((model, "ours"), (known, "known")):
        each.delete([5, 17])
        each.save(tmp_path / name)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "known").read_bytes()
    assert model.predict(X).tobytes() == known.predict(X).tobytes()

"""Boosting of records in files and on workers is that of records in memory, and leaves as much."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from effort import examples
from ensemble.test_boosting import Drawn, assert_equal, drawn
from erasable import Records
from erasable.core.errors import InvalidDataError
from erasable.core.parquet import RowGroup
from erasable.core.remote._matrix import RunHidden, shown
from erasable.ensemble import HistGradientBoostingClassifier as Classifier
from erasable.ensemble import HistGradientBoostingRegressor as Regressor
from erasable.naive_bayes import GaussianNB
from erasable.tree._boosted import _bins
from simulated_workers import Simulated, even, spread

N = 400


def table_of(life: Drawn) -> pa.Table:
    columns = {f"x{j}": life.X[:, j] for j in range(life.X.shape[1])}
    others = {"id": life.ids, "label": life.y, "person": np.arange(len(life.X)) // 2}
    weights = {} if life.weights is None else {"weight": life.weights}
    return pa.table({**columns, **others, **weights})


def live_through(seeds: Sequence[int], where: str, folder: Path) -> None:
    """Compare a model of stored records with a fit in memory after each of some deletions."""
    for seed in seeds:
        life = drawn(seed)
        kind, X, y, weights, ids, rng = life
        table, names = table_of(life), [f"x{j}" for j in range(X.shape[1])]
        weight = None if weights is None else "weight"
        if where == "workers":
            cuts = np.sort(rng.integers(0, len(X) + 1, 5)).tolist()
            records = spread(table, cuts, Simulated(2), names, weight)
        else:
            pq.write_table(table, folder / f"{seed}.parquet", row_group_size=max(1, len(X) // 7))
            uses = {"ids": "id", "target": "label", "features": names, "sample_weight": weight}
            records = Records.from_parquet(folder / f"{seed}.parquet", **uses)
        model = clone(kind).fit(records)
        left = np.arange(len(X))
        for size in [0, 1, 1, len(X) // 4, len(X) // 3]:
            rest = np.setdiff1d(left, rng.choice(left, min(size, left.size), replace=False))
            if not rest.size or (weights is not None and not weights[rest].any()):
                break
            gone = np.setdiff1d(left, rest)
            model.delete(ids[gone])
            for left, come in ((rest, None), (np.append(rest, gone[::2]), gone[::2])):
                frame = pd.DataFrame(X[left], columns=names)
                own = {} if weights is None else {"sample_weight": weights[left]}
                if come is not None and come.size:
                    some = {name: values[rest.size :] for name, values in own.items()}
                    if records.groups is not None:
                        some["groups"] = come // 2
                    model.add(frame[rest.size :], y[come], ids=ids[come], **some)
                assert_equal(model, clone(kind).fit(Records(frame, y[left], ids=ids[left], **own)))
            left = np.sort(left)


@pytest.mark.parametrize(("where", "times"), [("parquet", 60), ("workers", 25)])
def test_any_life_ends_as_a_fit_in_memory(where: str, times: int, tmp_path: Path) -> None:
    live_through(range(7000, 7000 + examples(times)), where, tmp_path)


@pytest.mark.parametrize("where", ["parquet", "workers"])
@pytest.mark.parametrize("pass_", ["Edges", "BinCodes"])
def test_a_block_that_is_left_out_is_found(
    pass_: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getattr(_bins, pass_), "merge", lambda self, one, other: one)
    with pytest.raises(AssertionError):
        live_through(range(7000, 7020), where, tmp_path)


class Stays:
    """Records of which the last has a value in `kind` that no other has."""

    names = ("age", "dose", "kind")

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=(N, 2)), rng.integers(0, 4, N)])
        X[-1, 2] = 1234.5678
        X[rng.random(X.shape) < 0.05] = np.nan
        X[-1] = 1.2345678912345, 3.21987654321, 1234.5678
        self.X, self.y, self.ids = X, (X[:, 0] > 0).astype(int), np.arange(N) * 3
        self.frame = pd.DataFrame(X, columns=list(self.names))
        columns = {name: self.frame[name].to_numpy() for name in self.names}
        others = {"id": self.ids, "label": self.y, "person": np.arange(N) // 4}
        self.table = pa.table({**columns, **others})

    def write(self, folder: Path) -> Records:
        pq.write_table(self.table, folder / "stays.parquet", row_group_size=100)
        uses = {"ids": "id", "target": "label", "groups": "person"}
        return Records.from_parquet(folder / "stays.parquet", **uses, features=list(self.names))

    def spread(self, workers: Simulated) -> Records:
        return spread(self.table, even(N, 5), workers, list(self.names))

    def in_memory(self) -> Records:
        return Records(self.frame, self.y, ids=self.ids, groups=np.arange(N) // 4)


def edges_of(model: Any, feature: int) -> list[float]:
    binned = model._accelerator.binned
    return binned.edges[feature, : binned.bins.sizes[feature]].tolist()


def test_only_features_that_lose_an_edge_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, read = Stays(), []
    real = RowGroup.read

    def noted(self: RowGroup, columns: Sequence[str]) -> Any:
        read.append((self.number, list(columns)))
        return real(self, columns)

    model = Classifier(max_iter=5, random_state=0).fit(stays.write(tmp_path))
    twin = Classifier(max_iter=5, random_state=0).fit(stays.in_memory())
    monkeypatch.setattr(RowGroup, "read", noted)
    every, edges = list(stays.names), [set(edges_of(model, f)) for f in range(2)]
    # Of numbers that are all different, some are edges, and some are not.
    by_edges = [[x in own for x in stays.X[:, f].tolist()] for f, own in enumerate(edges)]
    first, second = map(np.array, by_edges)
    neither = int(np.flatnonzero(~first & ~second & (np.arange(N) < 100))[0])
    dose = int(np.flatnonzero(~first & second & (np.arange(N) >= 100))[0])
    for row, wanted in ((neither, []), (dose, ["dose"]), (N - 1, ["kind"])):
        read.clear()
        for each in (model, twin):
            each.delete([stays.ids[row]])
        again = [columns for _, columns in read[1:]]
        assert read[0] == (row // 100, every)
        if row == N - 1:
            wanted = [name for f, name in enumerate(every[:2]) if by_edges[f][row]] + wanted
        assert again == ([wanted] * 8 if wanted else [])
        assert model.digest() == twin.digest()


@pytest.mark.parametrize("where", ["parquet", "workers"])
@pytest.mark.parametrize("cls", [Classifier, Regressor])
def test_of_a_record_that_leaves_nothing_stays(cls: Any, where: str, tmp_path: Path) -> None:
    stays, workers = Stays(), Simulated(2)
    records = stays.write(tmp_path) if where == "parquet" else stays.spread(workers)
    model = cls(max_iter=9, max_bins=100, random_state=0).fit(records)
    first = int(np.flatnonzero(stays.y)[0])

    def kept(row: int) -> list[Any]:
        """Return what is kept of a row: codes and target, and how far predictions have moved."""
        boosted = model._accelerator
        moved = boosted.before[-1][row] - boosted.before[0][row]
        return [boosted.binned.bins.codes[row], boosted.given.y[row], moved]

    def is_there() -> list[bool]:
        told = pickle.dumps([vars(model._accelerator), records.matrix._last]).count(
            np.float64(1234.5678).tobytes()
        )
        blocks = [held.matrix for held in workers.blocks().values()]
        return [
            1234.5678 in edges_of(model, 2),
            bool(told),
            *([any(np.isin(stays.X[-1], each).any() for each in blocks)] * bool(blocks)),
        ]

    assert all(is_there())
    assert all(each.any() for each in kept(-1))
    model.delete([stays.ids[-1]])
    assert not any(is_there())
    assert not any(each.any() for each in kept(-1))
    assert all(each.any() for each in kept(first))


def test_codes_are_masked_on_their_way() -> None:
    stays, workers, seen = Stays(), Simulated(2), []
    real = workers.ask

    def ask(jobs: Any, aside: bool = False) -> Any:
        found = real(jobs, aside)
        seen.extend(found[name] for name, job in jobs.items() if isinstance(job, RunHidden))
        return found

    workers.ask = ask  # type: ignore[method-assign]
    model = Classifier(max_iter=2, random_state=0).fit(stays.spread(workers))
    codes = model._accelerator.binned.bins.codes[:80].tobytes()
    told = [pickle.dumps(shown(*each.partial)) for each in seen]
    assert any(codes in each for each in told)
    assert any(np.float64(1234.5678).tobytes() in each for each in told)
    for each in seen:
        assert codes not in pickle.dumps(each)
        assert np.float64(1234.5678).tobytes() not in pickle.dumps(each)


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    stays = Stays()
    records = stays.write(tmp_path)
    model = Classifier(max_iter=4, random_state=0).fit(records)
    path, before = tmp_path / "stays.parquet", model.digest()
    os.utime(path, ns=(7, 7))
    for call in (lambda: model.delete([3]), lambda: clone(model).fit(records)):
        with pytest.raises(InvalidDataError, match="Parquet file"):
            call()
    assert model.digest() == before
    assert 3 in model.ids_
    assert model.fit(stays.write(tmp_path)).digest() == before


def test_a_file_that_changes_between_the_passes_of_a_fit_changes_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays = Stays()
    records = stays.write(tmp_path)
    model = Classifier(max_iter=4, random_state=0).fit(records)
    before, real = model.digest(), _bins.BinCodes.of_block

    def changed(self: Any, block: Any) -> Any:
        os.utime(tmp_path / "stays.parquet", ns=(7, 7))
        return real(self, block)

    monkeypatch.setattr(_bins.BinCodes, "of_block", changed)
    with pytest.raises(InvalidDataError, match="Parquet file"):
        model.fit(records)
    assert model.digest() == before


def test_a_deletion_that_cannot_read_on_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, read = Stays(), []
    model = Classifier(max_iter=4, random_state=0).fit(stays.write(tmp_path))
    before, real = model.digest(), RowGroup.read

    def broken(self: RowGroup, columns: Sequence[str]) -> Any:
        read.append(self.number)
        if read == [3, 0]:  # after the record that leaves, the first to be read for edges
            raise OSError("the disk is gone for a moment")
        return real(self, columns)

    monkeypatch.setattr(RowGroup, "read", broken)
    with pytest.raises(OSError, match="for a moment"):
        model.delete([stays.ids[-1]])
    assert len(read) > 2
    assert model.digest() == before
    twin = Classifier(max_iter=4, random_state=0).fit(stays.in_memory())
    for each in (model, twin):
        each.delete([stays.ids[-1]])
    assert model.digest() == twin.digest()


def test_records_that_other_models_hold_stay_for_them() -> None:
    stays, workers = Stays(), Simulated(2)
    records = stays.spread(workers)
    kinds = [Classifier(max_iter=4, random_state=0), Regressor(max_iter=4, random_state=1)]
    models = [clone(kind).fit(records) for kind in kinds]
    twins = [clone(kind).fit(stays.in_memory()) for kind in kinds]
    gone = stays.ids[[5, 100, N - 1]]

    def is_there() -> bool:
        return any(1234.5678 in held.matrix for held in workers.blocks().values())

    for model, twin in zip(models, twins, strict=True):
        assert is_there()
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
    assert not is_there()
    other = GaussianNB()
    with pytest.raises(InvalidDataError, match="NaN"):
        other.fit(records)
    for each in (models[0], twins[0]):
        each.delete(groups=[20])
    assert models[0].digest() == twins[0].digest()

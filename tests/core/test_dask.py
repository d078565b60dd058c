"""Records of a Dask cluster make the models that records in memory make."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster, Status, Worker
from sklearn.base import clone

from erasable import Records
from erasable.core.errors import (
    ClusterError,
    ErasableError,
    InvalidDataError,
    InvalidInputError,
)
from erasable.core.remote import Job, _dask, _jobs
from mixed_visits import OF_TEXT, Mixed
from visits_table import BLOCKWISE, OF_COUNTS, N, Visits, live, make

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Dask about pandas

USES = {"ids": "id", "target": "label", "groups": "person"}


@pytest.fixture(scope="module", params=[1, 2])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=request.param, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def frame_of(visits: Visits, folder: Path, parts: int = 13) -> Any:
    cuts = np.linspace(0, N, parts + 1).astype(int).tolist()
    for number, (first, stop) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(visits.table.slice(first, stop - first), folder / f"{number:02}.parquet")
    return dd.read_parquet(folder, aggregate_files=False)


@pytest.mark.sampled(5)  # on simulated workers more of them are tried: test_remote.py
@pytest.mark.parametrize("name", BLOCKWISE)
def test_digests_are_those_of_memory(name: str, client: Client, tmp_path: Path) -> None:
    visits = Visits(counts=name in OF_COUNTS, narrow=True)
    records = Records.from_dask(frame_of(visits, tmp_path), client=client, **USES)
    model, twin = make(name).fit(records), make(name).fit(visits.in_memory())
    assert model.digest() == twin.digest()
    for gone in visits.requests():
        gone = live(model, gone)
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()
    for each in (model, twin):
        each.delete(groups=[100])
    assert model.digest() == twin.digest()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("client", [pytest.param(1, marks=pytest.mark.soak), 2], indirect=True)
@pytest.mark.parametrize("name", ["logistic", "tree", "modes", "nested", "words and numbers"])
def test_text_and_gaps(name: str, client: Client) -> None:
    visits, (model, columns) = Mixed(), OF_TEXT[name]
    others = {"id": visits.ids.tolist(), "label": visits.y, "person": visits.groups}
    frame = dd.from_pandas(visits.frame.assign(**others), npartitions=13)
    model, twin = clone(model), clone(model)
    records = Records.from_dask(frame, client=client, **USES, features=columns)
    assert model.fit(records).digest() == twin.fit(visits.in_memory(columns)).digest()
    for gone in visits.requests():
        gone = live(model, gone)
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()


def test_gaps_are_refused_by_those_that_take_none(one: Client) -> None:
    gaps = [part([1, 2]), part([3, 4], y=[1.0, np.nan])]
    records = Records.from_dask(of(*gaps), client=one, ids="id")
    with pytest.raises(InvalidDataError, match="NaN: 1 values in column 'y'"):
        make("StandardScaler").fit(records)
    assert make("SimpleImputer").fit(records).statistics_.tolist() == [1.5, 8 / 3]


@pytest.fixture(scope="module")
def one() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def of(*parts: pd.DataFrame) -> Any:
    """Return a frame of which each partition is given."""
    return dd.from_map(lambda at: parts[at], range(len(parts)), meta=parts[0].iloc[:0])


def part(ids: list[Any], **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": ids, "x": [1.0, 2.0], "y": [3.0, 4.0], **columns})


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([part([1, 2]), part([3, 1])], "1 repeats|repeat|twice|more than once"),
        ([part([1, 2]), part([3, 4]).drop(columns="y")], "partition 2 differs in the columns 'y'"),
        ([part([1, 2]), part([3, 4], y=["a", "b"])], "partition 2 has another type in 'y'"),
        ([part([1, 2]), part([3, 4], y=[1, 2])], "partition 2 has another type in 'y'"),
        ([part([1, 2]), part([3, 4], y=[1.0, np.inf])], "inf: 1 values in column 'y'"),
        ([part([1, 2]).iloc[:0]], "hold no rows"),
        ([part(["a", "b"]), part(["c", "a"])], "repeat|twice|more than once"),
    ],
)
def test_partitions_that_cannot_be_used(parts: list[Any], told: str, one: Client) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Records.from_dask(of(*parts), client=one, ids="id")


def test_partitions_without_rows_count_for_nothing(one: Client) -> None:
    frame = of(part([1, 2]), part([1, 2]).iloc[:0], part([3, 4], z="not in the frame"))
    records = Records.from_dask(frame, client=one, ids="id")
    assert records.ids.tolist() == [1, 2, 3, 4]
    assert records.in_memory().matrix.tolist() == [[1.0, 3.0], [2.0, 4.0]] * 2


def test_what_is_no_frame_and_no_client(one: Client) -> None:
    frame = of(part([1, 2]))
    for given, wanted, told in [
        (part([1, 2]), one, "frame is a DataFrame; expected a dask.dataframe.DataFrame"),
        (frame, 3, "client is a int; expected a distributed.Client"),
        (frame, None, "no client of a cluster"),
        (one.persist(frame), one, "the frame is persisted"),
    ]:
        with pytest.raises(InvalidInputError, match=told):
            Records.from_dask(given, client=wanted, ids="id")
    for uses, told in [
        ({"ids": "nobody"}, "have no column 'nobody'"),
        ({"features": ["x", "z"]}, "no column 'z'"),
        ({"features": ["id"], "ids": "id"}, "named as a feature and for another use"),
        ({"features": []}, "no column of the partitions is left"),
    ]:
        with pytest.raises(ErasableError, match=told):
            Records.from_dask(frame, client=one, **uses)


def test_a_partition_that_cannot_be_made_names_no_value(one: Client) -> None:
    def broken(at: int) -> Any:
        raise KeyError("patient 4711")

    frame = dd.from_map(broken, range(2), meta=part([1, 2]).iloc[:0])
    with pytest.raises(InvalidDataError, match=r"cannot be read \(KeyError\)") as caught:
        Records.from_dask(frame, client=one, ids="id")
    assert "4711" not in str(caught.value)


def test_other_versions_are_refused(one: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    own = _dask._versions()
    for name in own:
        told = {"here": own, "there": {**own, name: "0.1"}}
        monkeypatch.setattr(one, "run", lambda *_, told=told, **__: told)
        with pytest.raises(ClusterError, match=f"{name} 0.1; expected"):
            Records.from_dask(of(part([1, 2])), client=one, ids="id")


def test_memory_that_is_short_names_the_size_to_try(
    one: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(_dask.DaskPartition, "table", full)
    with pytest.raises(ClusterError, match=r"no memory left.*frame\.repartition"):
        Records.from_dask(of(part([1, 2])), client=one, ids="id")


def test_a_shuffled_frame_is_one_of_the_same_records(one: Client) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": np.arange(200), "x": rng.normal(size=200), "k": np.arange(200) % 9})
    frame = dd.from_pandas(table, npartitions=5).shuffle("k")
    records = Records.from_dask(frame, client=one, ids="id")
    assert records.ids.tolist() != sorted(records.ids.tolist())
    twin = Records(table[["x", "k"]], ids=table["id"])
    assert make("KMeans").fit(records).digest() == make("KMeans").fit(twin).digest()


def test_blocks_are_dropped_with_the_records(one: Client) -> None:
    records = Records.from_dask(of(part([1, 2]), part([3, 4])), client=one, ids="id")
    token = records.matrix._token
    assert {place[1] for place in _jobs._SHELVES} >= {token}
    del records
    gc.collect()
    deadline, later = time.monotonic() + 30, threading.Event()
    while token in {place[1] for place in list(_jobs._SHELVES)} and time.monotonic() < deadline:
        later.wait(0.01)  # workers are told in the background
    assert token not in {place[1] for place in _jobs._SHELVES}


def test_results_of_tasks_are_released(one: Client) -> None:
    model = make("KMeans", n_clusters=2).fit(
        Records.from_dask(of(part([1, 2]), part([3, 4])), client=one, ids="id")
    )
    model.delete([1])
    one.nthreads()  # what the client was told before is done
    assert not one.futures


class Waits(Job):
    """A job that ends when it was asked several times whether it is done."""

    asked = 0

    def run(self, shelf: Any, n_threads: int) -> str:
        deadline = time.monotonic() + 60  # a thread that does not end keeps a process from ending
        while Waits.asked < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        return "done"


def impatient() -> Any:
    return dask.config.set({"erasable.timeout": "200 ms"})


@pytest.mark.parametrize("aside", [False, True])
def test_a_job_that_takes_long_is_waited_for(
    aside: bool, one: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = _dask.DaskWorkers(one)
    right = workers._idle

    def counting(*rest: Any) -> Any:
        Waits.asked += 1
        return right(*rest)

    monkeypatch.setattr(workers, "_idle", counting)
    Waits.asked = 0
    with impatient():
        answers = workers.ask({name: Waits("7c") for name in workers.threads()}, aside)
    assert list(answers.values()) == ["done", "done"]
    assert Waits.asked >= 3


def set_status(status: Status, dask_worker: Worker) -> None:
    dask_worker.status = status


def test_a_worker_that_begins_nothing_is_not_waited_for() -> None:
    """One is paused when its memory is nearly full, which is not mended by waiting."""
    table = pd.concat([part([1, 2]), part([3, 4]), part([5, 6]), part([7, 8])])
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0",
            memory_limit=0,  # nobody looks at it, and lets a worker go on
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        frame = of(*(part([i, i + 1]) for i in (1, 3, 5, 7)))
        records = Records.from_dask(frame, client=client, ids="id")
        paused = min(client.nthreads())
        client.run(set_status, Status.paused, workers=[paused])
        with impatient(), pytest.raises(ClusterError, match=r"1 workers, of which one .* paused"):
            _dask.DaskWorkers(client).ask({paused: Waits("7c")})
        with impatient(), pytest.raises(ClusterError, match="have not begun what they were asked"):
            Records.from_dask(frame, client=client, ids="id")
        client.run(set_status, Status.running, workers=[paused])
        model = make("KMeans", n_clusters=2).fit(records)
        twin = make("KMeans", n_clusters=2).fit(table[["x", "y"]], ids=table["id"])
        assert model.digest() == twin.digest()


def test_a_client_or_a_cluster_that_is_closed() -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        client = Client(cluster, set_as_default=False)
        records = Records.from_dask(of(part([1, 2])), client=client, ids="id")
        client.close()
        for call in (
            lambda: make("KMeans", n_clusters=2).fit(records),
            lambda: Records.from_dask(of(part([1, 2])), client=client, ids="id"),
        ):
            with pytest.raises(ClusterError, match="the client of the cluster is closed"):
                call()


@pytest.mark.parametrize("how", ["changed", "shorter", "gone"])
def test_files_that_are_not_as_they_were(how: str, one: Client, tmp_path: Path) -> None:
    """It is seen when a partition is read again, as its worker is lost."""
    visits = Visits()
    records = Records.from_dask(frame_of(visits, tmp_path), client=one, **USES)
    model = make("GaussianNB").fit(records)
    before, path = model.digest(), tmp_path / "03.parquet"
    table = pq.read_table(path)
    if how == "gone":
        path.unlink()
    else:
        changed = table.slice(1) if how == "shorter" else table.take(np.arange(len(table))[::-1])
        pq.write_table(changed, path)
    token = records.matrix._token
    for place in [place for place in _jobs._SHELVES if place[1] == token]:
        del _jobs._SHELVES[place]
    told = "partition 4 has other records" if how == "changed" else "partition"
    for call in (lambda: make("PCA").fit(records), lambda: model.delete(visits.ids[210:215])):
        with pytest.raises(InvalidDataError, match=told):
            call()
    assert model.digest() == before
    pq.write_table(table, path)
    twin = make("GaussianNB").fit(visits.in_memory())
    for each in (model, twin):
        each.delete(visits.ids[210:215])
    assert model.digest() == twin.digest()

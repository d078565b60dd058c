"""Workers that are processes: they are killed, and what is in their memory is read."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable import Records
from erasable.core.remote import _dask, _matrix
from erasable.tree._estimators import TreeModel
from visits_table import Visits, live, make
from worker_processes import Processes, cluster_of, say

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",  # of Dask about pandas
    "ignore::ResourceWarning",
)

USES = {"ids": "id", "target": "label", "groups": "person"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with cluster_of(2, tmp_path_factory.mktemp("workers")) as found:
        yield found


def write(table: pa.Table, folder: Path, parts: int = 13) -> Any:
    folder.mkdir()
    step = -(-table.num_rows // parts)
    for number in range(parts):
        part = table.slice(number * step, step)
        pq.write_table(part, folder / f"{number:02}.parquet")
    return dd.read_parquet(folder, aggregate_files=False)


@pytest.mark.parametrize("name", ["GaussianNB", "KMeans", "LogisticRegression", "PCA"])
def test_digests_are_those_of_memory(name: str, cluster: Processes, tmp_path: Path) -> None:
    visits = Visits()
    frame = write(visits.table, tmp_path / "v")
    records = Records.from_dask(frame, client=cluster.client, **USES)
    model, twin = make(name).fit(records), make(name).fit(visits.in_memory())
    for gone in visits.requests():
        gone = live(model, gone)
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()


class Killing(_dask.DaskWorkers):
    """Workers of which one is killed, and another started, when so many jobs were sent."""

    left = -1
    cluster: Processes

    def ask(self, jobs: Any, aside: bool = False) -> Any:
        Killing.left -= 1
        if Killing.left == 0:
            self.cluster.kill()
            self.cluster.start()
        return super().ask(jobs, aside)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("brief", [0, 2**23])  # by tasks, and past them
@pytest.mark.parametrize("name", ["GaussianNB", "KMeans", "ShardedClassifier"])
def test_a_worker_may_be_killed(
    name: str, brief: int, cluster: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_matrix, "_BRIEF", brief)
    monkeypatch.setattr(_dask, "DaskWorkers", Killing)
    monkeypatch.setattr(Killing, "cluster", cluster, raising=False)
    visits = Visits()
    frame = write(visits.table, tmp_path / "v")
    records = Records.from_dask(frame, client=cluster.client, **USES)
    twin = make(name).fit(visits.in_memory())
    Killing.left = 2
    model = make(name).fit(records)
    assert Killing.left < 0
    assert model.digest() == twin.digest()
    for gone in visits.requests():
        gone = live(model, gone)
        Killing.left = 1
        for each in (model, twin):
            each.delete(gone)
        assert model.digest() == twin.digest()


def memory_of(pid: int) -> Iterator[bytes]:
    """Read what a core dump of a process would have: its pages but for those of files."""
    page = os.sysconf("SC_PAGE_SIZE")
    with (
        open(f"/proc/{pid}/maps") as maps,
        open(f"/proc/{pid}/pagemap", "rb", 0) as pages,
        open(f"/proc/{pid}/mem", "rb", 0) as memory,
    ):
        for line in maps:
            span, rights = line.split()[:2]
            first, stop = (int(each, 16) // page for each in span.split("-"))
            if rights[0] != "r" or first * page >= 2**63:
                continue
            pages.seek(8 * first)
            told = np.frombuffer(pages.read(8 * (stop - first)), np.uint64)
            own = np.concatenate([[False], (told >> 61 & 1 == 0) & (told >> 62 != 0), [False]])
            for start, end in np.flatnonzero(np.diff(own)).reshape(-1, 2).tolist():
                try:
                    memory.seek((first + start) * page)
                    yield memory.read((end - start) * page)
                except OSError:  # it is gone meanwhile
                    continue


def times_in(parts: Iterator[bytes], wanted: list[bytes]) -> Any:
    found = np.zeros(len(wanted), int)
    for part in parts:
        found += [part.count(each) for each in wanted]
    return found


def files_in(folder: Path) -> Iterator[bytes]:
    return (path.read_bytes() for path in folder.rglob("*") if path.is_file())


MARKS = np.array([1.2345678912345, 3.21987654321, 1000000.125987, 2.0])
VISIT = "visit-of-nobody"
NUMBERS = [struct.pack("<d", mark) for mark in MARKS[:3]]
TEXTS = [VISIT.encode(), *(repr(float(mark)).encode() for mark in MARKS[:3])]


def marked(visits: Visits, row: int) -> pa.Table:
    columns = {f"x{j}": visits.table[f"x{j}"].to_numpy().copy() for j in range(4)}
    for j, mark in enumerate(MARKS):
        columns[f"x{j}"][row] = mark
    ids = visits.table["id"].to_pylist()
    ids[row] = VISIT
    return pa.table({**columns, "id": ids, **{n: visits.table[n] for n in ("label", "person")}})


needs_proc = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no /proc")


@pytest.mark.sampled(2)
@needs_proc
@pytest.mark.parametrize(
    "name",
    [
        "GaussianNB", "KMeans", "RandomForestClassifier", "ShardedClassifier",
        "DivideAndConquerKMeans", "HistGradientBoostingClassifier",
    ],
)  # fmt: skip
def test_nothing_on_the_cluster_has_a_deleted_record(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that passes do not carry, and amid a partition, so that whole pages are given back.

    What is looked at: the memory of workers and scheduler, which is also what a core dump of them
    has, and what the scheduler knows of tasks; what they log at the level of debugging; and the
    folders of workers.
    """
    monkeypatch.setattr(TreeModel, "_gathered", 6000)  # workers grow nodes
    with cluster_of(2, tmp_path / "workers", debug=True) as cluster:

        def in_workers() -> Any:
            return sum(times_in(memory_of(pid), NUMBERS + TEXTS) for pid in cluster.pids())

        frame = write(marked(Visits(n=20_000), 800), tmp_path / "v")
        records = Records.from_dask(frame, client=cluster.client, **USES)
        model = make(name, n_estimators=2).fit(records)
        before = in_workers()
        model.delete([VISIT])
        after = in_workers()
        at_scheduler = times_in(memory_of(cluster.scheduler.pid), NUMBERS + TEXTS)
        logs = list((tmp_path / "workers").glob("*.log"))
        in_files = times_in(files_in(tmp_path / "workers"), NUMBERS + TEXTS)
    assert before[: len(NUMBERS)].all()
    assert not after.any(), (before, after)
    assert not at_scheduler.any()
    assert len(logs) == 3
    assert all(log.stat().st_size > 500 for log in logs)
    assert not in_files.any()


@needs_proc
def test_the_scan_finds_what_is_there(tmp_path: Path) -> None:
    """A result of a task, and its arguments, are in all the places that are looked at."""
    numbers = MARKS[:3].tolist()
    secret = [*numbers, *map(str, numbers), VISIT]
    with cluster_of(1, tmp_path / "workers", debug=True) as cluster:
        future = cluster.client.submit(say, secret)
        future.result()
        (worker,) = cluster.pids()
        for pid in (worker, cluster.scheduler.pid):
            assert times_in(memory_of(pid), NUMBERS + TEXTS).all()
        assert times_in(files_in(tmp_path / "workers"), TEXTS).all()
        in_this = times_in(memory_of(os.getpid()), NUMBERS)
    assert in_this.all()

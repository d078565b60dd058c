"""Records kept by the workers of a Dask cluster; the only module that imports Dask.

The law kept here: values of records are never stored where Dask keeps results, which it writes to
disk when memory is short. Blocks are in a dictionary of the worker's process. Results of passes are
results of tasks, which are released at once; rows themselves are sent outside of them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
from dask.optimization import cull
from dask.utils import parse_timedelta
from distributed import Client, Future, Worker, get_client, get_worker
from distributed import TimeoutError as DaskTimeoutError

from erasable.core.errors import ClusterError, InvalidInputError
from erasable.core.ids import shorten
from erasable.core.inputs import RecordArrays
from erasable.core.remote._jobs import BlockSource, Job, do
from erasable.core.remote._table import remote_table
from erasable.core.remote._workers import Workers
from erasable.core.stored_table import Uses

Found = TypeVar("Found")

_PATIENCE = 0.5
"""Seconds between checks that working processes are still there."""

_CONNECT = 10
"""Seconds in which a scheduler has to answer a new client."""

_RESTART = 30
"""Seconds to wait for a new worker when all are lost."""


def _limit() -> float:
    """Return the seconds without progress after which a cluster is no longer waited for."""
    return float(parse_timedelta(dask.config.get("erasable.timeout", "5 minutes")))


class DaskPartition(BlockSource):
    """A partition of a lazy frame: a graph of tasks, and the key of the task that makes it."""

    def __init__(self, graph: dict[Any, Any], key: Any, columns: list[str]) -> None:
        self._graph, self._key, self._columns = graph, key, columns

    def table(self) -> pa.Table:
        """See `BlockSource`; the tasks run in this thread, and their results are stored nowhere."""
        frame = dask.get(self._graph, self._key)
        own = [name for name in self._columns if name in frame.columns]
        return pa.Table.from_pandas(frame[own], preserve_index=False, nthreads=1)

    def __repr__(self) -> str:
        """Show no values: a graph may have some."""
        return f"DaskPartition(n_tasks={len(self._graph)})"


class DaskWorkers(Workers):
    """Workers of a Dask cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def threads(self) -> dict[str, int]:
        """See `Workers`; wait for a worker where there is none."""
        if not (found := self._present()):
            try:
                self._client.wait_for_workers(1, timeout=_RESTART)
            except (OSError, DaskTimeoutError):
                raise ClusterError("the cluster has no workers; expected one or more") from None
            found = self._present()
        return found

    def _present(self) -> dict[str, int]:
        return dict(_within(self._client, self._client.nthreads))

    def ask(self, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
        """Do as `Workers.ask` says.

        Raise ClusterError if workers have not begun a job within Dask's `erasable.timeout`; they
        may still begin it.
        """
        _refuse_closed(self._client)
        marks = {worker: f"{job.token}-{_next()}" for worker, job in jobs.items()}
        return self._aside(jobs, marks) if aside else self._by_tasks(jobs, marks)

    def _by_tasks(self, jobs: Mapping[str, Job], marks: Mapping[str, str]) -> dict[str, Any]:
        client = self._client
        futures = {
            worker: client.submit(
                _do, job, marks[worker], workers=[worker], allow_other_workers=False, retries=0,
                pure=False, key=f"{type(job).__name__}-{worker}-{marks[worker]}",
            )
            for worker, job in jobs.items()
        }  # fmt: skip
        try:
            return self._each(marks, lambda worker: futures[worker].result())
        finally:
            unused = [each for each in futures.values() if not each.done()]
            if unused:
                _within(client, lambda: client.cancel(unused, force=True))
            for each in futures.values():
                each.release()

    def _aside(self, jobs: Mapping[str, Job], marks: Mapping[str, str]) -> dict[str, Any]:
        def call(worker: str) -> Any:
            told = self._client.run(_do_aside, jobs[worker], marks[worker], workers=[worker])
            return told[worker]

        return self._each(marks, call)

    def _each(self, marks: Mapping[str, str], call: Callable[[str], Any]) -> dict[str, Any]:
        """Call a function for each worker; leave out workers that are gone, or whose call fails.

        A job returns its errors, so a failure is one of the connection.
        """
        told: SimpleQueue[tuple[str, bool, Any]] = SimpleQueue()

        def one(worker: str) -> None:
            try:
                told.put((worker, True, call(worker)))
            except BaseException as error:
                told.put((worker, False, error))

        waiting, limit = set(marks), _limit()
        for worker in waiting:  # do not wait until they fail because their worker is gone
            threading.Thread(target=one, args=(worker,), daemon=True).start()
        found: dict[str, Any] = {}
        last, idle = time.monotonic(), set[str]()
        while waiting:
            try:
                worker, answered, answer = told.get(timeout=min(_PATIENCE, limit))
            except Empty:
                waiting &= self._present().keys()
                if time.monotonic() - last > limit:
                    before, idle = idle, self._idle({each: marks[each] for each in waiting})
                    _refuse_idle(before & idle, limit)  # not one that was done meanwhile
                    last = time.monotonic()
                continue
            waiting.discard(worker)
            last = time.monotonic()
            if answered:
                found[worker] = answer
        return found

    def _idle(self, marks: Mapping[str, str]) -> set[str]:
        """Return the workers that are present and not doing their job."""
        run, workers = self._client.run, list(marks)
        told = _within(self._client, lambda: run(_at, workers=workers, on_error="ignore"))
        return {worker for worker, jobs in told.items() if marks[worker] not in jobs}


def _refuse_idle(idle: set[str], limit: float) -> None:
    """Raise ClusterError if there are workers that have not begun their jobs."""
    if idle:
        raise ClusterError(
            f"{len(idle)} workers, of which one is {shorten(min(idle))}, have not begun what "
            f"they were asked {limit:g} seconds ago; expected an answer: they may be paused, "
            "as their memory is nearly full, or at work for others; try smaller partitions, "
            "more memory, or dask.config.set({'erasable.timeout': '1 hour'})"
        )


def _within(client: Client, call: Callable[[], Found]) -> Found:
    """Return the result of a call to the scheduler; raise ClusterError after the time limit."""
    told: SimpleQueue[tuple[bool, Any]] = SimpleQueue()

    def one() -> None:
        try:
            told.put((True, call()))
        except BaseException as error:
            told.put((False, error))

    threading.Thread(target=one, daemon=True).start()
    limit = max(_limit(), _CONNECT)
    try:
        answered, answer = told.get(timeout=limit)
    except Empty:
        raise ClusterError(
            f"the cluster has not answered in {limit:g} seconds; expected one that is running"
        ) from None
    if answered:
        found: Found = answer
        return found
    _refuse_closed(client)
    if isinstance(answer, (OSError, DaskTimeoutError)):
        raise ClusterError("the cluster does not answer; expected one that is running") from None
    raise answer


def _refuse_closed(client: Client) -> None:
    if client.status in ("closing", "closed"):
        raise ClusterError("the client of the cluster is closed; expected one that is open")


_count = iter(range(sys.maxsize))


def _next() -> int:
    return next(_count)


_AT: dict[str, None] = {}
"""Jobs that this process is doing, by their marks."""


def _at() -> list[str]:
    return list(_AT)


def _marked(job: Job, mark: str, worker: str, n_threads: int) -> Any:
    _AT[mark] = None
    try:
        return do(job, worker, n_threads)
    finally:
        del _AT[mark]


def _do(job: Job, mark: str) -> Any:
    worker = get_worker()
    return _marked(job, mark, worker.address, worker.state.nthreads)


async def _do_aside(job: Job, mark: str, dask_worker: Worker) -> Any:
    """Do a job in a thread, so that the worker can answer meanwhile."""
    place = dask_worker.address, dask_worker.state.nthreads
    return await asyncio.to_thread(_marked, job, mark, *place)


def _versions() -> dict[str, str]:
    python = ".".join(map(str, sys.version_info[:2]))
    return {
        "erasable": version("erasable"),
        "NumPy": np.__version__,
        "scikit-learn": version("scikit-learn"),  # which learns shards, and cuts texts
        "Python": python,
    }


def table_of(
    frame: Any,
    client: Any,
    ids: str | None,
    target: str | None,
    groups: str | None,
    sample_weight: str | None,
    features: Iterable[str] | None,
) -> RecordArrays:
    """Let the workers of a cluster keep the features of a frame; see `Records.from_dask`."""
    if not isinstance(frame, dd.DataFrame):
        raise InvalidInputError(
            f"frame is a {type(frame).__name__}; expected a dask.dataframe.DataFrame"
        )
    workers = workers_of(client)
    named = None if features is None else list(features)
    uses = Uses(ids, target, groups, sample_weight, named)
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidInputError(
            "the frame has columns that share a name or have none; expected "
            "names that are strings, each once"
        )
    if uses.features is not None:
        wanted = [*uses.others, *uses.features]
        if missing := [name for name in wanted if name not in names]:
            raise InvalidInputError(
                f"the frame has no column {shorten(missing[0])}; expected some of its columns"
            )
        names = (
            list(dict.fromkeys(wanted)) or names
        )  # an empty list is refused later, when the types are known
    return remote_table(workers, _partitions(frame[names], names), uses)


def workers_of(client: Any) -> DaskWorkers:
    """Return the workers of a cluster, by its client or the address of its scheduler.

    Raise ClusterError if it does not answer, or its workers have other versions; InvalidInputError
    if there is no client.
    """
    if isinstance(client, str):
        try:
            client = Client(client, timeout=_CONNECT, set_as_default=False)
        except (OSError, ValueError, DaskTimeoutError):
            raise ClusterError(
                f"no cluster answers at {shorten(client)}; expected the address of a Dask "
                "scheduler, such as tcp://10.0.0.5:8786"
            ) from None
    client = _client(client)
    _refuse_versions(client)
    return DaskWorkers(client)


def _client(client: Any) -> Client:
    if client is None:
        try:
            return get_client()
        except ValueError:
            raise InvalidInputError(
                "there is no client of a cluster; expected one: client=distributed.Client(...)"
            ) from None
    if not isinstance(client, Client) or client.asynchronous:
        raise InvalidInputError(
            f"client is a {type(client).__name__}; expected a distributed.Client that is not "
            "asynchronous"
        )
    return client


def _refuse_versions(client: Client) -> None:
    told = _within(client, lambda: client.run(_versions, on_error="return"))
    own = _versions()
    for found in told.values():
        if isinstance(found, OSError):  # it is gone by now
            continue
        if isinstance(found, Exception):
            raise ClusterError(
                f"workers cannot import erasable ({type(found).__name__}); expected erasable "
                f"{own['erasable']} on each"
            )
        for name, wanted in own.items():
            if found[name] != wanted:
                raise ClusterError(f"workers have {name} {found[name]}; expected {wanted}, as here")


def _partitions(frame: Any, names: list[str]) -> list[DaskPartition]:
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):  # others need neighbours
        frame = frame.optimize()
    graph = dict(frame.__dask_graph__())
    made = []
    for key in frame.__dask_keys__():
        own = dict(cull(graph, [key])[0])
        if any(isinstance(each, Future) for each in own.values()):
            raise InvalidInputError(
                "the frame is persisted, in memory that Dask writes to disk; expected a lazy one"
            )
        made.append(DaskPartition(own, key, names))
    return made

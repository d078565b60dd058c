"""A Dask cluster whose scheduler and workers are processes that tests kill and replace.

A nanny does not replace a worker that is killed between registering and telling the nanny of it,
and nothing that waits for a worker more has a limit then. So tests replace workers themselves, and
nothing here waits longer than `LIMIT`. Processes are forked from one that has imported everything.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client, Scheduler, Worker

LIMIT = 120
"""Seconds in which a process has to start, or to end."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["worker_processes", "erasable.core.remote._dask", "visits_table"])


def forked() -> Any:
    """Return what makes processes that have imported everything."""
    return _CONTEXT


def say(values: Any) -> Any:
    """Log values where this is called, and return them."""
    logging.getLogger("distributed.worker").debug("%s", values)
    return values


def _log_to(folder: str, debug: bool) -> None:
    logging.basicConfig(
        filename=str(Path(folder) / f"{os.getpid()}.log") if debug else os.devnull,
        level=logging.DEBUG if debug else logging.CRITICAL,
        force=True,
    )
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
            logger.setLevel(logging.NOTSET)


def _schedule(told: Any, folder: str, debug: bool) -> None:
    async def schedule() -> None:
        _log_to(folder, debug)
        async with Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler:
            told.send(scheduler.address)
            await scheduler.finished()

    asyncio.run(schedule())


def _work(address: str, folder: str, debug: bool) -> None:
    async def work() -> None:
        _log_to(folder, debug)
        async with Worker(
            address, nthreads=1, local_directory=folder, dashboard=False, death_timeout=LIMIT
        ) as worker:
            await worker.finished()

    asyncio.run(work())


class Processes:
    """The processes of a cluster.

    Parameters
    ----------
    folder : Path
        Where workers spill, and log if `debug` is said.

    Attributes
    ----------
    client : Client
    scheduler : process
    address : str
    """

    def __init__(self, folder: Path, debug: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self._arguments = str(folder), debug
        hears, tells = _CONTEXT.Pipe(duplex=False)
        self.scheduler = _CONTEXT.Process(
            target=_schedule, args=(tells, *self._arguments), daemon=True
        )
        self.scheduler.start()
        assert hears.poll(LIMIT), "the scheduler did not start"
        self.address: str = hears.recv()
        self.client = Client(self.address, timeout=LIMIT)
        self._running: list[Any] = []
        self._changing = threading.Lock()

    def start(self, n_workers: int = 1) -> None:
        """Start workers, and wait until the scheduler knows of no others, and of them."""
        with self._changing:
            for _ in range(n_workers):
                process = _CONTEXT.Process(
                    target=_work, args=(self.address, *self._arguments), daemon=True
                )
                process.start()
                self._running.append(process)
        self.settle()

    def settle(self) -> None:
        """Wait until the scheduler knows the workers that run, and no others."""
        deadline = time.monotonic() + LIMIT
        wanted = set(self.pids())
        while set(self.client.run(os.getpid, on_error="ignore").values()) != wanted:
            assert time.monotonic() < deadline, "workers did not start"
            time.sleep(0.02)

    def pids(self) -> list[int]:
        """Return those of the workers."""
        with self._changing:
            return [process.pid for process in self._running]

    def kill(self, which: int = 0) -> None:
        """Kill a worker; the process is gone when this returns."""
        with self._changing:
            process = self._running.pop(which % len(self._running))
        _end(process)

    def stop(self) -> None:
        """Kill all, and the scheduler."""
        self.client.close(timeout=1)
        for process in [*self._running, self.scheduler]:
            _end(process)


def _end(process: Any) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join(LIMIT)
    process.close()


@contextmanager
def cluster_of(n_workers: int, folder: Path, debug: bool = False) -> Iterator[Processes]:
    """Start a cluster, and kill what is left of it."""
    processes = Processes(folder, debug)
    try:
        processes.start(n_workers)
        yield processes
    finally:
        processes.stop()

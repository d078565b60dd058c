"""Workers in one process, which tests can kill; all that they are told goes through a pickle."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from erasable import Records
from erasable.core.remote import BlockSource, Job, Workers, _jobs, do, remote_table
from erasable.core.stored_table import Uses

_numbers = itertools.count()
_IN_A_ROW = 5  # deaths: after six trips without an answer the workers are given up


class Slice(BlockSource):
    """Rows of a table that the test holds: what is pickled of it are positions."""

    tables: dict[str, pa.Table] = {}  # noqa: RUF012

    def __init__(self, name: str, first: int, stop: int) -> None:
        self.name, self.first, self.stop = name, first, stop

    def table(self) -> pa.Table:
        return self.tables[self.name].slice(self.first, self.stop - self.first)


class Simulated(Workers):
    """See the module.

    Attributes
    ----------
    asked : Counter
        How many jobs were done, by their types.
    trips : int
        How often jobs were sent, to all workers at once.
    sent, received : int
        Bytes.
    sent_by : Counter
        Bytes of jobs, by their types.
    before, after : callable
        Called with the name of a worker before it does a job, and before it answers; False says
        that it dies there.
    """

    def __init__(self, n_workers: int) -> None:
        self.names = [f"{next(_numbers)}" for _ in range(n_workers)]
        self.asked: Counter[str] = Counter()
        self.sent_by: Counter[str] = Counter()
        self.trips = self.sent = self.received = 0
        self.before: Callable[[str, Job], bool] = lambda name, job: True
        self.after = self.before

    def threads(self) -> dict[str, int]:
        return dict.fromkeys(self.names, 2)

    def ask(self, jobs: Mapping[str, Job], aside: bool = False) -> dict[str, Any]:
        found = {}
        self.trips += 1
        for name, job in jobs.items():
            self.asked[type(job).__name__] += 1
            if name not in self.names:
                continue
            if not self.before(name, job):
                self.kill(name)
                continue
            data = pickle.dumps(job)
            self.sent += len(data)
            self.sent_by[type(job).__name__] += len(data)
            answer = pickle.dumps(do(pickle.loads(data), name, 1))
            self.received += len(answer)
            if not self.after(name, job):
                self.kill(name)
                continue
            found[name] = pickle.loads(answer)
        return found

    def die(self, share: float, seed: int) -> Counter[str]:
        """Have workers die at a share of their jobs, before or after, but not at six in a row.

        Returns the deaths, which are counted by the type of the job.
        """
        rng, deaths, n_last = np.random.default_rng(seed), Counter[str](), 0

        def survives(name: str, job: Job) -> bool:
            nonlocal n_last
            dies = n_last < _IN_A_ROW and rng.random() < share
            n_last += dies
            deaths.update([type(job).__name__] * dies)
            return not dies

        def answers(name: str, job: Job) -> bool:
            nonlocal n_last
            if not survives(name, job):
                return False
            n_last = 0
            return True

        self.before, self.after = survives, answers
        return deaths

    def kill(self, name: str) -> None:
        """Take a worker with all that it has, and start another."""
        for place in [place for place in _jobs._SHELVES if place[0] == name]:
            del _jobs._SHELVES[place]
        self.names.remove(name)
        self.names.append(f"{next(_numbers)}")

    def blocks(self) -> dict[int, Any]:
        """Return all blocks that workers have."""
        return {
            number: held
            for (name, _), shelf in _jobs._SHELVES.items()
            if name in self.names
            for number, held in shelf.blocks.items()
        }


def spread(
    table: pa.Table,
    cuts: Sequence[int],
    workers: Workers,
    features: list[str] | None = None,
    weights: str | None = None,
) -> Records:
    """Make records of a table in partitions, with the columns id, label and person."""
    name = f"{next(_numbers)}"
    Slice.tables[name] = table
    bounds = [0, *cuts, table.num_rows]
    sources = [Slice(name, *pair) for pair in itertools.pairwise(bounds)]
    uses = Uses("id", "label", "person", weights, features)
    return Records.from_table(remote_table(workers, sources, uses))


def even(n: int, parts: int) -> list[int]:
    """Return where to cut n rows into parts."""
    return np.linspace(0, n, parts + 1).astype(int)[1:-1].tolist()

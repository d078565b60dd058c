"""Workers and clients at once: every request is done once, nobody waits for ever."""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from backends import after_fork, database_of
from colleague import MODELS, be_client, be_worker, columns, person, plan
from contexts import scan, write_csv
from crashes import ENDED
from postgres_server import Server
from sqlalchemy import select

from erasable.workspace import Workspace
from erasable.workspace.data import catalogue
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.schema import failure, lease, log_entry, step

pytestmark = pytest.mark.backend("postgres")  # with SQLite there is one at work at a time
ONCE = ("request-acknowledged", "request-erased", "request-completed")
BASE = 40  # records of each data set at the start
LIMIT = 500  # seconds; far more than it takes


def make(folder: Path) -> Path:
    """Make a workspace of two data sets, of people who stay, and four models."""
    workspace = Workspace.create(folder / "ws")
    for i, name in enumerate(("visits", "letters")):
        people = [person(8 + i, k // 2) for k in range(BASE)]
        write_csv(folder / f"{name}.csv", columns(name, 8 + i, list(range(BASE)), people))
        workspace.add_dataset(
            name, folder / f"{name}.csv", id_column="id", subjects=["person"]
        )  # fmt: skip
    on: dict[str, Any] = {"datasets": ["visits"], "features": ["age", "weight"]}
    workspace.fit("risk", "naive_bayes.GaussianNB", target="sick", **on)
    workspace.fit("scale", "preprocessing.StandardScaler", **on)
    workspace.fit("tree", "sklearn.tree.DecisionTreeClassifier", target="sick", **on)
    workspace.fit("lengths", "preprocessing.MinMaxScaler", **(on | {"datasets": ["letters"]}))
    workspace.context.ledger.close()
    return folder / "ws"


class Colleague:
    """A copy of this process that does what a function says; see `colleague`."""

    def __init__(self, folder: Path, name: str, run: Callable[[], dict[str, Any]]) -> None:
        self.told = folder / f"told-{name}.json"
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                after_fork()
                self.told.write_text(json.dumps(run()))
                code = 0
            except BaseException:
                self.told.write_text(traceback.format_exc())
            finally:
                os._exit(code)
        self.code: int | None = None

    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def end(self, until: float) -> dict[str, Any]:
        """Return what it did, when it has ended."""
        while not self.has_ended():
            assert time.monotonic() < until, "it does not end"
            time.sleep(0.02)
        assert self.code == 0, self.told.read_text()
        return dict(json.loads(self.told.read_text()))

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended():
            os.kill(self.pid, number)


def together(path: Path, n_workers: int, n_clients: int, n_rounds: int) -> dict[str, Any]:
    """Have all of them at work at once; return what they did."""
    until = time.monotonic() + LIMIT
    clients = [
        Colleague(path.parent, f"client-{i}", partial(be_client, path, i, n_rounds))
        for i in range(n_clients)
    ]
    workers = [
        Colleague(path.parent, f"worker-{i}", partial(be_worker, path)) for i in range(n_workers)
    ]
    try:
        asked = [id for each in clients for id in each.end(until)["requests"]]
        workspace = Workspace.open(path)
        while not {each.state for each in workspace.requests()} <= ENDED:
            assert time.monotonic() < until
            time.sleep(0.05)
        workspace.context.ledger.close()
        for each in workers:
            each.send(signal.SIGTERM)
        told = [each.end(until) for each in workers]
    finally:
        for each in [*clients, *workers]:
            each.send(signal.SIGKILL)
    return {"asked": asked, "workers": told}


def expected_records(n_clients: int, n_rounds: int) -> dict[str, set[str]]:
    """Return the ids that stay: whoever was asked for is gone, whenever their records came."""
    left = {
        name: {f"zr{8 + i}x{k:05d}" for k in range(BASE)}
        for i, name in enumerate(("visits", "letters"))
    }
    for client in range(n_clients):
        steps = plan(client, n_rounds)
        gone = {who for each in steps for who in each.get("request", ())}
        for each in steps:
            for number, who in zip(each.get("numbers", ()), each.get("people", ()), strict=True):
                if who not in gone:
                    left[each["append"]].add(f"zr{client}x{number:05d}")
    return left


def problems(path: Path, asked: list[str], records: dict[str, set[str]]) -> list[str]:
    """Say what is wrong with a workspace in which all that was asked should be done."""
    workspace = Workspace.open(path)
    found = list(workspace.verify_log())
    states = {each.id: each.state for each in workspace.requests()}
    found += [f"{id} is lost" for id in asked if id not in states]
    found += [f"{id} is {state}" for id, state in states.items() if state not in ENDED]
    with workspace.context.ledger.reading() as connection:
        rows = connection.execute(select(log_entry.c.kind, log_entry.c.subject))
        times = Counter((row.kind, row.subject) for row in rows)
        found += [
            f"the log has {kind} of {id} {times[kind, id]} times"
            for id in asked
            for kind in ONCE
            if times[kind, id] != 1
        ]
        for table in (step, failure, lease):
            found += [f"{table.name}: {row}" for row in connection.execute(select(table))]
        for known in catalogue.all_datasets(connection):
            ids = catalogue.read_version(workspace.context, connection, known.id, columns=["id"])[
                "id"
            ]
            if set(ids.to_pylist()) != records[known.name] or len(ids) != len(set(ids)):
                found.append(f"{known.name} has other records")
    for id in asked:
        if states.get(id) in ENDED:
            body = workspace.receipt(id)
            if receipts.check(body, workspace.public_key).request != id:
                found.append(f"{id} has the receipt of another")
    found += [
        f"{each.model} is {each.verdict}" for each in workspace.verify() if each.verdict != "equal"
    ]
    workspace.context.ledger.close()
    return found


def waits(server: Server, path: Path) -> list[Any]:
    """Return who waits for a lock, and how often a deadlock was ended."""
    with psycopg.connect(server.url(str(database_of(path)))) as connection:
        waiting = connection.execute("SELECT pid FROM pg_locks WHERE NOT granted").fetchall()
        query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        return [*waiting, *(n for (n,) in connection.execute(query) if n)]


def check(server: Server, path: Path, n_workers: int, n_clients: int, n_rounds: int) -> None:
    done = together(path, n_workers, n_clients, n_rounds)
    assert len(done["asked"]) == n_clients * n_rounds
    assert [each["trouble"] for each in done["workers"]] == [[]] * n_workers
    completed = [id for each in done["workers"] for id in each["requests"]]
    assert sorted(completed) == sorted(done["asked"])  # each by one of them
    assert problems(path, done["asked"], expected_records(n_clients, n_rounds)) == []
    assert waits(server, path) == []
    steps = [each for i in range(n_clients) for each in plan(i, n_rounds)]
    gone = {who for each in steps for who in each.get("request", ())}
    assert scan(path, *gone) == []
    versions = {each["name"]: each["version"] for each in Workspace.open(path).models()}
    assert set(versions) == set(MODELS)
    assert sum(versions.values()) > sum("fit" in each for each in steps)  # fits, and erasures


def test_two_workers(server: Server, tmp_path: Path) -> None:
    check(server, make(tmp_path), n_workers=2, n_clients=2, n_rounds=3)


@pytest.mark.soak
def test_four_workers(server: Server, tmp_path: Path) -> None:
    check(server, make(tmp_path), n_workers=4, n_clients=3, n_rounds=10)


def test_the_checks_find_what_is_wrong(server: Server, tmp_path: Path) -> None:
    path = make(tmp_path)
    workspace = Workspace.open(path)
    (asked,) = workspace.request([person(8, 0)])
    records = expected_records(0, 0)
    found = problems(path, [asked.id, "R-1"], records)
    assert {"R-1 is lost", f"{asked.id} is pending"} < set(found)
    assert f"the log has request-completed of {asked.id} 0 times" in found
    workspace.process()
    assert problems(path, [asked.id], records) == ["visits has other records"]
    with psycopg.connect(server.url(str(database_of(path)))) as one:
        one.execute("SELECT pg_advisory_xact_lock(1)")
        with psycopg.connect(server.url(str(database_of(path))), autocommit=True) as other:
            other.execute("SET lock_timeout = '1ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("SELECT pg_advisory_xact_lock(1)")

"""Have a process die, or its disk fail, at a numbered point; then look at what is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from contexts import scan, visits, write_csv

from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.store import crash_points

GONE = [2, 7, 11]
MARKERS = [f"marker-patient-{i:03d}" for i in GONE]
ENDED = {"completed", "no_match"}  # of whom nobody's records were asked for


def make_workspace(folder: Path) -> Path:
    """Make a workspace with two data sets, four models and requests that are pending."""
    columns = visits(120)
    columns["patient"] = [f"marker-patient-{i // 3:03d}" for i in range(120)]
    columns["note"] = [f"note of marker-patient-{i // 3:03d}" for i in range(120)]
    write_csv(folder / "visits.csv", columns)
    letters = {
        "letter": [f"l{i}" for i in range(40)],
        "sender": [f"marker-patient-{i % 20:03d}" for i in range(40)],
        "length": [float(i * i % 97) for i in range(40)],
    }
    write_csv(folder / "letters.csv", letters)
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset(
        "visits", folder / "visits.csv", id_column="visit", subjects=["patient", "doctor"]
    )
    workspace.add_dataset(
        "letters", folder / "letters.csv", id_column="letter", subjects=["sender"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.fit(
        "segments",
        "preprocessing.StandardScaler,cluster.KMeans",
        datasets=["visits"],
        params={"kmeans__n_clusters": "3"},
    )
    workspace.fit("range", "preprocessing.MinMaxScaler", datasets=["letters"])
    workspace.fit("tree", "sklearn.tree.DecisionTreeClassifier", datasets=["visits"], target="sick")
    workspace.request(MARKERS)
    workspace.request(where="age > 65", dataset="visits")
    workspace.request(["nobody"])
    return folder / "ws"


def count(action: Callable[[Workspace], object], path: Path) -> int:
    """Count the points that an action passes."""
    passed = 0

    def watch(effect: str, where: str) -> None:
        nonlocal passed
        passed += 1

    workspace = Workspace.open(path)
    with crash_points.watch(watch):
        action(workspace)
    return passed


def die_at(number: int, action: Callable[[Workspace], object], path: Path) -> bool:
    """Run an action in a process that is killed at a point; return whether it got there."""

    def in_child() -> None:
        passed = 0

        def kill(effect: str, where: str) -> None:
            nonlocal passed
            passed += 1
            if passed == number:
                os.kill(os.getpid(), signal.SIGKILL)

        workspace = Workspace.open(path)
        with crash_points.watch(kill):
            action(workspace)

    return fork(in_child) == -signal.SIGKILL


def fork(run: Callable[[], object]) -> int:
    """Run something in a copy of this process; return its exit code, or minus its signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def fail_at(
    number: int, error: BaseException, action: Callable[[Workspace], object], path: Path
) -> BaseException | None:
    """Run an action in which something is raised at a point; return what it raised, if anything."""
    passed = 0

    def fail(effect: str, where: str) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            raise error

    workspace = Workspace.open(path)
    try:
        with crash_points.watch(fail):
            action(workspace)
    except BaseException as raised:
        return raised
    assert passed >= number
    return None


def look_before_restart(path: Path) -> None:
    """Where the ledger says completed, nothing of the records is left, at whatever point."""
    workspace = Workspace.open(path)
    states = {request.state for request in workspace.requests()}
    if states & {*ENDED, "purged"}:
        assert scan(path, *MARKERS) == []


def restart_and_check(path: Path, n_requests: int = 5) -> None:
    """Run `process` again: everything is done, once, and all of it can be proved."""
    workspace = Workspace.open(path)
    workspace.process()
    requests = workspace.requests()
    assert len(requests) == n_requests
    assert {request.state for request in requests} == ENDED
    by_count = sorted(request.matched for request in requests)
    assert by_count == EXPECTED
    assert workspace.verify_log() == []
    assert {verdict.verdict for verdict in workspace.verify()} == {"equal"}
    assert {row["name"]: row["n_records"] for row in workspace.datasets()} == LEFT
    assert scan(path, *MARKERS) == []
    assert sorted(workspace.context.store.list()) == sorted(referred_to(workspace))
    assert not (path / "scratch").exists() or not list((path / "scratch").iterdir())
    for request in requests:
        body = workspace.receipt(request.id)
        assert receipts.check(body, workspace.public_key).request == request.id


EXPECTED = [0, 5, 5, 5, 8]
LEFT = {"letters": 34, "visits": 103}


def referred_to(workspace: Workspace) -> list[str]:
    """Return the keys that the ledger refers to."""
    from sqlalchemy import select

    from erasable.workspace.ledger.schema import fragment, model_version, request, target

    with workspace.context.ledger.reading() as connection:
        keys = list(connection.execute(select(fragment.c.key)).scalars())
        keys += list(connection.execute(select(model_version.c.key)).scalars())
        keys += list(connection.execute(select(request.c.values_key)).scalars())
        keys += list(connection.execute(select(target.c.plan_key)).scalars())
    return [key for key in keys if key is not None]

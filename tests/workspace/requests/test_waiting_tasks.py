"""Requests that come while something has failed wait with the others, and free nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import visits, write_csv

from erasable.workspace import Workspace
from erasable.workspace.requests.failures import RetryPolicy
from erasable.workspace.requests.worker import Worker


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Patients 0 to 9 in "visits"; 20 to 29 in "others", with a command that can be broken."""
    made = Workspace.create(tmp_path / "ws")
    for name, start in (("visits", 0), ("others", 60)):
        write_csv(tmp_path / f"{name}.csv", visits(30, start=start))
        made.add_dataset(name, tmp_path / f"{name}.csv", id_column="visit", subjects=["patient"])
    flag = tmp_path / "broken"
    made.register(
        "ranker", datasets=["others"], retrain=f"sh -c 'test ! -e {flag} && cp {{data}} {{out}}'"
    )
    return made


def states(workspace: Workspace) -> list[str]:
    return [each.state for each in sorted(workspace.requests(), key=lambda one: one.received_at)]


@pytest.mark.parametrize("attempts", [1, 2])  # it is dead, or to be tried again much later
def test_for_a_model(workspace: Workspace, tmp_path: Path, attempts: int) -> None:
    (tmp_path / "broken").touch()
    worker = Worker(workspace.context, RetryPolicy(attempts=attempts, backoff=3600.0))
    workspace.request(["marker-patient-21"])
    assert worker.turn().failure is not None
    workspace.request(["marker-patient-22"])
    workspace.request(["marker-patient-1"])
    told = [worker.turn() for _ in range(5)]  # so many: they took turns for ever
    assert [each.failure for each in told] == [None] * 5  # no attempt of their own
    assert sum(each.processed is not None for each in told) == 1
    assert states(workspace) == ["pending", "pending", "completed"]
    (failed,) = workspace.tasks()["failed"]
    assert (failed.attempts, failed.n_requests) == (1, 2)
    (tmp_path / "broken").unlink()
    workspace.retry()
    worker.run(drain=True)
    assert states(workspace) == ["completed"] * 3
    assert workspace.tasks()["failed"] == []
    assert workspace.verify_log() == []


def test_for_a_data_set(workspace: Workspace) -> None:
    folder = workspace.context.root / "artifacts" / "data" / "others"
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    for path, data in whole.items():
        path.write_bytes(data[:-1])
    worker = Worker(workspace.context, RetryPolicy(attempts=1))
    workspace.request(["marker-patient-21"])
    assert worker.turn().failure is not None
    workspace.request(["marker-patient-22"])
    assert [bool(worker.turn()) for _ in range(4)] == [True, False, False, False]
    assert [each.n_requests for each in workspace.tasks()["failed"]] == [2]
    for path, data in whole.items():
        path.write_bytes(data)
    workspace.retry()
    worker.run(drain=True)
    assert states(workspace) == ["completed"] * 2
    assert workspace.verify_log() == []

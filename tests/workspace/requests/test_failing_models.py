"""A model that cannot be updated stops a batch, but not the answers to its requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import visits, write_csv

from erasable.core.errors import NotInWorkspaceError, WorkspaceError
from erasable.workspace import Workspace


def workspace_with_a_command(folder: Path, command: str) -> Workspace:
    workspace = Workspace.create(folder / "ws")
    write_csv(folder / "visits.csv", visits(60))
    workspace.add_dataset("visits", folder / "visits.csv", id_column="visit", subjects=["patient"])
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.register("ranker", datasets=["visits"], retrain=command)
    return workspace


@pytest.fixture
def broken(tmp_path: Path) -> Workspace:
    """A workspace whose command works once, and fails from then on."""
    flag = tmp_path / "ran"
    command = f"sh -c 'test ! -e {flag} && touch {flag} && cp {{data}} {{out}}'"
    return workspace_with_a_command(tmp_path, command)


def test_nothing_changes_and_requests_wait_again(broken: Workspace) -> None:
    taken = broken.request(["marker-patient-3", "marker-patient-4"])
    before = {model["name"]: model["version"] for model in broken.models()}
    with pytest.raises(WorkspaceError, match=r"erasable model retire ranker") as told:
        broken.process()
    assert "\n" not in str(told.value)
    assert [request.state for request in broken.requests()] == ["pending", "pending"]
    assert {model["name"]: model["version"] for model in broken.models()} == before
    assert broken.datasets()[0]["n_records"] == 60
    assert broken.verify_log() == []
    broken.deny(taken[0].id, "a reason")
    assert broken.verify_log() == []


def test_requests_that_do_not_concern_it_are_carried_out(broken: Workspace, tmp_path: Path) -> None:
    write_csv(tmp_path / "others.csv", visits(30, start=300))
    broken.add_dataset("others", tmp_path / "others.csv", id_column="visit", subjects=["patient"])
    stuck, other = broken.request(["marker-patient-3", "marker-patient-100"])
    with pytest.raises(WorkspaceError, match=rf"ranker.*{stuck.id} waits.*1 other request was"):
        broken.process()
    states = {each.id: each.state for each in broken.requests()}
    assert states == {stuck.id: "pending", other.id: "completed"}
    assert broken.verify_log() == []


def test_a_model_can_be_given_up(broken: Workspace) -> None:
    broken.request(["marker-patient-3"])
    with pytest.raises(WorkspaceError):
        broken.process()
    broken.retire("ranker")
    done = broken.process()
    assert [each["model"] for each in done.treatments] == ["risk"]
    assert [request.matched for request in broken.requests()] == [3]
    assert broken.verify_log() == []
    assert {each.model: each.verdict for each in broken.verify()} == {
        "ranker": "retired",
        "risk": "equal",
    }
    with pytest.raises(WorkspaceError, match="retired already"):
        broken.retire("ranker")
    with pytest.raises(NotInWorkspaceError):
        broken.retire("nobody")

"""What is told of whoever was erased: by `subject`, a second request, the report, a release."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from contexts import scan

from erasable.workspace import Workspace
from erasable.workspace.identity import external_files


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "visits.csv").write_text("n,who,other\n1,p1,p2\n2,p1,\n3,p2,\n4,p3,p4\n")
    made = Workspace.create(tmp_path / "ws", export=str(tmp_path / "elsewhere"))
    made.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="n", subjects=["who:id", "other:id"]
    )
    return made


def erase(workspace: Workspace, *people: str) -> list[str]:
    taken = workspace.request(list(people))
    workspace.process()
    return [each.id for each in taken]


def test_a_token_on_the_list_is_told_of(workspace: Workspace) -> None:
    assert workspace.subject("p1")["suppressed"] == []
    (request,) = erase(workspace, "p1")
    found = workspace.subject("p1")
    (entry,) = found["suppressed"]
    assert (found["known"], entry["type"], entry["request_id"]) == (False, "id", request)
    assert workspace.subject("nobody")["suppressed"] == []


def test_a_second_request_is_told_from_a_strangers(workspace: Workspace) -> None:
    erase(workspace, "p1")
    workspace.request(["p1", "nobody"])
    done = workspace.process()
    assert (done.n_unmatched, done.n_kept_out) == (2, 1)
    workspace.request(["nobody"])
    assert workspace.process().n_kept_out == 0


def test_a_record_that_two_requests_share_is_counted_once(
    workspace: Workspace, tmp_path: Path
) -> None:
    erase(workspace, "p1", "p2")
    assert sum(each.matched or 0 for each in workspace.requests()) == 4  # record 1 in both
    workspace.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert re.search(r"<b>([0-9]+)</b><span>records erased", page)[1] == "3"  # type: ignore[index]


def test_nothing_is_left_of_a_token_that_was_released(workspace: Workspace, tmp_path: Path) -> None:
    erase(workspace, "p1")
    token = workspace.context.keys.token("id", "p1")
    assert token in {each["token"] for each in workspace.suppressed()}
    assert workspace.release("p1") == []
    assert scan(tmp_path / "ws", token) == []
    listed = json.loads((tmp_path / "elsewhere" / "suppression.json").read_text())
    assert external_files.read_list(workspace.context, listed) == []
    assert workspace.verify_log() == []
    assert workspace.sync("visits").n_suppressed == 0  # p1 comes in again
    erase(workspace, "p1")
    assert token in {each["token"] for each in workspace.suppressed()}
    assert workspace.subject("p1")["known"] is False
    assert workspace.verify_log() == []


def test_a_list_that_cannot_be_written_is_told(workspace: Workspace, tmp_path: Path) -> None:
    erase(workspace, "p1")
    (tmp_path / "elsewhere" / "head.json").write_text("{}")
    (told,) = workspace.release("p1")
    assert "was not exported" in told
    assert workspace.suppressed() == []

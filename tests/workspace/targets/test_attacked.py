"""Attacks on the erasure from targets: what they found stays mended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.evidence import receipts
from erasable.workspace.targets.files import FilesTarget
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED

ANN = "ann.lee@example.org"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    path = tmp_path / "visits.csv"
    path.write_text("id,mail,dose\n" + "".join(f"{i},p{i}@example.org,1.5\n" for i in range(5)))
    made = Workspace.create(tmp_path / "workspace")
    made.add_dataset("visits", path, id_column="id", subjects=["mail:email"])
    return made


def said(workspace: Workspace, request: str) -> dict[str, Any]:
    body = workspace.receipt(request)
    receipts.check(body, workspace.context.keys.public_pem)
    return receipts.show(body)


def rows(*more: str) -> str:
    others = "".join(f"p{i}@example.org,what person {i} said\n" for i in range(5))
    return "mail,note\n" + others + "".join(f"{each}\n" for each in more)


def test_names_of_files_do_not_come_into_the_log(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    (folder / ANN).mkdir(parents=True)
    (folder / "of ann.lee%40example.org.csv").write_text(rows(f"{ANN},hello there"))
    (folder / ANN / "notes.csv").write_text(rows(f"{ANN},hello there"))
    (folder / f"{ANN}.bin").write_bytes(b"\0\1\2")
    workspace.add_target("files", str(folder), ["mail:email"])
    (request,) = workspace.request([ANN])
    done = workspace.process()
    assert [each["verdict"] for each in done.targets] == [NOT_PROVED]
    assert done.targets[0]["n_records"] == 2
    assert b"ann.lee" not in json.dumps([done.targets, said(workspace, request.id)]).encode()
    for path in workspace.context.root.rglob("*"):
        assert not path.is_file() or b"ann.lee" not in path.read_bytes(), path.name
    assert workspace.verify_log() == []


@pytest.mark.parametrize("step", ["erase", "compact"])
def test_requests_that_come_after_a_failure_are_counted_right(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text(rows(f"{ANN},hello there", f"{ANN},hello again"))
    workspace.add_target("files", str(folder), ["mail:email"])
    (first,) = workspace.request([ANN])

    def fail(*_: Any) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(FilesTarget, step, fail)
        assert workspace.process().waiting == [first.id]
    (again,), (other,) = workspace.request([ANN]), workspace.request(["p2@example.org"])
    done = workspace.process()
    assert [(each["verdict"], each["n_records"]) for each in done.targets] == [(PURGED, 3)]
    counts = [said(workspace, each.id)["targets"][0]["records"] for each in (first, again, other)]
    assert counts == [2, 2, 1]
    assert workspace.verify_log() == []


def test_a_target_is_not_given_up_while_people_leave_it(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text(rows(f"{ANN},hello there"))
    workspace.add_target("files", str(folder), ["mail:email"])
    (request,) = workspace.request([ANN])
    other = Workspace(Context.open(workspace.context.root, wait=0.1))

    def give_up(*_: Any) -> None:
        with pytest.raises(WorkspaceBusyError):
            other.remove_target("files", give_up=True)
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(FilesTarget, "erase", give_up)
        assert workspace.process().warnings
    other.remove_target("files", give_up=True)
    assert workspace.process().requests == [request.id]
    assert not list((workspace.context.root / "artifacts").rglob("targets/*"))
    assert workspace.tasks()["failed"] == []

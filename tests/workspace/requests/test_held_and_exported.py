"""What a batch does beside erasing: requests that it has wait, and what it writes outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from erasable.core.errors import WorkspaceDiskError
from erasable.workspace import Workspace
from erasable.workspace.requests import process


def source(folder: Path, name: str, people: list[str]) -> Path:
    path = folder / f"{name}.csv"
    rows = [f"v{i},{person},{i}" for i, person in enumerate(people)]
    path.write_text("\n".join(["visit,patient,age", *rows]) + "\n")
    return path


def full(*given: Any) -> None:
    raise WorkspaceDiskError("the disk is full")


def test_the_log_agrees_with_a_doubtful_request_that_an_attempt_had_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    add = lambda name, people, kind="id": workspace.add_dataset(  # noqa: E731
        name, source(tmp_path, name, people), id_column="visit", subjects=[f"patient:{kind}"]
    )
    add("visits", ["p1", "p2", "p3"])
    add("shifts", ["s1"], "staff/id")
    workspace.request(["later", "p1"])
    with monkeypatch.context() as broken:
        broken.setattr(process, "swap", full)
        with pytest.raises(WorkspaceDiskError):
            workspace.process()
    add("more", ["later"])
    add("others", ["later"], "staff/id")
    assert len(workspace.process().requests) == 1
    (held,) = workspace.requests(["pending"])
    assert held.hold is not None
    assert workspace.verify_log() == []


def test_the_folder_outside_is_that_of_init_wherever_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workspace = Workspace.create("ws", export="outside")
    workspace.add_dataset(
        "visits", source(tmp_path, "visits", ["p1", "p2"]), id_column="visit", subjects=["patient"]
    )
    workspace.request(["p1"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert workspace.process().warnings == []
    assert list(elsewhere.iterdir()) == []
    assert sorted(each.name for each in (tmp_path / "outside").iterdir()) == [
        "head.json", "suppression.json",
    ]  # fmt: skip

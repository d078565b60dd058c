"""Models that an earlier version learned wrong: who names them, and that they let people go."""

from __future__ import annotations

from pathlib import Path

import pytest
from earlier import earlier_version

from erasable.workspace import Workspace

ENTRY = "composed_entry:train"
ROWS = [f"v{i},p{i // 2},{20 + i % 9},{(i * 7) % 11},{int(i % 9 > 4)}" for i in range(40)]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace.create(tmp_path / "ws")
    source = tmp_path / "visits.csv"
    source.write_text("\n".join(["visit,patient,age,dose,sick", *ROWS]) + "\n")
    found.add_dataset("visits", source, id_column="visit", subjects=["patient"])
    return found


def test_it_is_named_until_it_has_learned_again(workspace: Workspace, tmp_path: Path) -> None:
    with earlier_version():
        workspace.fit("wrong", ENTRY, datasets=["visits"])
    workspace.fit("right", ENTRY, datasets=["visits"])
    assert workspace.status()["outdated"] == ["wrong"]
    verdicts = {each.model: each for each in workspace.verify()}
    assert verdicts["right"].verdict == "equal"
    assert verdicts["wrong"].verdict == "outdated"
    assert "applied a step twice" in verdicts["wrong"].detail
    assert not verdicts["wrong"].holds
    workspace.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count(">outdated<") == 2  # among the models, and in the verification
    workspace.request(["p3"])
    workspace.process()
    assert workspace.status()["outdated"] == []
    assert [each.verdict for each in workspace.verify()] == ["equal", "equal"]


def test_a_damaged_file_is_not_called_outdated(workspace: Workspace, tmp_path: Path) -> None:
    with earlier_version():
        workspace.fit("wrong", ENTRY, datasets=["visits"])
    (file,) = (each for each in (tmp_path / "ws").rglob("models/wrong*/**/*") if each.is_file())
    file.write_bytes(file.read_bytes()[:100])
    assert workspace.status()["outdated"] == []
    assert [each.verdict for each in workspace.verify()] == ["damaged"]

"""A clock that was set back is remarked on: its entries are not written in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import Clock, make_context

from erasable.workspace import Workspace
from erasable.workspace.ledger.schema import log_entry


@pytest.fixture
def scene(tmp_path: Path) -> tuple[Workspace, Clock]:
    context, clock = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    clock.pass_days(10)
    workspace.request(["p1"])
    return workspace, clock


def test_time_that_goes_on_is_not_remarked_on(scene: tuple[Workspace, Clock]) -> None:
    workspace, clock = scene
    assert workspace.remarks() == []
    assert workspace.process().warnings == []
    clock.pass_days(400)
    workspace.request(["p2"])
    assert workspace.remarks() == []
    assert workspace.process().warnings == []


def test_what_is_processed_on_a_clock_that_was_set_back(scene: tuple[Workspace, Clock]) -> None:
    workspace, clock = scene
    clock.pass_days(-3)
    (line,) = workspace.remarks()
    assert line.startswith("the clock says 2026-03-08T09:30")
    assert "was written at 2026-03-11T09:30" in line
    done = workspace.process()
    assert done.warnings[0][:20] == line[:20]
    assert "was set back" in done.warnings[0]
    assert len(done.requests) == 1  # it is carried out all the same
    (line,) = workspace.remarks()
    assert line.startswith("the clock was set back before entry 2 of the log: entries are in their")
    assert workspace.verify_log() == []  # it proves nothing
    clock.pass_days(9)
    workspace.request(["p2"])
    clock.pass_days(-1)
    workspace.request(["p3"])
    assert any("before entry 2 of the log, and 1 times after it" in x for x in workspace.remarks())


def test_a_clock_that_was_corrected_by_seconds_is_none(scene: tuple[Workspace, Clock]) -> None:
    workspace, clock = scene
    clock.pass_days(-50 / 86400)
    workspace.request(["p2"])
    assert workspace.remarks() == []
    assert workspace.process().warnings == []


def test_an_entry_that_cannot_be_read_is_left_to_the_check_of_the_log(
    scene: tuple[Workspace, Clock],
) -> None:
    workspace, _ = scene
    for garbage in (b"\xff", b"[]", b'{"at":3}', b'{"at":"2026-03-11"}'):
        with workspace.context.ledger.transaction() as connection:
            connection.execute(
                log_entry.update().where(log_entry.c.position == 1).values(body=garbage)
            )
        assert workspace.remarks() == []
        assert workspace.verify_log() != []

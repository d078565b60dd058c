"""What is counted of past requests: people, once, of the data set in question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from contexts import make_context, visits, write_csv

from erasable.core.errors import NotInWorkspaceError, WorkspaceError
from erasable.selection import BetaBinomial, from_history
from erasable.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """30 patients of three visits each, on the first of March."""
    context, clock = make_context(tmp_path / "ws")
    made = Workspace(context)
    write_csv(tmp_path / "visits.csv", visits(90))
    made.add_dataset(
        "visits",
        tmp_path / "visits.csv",
        id_column="visit",
        subjects=["patient", "doctor:staff/id"],
    )
    made.clock = clock  # type: ignore[attr-defined]
    return made


def ask(workspace: Workspace, *patients: int) -> list[str]:
    taken = workspace.request([f"marker-patient-{number}" for number in patients])
    return [each.id for each in taken]


def counts(workspace: Workspace) -> tuple[int, int]:
    found = workspace.history("visits")
    return found.requested, found.held


def test_nobody_has_asked(workspace: Workspace) -> None:
    assert counts(workspace) == (0, 30)  # patients: no doctors, and no visits


def test_people_are_counted_whether_they_wait_or_are_gone(workspace: Workspace) -> None:
    ask(workspace, 1, 2, 2)
    assert counts(workspace) == (2, 30)
    workspace.process()
    ask(workspace, 3)
    assert counts(workspace) == (4, 31)  # one asked twice in one batch, and nobody can tell now
    denied, cancelled = ask(workspace, 4, 5)
    assert counts(workspace) == (6, 31)
    workspace.deny(denied, "a legal duty")
    workspace.cancel(cancelled)
    assert counts(workspace) == (4, 31)
    workspace.process()
    assert counts(workspace) == (4, 31)


def test_strangers_conditions_and_other_data_do_not_count(
    workspace: Workspace, tmp_path: Path
) -> None:
    write_csv(tmp_path / "others.csv", visits(9, start=90))
    workspace.add_dataset(
        "others", tmp_path / "others.csv", id_column="visit", subjects=["patient"]
    )
    workspace.request(["nobody-at-all"])
    workspace.request(where="age < 23", dataset="visits")
    ask(workspace, 31)
    assert workspace.process().n_records > 3
    assert workspace.history("others").requested == 1
    assert workspace.history("others").held == 3
    requested, held = counts(workspace)
    assert requested == 0
    assert held < 30  # the condition has taken all records of some


def test_requests_count_from_a_day_on(workspace: Workspace) -> None:
    ask(workspace, 1)
    workspace.process()
    workspace.clock.pass_days(30)  # type: ignore[attr-defined]
    later = workspace.context.now()
    ask(workspace, 2, 3)
    workspace.process()
    workspace.clock.pass_days(30)  # type: ignore[attr-defined]
    whole, since = workspace.history("visits"), workspace.history("visits", since=later)
    assert (whole.requested, whole.held, round(whole.days)) == (3, 30, 60)
    assert (since.requested, since.held, round(since.days)) == (2, 29, 30)
    assert from_history(since.requested, since.held) == BetaBinomial(28, 3)


def test_bad_input_is_told(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(NotInWorkspaceError, match="no data set 'gone'"):
        workspace.history("gone")
    with pytest.raises(WorkspaceError, match="has not come yet"):
        workspace.history("visits", since=datetime.now(UTC) + timedelta(days=9000))
    with pytest.raises(WorkspaceError, match="has no time zone"):
        workspace.history("visits", since=datetime(2026, 3, 1))
    write_csv(tmp_path / "numbers.csv", visits(3))
    workspace.add_dataset("numbers", tmp_path / "numbers.csv", id_column="visit")
    with pytest.raises(WorkspaceError, match="nobody can ask"):
        workspace.history("numbers")

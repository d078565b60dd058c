"""An identity without a type is looked for under those in use, and everybody is told which."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from erasable.core.errors import InvalidIdsError
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts

MAIL = "anna@example.org"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "visits.csv").write_text("visit,patient,age\nv1,p1,30\nv2,p2,31\n")
    (tmp_path / "letters.csv").write_text(f"letter,sender,length\nl1,{MAIL},5\nl2,bob@x.org,6\n")
    made = Workspace.create(tmp_path / "ws")
    made.add_dataset("visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"])
    return made


def add_letters(workspace: Workspace) -> int:
    source = workspace.context.root.parent / "letters.csv"
    added = workspace.add_dataset("letters", source, id_column="letter", subjects=["sender:email"])
    return added.n_suppressed


def says(workspace: Workspace, request: str) -> object:
    body = workspace.receipt(request)
    receipts.check(body, workspace.public_key)
    return receipts.show(body)["types"]


def test_a_stranger_has_a_receipt_that_says_what_was_tried_and_is_not_kept_out(
    workspace: Workspace,
) -> None:
    (taken,) = workspace.request([MAIL], type="id")
    assert taken.types == ["id"]
    assert workspace.process().n_unmatched == 1
    assert workspace.requests()[0].types == ["id"]
    assert says(workspace, taken.id) == ["id"]
    assert workspace.suppressed() == []
    assert add_letters(workspace) == 0  # and whoever reads the receipt knows why
    (taken,) = workspace.request([MAIL])
    assert taken.types == ["email", "id"]
    assert workspace.process().n_records == 1
    assert says(workspace, taken.id) == ["email", "id"]
    assert workspace.verify_log() == []


def test_a_type_that_is_named_waits_for_its_data(workspace: Workspace) -> None:
    """While the request is pending; a stranger is kept out under no type."""
    add_letters(workspace)
    (taken,) = workspace.request(["new@example.org"], type="email")
    source = workspace.context.root.parent / "more.csv"
    source.write_text("letter,sender,length\nl3,New@Example.org,5\n")
    workspace.append("letters", source)
    assert workspace.process().n_records == 1
    assert says(workspace, taken.id) == ["email"]


def test_the_types_say_nothing_of_the_identity(workspace: Workspace) -> None:
    add_letters(workspace)
    known, mail, stranger = workspace.request(["p1", MAIL, "nobody"])
    assert known.types == mail.types == stranger.types == ["email", "id"]
    entries = [e for e in workspace.log_entries() if e["kind"] == "request-acknowledged"]
    assert [each["types"] for each in entries] == [["email", "id"]] * 3
    assert MAIL not in json.dumps(entries)


def test_a_condition_is_looked_for_under_none(workspace: Workspace) -> None:
    (taken,) = workspace.request(where="age > 30", dataset="visits")
    workspace.process()
    assert taken.types is None
    assert says(workspace, taken.id) is None


def test_a_data_set_is_named_for_a_condition_alone(workspace: Workspace) -> None:
    """Or the request would seem to be for that one, and erase from all of them."""
    for look in (workspace.request, workspace.preview):
        with pytest.raises(InvalidIdsError, match="erased from all data sets"):
            look(["p1"], dataset="visits")
    assert workspace.requests() == []


def test_an_empty_workspace_looks_for_ids(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    assert workspace.request(["p1"])[0].types == ["id"]
    assert workspace.subject("p1")["types"] == ["id"]


def test_what_is_told_of_a_new_request_is_what_the_ledger_keeps(workspace: Workspace) -> None:
    at = datetime(2026, 3, 1, 5, tzinfo=timezone(timedelta(hours=2)))
    taken = workspace.request(["p1", "p2"], received_at=at, hold="a case in court")
    taken += workspace.request(["p1"], regulation="none")
    kept = {each.id: each for each in workspace.requests()}
    assert [repr(each) for each in taken] == [repr(kept[each.id]) for each in taken]
    assert taken[0].received_at.isoformat() == "2026-03-01T03:00:00+00:00"

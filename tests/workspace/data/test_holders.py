"""The index of people against the data: whom it lacks is found, before a request misses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contexts import make_context, visits, write_csv
from sqlalchemy import delete, select, update

import operations
from erasable.workspace import Workspace
from erasable.workspace.data.holders import compare_index_with_data
from erasable.workspace.ledger.schema import fragment, holding, identity

MISSED = "erasure would miss them"
CHANGES = {
    "no holding": delete(holding),
    "one holding gone": delete(holding).where(
        holding.c.token == select(holding.c.token).limit(1).scalar_subquery()
    ),
    "another bucket": update(holding).values(bucket=9),
    "a fragment in another bucket": update(fragment).values(bucket=9),
    "nobody known": delete(identity),
    "one unknown": delete(identity).where(
        identity.c.token == select(holding.c.token).limit(1).scalar_subquery()
    ),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    context, _ = make_context(tmp_path / "ws")
    operations.add(
        context,
        "visits",
        write_csv(tmp_path / "visits.csv", visits(60)),
        id_column="visit",
        subjects=[("patient", "id"), ("doctor", "id")],
    )
    return Workspace(context)


def test_an_index_that_nobody_touched_holds(workspace: Workspace) -> None:
    assert compare_index_with_data(workspace.context) == []
    workspace.request(["marker-patient-3"])
    workspace.process()
    assert workspace.verify_log() == []


@pytest.mark.parametrize("name", CHANGES)
def test_whom_the_index_lacks_is_told(workspace: Workspace, name: str) -> None:
    change: Any = CHANGES[name]
    with workspace.context.ledger.transaction() as connection:
        assert connection.execute(change).rowcount
    lines = [line for line in workspace.verify_log() if "its files are not" not in line]
    (line,) = lines
    assert line.startswith("data set 'visits'")
    assert MISSED in line


def test_a_damaged_file_of_data_is_told(workspace: Workspace) -> None:
    (path,) = (workspace.context.root / "artifacts" / "data").rglob("*/*")
    path.write_bytes(path.read_bytes()[:-1])
    (line,) = workspace.verify_log()
    assert line.startswith("data set 'visits': the file 'data/visits/")

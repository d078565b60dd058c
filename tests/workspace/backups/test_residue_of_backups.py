"""No trace of who was erased since is left in a restored workspace: texts, numbers, tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_residue import FEW, GONE, erase, everything, left, prepare
from traces import compressed

from erasable.workspace import Workspace


@pytest.mark.soak
def test_nothing_is_left_of_two_people_in_five(tmp_path: Path) -> None:
    """Ten models; the workspace that came of the backup alone holds every trace (the control)."""
    path = prepare(tmp_path, 300)
    workspace = Workspace.open(path)
    backup, keys = tmp_path / "backup.tar", path / "keys.json"
    workspace.back_up(backup)
    erase(workspace, FEW, GONE)
    assert left(path, FEW, GONE) == []
    known = {"suppressions": workspace.suppression_list(), "head": workspace.head()}
    found = Workspace.restore(backup, tmp_path / "new", keys=keys, **known)
    assert left(tmp_path / "new", FEW, GONE) == []
    assert compressed(tmp_path / "new") == []
    assert {each.verdict for each in found.verdicts} <= {
        "equal", "retired", "not covered", "not checked",
    }  # fmt: skip
    again = Workspace.open(tmp_path / "new").verify(retrain=True)
    assert {each.verdict for each in again} <= {"equal", "retired", "not covered"}
    Workspace.restore(backup, tmp_path / "control", keys=keys, suppressions=None)
    assert left(tmp_path / "control", FEW, GONE) == everything(tmp_path / "control", FEW, GONE)

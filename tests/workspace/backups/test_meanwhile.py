"""A backup that is made while others are at work is of one moment, and holds nobody erased."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contexts import scan
from crashes import ENDED, MARKERS, fork, make_workspace

from erasable.core.errors import EvidenceError, NotInWorkspaceError, WorkspaceBusyError
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.store.artifacts import LocalStore, StoredArtifact


class Watched(LocalStore):
    """A store that has something happen before an artifact is read, the nth from now."""

    def __init__(self, store: Any, at: int, happens: Any) -> None:
        super().__init__(store._disk, store._folder)
        self.at, self.happens, self.n_read = at, happens, 0

    def open(self, stored: StoredArtifact) -> bytes:
        self.n_read += 1
        if self.n_read == self.at:
            self.happens()
        return super().open(stored)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


def erase_elsewhere(path: Path) -> None:
    """Have another process carry out all that is asked."""
    assert fork(lambda: Workspace.open(path).process()) == 0


def restored(backup: Path, path: Path, folder: Path) -> Workspace:
    Workspace.restore(backup, folder, suppressions=None, keys=path / "keys.json")
    return Workspace.open(folder)


@pytest.mark.parametrize("at", [pytest.param(1, marks=pytest.mark.soak), 5])
def test_an_erasure_that_ends_meanwhile(path: Path, tmp_path: Path, at: int) -> None:
    """It is begun anew: files vanish that were to be read, and some were read already."""
    workspace = Workspace.open(path)
    store = Watched(
        workspace.context.store, _first_read(workspace) + at, lambda: erase_elsewhere(path)
    )
    workspace.context.store = store
    workspace.back_up(tmp_path / "backup.tar")
    assert store.n_read > store.at
    assert not any(marker.encode() in (tmp_path / "backup.tar").read_bytes() for marker in MARKERS)
    assert [name.name for name in tmp_path.glob(".partial-*")] == []
    other = restored(tmp_path / "backup.tar", path, tmp_path / "new")
    assert {each.state for each in other.requests()} == ENDED
    assert scan(tmp_path / "new", *MARKERS) == []


def test_without_an_erasure_they_are_in_it(path: Path, tmp_path: Path) -> None:
    """The control of the test before, and requests that come in meanwhile stay out."""
    workspace = Workspace.open(path)
    n_requests = len(workspace.requests())

    def ask() -> None:
        assert fork(lambda: Workspace.open(path).request(["somebody else"])) == 0

    workspace.context.store = Watched(workspace.context.store, _first_read(workspace) + 3, ask)
    workspace.back_up(tmp_path / "backup.tar")
    assert all(marker.encode() in (tmp_path / "backup.tar").read_bytes() for marker in MARKERS)
    assert len(workspace.requests()) == n_requests + 1
    assert len(restored(tmp_path / "backup.tar", path, tmp_path / "new").requests()) == n_requests


@pytest.mark.soak
def test_one_erasure_after_the_other(path: Path, tmp_path: Path) -> None:
    """At last the others wait: a backup comes to its end."""
    workspace, told = Workspace.open(path), []
    people = iter(f"marker-patient-{i:03d}" for i in range(20, 30))

    class Busy(Watched):
        def open(self, stored: StoredArtifact) -> bytes:
            if stored.key.startswith("data/"):
                other = Workspace(Context.open(path, wait=0.01))
                other.request([next(people)])
                try:
                    other.process()
                except WorkspaceBusyError as error:
                    told.append(str(error))
            return super().open(stored)

    from erasable.workspace.backups import backup

    assert backup.troubles(workspace.context) == []
    workspace.context.store = Busy(workspace.context.store, 0, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backup, "troubles", lambda context: [])
        workspace.back_up(tmp_path / "backup.tar")
    assert told
    assert "at work" in told[0]
    restored(tmp_path / "backup.tar", path, tmp_path / "new")


def test_a_file_that_is_lost_is_no_erasure(path: Path, tmp_path: Path) -> None:
    workspace = Workspace.open(path)
    model = next(file for file in (path / "artifacts" / "models").rglob("*") if file.is_file())
    model.unlink()
    with pytest.raises(NotInWorkspaceError, match="is not in the workspace"):
        workspace.back_up(tmp_path / "backup.tar")
    assert list(tmp_path.glob("*.tar")) == []
    assert list(tmp_path.glob(".partial-*")) == []


def test_a_workspace_that_does_not_hold(path: Path, tmp_path: Path) -> None:
    workspace = Workspace.open(path)
    with workspace.context.ledger.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM log_entry WHERE position = 3")
    with pytest.raises(EvidenceError, match="nothing was backed up"):
        workspace.back_up(tmp_path / "backup.tar")
    assert list(tmp_path.glob("*.tar")) == []


def _first_read(workspace: Workspace) -> int:
    """Count the artifacts that are read before the backup begins, to hold the index against."""
    from erasable.workspace.backups import backup

    store = Watched(workspace.context.store, 0, None)
    before, workspace.context.store = workspace.context.store, store
    assert backup.troubles(workspace.context) == []
    workspace.context.store = before
    return store.n_read

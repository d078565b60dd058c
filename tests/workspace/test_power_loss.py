"""Power is lost at each point of a command: what the ledger refers to is there, whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from backends import copy_of
from contexts import scan, visits, write_csv
from crashes import ENDED, MARKERS, look_before_restart, make_workspace, restart_and_check
from power import ForgetfulDisk, losses
from sqlalchemy import select

from erasable.core.errors import WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.ledger.schema import fragment, model_version
from erasable.workspace.store.artifacts import StoredArtifact


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("power"))


def add(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "others.csv", visits(9, start=900))
    workspace.add_dataset("others", folder / "others.csv", id_column="visit", subjects=["patient"])


def append(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "more.csv", visits(9, start=500))
    workspace.append("visits", folder / "more.csv")


def sync(workspace: Workspace) -> None:
    folder = workspace.context.root.parent
    write_csv(folder / "less.csv", visits(90, start=40))
    workspace.sync("visits", folder / "less.csv")


COMMANDS: dict[str, Callable[[Workspace], object]] = {
    "process": lambda workspace: workspace.process(),
    "add": add,
    "append": append,
    "sync": sync,
    "fit": lambda workspace: workspace.fit("tree"),
}


def lost(path: Path) -> list[str]:
    """Return the artifacts that the ledger refers to, and that are not there, or not whole."""
    context = Workspace.open(path).context
    missing = []
    with context.ledger.reading() as connection:
        for table in (fragment, model_version):
            rows = connection.execute(select(table.c.key, table.c.sha256))
            for key, sha256 in rows:
                try:
                    if key is not None:
                        context.store.open(StoredArtifact(key, sha256))
                except WorkspaceError as error:
                    missing.append(str(error))
    return missing


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_ledger_refers_to_is_there(prepared: Path, tmp_path: Path, name: str) -> None:
    found = losses(copy_of(prepared, tmp_path / "ws"), COMMANDS[name], tmp_path / "found")
    assert len(found) > 5
    for effect, path in found:
        assert lost(path) == [], effect
        look_before_restart(path)
        assert Workspace.open(path).verify_log() == []


def test_all_of_it_is_there_in_the_end(prepared: Path, tmp_path: Path) -> None:
    """A process that has returned survives a power loss, and leaves no trace to be found again."""
    path = copy_of(prepared, tmp_path / "ws")
    _, after = losses(path, COMMANDS["process"], tmp_path / "found")[-1]
    assert {request.state for request in Workspace.open(after).requests()} == ENDED
    assert scan(after, *MARKERS) == []
    restart_and_check(after)


@pytest.mark.soak
def test_process_goes_on_after_each_loss(prepared: Path, tmp_path: Path) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    for _, after in losses(path, COMMANDS["process"], tmp_path / "found"):
        restart_and_check(after)


class Nameless(ForgetfulDisk):
    """Forgets to sync folders."""

    def _sync_folder(self, path: Path) -> None:
        pass


class Hasty(ForgetfulDisk):
    """Forgets to sync files."""

    def _sync(self, path: Path, handle: int) -> None:
        pass


class Lingering(ForgetfulDisk):
    """Forgets to sync folders after it removes files."""

    def remove(self, key: str) -> bool:
        self.path(key).unlink()
        return True


@pytest.mark.parametrize("disk", [Nameless, Hasty])
def test_a_disk_that_does_not_sync_loses_artifacts(
    prepared: Path, tmp_path: Path, disk: type[ForgetfulDisk]
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    _, after = losses(path, COMMANDS["process"], tmp_path / "found", disk)[-1]
    assert lost(after) != []


def test_a_disk_that_does_not_sync_removals_keeps_the_records(
    prepared: Path, tmp_path: Path
) -> None:
    path = copy_of(prepared, tmp_path / "ws")
    _, after = losses(path, COMMANDS["process"], tmp_path / "found", Lingering)[-1]
    assert lost(after) == []
    with pytest.raises(AssertionError):
        look_before_restart(after)

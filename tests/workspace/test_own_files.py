"""A workspace's own files: nothing is written over them, and their owner alone may read them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from contexts import visits, write_csv

from erasable.core.errors import WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.backups.place import RESTORING_LOCK
from erasable.workspace.context import ARTIFACTS, LEDGER, LOCK, RESTORING, SCRATCH
from erasable.workspace.identity.keys import ELSEWHERE, KEYS
from erasable.workspace.ledger.address import PLACE
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.store import own_files
from erasable.workspace.store.accelerators import FOLDER as ACCELERATORS
from erasable.workspace.store.location import STORE

WRITERS = {
    "report": lambda workspace, path: workspace.report(path),
    "export": lambda workspace, path: workspace.export("risk", path),
}
posix = pytest.mark.skipif(os.name == "nt", reason="permissions are of another kind there")


def add_visits(workspace: Workspace, folder: Path) -> None:
    write_csv(folder / "visits.csv", visits(60))
    workspace.add_dataset("visits", folder / "visits.csv", id_column="visit", subjects=["patient"])
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("own")
    made = Workspace.create(folder / "ws")
    add_visits(made, folder)
    return made


def bytes_of(folder: Path) -> dict[str, bytes]:
    made = {LOCK, f"{LEDGER}-shm", f"{LEDGER}-wal"}  # by looking
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in made]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("write", WRITERS.values(), ids=list(WRITERS))
@pytest.mark.parametrize(
    "name",
    ["ledger.db", "LEDGER.DB", "ledger.db-wal", "ledger.json", "keys.json", "lock", "artifacts",
     "artifacts/x", "artifacts/models/risk", "scratch/x", "elsewhere/../keys.json", ".partial-1"],
)  # fmt: skip
def test_nothing_is_written_over_them(
    workspace: Workspace, write: Callable[[Workspace, Path], None], name: str
) -> None:
    root = workspace.context.root
    before = bytes_of(root)
    with pytest.raises(WorkspaceError, match="of the workspace itself; expected another") as told:
        write(workspace, root / name)
    assert "\n" not in str(told.value)
    assert bytes_of(root) == before


@pytest.mark.parametrize("write", WRITERS.values(), ids=list(WRITERS))
def test_nor_through_links(
    workspace: Workspace, tmp_path: Path, write: Callable[[Workspace, Path], None]
) -> None:
    root = workspace.context.root
    before = bytes_of(root)
    (tmp_path / "ledger").symlink_to(root / "ledger.db")
    (tmp_path / "folder").symlink_to(root / "artifacts")
    (tmp_path / "whole").symlink_to(root)
    for place in ("ledger", "folder/x", "whole/keys.json"):
        with pytest.raises(WorkspaceError, match="of the workspace itself"):
            write(workspace, tmp_path / place)
    assert bytes_of(root) == before
    # A second name of the ledger's file is given up, and the file stays as it is.
    os.link(root / "ledger.db", tmp_path / "twin")
    write(workspace, tmp_path / "twin")
    assert bytes_of(root)["keys.json"] == before["keys.json"]
    assert Workspace.open(root).status()["datasets"] == 1


def test_a_folder_that_lies_elsewhere_by_a_link_is_its_own_too(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    workspace = Workspace.create(root)
    (root / "artifacts").rename(tmp_path / "large-disk")
    (root / "artifacts").symlink_to(tmp_path / "large-disk")
    for place in (root / "artifacts", tmp_path / "large-disk" / "x"):
        with pytest.raises(WorkspaceError, match="of the workspace itself"):
            workspace.report(place)


def test_keys_elsewhere_are_its_own_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ELSEWHERE, str(tmp_path / "secrets" / "erasable.json"))
    workspace = Workspace.create(tmp_path / "ws")
    with pytest.raises(WorkspaceError, match="of the workspace itself"):
        workspace.report(tmp_path / "secrets" / "erasable.json")
    workspace.report(tmp_path / "secrets" / "page.html")


def test_beside_them_the_user_may_write(workspace: Workspace) -> None:
    workspace.report(workspace.context.root / "report.html")
    workspace.export("risk", workspace.context.root / "risk.model")


def test_what_is_exported_at_each_batch_is_not_written_there_either(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="of the workspace itself"):
        Workspace.create(tmp_path / "ws", export=str(tmp_path / "ws" / "artifacts"))
    assert not (tmp_path / "ws").exists()


def test_all_of_its_names_are_known() -> None:
    restoring = {RESTORING, RESTORING_LOCK}
    assert {
        ACCELERATORS,
        ARTIFACTS,
        KEYS,
        LOCK,
        PLACE,
        SCRATCH,
        STORE,
    } | restoring == own_files._OWN
    assert (own_files._LEDGER, own_files._KEYS) == (LEDGER, ELSEWHERE)


# -- who may read them -----------------------------------------------------------------------------


def open_to_others(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in [folder, *folder.rglob("*")]
        if stat.S_IMODE(path.stat().st_mode) & 0o077 and path.name != LOCK  # which holds nothing
    ]


@posix
def test_its_owner_alone_may_read_it(tmp_path: Path) -> None:
    """Whatever the user's mask lets through, and in the files that SQLite makes, too."""
    mask = os.umask(0o022)
    try:
        workspace = Workspace.create(tmp_path / "ws")
        add_visits(workspace, tmp_path)
        workspace.request(["marker-patient-3"])
        assert (tmp_path / "ws" / f"{LEDGER}-wal").exists()
        assert open_to_others(tmp_path / "ws") == []
        workspace.process()
        assert open_to_others(tmp_path / "ws") == []
        workspace.export("risk", tmp_path / "risk.model")
        assert stat.S_IMODE((tmp_path / "risk.model").stat().st_mode) == 0o644
    finally:
        os.umask(mask)


@posix
def test_the_folder_of_keys_that_lie_elsewhere_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ELSEWHERE, str(tmp_path / "secrets" / "erasable.json"))
    Workspace.create(tmp_path / "ws")
    assert open_to_others(tmp_path / "secrets") == []


@posix
def test_a_folder_that_was_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir(mode=0o755)
    Workspace.create(tmp_path / "ws")
    assert open_to_others(tmp_path / "ws") == ["."]


def test_nothing_is_left_of_the_making_of_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "close", lambda ledger: None)  # so that SQLite leaves its log
    workspace = Workspace.create(tmp_path / "ws")
    assert list(workspace.context.root.glob(f"{LEDGER}.new*")) == []
    (workspace.context.root / f"{LEDGER}.new-wal").touch()  # as after a loss of power
    workspace.process()
    assert list(workspace.context.root.glob(f"{LEDGER}.new*")) == []

"""Links in the folders of a workspace are refused, and only what it has made there is removed.

To remove the link of an artifact would leave what it points at; what is below a link to a folder is
another's.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from contexts import make_context, visits, write_csv

from erasable.core.errors import WorkspaceDiskError, WorkspaceError
from erasable.workspace import Workspace, context
from erasable.workspace.store import accelerators, disk, own_files
from erasable.workspace.store.disk import Disk

PERSON = "marker-patient-3"
NAME = "0123456789abcdef01234567"  # such as the workspace gives


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    context, _ = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    write_csv(tmp_path / "visits.csv", visits(30))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", target="sick", features=["age"],
                  datasets=["visits"])  # fmt: skip
    workspace.request([PERSON])
    return workspace


def moved(path: Path, to: Path) -> None:
    path.rename(to)
    path.symlink_to(to)


@pytest.mark.parametrize("what", ["data/visits/*", "models/risk/*", "data/visits", "models"])
def test_a_link_is_refused_before_anything_is_signed(
    workspace: Workspace, tmp_path: Path, what: str
) -> None:
    (path,) = (workspace.context.root / "artifacts").glob(what)
    moved(path, tmp_path / "elsewhere")
    with pytest.raises(WorkspaceError, match="is a symbolic link; expected a file or folder"):
        workspace.process()
    assert [each.state for each in workspace.requests()] == ["pending"]
    path.unlink()
    (tmp_path / "elsewhere").rename(path)
    assert len(workspace.process().requests) == 1


def test_a_link_to_nothing_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.context.root / "artifacts" / "data" / "visits" / "x").symlink_to(tmp_path / "none")
    with pytest.raises(WorkspaceError, match="symbolic link"):
        workspace.process()


@pytest.mark.parametrize("name", ["artifacts", "accelerators", "scratch"])
@pytest.mark.parametrize("inside", ["", f"/{NAME}", f"/{NAME}/arrays"])
def test_what_a_link_points_at_stays(
    workspace: Workspace, tmp_path: Path, name: str, inside: str
) -> None:
    root, foreign = workspace.context.root, foreign_folder(tmp_path)
    before = files_of(foreign)
    place = root / (name + inside)
    for_later = tmp_path / "later"
    if place.exists():
        place.rename(for_later)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(foreign)
    if not (name == "scratch" and inside.endswith("arrays")):  # what a program has put there
        with pytest.raises(WorkspaceError, match="is a symbolic link; expected a file or folder"):
            workspace.process()
        assert [each.state for each in workspace.requests()] == ["pending"]
        place.unlink()
        if for_later.exists():
            for_later.rename(place)
    assert len(workspace.process().requests) == 1
    assert files_of(foreign) == before


@pytest.mark.parametrize("name", ["accelerators", "scratch"])
def test_without_the_check_it_would_be_removed(
    workspace: Workspace, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    foreign = foreign_folder(tmp_path)
    place = workspace.context.root / name
    if place.exists():
        place.rename(tmp_path / "before")
    place.symlink_to(foreign)
    monkeypatch.setattr(disk, "link_in", lambda root, key: None)
    workspace.process()
    assert not (foreign / NAME).exists()


STRANGERS = [
    "artifacts/notes.txt", "artifacts/data/visits/notes.txt", "accelerators/notes/arrays",
    "scratch/notes.txt", "scratch/own/notes.txt", ".partial-notes", "ledger.db.new.txt",
]  # fmt: skip


def test_what_others_have_put_there_stays(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = workspace.context.root
    for name in STRANGERS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("not the workspace's")
    assert len(workspace.process().requests) == 1
    assert [name for name in STRANGERS if not (root / name).exists()] == []
    for module in (context, accelerators):  # the negative control
        monkeypatch.setattr(module, "is_made_key", lambda name: True)
    monkeypatch.setattr(own_files, "is_own_name", lambda name: True)
    workspace.process()
    assert [name for name in STRANGERS if (root / name).exists()] == []


@pytest.mark.parametrize("name", ["artifacts", "accelerators", "scratch"])
def test_no_workspace_is_made_of_a_folder_that_holds_others_files(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / NAME).write_text("not the workspace's")
    before = files_of(tmp_path)
    with pytest.raises(WorkspaceError, match=f"{name}' is there already; expected no"):
        Workspace.create(tmp_path)
    assert files_of(tmp_path) == before
    (tmp_path / name / NAME).unlink()
    Workspace.create(tmp_path)


def test_other_names_of_a_file_are_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Disk(tmp_path)
    for is_checked in (True, False):  # the negative control comes last
        files.write("accelerators/x/arrays", b"abc")
        os.link(tmp_path / "accelerators/x/arrays", tmp_path / f"other-{is_checked}")
        if not is_checked:
            monkeypatch.setattr(disk, "separate", lambda *given: None)
        files.patch("accelerators/x/arrays", [(1, b"x")])
        assert files.read("accelerators/x/arrays") == b"axc"
    assert (tmp_path / "other-True").read_bytes() == b"abc"
    assert (tmp_path / "other-False").read_bytes() == b"axc"


def test_a_link_that_takes_the_place_of_a_file_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process puts it there after it was looked at."""
    files, other = Disk(tmp_path), tmp_path / "other"
    other.write_bytes(b"abc")
    (tmp_path / "arrays").symlink_to(other)
    monkeypatch.setattr(disk, "link_in", lambda root, key: None)
    with pytest.raises(WorkspaceDiskError):
        files.patch("arrays", [(1, b"x")])
    assert other.read_bytes() == b"abc"
    monkeypatch.setattr(disk, "open_no_link", os.open)  # the negative control
    files.patch("arrays", [(1, b"x")])
    assert other.read_bytes() == b"axc"


def foreign_folder(folder: Path) -> Path:
    """Make a folder of somebody else's, in which names are such as a workspace gives."""
    made = folder / "foreign"
    for name in (NAME, f"{NAME}/arrays", f"data/visits/{NAME}"):
        (made / name).mkdir(parents=True, exist_ok=True)
    for path in [*made.rglob("*")]:
        (path / "precious").write_text("not the workspace's")
    return made


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_the_check_the_records_would_stay(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    (path,) = (workspace.context.root / "artifacts").glob("data/visits/*")
    moved(path, tmp_path / "elsewhere")
    monkeypatch.setattr(disk, "link_in", lambda root, key: None)
    monkeypatch.setattr(
        Disk,
        "keys",
        lambda self, folder="": (
            each.relative_to(self.root / folder).as_posix()
            for each in sorted((self.root / folder).rglob("*"))
            if not each.is_dir()
        ),
    )
    assert len(workspace.process().requests) == 1
    assert PERSON.encode() in (tmp_path / "elsewhere").read_bytes()

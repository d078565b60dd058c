"""An artifact that is a symbolic link is refused: its removal would leave what it points at."""

from __future__ import annotations

from pathlib import Path

import pytest
from contexts import make_context, visits, write_csv

from erasable.core.errors import WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.store.disk import Disk

PERSON = "marker-patient-3"


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


def test_the_folder_of_all_artifacts_may_be_elsewhere(workspace: Workspace, tmp_path: Path) -> None:
    moved(workspace.context.root / "artifacts", tmp_path / "elsewhere")
    assert len(workspace.process().requests) == 1


def test_without_the_check_the_records_would_stay(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    (path,) = (workspace.context.root / "artifacts").glob("data/visits/*")
    moved(path, tmp_path / "elsewhere")
    monkeypatch.setattr(
        Disk,
        "keys",
        lambda self, prefix="": (
            each.relative_to(self.root).as_posix()
            for each in sorted(self.root.rglob("*"))
            if not each.is_dir()
        ),
    )
    assert len(workspace.process().requests) == 1
    assert PERSON.encode() in (tmp_path / "elsewhere").read_bytes()

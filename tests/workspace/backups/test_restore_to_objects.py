"""Restoring with data and models in an object store: what fails or is cut off leaves nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import stores
from contexts import scan
from crashes import ENDED
from offsite_scene import GONE, Scene, make
from s3_server import Server

from erasable.core.errors import WorkspaceError, WorkspaceServerError
from erasable.workspace import Workspace
from erasable.workspace.backups import place
from erasable.workspace.backups import restore as restoring
from erasable.workspace.context import RESTORING
from erasable.workspace.store.artifacts import ARTIFACTS
from erasable.workspace.store.location import STORE
from erasable.workspace.store.objects import CLAIM

pytestmark = pytest.mark.backend("sqlite")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make(tmp_path_factory.mktemp("objects"))


@pytest.fixture
def scene(made: Scene, tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    for path in (made.backup, made.keys, made.suppressions, made.head):
        there = tmp_path / path.relative_to(made.folder)
        there.parent.mkdir(exist_ok=True)
        shutil.copy(path, there)
    return scene


@pytest.fixture
def bucket(s3: Server) -> str:
    """One that keeps versions of what is deleted."""
    return s3.bucket(versions="Enabled")


def test_nothing_is_left_of_who_was_erased_since(scene: Scene, s3: Server, bucket: str) -> None:
    workspace = scene.restore(store=f"s3://{bucket}/ws")
    objects = s3.everything(bucket)
    data = b"".join(objects.values())
    tokens = workspace.context.keys.tokens("id", GONE)
    assert not any(each.encode() in data for each in [*GONE, *tokens])
    assert any(key.startswith("ws/data/") for key in objects)
    with stores.on(s3):  # which looks into the objects, too
        assert scan(scene.folder / "new", *GONE) == []
    assert not (scene.folder / "new" / ARTIFACTS).exists()
    assert workspace.verify_log() == []
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    workspace.process()  # and it is a workspace like any other
    assert {each.state for each in workspace.requests()} == ENDED


def test_a_place_in_use_is_refused(scene: Scene, s3: Server, bucket: str) -> None:
    s3.client.put_object(Bucket=bucket, Key="ws/other", Body=b"theirs")
    before = s3.everything(bucket)
    with pytest.raises(WorkspaceError, match="is in use, by another workspace"):
        scene.restore(store=f"s3://{bucket}/ws")
    with pytest.raises(WorkspaceError, match="the URL of the object store cannot be used"):
        scene.restore(store="s3://")
    assert s3.everything(bucket) == before
    assert not (scene.folder / "new").exists()


def _fails(*args: Any, **kwargs: Any) -> None:
    raise WorkspaceError("the model 'tree' fails; expected one; mend it")


def cut_off(scene: Scene, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore, and leave what there is by then, as a process that was killed would."""
    with monkeypatch.context() as patch:
        patch.setattr(place.Ground, "take_back", lambda self: None)
        patch.setattr(restoring.process, "process", _fails)
        with pytest.raises(WorkspaceError):
            scene.restore(store=f"s3://{bucket}/ws")


def test_what_fails_on_the_way_leaves_nothing(
    scene: Scene, s3: Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring.process, "process", _fails)
    with pytest.raises(WorkspaceError, match="'tree' fails"):
        scene.restore(store=f"s3://{bucket}/ws")
    assert s3.everything(bucket) == {}
    assert not (scene.folder / "new").exists()


@pytest.mark.parametrize(
    "again",
    [
        "ws",
        pytest.param("elsewhere", marks=pytest.mark.soak),
        pytest.param(None, marks=pytest.mark.soak),
    ],
)
def test_what_was_cut_off_is_cleared_by_the_next(
    scene: Scene, s3: Server, bucket: str, again: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into the same place, another one, or the folder."""
    cut_off(scene, bucket, monkeypatch)
    assert f"ws/{CLAIM}" in {key.partition("?")[0] for key in s3.everything(bucket)}
    assert json.loads((scene.folder / "new" / RESTORING).read_text())["store"]
    with pytest.raises(WorkspaceError, match="a backup that is not restored yet"):
        Workspace.open(scene.folder / "new")
    where = {} if again is None else {"store": f"s3://{bucket}/{again}"}
    workspace = scene.restore(**where)
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    assert (scene.folder / "new" / STORE).exists() == (again is not None)
    below = {key.partition("/")[0] for key in s3.everything(bucket)}
    assert below == (set() if again is None else {again})


def test_a_place_of_somebody_else_is_not_cleared(
    scene: Scene, s3: Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A negative control: the claim tells whose it is, not the mark in the folder."""
    cut_off(scene, bucket, monkeypatch)
    s3.client.put_object(Bucket=bucket, Key=f"ws/{CLAIM}", Body=b"another's")
    before = s3.everything(bucket)
    with pytest.raises(WorkspaceError, match="is in use, by another workspace"):
        scene.restore(store=f"s3://{bucket}/ws")
    assert s3.everything(bucket) == before


def test_a_store_that_is_away_is_said_and_nothing_is_there(
    scene: Scene, s3: Server, bucket: str
) -> None:
    with s3.away(), pytest.raises(WorkspaceServerError):
        scene.restore(store=f"s3://{bucket}/ws")
    assert not (scene.folder / "new").exists()

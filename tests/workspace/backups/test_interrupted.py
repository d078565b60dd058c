"""A restore that is cut off leaves a folder that nobody can use, and that can be restored again."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import stores
from contexts import scan
from crashes import fork
from filelock import FileLock
from offsite_scene import GONE, Scene, make
from test_in_a_database import tables

from cli.running import erasable
from effort import in_turn
from erasable.core.errors import (
    NotInWorkspaceError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceError,
)
from erasable.workspace import Workspace
from erasable.workspace.backups import place as grounds
from erasable.workspace.context import RESTORING
from erasable.workspace.store import crash_points
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.objects import CLAIM

POINTS = 168
"""The effects of the restore below on SQLite, or a few less: each is tried by some soak."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return make(tmp_path_factory.mktemp("interrupted"))


@pytest.fixture
def new(made: Scene) -> Any:
    """A folder that is not there, beside the backup."""
    folder = made.folder / "new"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def effects(made: Scene, name: str, **where: Any) -> list[str]:
    """Return the effects of a restore, in order."""
    passed: list[str] = []
    with crash_points.watch(lambda effect, place: passed.append(effect)):
        Workspace.restore(made.backup, made.folder / name, **made.given(**where))
    shutil.rmtree(made.folder / name)
    return passed


def die_at(made: Scene, number: int, **where: Any) -> bool:
    """Restore in a process that is killed at a point; return whether it got there."""

    def in_child() -> None:
        passed = 0

        def kill(effect: str, place: str) -> None:
            nonlocal passed
            passed += 1
            if passed == number:
                os.kill(os.getpid(), signal.SIGKILL)

        with crash_points.watch(kill):
            Workspace.restore(made.backup, made.folder / "new", **made.given(**where))

    return fork(in_child) == -signal.SIGKILL


def look(made: Scene, new: Path) -> bool:
    """Return whether a workspace can be used; then nobody is in it who was erased."""
    try:
        workspace = Workspace.open(new)
    except NotInWorkspaceError:
        assert not (new / RESTORING).exists()
        assert scan(new, *GONE) == []
        return False
    except WorkspaceError as error:
        told = str(error)
    else:
        assert scan(new, *GONE) == []
        assert workspace.verify_log() == []
        return True
    assert "is not restored yet" in told
    assert "run `erasable restore` into this folder again" in told
    return False


def again(made: Scene, new: Path, **where: Any) -> None:
    workspace = made.restore(**where)
    assert scan(new, *GONE) == []
    assert workspace.verify_log() == []
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    assert not (new / RESTORING).exists()
    assert not list(new.glob(".partial-*"))


def test_what_others_have_put_there_is_not_removed(
    made: Scene, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where a restore fails nor where another goes on; the negative control comes last."""
    notes = new / "notes.txt"

    def fail(effect: str, where: str) -> None:
        if where.endswith("ledger.db") and not notes.exists():
            notes.write_text("precious")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with crash_points.watch(fail), pytest.raises(WorkspaceDiskError):
        made.restore()
    assert os.listdir(new) == ["notes.txt"]
    (new / RESTORING).write_text("{}")  # as if a restore were to go on
    with pytest.raises(WorkspaceError, match="is in use; expected a folder that is empty"):
        made.restore()
    assert notes.read_text() == "precious"
    monkeypatch.setattr(grounds, "is_own_name", lambda name: True)
    grounds._remove_made(Disk(new))
    assert not notes.exists()


@pytest.mark.soak
def test_the_number_of_points_is_known(made: Scene) -> None:
    assert POINTS - 10 < len(effects(made, "counted")) <= POINTS


@pytest.mark.soak
@pytest.mark.parametrize("number", [n for n in range(1, POINTS + 1) if in_turn(n, 10)])
def test_killed_while_restoring(made: Scene, new: Path, number: int) -> None:
    died = die_at(made, number)
    assert look(made, new) or died
    if not (new / RESTORING).exists() and (new / "ledger.db").exists():
        return  # it was done
    again(made, new)


@pytest.mark.soak
@pytest.mark.parametrize("number", [n for n in range(1, POINTS + 1) if in_turn(n, 10)])
def test_a_disk_that_fails_while_restoring(made: Scene, new: Path, number: int) -> None:
    passed = 0

    def fail(effect: str, place: str) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with crash_points.watch(fail), suppress(WorkspaceDiskError):
        made.restore()
    if look(made, new):
        return
    again(made, new)


@pytest.mark.soak
def test_killed_while_restoring_into_a_database(made: Scene, new: Path, server: Any) -> None:
    """The tables are of the restore that was cut off, and make room for the next one."""
    import backends

    with backends.on(server):
        name = server.database()
        where = {"database": server.url(name), "schema": "ws"}
        every = effects(made, "counted", database=server.url(server.database()), schema="ws")
        commits = [number for number, effect in enumerate(every, 1) if effect == "commit"]
        for number in sorted({1, 8, *commits[:3], commits[-1], *(n + 1 for n in commits[:3])}):
            died = die_at(made, number, **where)
            if not look(made, new):
                again(made, new, **where)
            elif died:
                continue
            shutil.rmtree(new)
            server.drop(name)
            name = server.database()
            where = {"database": server.url(name), "schema": "ws"}


@pytest.mark.soak
def test_what_was_left_in_a_database_goes_where_the_next_is_elsewhere(
    made: Scene, new: Path, server: Any, database: str
) -> None:
    where = {"database": server.url(database), "schema": "ws"}
    every = effects(made, "counted", database=server.url(server.database()), schema="ws")
    first = every.index("commit") + 1
    assert die_at(made, first + 1, **where)
    assert tables(server, database) > 0
    again(made, new)  # with its ledger in a file
    assert tables(server, database) == 0


# -- into an object store --------------------------------------------------------------------------

POINTS_OF_OBJECTS = 62
"""The effects where data and models go there, or a few less."""


@pytest.fixture
def objects(made: Scene) -> Iterator[tuple[Path, str]]:
    """A folder that is an object store, and the URL of a place in it."""
    folder = made.folder / "objects"
    with stores.in_folder(folder) as url:
        yield folder, url
    shutil.rmtree(folder, ignore_errors=True)


def check_objects(made: Scene, folder: Path) -> None:
    """Nobody who was erased is in any object, and there is none that the workspace has not."""
    assert scan(folder, *GONE) == []
    workspace = Workspace.open(made.folder / "new")
    workspace.context.clean()
    there = {each.name for each in folder.rglob("*") if each.is_file()} - {CLAIM}
    assert there == {Path(key).name for key in workspace.context.store.list()}
    assert there


@pytest.mark.soak
def test_the_number_of_points_with_objects_is_known(made: Scene, objects: tuple[Path, str]) -> None:
    found = len(effects(made, "counted", store=objects[1]))
    assert POINTS_OF_OBJECTS - 10 < found <= POINTS_OF_OBJECTS


@pytest.mark.soak
@pytest.mark.parametrize("number", [n for n in range(1, POINTS_OF_OBJECTS + 1) if in_turn(n, 10)])
def test_killed_while_restoring_into_an_object_store(
    made: Scene, new: Path, objects: tuple[Path, str], number: int
) -> None:
    folder, url = objects
    died = die_at(made, number, store=url)
    assert look(made, new) or died
    if not (new / RESTORING).exists() and (new / "ledger.db").exists():
        check_objects(made, folder)  # it was done
        return
    again(made, new, store=url)
    check_objects(made, folder)


@pytest.mark.soak
def test_what_was_left_in_an_object_store_goes_where_the_next_is_elsewhere(
    made: Scene, new: Path, objects: tuple[Path, str]
) -> None:
    folder, url = objects
    every = effects(made, "counted", store=url)
    shutil.rmtree(folder)
    assert die_at(made, len(every) - 5, store=url)
    assert [each for each in folder.rglob("*") if each.is_file()]  # the control
    again(made, new)  # with its data and models in the folder
    assert [each for each in folder.rglob("*") if each.is_file()] == []


def test_every_command_is_refused(made: Scene, new: Path) -> None:
    assert die_at(made, 60)
    for line in (
        ["status"], ["process"], ["verify"], ["requests"], ["dataset", "list"], ["key"],
        ["suppress", "export"], ["log", "verify"], ["backup", "../other.tar"], ["init"],
        ["workspace", "migrate"], ["request", "somebody"], ["report"],
    ):  # fmt: skip
        result = erasable(*line, folder=new)
        assert result.exit_code == 2, line
        assert "is not restored yet" in result.stderr, line
    again(made, new)
    assert erasable("status", folder=new).exit_code == 0  # the control


@pytest.mark.soak
def test_two_at_once(made: Scene, new: Path) -> None:
    new.mkdir()
    with (
        FileLock(new / "restoring.lock", is_singleton=False),
        pytest.raises(WorkspaceBusyError, match="another process is restoring"),
    ):
        made.restore()
    again(made, new)


def refuse(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.soak
def test_an_interruption_leaves_nothing(
    made: Scene, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from erasable.workspace.backups import restore

    steps: list[tuple[Any, str]] = [
        (restore, "troubles"), (restore.process, "process"), (restore.verifying, "verify"),
    ]  # fmt: skip
    for place, name in steps:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, refuse)
            with pytest.raises(KeyboardInterrupt):
                made.restore()
        assert not new.exists()

"""Files of a workspace: whole or absent, whatever happens and wherever."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from power import Died, ForgetfulDisk

from erasable.core.errors import NotInWorkspaceError, WorkspaceDiskError, WorkspaceError
from erasable.workspace.store import crash_points
from erasable.workspace.store.artifacts import LocalStore, StoredArtifact
from erasable.workspace.store.disk import Disk


def count_points(disk: Disk) -> list[str]:
    passed: list[str] = []
    with crash_points.watch(lambda effect, where: passed.append(effect)):
        disk.write("a/b", b"one")
    return passed


def test_the_order_of_effects(tmp_path: Path) -> None:
    expected = ["open", "sync folder", "open", "write", "sync", "rename", "sync folder"]
    assert count_points(Disk(tmp_path)) == expected


@pytest.mark.parametrize("stop", range(7))
def test_killed_at_each_point(tmp_path: Path, stop: int) -> None:
    disk = Disk(tmp_path)
    disk.write("other", b"before")
    passed = []

    def kill(effect: str, where: str) -> None:
        passed.append(effect)
        if len(passed) == stop + 1:
            raise Died

    with crash_points.watch(kill), pytest.raises(Died):
        disk.write("a/b", b"one")
    left = {key: disk.read(key) for key in list(disk.keys())}
    assert left.pop("other") == b"before"
    assert left in ({}, {"a/b": b"one"})


@pytest.mark.parametrize("stop", range(7))
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_failing_disk(tmp_path: Path, stop: int, number: int) -> None:
    disk = Disk(tmp_path)
    disk.write("other", b"before")
    passed = []

    def fail(effect: str, where: str) -> None:
        passed.append(effect)
        if len(passed) == stop + 1:
            raise OSError(number, os.strerror(number))

    with crash_points.watch(fail), pytest.raises(WorkspaceDiskError, match="mend that") as told:
        disk.write("a/b", b"one")
    assert told.value.errno == number
    assert "\n" not in str(told.value)
    assert not any(".partial" in key for key in list(disk.keys()))
    assert disk.read("other") == b"before"


def test_power_loss_after_a_write(tmp_path: Path) -> None:
    disk = ForgetfulDisk(tmp_path)
    disk.write("a/b/c", b"one")
    disk.write("a/b/c", b"two")
    assert disk.after_power_loss() == {"a/b/c": b"two"}
    disk.remove("a/b/c")
    assert disk.after_power_loss() == {}


def test_power_loss_within_a_write(tmp_path: Path) -> None:
    for stop in range(1, 6):
        disk = ForgetfulDisk(tmp_path / str(stop))
        disk.root.mkdir()
        disk.write("a", b"one")
        passed: list[str] = []

        def kill(effect: str, where: str, passed: list[str] = passed, stop: int = stop) -> None:
            passed.append(effect)
            if len(passed) == stop:
                raise Died

        with crash_points.watch(kill), pytest.raises(Died):
            disk.write("a", b"two")
        found = {k: v for k, v in disk.after_power_loss().items() if "partial" not in k}
        assert found["a"] == b"one"  # not even the last point before the sync of the folder


def test_a_disk_that_does_not_sync_is_found_out(tmp_path: Path) -> None:
    class Careless(ForgetfulDisk):
        def _sync(self, path: Path, handle: int) -> None:
            pass

    disk = Careless(tmp_path)
    disk.write("a", b"one")
    assert disk.after_power_loss() == {"a": b""}


def test_read_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotInWorkspaceError, match="restore it from a backup"):
        Disk(tmp_path).read("gone")


def test_modes(tmp_path: Path) -> None:
    Disk(tmp_path).write("secret", b"x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_store_never_uses_a_key_twice_and_notices_changes(tmp_path: Path) -> None:
    store = LocalStore(Disk(tmp_path))
    one, two = store.put("models/1", b"abc"), store.put("models/1", b"abc")
    assert one.key != two.key
    assert one.sha256 == two.sha256
    assert sorted(store.list()) == sorted([one.key, two.key])
    (tmp_path / one.key).write_bytes(b"abd")
    with pytest.raises(WorkspaceError, match="altered or damaged"):
        store.open(one)
    assert store.open(two) == b"abc"
    store.delete(one.key)
    store.delete(one.key)
    assert list(store.list()) == [two.key]
    with pytest.raises(NotInWorkspaceError):
        store.open(StoredArtifact(one.key, one.sha256))


def test_a_file_of_scratch_is_filled_piece_by_piece(tmp_path: Path) -> None:
    disk = Disk(tmp_path, private=True)
    with disk.filling("x") as file:
        file.write(b"ab")
        file.write(b"c")
    assert disk.read("x") == b"abc"
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
    with pytest.raises(WorkspaceDiskError, match="File exists"), disk.filling("x"):
        pass
    with pytest.raises(WorkspaceDiskError, match="No space left"), disk.filling("y"):
        raise OSError(28, "No space left on device")

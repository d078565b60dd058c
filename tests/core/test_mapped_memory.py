"""Mapped memory belongs to the arrays that are made of it: nothing else writes or frees it."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guarded_memory
from effort import SEED
from erasable.core.mapped.disk import Folder
from erasable.core.mapped.memory import PAGE, Memory, lock
from erasable.core.mapped.pages import MappedFile, recover
from guarded_memory import BROKEN, compositions, guarded, live

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")


def _lives(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, guarded_memory.__file__, *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("strict", [True, False])
def test_a_model_over_a_sparse_table_uses_what_it_owns(strict: bool) -> None:
    live(["words"], 1, 2, strict=strict)


@pytest.mark.soak
@pytest.mark.parametrize("name", compositions())
def test_lives_over_sparse_tables_use_what_they_own(name: str) -> None:
    done = _lives(name, SEED, 40)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the process has lived\n"


@pytest.mark.soak
@pytest.mark.parametrize("broken", BROKEN)
def test_who_uses_what_others_own_is_stopped(broken: str) -> None:
    """Of 20 records: it does not depend on what is in memory."""
    assert _lives(broken).returncode == -signal.SIGSEGV


def _root() -> dict[str, Any]:
    return {"kept": np.arange(4_000.0), "gone": np.arange(3_000), "small": np.arange(5.0)}


def _settled(folder: Path) -> tuple[Any, Any, Any]:
    """Settle a change in a file that two have open; return what they have, and one has left out."""
    files = Folder(folder)
    MappedFile.make(files, "a", "one", _root())
    file, root = MappedFile.open(files, "a", "one")
    _, other = MappedFile.open(files, "a", "one")
    root["kept"][[7, 3_999]] = -1.0
    gone = root.pop("gone")
    root["new"] = np.full(2_000, 7)
    file.prepare(root, "two")
    assert recover(files, "a", "two")
    return root, other, gone


def test_what_is_open_stays_what_it_is(tmp_path: Path) -> None:
    with guarded():
        root, other, gone = _settled(tmp_path)
        for name, value in _root().items():
            np.testing.assert_array_equal(other[name], value)
        np.testing.assert_array_equal(gone, _root()["gone"])
        _, again = MappedFile.open(Folder(tmp_path), "a", "two")
        for name, value in root.items():
            np.testing.assert_array_equal(again[name], value)


def _zeros_are_written_to_memory(patch: pytest.MonkeyPatch) -> None:
    right = MappedFile._changed

    def changed(self: MappedFile, before: Any, slots: Any, new: Any) -> Any:
        for offset, size in self._now.slots:
            if [offset, size] not in slots:
                self._memory[offset : offset + size] = 0
        return right(self, before, slots, new)

    patch.setattr(MappedFile, "_changed", changed)


def _nobody_keeps_pages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guarded_memory, "_KEEP", lambda self, runs: None)


@pytest.mark.parametrize("spoil", [_zeros_are_written_to_memory, _nobody_keeps_pages])
def test_a_write_to_what_others_own_is_found(
    tmp_path: Path, spoil: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    with guarded(), pytest.raises(AssertionError, match="changed by another"):
        _settled(tmp_path)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_file_that_another_process_has_mapped_is_replaced(
    tmp_path: Path, elsewhere: bool
) -> None:
    """A lock of its own and a mapping that is not known is what another process has."""
    files, path = Folder(tmp_path), tmp_path / "a" / "arrays"
    MappedFile.make(files, "a", "one", _root())
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), path.stat().st_size, access=mmap.ACCESS_COPY)
    handle = lock(path) if elsewhere else os.open(path, os.O_RDONLY)
    before, inode = path.read_bytes(), path.stat().st_ino
    file, root = MappedFile.open(files, "a", "one")
    root["kept"][7] = -1.0
    root["more"] = np.arange(9_000)
    file.prepare(root, "two")
    change = (tmp_path / "a" / "change").read_bytes()
    for interrupted in (True, False):
        assert recover(files, "a", "two")
        assert (bytes(mapped) == before) is elsewhere
        assert (path.stat().st_ino != inode) is elsewhere
        if interrupted:  # before the change was removed
            (tmp_path / "a" / "change").write_bytes(change)
    _, again = MappedFile.open(files, "a", "two")
    for name, value in root.items():
        np.testing.assert_array_equal(again[name], value)
    os.close(handle)


def _change_in_a_fork(folder: Path, *, child_changes: bool) -> bool:
    """Have one of two processes that share memory change its file; tell if the other sees it."""
    files = Folder(folder)
    MappedFile.make(files, "a", "one", _root())
    file, root = MappedFile.open(files, "a", "one")
    (hears, tells), child = os.pipe(), os.fork()

    def change() -> None:
        root["kept"][7] = -1.0
        file.prepare(root, "two")
        assert recover(files, "a", "two")

    if not child:
        try:
            if child_changes:
                change()
            else:
                os.read(hears, 1)
            os._exit(int(root["kept"][7] != 7.0))
        finally:
            os._exit(2)
    if not child_changes:
        change()
    os.write(tells, b"!")
    told = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(hears)
    os.close(tells)
    _, again = MappedFile.open(files, "a", "two")
    assert again["kept"][7] == -1.0
    return bool(root["kept"][7] != 7.0) if child_changes else bool(told)


@pytest.mark.parametrize("child_changes", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_a_process_that_was_forked_keeps_what_it_has(
    tmp_path: Path, child_changes: bool, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not told:  # the negative control
        monkeypatch.setattr(Memory, "forked", property(lambda self: False, lambda self, to: None))
    assert _change_in_a_fork(tmp_path, child_changes=child_changes) is not told


def test_memory_is_released_with_its_last_array(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    path.write_bytes(bytes(2 * PAGE))
    (array,) = Memory.of(lock(path), 2 * PAGE).arrays([[PAGE, 8]])
    part = np.ndarray(1, np.float64, array)[:1]
    del array
    part[0] = 3.0
    n_open = len(os.listdir("/proc/self/fd"))
    del part
    assert len(os.listdir("/proc/self/fd")) == n_open - 2

"""Folders that are removed with all they hold, and files that change their name."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from power import ForgetfulDisk

from erasable.core.errors import WorkspaceDiskError
from erasable.workspace.store.disk import Disk


def test_a_folder_is_gone_for_good(tmp_path: Path) -> None:
    disk = ForgetfulDisk(tmp_path)
    disk.write("scratch/7/data", b"one")
    disk.write("kept", b"two")
    disk.remove_folder("scratch/7")
    assert disk.after_power_loss() == {"kept": b"two"}
    disk.remove_folder("scratch/8")  # there is none


def test_a_new_name_survives_a_power_loss(tmp_path: Path) -> None:
    disk = ForgetfulDisk(tmp_path)
    disk.write("a", b"one")
    disk.rename("a", "b")
    assert disk.after_power_loss() == {"b": b"one"}


def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a request would be completed with its records in a folder."""
    disk = Disk(tmp_path)
    disk.write("scratch/7/data", b"one")

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(shutil, "rmtree", fail)
    with pytest.raises(WorkspaceDiskError, match="mend that"):
        disk.remove_folder("scratch")

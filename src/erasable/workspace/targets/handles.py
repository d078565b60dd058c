"""Folders that other processes have open, or claim."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from erasable.core.errors import SourceError


def locked(folder: Path, shown: str) -> int:
    """Claim a folder, until the handle that is returned is closed; refuse if another has it.

    Nothing is written: it is the folder itself that is locked, if its file system can.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise SourceError(
            f"{shown!r} is opened by another process of erasable; expected one at a time; try it "
            "again"
        ) from None
    except OSError:  # some network file systems have no locks of folders
        pass
    return handle


def open_elsewhere(folder: Path) -> bool:
    """Tell whether another process has a file of a folder open, where the system says so."""
    begin = f"{folder.resolve()}{os.sep}"
    for handles in Path("/proc").glob("[0-9]*/fd"):
        try:
            if int(handles.parent.name) != os.getpid() and any(
                os.readlink(handle).startswith(begin) for handle in handles.iterdir()
            ):
                return True
        except OSError:  # it has ended, or is another user's
            continue
    return False

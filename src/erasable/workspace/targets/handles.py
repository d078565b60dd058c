"""Files that other processes have open."""

from __future__ import annotations

import os
from pathlib import Path


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

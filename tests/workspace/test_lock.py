"""One process at a time changes data and models."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace.site import LOCK, Site


def test_a_lock_that_another_holds_is_told_as_such(tmp_path: Path) -> None:
    Site.create(tmp_path)
    with (
        FileLock(tmp_path / LOCK, is_singleton=False),
        pytest.raises(WorkspaceBusyError, match="another process is at work"),
        Site.open(tmp_path, wait=0.01).lock(),
    ):
        pass

"""One process at a time changes data and models."""

from __future__ import annotations

from pathlib import Path

import pytest

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace.site import Site


def test_a_lock_that_another_holds_is_told_as_such(tmp_path: Path) -> None:
    Site.create(tmp_path)
    with (
        Site.open(tmp_path).lock(),
        pytest.raises(WorkspaceBusyError, match="another process is at work"),
        Site.open(tmp_path, wait=0.01).lock(),
    ):
        pass

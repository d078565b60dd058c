"""One process at a time changes data and models."""

from __future__ import annotations

from pathlib import Path

import pytest

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace.context import Context


def test_a_lock_that_another_holds_is_told_as_such(tmp_path: Path) -> None:
    Context.create(tmp_path)
    with (
        Context.open(tmp_path).lock(),
        pytest.raises(WorkspaceBusyError, match="another process is at work"),
        Context.open(tmp_path, wait=0.01).lock(),
    ):
        pass

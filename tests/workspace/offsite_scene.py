"""A workspace that was backed up, in which people were erased afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crashes import ENDED, MARKERS, make_workspace

from erasable.workspace import Workspace
from erasable.workspace.identity.external_files import OUTSIDE

GONE = MARKERS
"""Who was erased after the backup was made."""


@dataclass
class Scene:
    """What an administrator has after the disaster.

    Attributes
    ----------
    folder : Path
        With `ws`, which is lost as a rule, and all that follows.
    backup, keys, suppressions, head : Path
    """

    folder: Path

    def __post_init__(self) -> None:
        self.workspace = self.folder / "ws"
        self.backup = self.folder / "monday.tar"
        self.keys = self.workspace / "keys.json"
        self.suppressions = self.folder / "elsewhere" / "suppression.json"
        self.head = self.folder / "elsewhere" / "head.json"

    def given(self, **changes: Any) -> dict[str, Any]:
        """Return what `Workspace.restore` is given, with changes."""
        given = {
            "suppressions": json.loads(self.suppressions.read_text()),
            "head": json.loads(self.head.read_text()),
            "keys": self.keys,
        }
        return {**given, **changes}

    def restore(self, name: str = "new", **changes: Any) -> Workspace:
        """Restore the backup into a folder beside it, and open what comes of it."""
        Workspace.restore(self.backup, self.folder / name, **self.given(**changes))
        return Workspace.open(self.folder / name)


def make(folder: Path) -> Scene:
    """Back a workspace up, then have people erased who are in the backup."""
    workspace = Workspace.open(make_workspace(folder))
    scene = Scene(folder)
    scene.head.parent.mkdir()
    workspace.back_up(scene.backup)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTSIDE, str(scene.head.parent))
        workspace.process()
    assert {each.state for each in workspace.requests()} == ENDED
    return scene

"""The parts of the context of a workspace that evidence is made of and checked with."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.store.artifacts import ArtifactStore


class Context(Protocol):
    """Ledger, files, keys and clock of an open workspace; see `erasable.workspace.context`."""

    ledger: Ledger
    store: ArtifactStore

    @property
    def keys(self) -> Keys:
        """The keys of the workspace."""

    def now(self) -> datetime:
        """Return the time, UTC."""

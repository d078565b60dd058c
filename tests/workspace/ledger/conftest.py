from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import Server

from erasable.workspace.ledger import postgres
from erasable.workspace.ledger.engine import Ledger


@pytest.fixture
def ledger(server: Server, database: str) -> Iterator[Ledger]:
    made = Ledger(server.url(database), "ws")
    made.create()
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nobody wait for another for long."""
    monkeypatch.setattr(postgres, "WAIT", 0.2)
    monkeypatch.setitem(postgres._SETTINGS, "lock_timeout", "100ms")

"""Put people on the list of a workspace, and make the backup that does not know of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, log
from erasable.workspace.identity import suppression

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(2026, 2, 1, 3, 4, 5, 678901, tzinfo=UTC)


def suppress(
    context: Context, *identities: tuple[str, Any], request: str = "R-1", now: datetime = EARLY
) -> int:
    """Put identities on the list, and say so in the log, as a batch does; return how many."""
    with context.ledger.transaction() as connection:
        before = len(suppression.listing(connection))
        named = [(context.keys.token(type, value), type, request) for type, value in identities]
        made = suppression.suppress(connection, named, now)
        body = entries.erased(len(named), (), made.get(request))
        log.append(context, connection, "request-erased", request, body, now)
        return len(suppression.listing(connection)) - before


def listing(context: Context) -> list[dict[str, Any]]:
    with context.ledger.reading() as connection:
        return suppression.listing(connection)


def restored(context: Context, tmp_path: Path) -> Context:
    """Make a workspace with the keys and the name of another, and nothing else: a backup."""
    (tmp_path / "restored").mkdir()
    keys = context.disk.read("keys.json")
    (tmp_path / "restored" / "keys.json").write_bytes(keys)
    (tmp_path / "restored" / "keys.json").chmod(0o600)
    made = Context.create(tmp_path / "restored")
    with context.ledger.reading() as connection:
        name = context.ledger.get(connection, "workspace")
    with made.ledger.transaction() as connection:
        made.ledger.set(connection, "workspace", name)
    return made

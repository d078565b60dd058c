"""Rows with a marker that are deleted, and what is found of them in the files of a server."""

from __future__ import annotations

from postgres_server import Server
from sqlalchemy import delete, insert

from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import identity

MARKER = "5ec7e7a9" * 4


def fill_and_delete(ledger: Ledger) -> None:
    rows = [{"token": f"{MARKER}{i:04d}", "type": "id", "subject": "s"} for i in range(500)]
    with ledger.transaction() as connection:
        connection.execute(insert(identity), rows)
    with ledger.transaction() as connection:
        connection.execute(delete(identity).where(identity.c.token.like(f"{MARKER}%")))


def traces(server: Server, database: str) -> int:
    """Count the marker in the files of the database: tables, indexes, and the server's own."""
    return sum(path.read_bytes().count(MARKER.encode()) for path in server.files(database))

"""Seals for ledgers that were made before there were seals."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from erasable.core.errors import LedgerError
from erasable.workspace.evidence import consistency, log, seals
from erasable.workspace.evidence.context import Context
from erasable.workspace.ledger.schema import SEAL, SEALED, log_entry


def seal_older(context: Context) -> None:
    """Seal a ledger of an earlier version, without seals, if all of it agrees with the log.

    An entry of the log records it. Where the ledger does not agree, nothing is sealed: `erasable
    log verify` says why, and nothing of the ledger is executed.
    """
    try:
        with context.ledger.reading() as connection:
            if seals.sealed(connection):
                return
            size = log.next_position(context, connection)
    except LedgerError:  # verify_log says so
        return
    if log.verify_log(context) or consistency.compare_ledger_with_log(context):
        return
    with context.ledger.transaction() as connection:
        if not seals.sealed(connection) and log.next_position(context, connection) == size:
            seal_all(context, connection)


def seal_all(context: Context, connection: Connection) -> None:
    """Seal entries, files and settings as they are, in the caller's transaction."""
    older = select(log_entry.c.position, log_entry.c.leaf).where(log_entry.c.seal.is_(None))
    for position, leaf in connection.execute(older).all():
        at = log_entry.c.position == position
        made = seals.of_entry(context.keys, position, leaf)
        connection.execute(update(log_entry).where(at).values(seal=made))
    for thing in seals.TABLES:
        seals.put(context, connection, thing)
    for name in sorted(SEALED):
        value = context.ledger.get(connection, name)
        if value is not None:
            seal = seals.of_setting(context.keys, name, value)
            context.ledger.set(connection, f"{SEAL}{name}", seal)
    log.append(context, connection, seals.LATER, context.keys.key_id, {}, context.now())
    log.head(context, connection)

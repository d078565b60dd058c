"""Entries of the log on audits, and the last one on each model.

The law kept here: an entry names no record. That of a report is a keyed hash of it, by which the
workspace knows the report again, and which tells nobody anything.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from erasable.audit import AuditReport
from erasable.workspace import locking
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, log
from erasable.workspace.evidence.wire import unpack
from erasable.workspace.ledger.schema import log_entry
from erasable.workspace.models.catalogue import Version

KIND = "model-audited"


def tell(
    context: Context, name: str, version: Version, report: AuditReport, request: str | None
) -> None:
    """Enter an audit in the log; `request` is that whose deletion was audited."""
    body = entries.audited(
        context.keys, version.number, version.commitment, report.to_dict(), request
    )
    with (
        context.lock(reads=locking.models([name])),
        context.ledger.transaction() as connection,
    ):
        log.append(context, connection, KIND, name, body, context.now())


def newest(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return what the log says of the newest audit of each model, by the model's name."""
    rows = connection.execute(
        select(log_entry.c.position, log_entry.c.body)
        .where(log_entry.c.kind == KIND)
        .order_by(log_entry.c.position)
    )
    found = [unpack(body, f"entry {position} of the log") for position, body in rows]
    return {each["subject"]: each for each in found}

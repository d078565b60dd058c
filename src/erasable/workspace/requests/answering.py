"""Answers to pending requests: denial, cancellation, hold, extension; each is one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from erasable.core.errors import WorkspaceBusyError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.ledger.bulk import rows_in
from erasable.workspace.ledger.schema import garbage, task
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.requests import regulations
from erasable.workspace.requests.intake import Request, check_text, find


def deny(context: Context, request_id: str, reason: str) -> Request:
    """Refuse a pending request; the reason is in the answer."""
    return _end(context, request_id, "denied", reason)


def cancel(context: Context, request_id: str, reason: str | None = None) -> Request:
    """Withdraw a pending request."""
    return _end(context, request_id, "cancelled", reason)


def hold(context: Context, request_id: str, reason: str) -> Request:
    """Put a pending request on hold."""
    check_text(reason, "reason", needed=True)
    return _change(context, request_id, "request-held", {"hold": reason})


def resume(context: Context, request_id: str) -> Request:
    """Take a request off hold; raise WorkspaceError if it is not on hold."""
    with context.ledger.reading() as connection:
        known = find(connection, request_id)
    if known.state == "pending" and known.hold is None:
        raise WorkspaceError(
            f"request {request_id} is not on hold; expected one that is; nothing was changed"
        )
    return _change(context, request_id, "request-held", {"hold": None})


def extend(context: Context, request_id: str, reason: str) -> Request:
    """Move the due date of a request, once; see `Workspace.extend`."""
    check_text(reason, "reason", needed=True)
    with context.ledger.reading() as connection:
        known = find(connection, request_id)
    if known.due_at is None or known.extended_at is not None or context.now() > known.due_at:
        why = "has no due date" if known.due_at is None else "is extended already"
        if known.due_at is not None and known.extended_at is None:
            why = "is past its due date"
        raise WorkspaceError(
            f"request {request_id} {why}; expected one that is due and was never extended; "
            "answer it as soon as you can"
        )
    due = regulations.extended(known.regulation, known.due_at)
    values = {"due_at": due, "extended_at": context.now(), "extension": reason}
    return _change(context, request_id, "request-extended", values)


def extension_notice(request: Request, reason: str) -> str:
    """Write the notice of an extension; it must be sent before the first due date.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 3, 1, tzinfo=UTC)
    >>> by = datetime(2026, 6, 1, tzinfo=UTC)
    >>> extended = Request("R-1", "pending", "gdpr", at, by, at, None, None, None, None)
    >>> print(extension_notice(extended, "many requests at once"))
    Your request R-1 to erase your data reached us on 2026-03-01. We will answer it by 2026-06-01,
    and not by 2026-04-01, because of this: many requests at once. The law is Article 12(3) GDPR,
    which allows two further months. You may complain to the supervisory authority, or go to court.
    """
    law = regulations.REGULATIONS.get(request.regulation)
    if request.extended_at is None or request.due_at is None or not law or not law.extension:
        raise WorkspaceError(
            f"request {request.id} is not extended; expected one that is; extend it first"
        )
    first = regulations.due(law.name, request.received_at)
    before = "" if first is None else f", and not by {first:%Y-%m-%d}"
    asked = "erase" if request.kind == "erasure" else "correct"
    return (
        f"Your request {request.id} to {asked} your data reached us on "
        f"{request.received_at:%Y-%m-%d}. We will answer it by {request.due_at:%Y-%m-%d}{before}, "
        f"because of this: {reason.rstrip('.')}. The law is {law.law}, which allows "
        f"{law.extension.words('further ')}. {law.remedy}".rstrip()
    )


def drop_values(connection: Connection, requests: Sequence[str]) -> None:
    """Have the next cleaning remove the files of corrections that have ended."""
    query = select(request_table.c.values_key).where(request_table.c.values_key.is_not(None))
    keys = [row.values_key for row in rows_in(connection, query, request_table.c.id, requests)]
    if keys:
        connection.execute(insert(garbage), [{"key": key} for key in keys])


def _end(context: Context, request_id: str, state: str, reason: str | None) -> Request:
    check_text(reason, "reason", needed=state == "denied")
    values = {
        "state": state, "reason": reason, "tokens": None, "condition": None, "salt": None,
        "values_key": None, "values_sha256": None, "reach": None,
    }  # fmt: skip
    ended = _change(context, request_id, f"request-{state}", values)
    with suppress(WorkspaceBusyError):  # then the next one that processes empties it
        if ended.corrects is not None:
            with context.lock():
                context.clean()
        context.ledger.purge()
    return ended


def _change(context: Context, request_id: str, kind: str, values: dict[str, Any]) -> Request:
    now = context.now()
    with context.ledger.transaction() as connection:
        known = find(connection, request_id)
        ledger_checks.check_requests(context, connection, [request_id])
        if known.state != "pending":
            raise WorkspaceError(
                f"request {request_id} is {known.state.replace('_', ' ')}; expected one that is "
                "pending; nothing was changed, list the others with `erasable requests`"
            )
        at = request_table.c.id == request_id
        if "values_key" in values:
            drop_values(connection, [request_id])
        connection.execute(update(request_table).where(at).values(changed_at=now, **values))
        if "state" in values:  # it has ended: nothing is tried again for it
            connection.execute(delete(task).where(task.c.request_id == request_id))
        row = connection.execute(select(request_table).where(at)).one()._asdict()
        body = entries.of_request(context.keys, kind, row)
        log.append(context, connection, kind, request_id, body, now)
        return find(connection, request_id)

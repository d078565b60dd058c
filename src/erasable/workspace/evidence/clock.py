"""Remark on a clock that was set back: entries of the log would go back in time.

An order is no proof of a time: entries are ordered by the log, whatever their times say. But a
due date that was met, by a clock that was set back, was perhaps not.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from erasable.core.errors import EvidenceError
from erasable.workspace.context import Context
from erasable.workspace.evidence.wire import stamp, unpack
from erasable.workspace.ledger.schema import log_entry

_SLACK = timedelta(minutes=1)
"""Clocks are corrected by less, and a process may read its clock before it waits for another."""


def set_back(context: Context, connection: Connection) -> list[str]:
    """Return a line if it is earlier now than when the log was last written to; else no line."""
    newest = select(log_entry.c.body).order_by(log_entry.c.position.desc()).limit(1)
    last, now = _time(connection.execute(newest).scalar()), context.now()
    if last is None or last - now <= _SLACK:
        return []
    return [
        f"the clock says {stamp(now)}, but the newest entry of the log was written at "
        f"{stamp(last)}: the clock was set back, or was ahead then; set it right, or times and due "
        "dates will not be what they seem"
    ]


def remarks(context: Context) -> list[str]:
    """Return a line for each step back in the times of the log, and those of `set_back`.

    None of them proves that anything was altered.
    """
    with context.ledger.reading() as connection:
        latest, back = None, []
        order = select(log_entry.c.position, log_entry.c.body).order_by(log_entry.c.position)
        for position, body in connection.execute(order):
            at = _time(body)
            if at is None:
                continue  # `log.verify_log` says what is wrong with it
            if latest is not None and latest - at > _SLACK:
                back.append(position)
            latest = at
        messages = set_back(context, connection)
    if back:
        messages.append(
            f"the clock was set back before entry {back[0]} of the log"
            + (f", and {len(back) - 1} times after it" if back[1:] else "")
            + ": entries are in their order, but their times are not"
        )
    return messages


def _time(body: bytes | None) -> datetime | None:
    if body is None:
        return None
    try:
        at = datetime.fromisoformat(unpack(body, "it")["at"])
    except (EvidenceError, KeyError, TypeError, ValueError):
        return None
    return None if at.tzinfo is None else at

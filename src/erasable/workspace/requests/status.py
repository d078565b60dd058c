"""Status of a workspace: what there is and what is due, in numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, select

from erasable.workspace.context import Context
from erasable.workspace.evidence.statements import unreached
from erasable.workspace.ledger.schema import (
    dataset,
    fragment,
    log_entry,
    model,
    suppression,
)
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import COMPLETED, NO_MATCH, OPEN
from erasable.workspace.models import hooks, overview, published
from erasable.workspace.requests import failures, owed
from erasable.workspace.targets import catalogue as target_catalogue


def status(context: Context) -> dict[str, Any]:
    """Count what there is and what is due; see `Workspace.status`."""
    now = context.now()
    r = request_table.c
    with context.ledger.reading() as connection:

        def count(query: Any) -> int:
            return int(connection.execute(query).scalar_one())

        states = _states(connection)
        open_ones = select(func.count()).where(r.state.in_(OPEN))
        models = _counted(connection, model.c.state)
        behind = overview.stale_models(connection)
        live = fragment.c.until.is_(None)
        n_records = select(func.coalesce(func.sum(fragment.c.n_records), 0)).where(live)
        failed = failures.listing(connection)
        waited_for = owed.names_waited_for(connection)
        of_waiting = select(r.state, func.count()).where(r.id.in_(owed.owing())).group_by(r.state)
        due = select(func.min(r.due_at)).where(r.state.in_(OPEN))
        return {
            "requests": states,
            "held": count(open_ones.where(r.hold.is_not(None))),
            "late": count(open_ones.where(r.due_at < now)),
            "waits_for_targets": {state: n for state, n in connection.execute(of_waiting)},
            "targets": {
                each.name: sum(each.name in names for names in waited_for.values())
                for each in target_catalogue.in_use(connection)
            },
            "next_due": connection.execute(due).scalar(),
            "datasets": count(select(func.count()).select_from(dataset)),
            "n_records": count(n_records),
            "models": models,
            "stale": [each.model for each in behind],
            "staleness": [asdict(each) for each in behind],
            "suppressed": count(select(func.count()).select_from(suppression)),
            "log_size": count(select(func.count()).select_from(log_entry)),
            "failed": {
                state: sum(each.state == state for each in failed) for state in ("waiting", "dead")
            },
            "published": published.listing(context, connection),
            "hooks_due": hooks.due(context, connection),
            "restored": _restored(context, connection),
            "unreached": unreached(context.ledger, context.store, connection),
        }


def _restored(context: Context, connection: Connection) -> dict[str, Any] | None:
    known = context.ledger.get(connection, "restored")
    if known is None:
        return None
    return {name: known[name] for name in ("at", "made_at", "log_size", "head_size")}


def _states(connection: Connection) -> dict[str, int]:
    """Count requests by their states; those that met nothing are told from those that did."""
    states = _counted(connection, request_table.c.state)
    at = (request_table.c.state == COMPLETED) & (request_table.c.matched == 0)
    n_unmatched = int(connection.execute(select(func.count()).where(at)).scalar_one())
    if n_unmatched:
        states[COMPLETED] -= n_unmatched
        states[NO_MATCH] = n_unmatched
    return states


def _counted(connection: Connection, column: Any) -> dict[str, int]:
    rows = connection.execute(select(column, func.count()).group_by(column))
    return {value: int(count) for value, count in rows}

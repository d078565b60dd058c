"""What a batch is: the requests that are carried out together, and what they want erased.

The law kept here: a request that is taken up and cannot be carried out waits again, so that it can
still be denied, cancelled or held.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select, update

from erasable.core.errors import LedgerError
from erasable.workspace.data import erasing
from erasable.workspace.data.admission import record_type
from erasable.workspace.data.catalogue import every, get
from erasable.workspace.data.conditions import Condition
from erasable.workspace.evidence import entries, log
from erasable.workspace.identity import subjects
from erasable.workspace.ledger.schema import identity, model, model_version
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.models import deleting
from erasable.workspace.site import Site

__all__ = ["Batch", "affected", "gather", "look", "plan", "put_back"]

_AT_ONCE = 500
_DOUBT = "it fits two people: cancel it, and ask again with the type of the identity"


@dataclass(slots=True)
class Batch:
    """Requests that are carried out together, and what was prepared for them."""

    requests: dict[str, Any]
    tokens: dict[str, list[str]]  # token: requests
    types: dict[str, str]  # token: type
    conditions: dict[int, list[tuple[str, Condition]]]  # data set: [(request, condition)]
    erasures: list[erasing.Erasure] = field(default_factory=list)
    prepared: list[tuple[Any, deleting.Prepared, dict[str, int]]] = field(default_factory=list)


def plan(site: Site, only: Sequence[str] | None) -> Batch | None:
    """Take up the requests that are pending and not held; None where there are none."""
    name = f"B-{secrets.token_hex(8)}"
    now = site.now()
    with site.ledger.transaction() as connection:
        query = select(request_table).where(
            request_table.c.state.in_(["pending", "in_progress"]), request_table.c.hold.is_(None)
        )
        if only is not None:
            query = query.where(request_table.c.id.in_(list(only)))
        rows = list(connection.execute(query.order_by(request_table.c.received_at)))
        _check_scopes(rows)
        rows = _hold_doubtful(site, connection, rows, now)
        if not rows:
            return None
        for start in range(0, len(rows), _AT_ONCE):
            ids = [row.id for row in rows[start : start + _AT_ONCE]]
            connection.execute(
                update(request_table)
                .where(request_table.c.id.in_(ids))
                .values(state="in_progress", batch=name, changed_at=now)
            )
        log.append_many(
            site, connection, [("request-started", row.id, {"batch": name}, now) for row in rows]
        )
        return gather(connection, rows)


def put_back(site: Site, batch: Batch) -> None:
    """Have requests wait again that could not be carried out, so that they can be answered."""
    now = site.now()
    with site.ledger.transaction() as connection:
        for request in batch.requests:
            at = request_table.c.id == request
            connection.execute(
                update(request_table).where(at).values(state="pending", changed_at=now)
            )
        log.append_many(
            site,
            connection,
            [("request-postponed", request, {}, now) for request in batch.requests],
        )


def _check_scopes(rows: Sequence[Any]) -> None:
    for row in rows:
        if row.tokens is None and row.condition is None:
            raise LedgerError(
                f"request {row.id} says neither whose records nor which are to be erased; "
                "expected one of them: the ledger was damaged, or tampered with; restore it from "
                "a backup"
            )


def _hold_doubtful(site: Site, connection: Connection, rows: list[Any], now: Any) -> list[Any]:
    """Have those wait that fit two people by now, because their type was not said."""
    kept = []
    for row in rows:
        if row.condition is not None or len(row.tokens) < 2 or not _is_doubtful(connection, row):
            kept.append(row)
            continue
        at = request_table.c.id == row.id
        changes = {"hold": _DOUBT, "state": "pending", "changed_at": now}
        connection.execute(update(request_table).where(at).values(**changes))
        changed = connection.execute(select(request_table).where(at)).one()
        body = entries.changed(site.keys, changed._mapping)
        log.append(site, connection, "request-held", row.id, body, now)
    return kept


def _is_doubtful(connection: Connection, row: Any) -> bool:
    found: set[str] = set()
    for some in subjects.batches([token for _, token in row.tokens]):  # a request may be for many
        known = select(identity.c.subject).where(identity.c.token.in_(some))
        found.update(connection.execute(known).scalars())
    return len(found) > 1


def gather(connection: Connection, rows: Sequence[Any]) -> Batch:
    """Say what requests want erased: every token of every subject, and every condition."""
    batch = Batch({row.id: row for row in rows}, {}, {}, {})
    for row in rows:
        if row.condition is not None:
            known = get(connection, row.condition["dataset"])
            condition = Condition.parse(row.condition["where"], known.schema, known.subject_columns)
            batch.conditions.setdefault(known.id, []).append((row.id, condition))
    people = [row for row in rows if row.condition is None]
    expanded = subjects.expand_many(connection, [row.tokens for row in people])
    for row, identities in zip(people, expanded, strict=True):
        for kind, token in identities:
            batch.types[token] = kind
            asked = batch.tokens.setdefault(token, [])
            if row.id not in asked:
                asked.append(row.id)
    return batch


def look(site: Site, connection: Connection, batch: Batch) -> None:
    """Find the records of a batch in every data set; nothing is written."""
    for known in every(connection):
        kind = record_type(known.name)
        records = {t: asked for t, asked in batch.tokens.items() if batch.types[t] == kind}
        wanted = erasing.Wanted(batch.tokens, batch.conditions.get(known.id, []), records)
        erasure = erasing.find_records(site, connection, known.id, wanted)
        if erasure.found:
            batch.erasures.append(erasure)


def affected(connection: Connection, batch: Batch) -> list[tuple[Any, Any, dict[int, list[Any]]]]:
    """Return the models that hold records of a batch, and which ids of which data sets."""
    erasures = {erasure.dataset.id: erasure for erasure in batch.erasures}
    found = []
    for row in connection.execute(select(model).order_by(model.c.name)):
        if row.state == "retired" or not set(row.datasets) & erasures.keys():
            continue
        at = (model_version.c.model_id == row.id) & (model_version.c.number == row.version)
        version = connection.execute(select(model_version).where(at)).first()
        ids = {}
        if version is not None:
            ids = {
                dataset_id: erasures[dataset_id].ids_at(number)
                for dataset_id, number in zip(row.datasets, version.dataset_versions, strict=True)
                if dataset_id in erasures
            }
        if version is None or any(ids.values()):
            found.append((row, version, ids))
    return found

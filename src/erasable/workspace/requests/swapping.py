"""The transaction that puts a batch in place: models, data and requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, update

from erasable.workspace.context import Context
from erasable.workspace.data import erasing, gone_subjects, waiting_corrections
from erasable.workspace.data.catalogue import all_datasets, record_type
from erasable.workspace.evidence import entries, log
from erasable.workspace.identity import suppression
from erasable.workspace.ledger.bulk import delete_in
from erasable.workspace.ledger.schema import failure, holding, identity, measurement, step, task
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.treatments import REWRITTEN, of_request
from erasable.workspace.models import deleting, hooks
from erasable.workspace.requests import answering, owed, searching
from erasable.workspace.requests.batches import Batch


def swap(context: Context, connection: Connection, batch: Batch) -> dict[str, int]:
    """Put a batch in place, in the caller's transaction; return numbers of records by request."""
    now = context.now()
    tasks: list[dict[str, Any]] = []
    matched = dict.fromkeys(batch.requests, 0)
    delete_in(connection, holding.c.token, batch.tokens)
    for erasure in batch.erasures:
        erasing.swap(context, connection, erasure)
        gone_subjects.forget_holdings(connection, erasure.dataset.id, erasure.vacated)
        tasks += _dataset_tasks(batch, erasure, matched)
        connection.execute(insert(measurement).values(_measured(erasure, now)))
    for row, prepared, counts in batch.prepared:
        only = all(batch.corrects(request) for request, n in counts.items() if n)
        cause = "correct" if only and any(counts.values()) else "erase"
        deleting.adopt(context, connection, prepared, now, cause)
        tasks += _model_tasks(batch, row, prepared, counts, matched)
    for row, prepared, _ in batch.prepared:
        if prepared.treated.ends_model:
            hooks.discard(context, connection, row.name)
        elif row.hook:
            hooks.add(context, connection, row.name)
    by_request: dict[str, list[dict[str, Any]]] = {}
    for each in tasks:
        by_request.setdefault(each["request_id"], []).append(each)
    _forget_failures(connection, batch)
    if tasks:
        connection.execute(insert(task), tasks)
    for each in owed.owe(context, connection, _asked_of_targets(batch, matched)):
        by_request.setdefault(each["request_id"], []).append(each)
    kept_out = _suppress(context, connection, batch, matched)
    searched = _searched(connection, batch)
    followed = {
        request: batch.people[request].steps() if request in batch.people else None
        for request in batch.requests
    }
    gone = ("tokens", "reach", "condition", "type", "salt", "values_key", "values_sha256")
    ended = {"state": "swapped", **dict.fromkeys(gone)}
    answering.drop_values(connection, list(matched))
    waiting_corrections.adopt(context, connection, batch.narrowed)
    found: dict[str, Any] = {
        "matched": bindparam("count"), "searched": bindparam("columns"),
        "followed": bindparam("steps"),
    }  # fmt: skip
    at = request_table.c.id == bindparam("request")
    if matched:
        connection.execute(
            update(request_table).where(at).values(**ended, **found),
            [
                {
                    "request": request,
                    "count": count,
                    "columns": searched[request],
                    "steps": followed[request],
                }
                for request, count in matched.items()
            ],
        )
    log.append_many(
        context,
        connection,
        [
            (
                "request-corrected" if batch.corrects(request) else "request-erased",
                request,
                entries.erased(
                    n,
                    by_request.get(request, ()),
                    kept_out.get(request),
                    searched[request],
                    followed[request],
                ),
                now,
            )
            for request, n in matched.items()
        ],
    )
    return matched


def _asked_of_targets(batch: Batch, matched: Iterable[str]) -> dict[str, owed.Tokens | str]:
    """Return whom each request asks to erase from targets, or why nobody."""
    people: dict[str, list[tuple[str, str]]] = {}
    for token, requests in batch.tokens.items():
        for request in requests:
            people.setdefault(request, []).append((batch.types[token], token))
    return {
        request: owed.NOT_CORRECTED
        if batch.corrects(request)
        else people.get(request, owed.NOBODY_NAMED)
        for request in matched
    }


def _dataset_tasks(
    batch: Batch, erasure: erasing.Erasure, matched: dict[str, int]
) -> list[dict[str, Any]]:
    tasks = []
    counts = erasure.n_by_request()
    for request in batch.requests:
        count = counts.get(request, 0)
        if count:
            matched[request] += count
            tasks.append(
                {
                    "request_id": request, "target": "dataset", "target_id": erasure.dataset.id,
                    "state": "done", "exactness": REWRITTEN.exactness,
                    "treatment": of_request(REWRITTEN, corrects=batch.corrects(request)).name,
                    "n_records": count, "seconds": erasure.seconds, "before": None, "after": None,
                }
            )  # fmt: skip
    return tasks


def _model_tasks(
    batch: Batch,
    row: Any,
    prepared: deleting.Prepared,
    counts: dict[str, int],
    matched: dict[str, int],
) -> list[dict[str, Any]]:
    treated = prepared.treated
    return [
        {
            "request_id": request, "target": "model", "target_id": row.id, "state": "done",
            "treatment": of_request(treated, corrects=batch.corrects(request)).name,
            "exactness": prepared.exactness,
            "n_records": count, "seconds": prepared.seconds,
            "before": prepared.before, "after": prepared.commitment,
        }
        for request, count in counts.items()
        if count or (matched[request] and not treated.is_covered)
    ]  # fmt: skip


def _searched(connection: Connection, batch: Batch) -> dict[str, list[dict[str, str]] | None]:
    """Return in which columns each request was looked for; None of all but identities."""
    types = {id: set(row.types or ()) for id, row in batch.requests.items()}
    for token, requests in batch.tokens.items():
        for request in requests:
            types[request].add(batch.types[token])  # a person is known under more types
    known = all_datasets(connection)
    return {
        id: None if row.tokens is None else searching.columns_of(known, types[id])
        for id, row in batch.requests.items()
    }


def _measured(erasure: erasing.Erasure, now: Any) -> dict[str, Any]:
    return {
        "dataset_id": erasure.dataset.id,
        "kind": REWRITTEN.measured_as,
        "n_records": sum(each.part.n_records for each in erasure.found),
        "n_deleted": len(set(erasure.every_id())),
        "seconds": erasure.seconds,
        "at": now,
    }


def _suppress(
    context: Context, connection: Connection, batch: Batch, matched: dict[str, int]
) -> dict[str, str]:
    """Suppress what was erased: people by their tokens, records that met a condition by ids.

    Returns commitments to the suppressions of each request, for the log.
    """
    erased = [
        (token, batch.types[token], request)
        for token, asked in batch.tokens.items()
        for request in asked
        if matched[request]  # or a slip of the pen would keep out a stranger for ever
    ]
    for erasure in batch.erasures:
        kind = record_type(erasure.dataset.name)
        for request, ids in erasure.ids_of_conditions().items():
            tokens = context.keys.tokens(kind, ids)
            erased += [(token, kind, request) for token in tokens if token is not None]
    gone = {token for each in batch.erasures for own in each.vacated.values() for token in own}
    gone_subjects.forget_unheld(connection, gone | batch.tokens.keys())
    delete_in(connection, identity.c.token, batch.tokens)
    return suppression.suppress(connection, erased, context.now())


def _forget_failures(connection: Connection, batch: Batch) -> None:
    """Drop recorded failures of the batch, and the results of workers."""
    connection.execute(delete(step))
    delete_in(connection, task.c.request_id, batch.requests, task.c.state == "failed")
    for erasure in batch.erasures:
        failed = (failure.c.target == "dataset") & (failure.c.target_id == erasure.dataset.id)
        connection.execute(delete(failure).where(failed))

"""Carry requests out: one batch over every data set and every model that holds their records.

The law kept here: everything is prepared beside what is there, and one transaction puts all of it
in place, models, data and requests together. A process that dies before has done nothing, one
that dies after has done it; the next one ends what is left. A request is written down as completed
only when nothing of its records is left on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, select, update

from erasable.core.errors import (
    ErasableError,
    EvidenceError,
    LedgerError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceError,
)
from erasable.workspace.data import erasing
from erasable.workspace.data.admission import record_type
from erasable.workspace.evidence import clock, entries, log, receipts
from erasable.workspace.identity import outside, subjects, suppression
from erasable.workspace.ledger.schema import measurement, task
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.models import deleting, hooks
from erasable.workspace.models.reading import Reader
from erasable.workspace.requests.batches import Batch, affected, look, plan, put_back
from erasable.workspace.site import Site

__all__ = ["Processed", "finish", "process"]

_AT_ONCE = 500


@dataclass(slots=True)
class Processed:
    """What was carried out.

    Attributes
    ----------
    requests : list of str
        Completed, in the order they came in.
    n_records : int
        Erased from data sets.
    n_unmatched : int
        Requests that nobody's records met: "no match".
    treatments : list of dict
        Per model: name, treatment, exactness, n_records, seconds.
    seconds : float
    warnings : list of str
        What did not go well beside the erasure, such as a hook of the user's, or a clock that was
        set back.

    Examples
    --------
    >>> Processed().requests
    []
    """

    requests: list[str] = field(default_factory=list)
    n_records: int = 0
    n_unmatched: int = 0
    treatments: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


def process(site: Site, only: Sequence[str] | None = None) -> Processed:
    """Carry out every request that is pending and not held.

    Parameters
    ----------
    site : Site
    only : sequence of str, default=None
        Ids of requests; by default all of them.

    Returns
    -------
    Processed

    Raises
    ------
    WorkspaceBusyError
        Another process is at work.
    WorkspaceError
        A model or data set cannot be read or rewritten; nothing has changed.
    """
    began = time.perf_counter()
    done = Processed()
    with site.lock():
        with site.ledger.reading() as connection:
            done.warnings += clock.set_back(site, connection)
        done.requests += finish(site)
        batch = plan(site, only)
        if batch is not None:
            try:
                _prepare(site, batch)
                matched = _swap(site, batch)
            except ErasableError:
                with suppress(ErasableError):  # then they are taken up again as they are
                    put_back(site, batch)
                raise
            done.n_unmatched = sum(count == 0 for count in matched.values())
            done.requests += finish(site)
            done.n_records = sum(erasure.n_records for erasure in batch.erasures)
            for row, prepared, _ in batch.prepared:
                done.treatments.append(
                    {
                        "model": row.name, "treatment": prepared.treatment,
                        "exactness": prepared.exactness, "n_records": prepared.n_deleted,
                        "seconds": prepared.seconds,
                    }
                )  # fmt: skip
                warning = hooks.run(site, row.name) if row.hook else None
                done.warnings += [warning] if warning else []
        done.warnings += _publish(site) if done.requests else []
    done.seconds = time.perf_counter() - began
    return done


def _publish(site: Site) -> list[str]:
    try:
        outside.publish(site)
    except (EvidenceError, WorkspaceDiskError) as error:  # what was asked is done, and written down
        return [f"the list of the erased was not exported: {error}"]
    return []


# -- what is to be done ----------------------------------------------------------------------------


def _prepare(site: Site, batch: Batch) -> None:
    with site.ledger.reading() as connection:
        look(site, connection, batch)
        models = affected(connection, batch)
    for erasure in batch.erasures:
        erasing.prepare(site, erasure)
    held = {key: table for erasure in batch.erasures for key, table in erasure.held().items()}
    reader = Reader(site, held)
    with site.progress("updating models", len(models)) as advance:
        # Those that learn from the same columns come one after the other: they read them once.
        for row, version, ids in sorted(models, key=lambda each: each[0].features or []):
            try:
                prepared = deleting.prepare(site, row, version, ids, reader)
            except (LedgerError, WorkspaceBusyError, WorkspaceDiskError):
                raise
            except WorkspaceError as error:
                raise WorkspaceError(
                    f"{error}; or give the model up: `erasable model retire {row.name}`"
                ) from error
            batch.prepared.append((row, prepared, _per_request(batch, row, version)))
            advance()
    batch.prepared.sort(key=lambda each: each[0].name)


def _per_request(batch: Batch, row: Any, version: Any) -> dict[str, int]:
    """Count, for one model, the records of each request."""
    if version is None:
        return dict.fromkeys(batch.requests, 0)
    at = dict(zip(row.datasets, version.dataset_versions, strict=True))
    counts = dict.fromkeys(batch.requests, 0)
    for erasure in batch.erasures:
        if erasure.dataset.id in at:
            for request, n in erasure.n_by_request(at[erasure.dataset.id]).items():
                counts[request] += n
    return counts


# -- the one transaction ---------------------------------------------------------------------------


def _swap(site: Site, batch: Batch) -> dict[str, int]:
    """Put all of it in place; return how many records each request met."""
    now = site.now()
    tokens = sorted(batch.tokens)
    with site.ledger.transaction() as connection:
        tasks: list[dict[str, Any]] = []
        matched = dict.fromkeys(batch.requests, 0)
        erasing.forget(connection, tokens)
        for erasure in batch.erasures:
            erasing.swap(connection, erasure)
            tasks += _dataset_tasks(batch, erasure, matched)
            connection.execute(insert(measurement).values(_measured(erasure, now)))
        for row, prepared, counts in batch.prepared:
            deleting.adopt(site, connection, prepared, now)
            tasks += _model_tasks(row, prepared, counts, matched)
        by_request: dict[str, list[dict[str, Any]]] = {}
        for each in tasks:
            by_request.setdefault(each["request_id"], []).append(each)
        if tasks:
            connection.execute(insert(task), tasks)
        kept_out = _suppress(site, connection, batch, matched)
        for request, count in matched.items():
            connection.execute(
                update(request_table)
                .where(request_table.c.id == request)
                .values(
                    state="swapped",
                    matched=count,
                    tokens=None,
                    condition=None,
                    type=None,
                    salt=None,
                )
            )
        log.append_many(
            site,
            connection,
            [
                (
                    "request-erased",
                    request,
                    entries.erased(n, by_request.get(request, ()), kept_out.get(request)),
                    now,
                )
                for request, n in matched.items()
            ],
        )
    return matched


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
                    "state": "done", "treatment": "rewritten", "exactness": "bitwise",
                    "n_records": count, "seconds": erasure.seconds, "before": None, "after": None,
                }
            )  # fmt: skip
    return tasks


def _model_tasks(
    row: Any, prepared: deleting.Prepared, counts: dict[str, int], matched: dict[str, int]
) -> list[dict[str, Any]]:
    uncovered = prepared.treatment == "not covered"
    return [
        {
            "request_id": request, "target": "model", "target_id": row.id, "state": "done",
            "treatment": prepared.treatment, "exactness": prepared.exactness,
            "n_records": count, "seconds": prepared.seconds,
            "before": prepared.before, "after": prepared.commitment,
        }
        for request, count in counts.items()
        if count or (uncovered and matched[request])
    ]  # fmt: skip


def _measured(erasure: erasing.Erasure, now: Any) -> dict[str, Any]:
    return {
        "dataset_id": erasure.dataset.id,
        "kind": "rewrite",
        "n_records": sum(each.part.n_records for each in erasure.found),
        "n_deleted": erasure.n_records,
        "seconds": erasure.seconds,
        "at": now,
    }


def _suppress(
    site: Site, connection: Connection, batch: Batch, matched: dict[str, int]
) -> dict[str, str]:
    """Keep out what was erased: people by their tokens, records that met a condition by ids.

    Returns commitments to what each request keeps out, for the log.
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
            tokens = site.keys.tokens(kind, ids)
            erased += [(token, kind, request) for token in tokens if token is not None]
    subjects.forget(connection, sorted(batch.tokens))
    return suppression.suppress(connection, erased, site.now())


# -- after it --------------------------------------------------------------------------------------


def finish(site: Site) -> list[str]:
    """Purge the disk; then attest the requests whose records are out, and write down completed.

    Hold the lock. Safe to call again after a crash, at whatever point. The disk is purged even
    where no request waits for it: what a denied one asked for may be in the write-ahead log.
    """
    site.clean()
    site.ledger.purge()
    with site.ledger.reading() as connection:
        query = select(request_table.c.id).where(request_table.c.state.in_(["swapped", "purged"]))
        waiting = list(connection.execute(query).scalars())
    if not waiting:
        return []
    with site.ledger.transaction() as connection:
        connection.execute(
            update(request_table)
            .where(request_table.c.state == "swapped")
            .values(state="purged", changed_at=site.now())
        )
    with site.ledger.transaction() as connection:
        receipts.issue(site, connection, waiting, site.now())
    return waiting

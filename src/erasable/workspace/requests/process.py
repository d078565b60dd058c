"""Carry requests out: one batch over every data set and every model that holds their records.

The law kept here: everything is prepared beside what is there, and one transaction puts all of it
in place, models, data and requests together. A process that dies before has done nothing, one
that dies after has done it; the next one ends what is left. A request is written down as completed
only when nothing of its records is left on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update

from erasable.core.errors import (
    ErasableError,
    EvidenceError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceError,
)
from erasable.workspace import locking
from erasable.workspace.data import catalogue, erasing, leavers
from erasable.workspace.evidence import clock, receipts
from erasable.workspace.identity import outside, suppression
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import vacated
from erasable.workspace.models import deleting, hooks, publishing
from erasable.workspace.models.reading import Reader
from erasable.workspace.requests.batches import (
    NOT_THE_MODELS,
    Batch,
    Crew,
    ModelFailedError,
    Models,
    MoreConcernedError,
    affected,
    check_claimed,
    concerned,
    look,
    plan,
    put_back,
)
from erasable.workspace.requests.failures import NotYetError, TaskFailedError
from erasable.workspace.requests.swapping import swap
from erasable.workspace.site import Site

__all__ = ["Processed", "finish", "process", "tell_others"]

_LONGEST_ADMISSION = 600.0
"""Seconds that a worker waits, rather than to do all of a batch again."""


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
    n_kept_out : int
        Of these, requests of people who are kept out because of an earlier request.
    treatments : list of dict
        Per model: name, treatment, exactness, n_records, seconds.
    n_resumed : int
        Requests whose records a process had erased that died then: they are not in `n_records`.
    hooks : list of str
        Models whose hooks have ended well.
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
    n_kept_out: int = 0
    treatments: list[dict[str, Any]] = field(default_factory=list)
    n_resumed: int = 0
    hooks: list[str] = field(default_factory=list)
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)


def process(
    site: Site,
    only: Sequence[str] | None = None,
    *,
    crew: Crew | None = None,
    wait: float | None = None,
    tells_others: bool = True,
) -> Processed:
    """Carry out every request that is pending and not held.

    Parameters
    ----------
    site : Site
    only : sequence of str, default=None
        Ids of requests; by default all of them.
    crew : Crew, default=None
        Prepares the models; by default they are prepared here, one after the other.
    wait : float, default=None
        Seconds to wait for whoever carries out requests; by default those of the workspace.
    tells_others : bool, default=True
        Run the models' hooks, and write what is kept outside.

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
    with site.lock([locking.REQUESTS], wait=wait):
        tidied = _forget_leavers(site)
        # Before the batch, which may fail; those that fail are not run again after it for nothing.
        before = hooks.run_due(site) if tells_others else {}
        claimed: set[str] = set()
        while True:
            # Before requests are taken up: where others have what it takes, nothing is changed.
            checked: dict[str, Any] = {}
            claimed |= concerned(site, only, patient=crew is not None, checked=checked)
            with site.lock(claimed) if claimed else nullcontext():
                try:
                    done = _carry_out(site, only, crew, claimed, tells_others, checked)
                    break
                except MoreConcernedError:
                    continue
        if tells_others:
            updated = {each["model"] for each in done.treatments}
            failed = {name for name, told in before.items() if told is not None}
            _note_hooks(done, before | hooks.run_due(site, failed - updated))
            done.warnings += publishing.publish_due(site)
    done.warnings += tidied
    done.seconds = time.perf_counter() - began
    return done


def _forget_leavers(site: Site) -> list[str]:
    """Forget who has no record left, where that was not done when the records went; tell of it."""
    with site.ledger.reading() as connection:
        if not connection.execute(select(vacated.c.bucket).limit(1)).first():
            return []
        names = [each.name for each in catalogue.every(connection)]
    try:
        with site.lock(reads=locking.datasets(names), wait=0.0):
            n = leavers.tidy(site)
    except WorkspaceBusyError:  # then it is done next time
        return []
    if not n:
        return []
    return [
        f"the ledger held {n} pseudonyms of people of whom no record is left: they were removed, "
        "and are not on the suppression list, because nobody knows whose they were"
    ]


def tell_others(site: Site) -> Processed:
    """Run the hooks that are due, and publish what is; see `process`, which does it, too."""
    done = Processed()
    with site.lock([locking.REQUESTS], wait=0.0):
        _note_hooks(done, hooks.run_due(site))
        done.warnings += publishing.publish_due(site)
    return done


def _note_hooks(done: Processed, found: dict[str, str | None]) -> None:
    done.hooks = [name for name, told in found.items() if told is None]
    done.warnings += [told for told in found.values() if told is not None]


def _carry_out(
    site: Site,
    only: Sequence[str] | None,
    crew: Crew | None,
    claimed: set[str],
    tells_others: bool,
    checked: dict[str, Any],
) -> Processed:
    done = Processed()
    with site.lock([locking.STEPS]):
        pass  # nobody is at work any more for a process that has died
    with site.ledger.reading() as connection:
        done.warnings += clock.set_back(site, connection)
    if crew is None or _unfinished(site):
        done.requests += finish(site)
        done.n_resumed = len(done.requests)
    batch = plan(site, only, patient=crew is not None, claimed=claimed, checked=checked)
    if batch is not None:
        try:
            _prepare(site, batch, crew)
            # Who let records in until now did not know whom to keep out: they are waited for.
            with site.lock([locking.ADMISSION], wait=None if crew is None else _LONGEST_ADMISSION):
                check_claimed(site, batch, claimed)
                matched = swap(site, batch)
        except (ErasableError, TaskFailedError, NotYetError, MoreConcernedError) as error:
            with suppress(ErasableError):  # then they are taken up again as they are
                put_back(site, batch)
            if crew is not None and not isinstance(error, MoreConcernedError):
                crew.failed(site, batch, error)
            raise
        unmatched = {request for request, count in matched.items() if count == 0}
        done.n_unmatched = len(unmatched)
        asked = [token for token, by in batch.tokens.items() if not unmatched.isdisjoint(by)]
        with site.ledger.reading() as connection:
            kept_out = suppression.suppressed(connection, asked)
        done.n_kept_out = len(unmatched & {r for t in kept_out for r in batch.tokens[t]})
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
    done.warnings += _publish(site) if done.requests and tells_others else []
    return done


def _publish(site: Site) -> list[str]:
    try:
        outside.publish(site)
    except (EvidenceError, WorkspaceDiskError) as error:  # what was asked is done, and written down
        return [f"the list of the erased was not exported: {error}"]
    return []


# -- what is to be done ----------------------------------------------------------------------------


def _prepare(site: Site, batch: Batch, crew: Crew | None) -> None:
    with site.ledger.reading() as connection:
        look(site, connection, batch)
        models = affected(connection, batch)
    prepare = _prepare_models if crew is None else crew.prepare
    found = prepare(site, batch, models)
    for erasure in batch.erasures:
        leavers.find_leavers(site, erasure)
    for row, version, _ in models:
        batch.prepared.append((row, found[row.id], batch.n_per_request(row, version)))
    batch.prepared.sort(key=lambda each: each[0].name)


def _prepare_models(site: Site, batch: Batch, models: Models) -> dict[int, deleting.Prepared]:
    """Write the fragments that are left, then the models of these, one after the other."""
    for erasure in batch.erasures:
        erasing.prepare(site, erasure)
    reader = Reader(site, batch.held())
    found = {}
    with site.progress("updating models", len(models)) as advance:
        # Those that learn from the same columns come one after the other: they read them once.
        for row, version, ids in sorted(models, key=lambda each: each[0].features or []):
            try:
                found[row.id] = deleting.prepare(site, row, version, ids, reader)
            except NOT_THE_MODELS:
                raise
            except WorkspaceError as error:
                raise ModelFailedError(str(error), row.name) from error
            advance()
    return found


# -- after it --------------------------------------------------------------------------------------


def finish(site: Site) -> list[str]:
    """Purge the disk; then attest the requests whose records are out, and write down completed.

    Hold the lock. Safe to call again after a crash, at whatever point. The disk is purged even
    where no request waits for it: what a denied one asked for may be in the write-ahead log.
    """
    site.clean()
    site.ledger.purge()
    waiting = _unfinished(site)
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


def _unfinished(site: Site) -> list[str]:
    with site.ledger.reading() as connection:
        query = select(request_table.c.id).where(request_table.c.state.in_(["swapped", "purged"]))
        return list(connection.execute(query).scalars())

"""Processing of requests: one batch over every data set and every model that holds their records.

`finish` signs the receipts; `erasable receipt show` writes one to a file, and nothing is sent.

The law kept here: everything is prepared beside the current files, and one transaction puts models,
data and requests in place together. A process that dies before has done nothing; if it dies after,
the next one finishes. A request is completed only when nothing of its records is left on the disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

import erasable.workspace.locking as locking
from erasable.core import _interruptions
from erasable.core.errors import (
    ErasableError,
    InvalidInputError,
    WorkspaceBusyError,
    WorkspaceError,
)
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, gone_subjects, waiting_corrections
from erasable.workspace.evidence import issuing, log
from erasable.workspace.identity import suppression
from erasable.workspace.ledger.bulk import update_in
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.schema import vacated
from erasable.workspace.ledger.states import IN_PLACE, OPEN
from erasable.workspace.ledger.treatments import TREATMENTS
from erasable.workspace.locking.leases import Leases, OvertakenError
from erasable.workspace.models import hooks
from erasable.workspace.requests import external_updates, failures, owed, steps
from erasable.workspace.requests.batches import (
    Batch,
    Choice,
    affected_models,
    asking,
    check_claimed,
    find_records,
    hold_back,
    new_name,
    plan,
    put_back,
    resources_needed,
)
from erasable.workspace.requests.failures import BatchFailure, RetryPolicy
from erasable.workspace.requests.intake import LONGEST_REASON, find
from erasable.workspace.requests.swapping import swap

_LONGEST_ADMISSION = 600.0
"""Seconds that a worker waits, rather than to do all of a batch again."""
_COUNTS = ("n_records", "n_corrected", "n_unmatched", "n_needless", "n_kept_out", "n_resumed")

_PENDING = "nothing was carried out, and its requests are pending again"
_OTHERS_PENDING = (
    "some requests are carried out, and the others are pending again: look with `erasable requests`"
)
_IN_PLACE = (
    "its requests are carried out: what is left, such as receipts and hooks, is done by the next "
    "`erasable process`"
)
_IN_DOUBT = "its requests may be in progress: the next `erasable process` carries them out"


@dataclass(slots=True)
class Processed:
    """The result of carrying out requests."""

    requests: list[str] = field(default_factory=list)  # completed, in the order received
    n_records: int = 0  # erased from data sets
    n_corrected: int = 0  # records of data sets with new values
    n_unmatched: int = 0  # erasures that met no record: "no match"
    n_needless: int = 0  # corrections that changed no record
    n_kept_out: int = 0  # of the unmatched, requests of people who are suppressed already
    # per model: model, treatment, exactness, n_records, seconds; for a retired one, the
    # reason
    treatments: list[dict[str, Any]] = field(default_factory=list)
    # per target: target, verdict, reason, n_records, n_others (that changed with them), requests
    targets: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)  # carried out, now or before, but for a target
    # requests whose records a process had erased that died then: not in `n_records`
    n_resumed: int = 0
    hooks: list[str] = field(default_factory=list)  # models whose hooks were run
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)  # seconds by phase
    # failed hooks, a clock that was set back, and the like
    warnings: list[str] = field(default_factory=list)


def process(
    context: Context,
    only: Sequence[str] | None = None,
    *,
    delivers: bool = True,
    advice: str = "or give the model up: `erasable model retire {model}`",
    n_jobs: int = 1,
) -> Processed:
    """Carry out every request that is pending and not on hold; see `Workspace.process`.

    `delivers` also carries out the tasks of `external_updates`. `advice` says, in the error, what
    to do about a model that cannot be updated.
    """
    if n_jobs < 1:
        raise InvalidInputError(f"n_jobs is {n_jobs}; expected a whole number, 1 or more")
    _refuse_answered(context, only or ())
    with steps.measured() as seconds:
        done = carry_out(context, only, delivers=delivers, n_jobs=n_jobs)
    if isinstance(done, BatchFailure):
        done.reraise(advice)
    done.phases = seconds
    return done


def _refuse_answered(context: Context, requests: Sequence[str]) -> None:
    """Raise WorkspaceError if a request is not there, is answered, or is on hold."""
    with context.ledger.reading() as connection:
        for each in (find(connection, id) for id in requests):
            if each.hold is not None or each.state not in OPEN:
                state = "on hold" if each.state in OPEN else each.state.replace("_", " ")
                raise WorkspaceError(
                    f"request {each.id} is {state}; expected one that is pending; look at it with "
                    "`erasable requests`"
                )


def carry_out(
    context: Context,
    only: Sequence[str] | None = None,
    *,
    patience: RetryPolicy | None = None,
    wait: float | None = None,
    delivers: bool = True,
    n_jobs: int = 1,
) -> Processed | BatchFailure:
    """Carry out every request that is pending and not on hold, or return why not.

    With `patience`, of a worker, failures are recorded and tried again later, requests that wait
    for them are left out until then, and models are shared with other workers. `wait` is in
    seconds, by default that of the workspace.
    """
    began = time.perf_counter()
    with context.lock([locking.REQUESTS], wait=wait):
        tidied = _forgotten(_forget_leavers(context))
        # Before the batch, which may fail; those that fail are not run again after it for nothing.
        before = hooks.run_due(context) if delivers else {}
        claimed: set[str] = set()
        done = Processed()
        failed: BatchFailure | None = None
        out, alone = set[str](), list[str]()
        chosen, is_whole = Choice(only), True
        while True:
            # Before requests are taken up: where others have what it takes, nothing is changed.
            checked: dict[str, Any] = {}
            claimed |= resources_needed(
                context, chosen, patient=patience is not None, checked=checked
            )
            with context.lock(claimed) if claimed else nullcontext():
                found = _carry_out_once(
                    context, chosen, patience, claimed, checked, n_jobs,
                    n_before=len(done.requests), told=done.warnings,
                )  # fmt: skip
            if isinstance(found, Processed):
                _include(done, found)
                is_whole = False
            elif found.target is None:
                claimed |= found.concerns
                continue
            elif found.held is not None:
                done.warnings.append(found.held)
                out |= found.waiting
            elif found.is_in_doubt:
                alone += [each for each in found.requests if each in found.corrections]
                out |= found.corrections
            else:
                failed = failed or found
                out |= found.waiting
                if patience is not None:  # a worker reports it, and takes the others up next
                    break
            if not (is_whole or alone):
                break
            chosen = Choice(only, frozenset(out)) if is_whole else Choice([alone.pop(0)])
            claimed = set()
        if delivers:
            with steps.phase("erasing from targets"):
                _reach_targets(context, done, patience)
        if any(TREATMENTS[each["treatment"]].ends_model for each in done.treatments):
            _forget_leavers(context)  # who was only in data that no model needs any more
        if delivers and (failed is None or done.requests):
            updated = [each["model"] for each in done.treatments]
            erased = bool(done.requests)
            with steps.phase("running hooks, publishing"):
                done.hooks, messages = external_updates.deliver(
                    context, erased=erased, before=before, updated=updated
                )
            done.warnings += messages
    if failed is not None:
        failed.n_others = len(done.requests)
        return failed
    done.warnings += tidied
    done.seconds = time.perf_counter() - began
    return done


def _reach_targets(context: Context, done: Processed, patience: RetryPolicy | None) -> None:
    """Erase the people of requests from targets, and complete those that owe nothing any more."""
    with context.ledger.reading() as connection:
        if not owed.is_due(connection, None if patience is None else context.now()):
            return
    from erasable.workspace.requests import reaching  # late: it takes numpy

    reached = reaching.carry_out(context, patience)
    done.targets += reached.done
    done.warnings += reached.warnings
    done.n_unmatched = max(0, done.n_unmatched - reached.n_newly_matched)
    if reached.done:
        done.requests += finish(context)
    with context.ledger.reading() as connection:
        done.waiting = list(owed.names_waited_for(connection))


def _include(done: Processed, more: Processed) -> None:
    """Add what another batch carried out."""
    for name in _COUNTS:
        setattr(done, name, getattr(done, name) + getattr(more, name))
    done.requests += more.requests
    done.waiting += more.waiting
    done.treatments += more.treatments
    done.warnings += [each for each in more.warnings if each not in done.warnings]


def _forget_leavers(context: Context) -> int:
    """Forget people without a record, where that was not done when the records went; count them."""
    with context.ledger.reading() as connection:
        if not connection.execute(select(vacated.c.bucket).limit(1)).first():
            return 0
        names = [each.name for each in catalogue.all_datasets(connection)]
    try:
        with context.lock(reads=locking.datasets(names), wait=0.0):
            return gone_subjects.tidy(context)
    except WorkspaceBusyError:  # then it is done next time
        return 0


def _forgotten(n: int) -> list[str]:
    """Tell of pseudonyms that an earlier command should have removed."""
    if not n:
        return []
    return [
        f"the ledger held {n} pseudonyms of people of whom no record is left: they were removed, "
        "and are not on the suppression list, because nobody knows whose they were"
    ]


def deliver_due(context: Context) -> Processed:
    """Carry out what a process has left in the outbox that has died, or what failed."""
    done = Processed()
    with context.lock([locking.REQUESTS], wait=0.0):
        done.hooks, done.warnings = external_updates.deliver(context)
    return done


def _carry_out_once(
    context: Context,
    only: Choice,
    patience: RetryPolicy | None,
    claimed: set[str],
    checked: dict[str, Any],
    n_jobs: int,
    n_before: int,
    told: list[str],
) -> Processed | BatchFailure:
    done = Processed()
    with context.lock([locking.STEPS]):
        pass  # no worker is at work any more for a process that has died
    with context.ledger.reading() as connection:
        done.warnings += log.clock_set_back(context, connection)
        unfinished = _unfinished(connection)
    if unfinished:
        done.requests += finish(context)
        done.n_resumed = len(done.requests)
    elif patience is None:
        with steps.phase("purging the disk"):
            context.clean()  # and files that cannot be removed are found before anything is done
    name = new_name()
    with _waiting_again(context, name, patience, n_before + len(done.requests)):
        batch = plan(
            context, name, only,
            patient=patience is not None, claimed=claimed, checked=checked, told=told,
        )  # fmt: skip
        if isinstance(batch, BatchFailure):
            return batch
        if batch is None:
            if patience is None and not done.requests:
                finish(context)
            return done
        setback = _find_and_prepare(context, batch, patience, n_jobs)
        if setback is None:
            # Processes that let records in until now did not know whom to keep out: wait for them.
            longest = None if patience is None else _LONGEST_ADMISSION
            with (
                context.lock([locking.ADMISSION], wait=longest),
                steps.phase("putting all in place"),
                context.ledger.transaction() as connection,
            ):
                setback = check_claimed(connection, batch, claimed)
                matched = {} if setback is not None else swap(context, connection, batch)
        if setback is not None:
            setback = _put_back(context, batch, setback, patience)
            if patience is None:
                with suppress(ErasableError):  # the next process does it
                    finish(context)
            return setback
        needless = {r for r, count in matched.items() if count == 0 and batch.corrects(r)}
        unmatched = {request for request, count in matched.items() if count == 0} - needless
        done.n_needless = len(needless)
        done.n_unmatched = len(unmatched)
        done.n_kept_out = _n_kept_out(context, batch, unmatched)
        done.requests += finish(context)
        done.waiting = [each for each in matched if each not in done.requests]
    done.n_records = sum(erasure.n_records for erasure in batch.erasures)
    done.n_corrected = sum(erasure.n_corrected for erasure in batch.erasures)
    for row, prepared, _ in batch.prepared:
        done.treatments.append(
            {
                "model": row.name, "treatment": prepared.treatment,
                "exactness": prepared.exactness, "n_records": prepared.n_deleted,
                "seconds": prepared.seconds,
                **({"reason": prepared.reason} if prepared.reason else {}),
            }
        )  # fmt: skip
    return done


def _n_kept_out(context: Context, batch: Batch, unmatched: Set[str]) -> int:
    """Count the requests without a record of people who are suppressed already."""
    asked = [token for token, by in batch.tokens.items() if not unmatched.isdisjoint(by)]
    if not asked:
        return 0
    with context.ledger.reading() as connection:
        kept_out = suppression.suppressed(connection, asked)
    return len(unmatched & {request for token in kept_out for request in batch.tokens[token]})


@contextmanager
def _waiting_again(
    context: Context, name: str, patience: RetryPolicy | None, n_before: int
) -> Iterator[None]:
    """Make the requests of a batch pending again if the block fails before they are in place.

    The message about an interruption says what became of them, and of `n_before` that came earlier.
    """
    try:
        yield
    except BaseException as error:
        _interruptions.release(error)
        try:
            became = put_back(context, name)
        except ErasableError:  # then they are taken up again as they are
            _interruptions.explain(error, _IN_DOUBT)
        except KeyboardInterrupt as second:
            _interruptions.explain(second, _IN_DOUBT)
            raise
        else:
            if became is not None:
                pending = _OTHERS_PENDING if n_before else _PENDING
                _interruptions.explain(error, pending if became == "pending" else _IN_PLACE)
            if became == "pending" and patience is None and isinstance(error, Exception):
                with suppress(ErasableError):  # else, as after an interruption, the next one does
                    finish(context)
        raise


def _put_back(
    context: Context, batch: Batch, setback: BatchFailure, patience: RetryPolicy | None
) -> BatchFailure:
    """Have the requests of a batch wait again, and write down what they wait for."""
    try:
        put_back(context, batch.name)
    except OvertakenError:
        raise
    except ErasableError:
        pass  # then they are taken up again as they are
    if setback.target is None:
        return setback
    with context.ledger.transaction() as connection:
        setback.requests = list(batch.requests)
        setback.waiting = asking(connection, batch, setback) or set(batch.requests)
        setback.corrections = {each for each in setback.waiting if batch.corrects(each)}
        if setback.error is None:
            failures.join_waiting(connection, setback, batch.requests, setback.waiting)
        elif setback.is_in_doubt:
            pass  # they are carried out one by one, after the others
        elif setback.corrections and setback.is_of_values:
            _hold(context, connection, setback)
        elif patience is not None:
            setback.failure = failures.record_failure(
                context, connection, setback, batch.requests, setback.waiting, patience
            )
            if setback.corrections and setback.failure.state == "dead":
                failures.forget(connection, setback)  # or erasures would wait for the model, too
                _hold(context, connection, setback)
    return setback


def _hold(context: Context, connection: Connection, setback: BatchFailure) -> None:
    """Put the one correction of a batch on hold that cannot be carried out."""
    (request,) = setback.corrections
    why = f"the {setback.target} {setback.name!r} cannot follow it: {setback.error}"
    why = why if len(why) <= LONGEST_REASON else f"{why[: LONGEST_REASON - 3]}..."
    if hold_back(context, connection, request, why):
        setback.held = (
            f"{request} was not carried out, and is on hold: {why}; cancel it, and correct the "
            f"records otherwise, or lift it once {setback.name!r} can follow"
        )
    else:
        setback.held = (
            f"{request} was not carried out; it was answered or put on hold meanwhile: {why}"
        )


# -- what is to be done ----------------------------------------------------------------------------


def _find_and_prepare(
    context: Context, batch: Batch, patience: RetryPolicy | None, n_jobs: int
) -> BatchFailure | None:
    with steps.phase("finding records"), context.ledger.reading() as connection:
        setback = find_records(context, connection, batch)
        if setback is not None:
            return setback
        batch.models = affected_models(connection, batch)
        later = set[tuple[str, int]]()
        if patience is not None:
            erases = not all(map(batch.corrects, batch.requests))
            later = failures.not_due_yet(connection, context.now(), erases=erases)
    for row, _, _ in batch.models:
        if ("model", row.id) in later:
            return BatchFailure("model", row.id, row.name)
    shared = patience is not None and isinstance(context.locks, Leases)
    found = steps.prepare_batch(context, batch, shared=shared, n_jobs=n_jobs)
    if isinstance(found, BatchFailure):
        return found
    with context.ledger.reading() as connection:
        batch.narrowed = _narrowed(context, connection, batch)
    with steps.phase("finding who has no record left"):
        for erasure in batch.erasures:
            gone_subjects.find_leavers(context, erasure)
    for row, version, _ in batch.models:
        batch.prepared.append((row, found[row.id], batch.n_per_request(row, version)))
    batch.prepared.sort(key=lambda each: each[0].name)
    return None


def _narrowed(
    context: Context, connection: Connection, batch: Batch
) -> list[waiting_corrections.Narrowed]:
    """Narrow the corrections that wait on: to whom is left, and to what newer ones leave them."""
    names = {
        row.corrects["dataset"]
        for row in waiting_corrections.waiting(connection, batch.requests.keys())
    }
    erasures = {erasure.dataset.name: erasure for erasure in batch.erasures}
    found = []
    for name in sorted(names):
        known = catalogue.find(connection, name)
        kept, gone = catalogue.fragment_rows(connection, known.id), list[Any]()
        if name in erasures:
            kept, gone = erasures[name].parts_after(kept), erasures[name].every_id()
        found += waiting_corrections.narrow(
            context, connection, known, kept, gone, batch.requests.keys(),
            newer=batch.corrections.get(known.id, ()),
        )  # fmt: skip
    return found


# -- after it --------------------------------------------------------------------------------------


def finish(context: Context) -> list[str]:
    """Purge the disk, then attest the requests whose records are erased, and complete them.

    Hold the lock. Safe to call again after a crash at any point. The disk is purged even if no
    request waits for it: what a denied one asked for may be in the write-ahead log.
    """
    with steps.phase("purging the disk"):
        context.clean()
        context.ledger.purge()
    with context.ledger.reading() as connection:
        waiting = _unfinished(connection)
    if not waiting:
        return []
    with context.ledger.transaction() as connection:
        update_in(
            connection, request_table.c.state, ["swapped"], state="purged", changed_at=context.now()
        )
    with steps.phase("signing receipts"), context.ledger.transaction() as connection:
        issuing.issue(context, connection, waiting, context.now())
    return waiting


def _unfinished(connection: Connection) -> list[str]:
    """Return the requests that are in place, owe nothing to a target, and have no receipt yet."""
    r = request_table.c
    query = select(r.id).where(r.state.in_(IN_PLACE), r.id.not_in(owed.owing()))
    return list(connection.execute(query).scalars())

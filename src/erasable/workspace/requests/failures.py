"""Failures of models and data sets, and the times of new attempts.

The law kept here: only the requests that concern what failed wait for it. A failure is reported
until it is over; after a number of attempts it is dead, until an operator retries it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NoReturn

from sqlalchemy import Connection, Select, and_, delete, insert, or_, select, update

from erasable.core.errors import (
    ErasableError,
    InvalidInputError,
    NotInWorkspaceError,
    TooFewRecordsError,
    WorkspaceError,
)
from erasable.workspace.context import Context
from erasable.workspace.ledger.bulk import delete_in
from erasable.workspace.ledger.schema import dataset, failure, model, request, target, task

_LONGEST = 2000  # characters of an error that are kept
_TABLES = {"model": model, "dataset": dataset, "target": target}


@dataclass(slots=True)
class BatchFailure:
    """The reason why a batch was not carried out; its requests are pending again."""

    # "model" or "dataset"; None: the requests concern more than was locked
    target: str | None = None
    target_id: int = 0
    name: str = ""
    error: str | None = None  # one line; None: it failed before, and is not to be tried yet
    cause: Exception | None = None  # the exception, if raised in this process
    failure: Failure | None = None  # what was recorded of it
    waiting: set[str] = field(default_factory=set)  # requests of the batch that concern the target
    corrections: set[str] = field(default_factory=set)  # those of `waiting` that are corrections
    # all requests of the batch, in the order received
    requests: list[str] = field(default_factory=list)
    held: str | None = None  # the line that says that the one correction was put on hold, and why
    n_others: int = 0  # requests that do not concern it, and were carried out
    # the locks that the batch needs, if more than it has
    concerns: set[str] = field(default_factory=set)

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may be for a correction that others of the batch cannot be carried out."""
        return self.error is not None and bool(self.corrections) and len(self.requests) > 1

    @property
    def is_of_values(self) -> bool:
        """Whether a model does not learn from the records, rather than fails."""
        return isinstance(self.cause, InvalidInputError | TooFewRecordsError)

    def reraise(self, advice: str) -> NoReturn:
        """Raise the cause; to what is wrong with a model, `advice` adds what to do."""
        others = ""
        if self.n_others:
            are = "request was" if self.n_others == 1 else "requests were"
            wait = ", ".join(sorted(self.waiting)[:3]) + (", ..." if len(self.waiting) > 3 else "")
            others = f"; {wait} waits for it, and {self.n_others} other {are} carried out"
        if self.target == "model" and isinstance(self.cause, ErasableError):
            line = str(self.cause)
            if not isinstance(self.cause, WorkspaceError):
                line = f"the model {self.name!r} could not be updated: {line}"
            told = f"{line}; {advice.format(model=self.name)}{others}"
            raise WorkspaceError(told) from self.cause
        if others and isinstance(self.cause, WorkspaceError):
            raise type(self.cause)(f"{self.cause}{others}") from self.cause
        raise self.cause or WorkspaceError(str(self.error))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number and times of attempts.

    >>> [RetryPolicy(4, 5.0).seconds_after(n) for n in (1, 2, 3, 4)]
    [5.0, 10.0, 20.0, None]
    """

    attempts: int = 5  # after this many it is dead
    backoff: float = 5.0  # seconds before the second attempt; doubled for each later one

    def seconds_after(self, attempts: int) -> float | None:
        """Return how long to wait after so many attempts; None where it is dead."""
        return None if attempts >= self.attempts else self.backoff * 2.0 ** (attempts - 1)


@dataclass(frozen=True, slots=True)
class Failure:
    """A model, a data set or a target that could not be updated."""

    target: str  # "model", "dataset" or "target"
    name: str
    state: str  # "waiting" or "dead"
    attempts: int
    error: str  # of the last attempt
    failed_at: datetime
    again_at: datetime | None  # None if it is dead
    n_requests: int  # that wait for it


def record_failure(
    context: Context,
    connection: Connection,
    failed: BatchFailure,
    batch: Iterable[str],
    waiting: Iterable[str],
    patience: RetryPolicy,
) -> Failure:
    """Record that a task of a batch failed; the requests that concern it wait."""
    at = (str(failed.target), failed.target_id)
    count_attempt(connection, at, str(failed.error), patience, context.now())
    join_waiting(connection, failed, batch, waiting)
    return next(each for each in listing(connection, at))


def count_attempt(
    connection: Connection, of: tuple[str, int], error: str, patience: RetryPolicy, now: datetime
) -> None:
    """Write down that a model, data set or target has failed, and when it is tried again."""
    at = (failure.c.target == of[0]) & (failure.c.target_id == of[1])
    before = connection.execute(select(failure.c.attempts).where(at)).scalar() or 0
    seconds = patience.seconds_after(before + 1)
    values: dict[str, Any] = {
        "attempts": before + 1, "error": error[:_LONGEST], "failed_at": now,
        "again_at": None if seconds is None else now + timedelta(seconds=seconds),
    }  # fmt: skip
    if before:
        connection.execute(update(failure).where(at).values(**values))
    else:
        named = {"target": of[0], "target_id": of[1]}
        connection.execute(insert(failure).values(**named, **values))


def forget_target(connection: Connection, target_id: int) -> None:
    """Forget that a target has failed."""
    at = (failure.c.target == "target") & (failure.c.target_id == target_id)
    connection.execute(delete(failure).where(at))


def forget(connection: Connection, failed: BatchFailure) -> None:
    """Forget that a task failed: no request waits for it."""
    at = [(each.c.target == failed.target) & (each.c.target_id == failed.target_id)
          for each in (task, failure)]  # fmt: skip
    connection.execute(delete(task).where(at[0], task.c.state == "failed"))
    connection.execute(delete(failure).where(at[1]))


def listing(connection: Connection, only: tuple[str, int] | None = None) -> list[Failure]:
    """Return what failed, those that are dead first."""
    query = select(failure).order_by(failure.c.again_at.is_not(None), failure.c.again_at)
    if only is not None:
        query = query.where(failure.c.target == only[0], failure.c.target_id == only[1])
    found = []
    for row in connection.execute(query).all():
        table = _TABLES[row.target]
        name = connection.execute(select(table.c.name).where(table.c.id == row.target_id)).scalar()
        waiting = connection.execute(select(task.c.request_id).where(_task_of(row))).all()
        found.append(
            Failure(
                row.target, str(name), "dead" if row.again_at is None else "waiting",
                row.attempts, row.error, row.failed_at, row.again_at, len(waiting),
            )
        )  # fmt: skip
    return found


def retry(context: Context, names: Iterable[str] = ()) -> list[Failure]:
    """Try what failed again at once, as if for the first time; by default all of it."""
    wanted = list(names)
    with context.ledger.transaction() as connection:
        known = listing(connection)
        missing = [name for name in wanted if name not in {each.name for each in known}]
        if missing:
            names_of = ", ".join(sorted({each.name for each in known})) or "nothing"
            raise NotInWorkspaceError(
                f"no task of {missing[0][:60]!r} has failed; expected a model, data set or "
                f"target of which one has: {names_of}; list them with `erasable tasks`"
            )
        chosen = [each for each in known if not wanted or each.name in wanted]
        for each in chosen:
            table = _TABLES[each.target]
            number = select(table.c.id).where(table.c.name == each.name).scalar_subquery()
            at = (failure.c.target == each.target) & (failure.c.target_id == number)
            connection.execute(delete(failure).where(at))
    return chosen


def not_due_yet(connection: Connection, now: datetime, *, erases: bool) -> set[tuple[str, int]]:
    """Return what has failed and is not to be tried yet: ("model" or "dataset", id).

    For a batch that erases, only that for which an erasure waits: what only corrections wait for
    may have failed because of them.
    """
    later = or_(failure.c.again_at.is_(None), failure.c.again_at > now)
    if erases:
        erasures = select(request.c.id).where(request.c.values_key.is_(None))
        later &= (
            select(task.c.request_id)
            .where(
                task.c.target == failure.c.target, task.c.target_id == failure.c.target_id,
                task.c.state == "failed", task.c.request_id.in_(erasures),
            )
            .exists()
        )  # fmt: skip
    found = connection.execute(select(failure.c.target, failure.c.target_id).where(later))
    return {(row.target, row.target_id) for row in found}


def join_waiting(
    connection: Connection,
    failed: BatchFailure,
    batch: Iterable[str],
    waiting: Iterable[str],
) -> None:
    """Have some requests of a batch wait for what failed, and no others of it.

    Requests of other batches wait on: otherwise two requests would take turns for ever.
    """
    at = (task.c.target == failed.target) & (task.c.target_id == failed.target_id)
    delete_in(connection, task.c.request_id, sorted(batch), at, task.c.state == "failed")
    of = {"target": failed.target, "target_id": failed.target_id, "state": "failed"}
    rows = [{"request_id": each, **of} for each in sorted(set(waiting))]
    if rows:
        connection.execute(insert(task), rows)


def waiting_requests(now: datetime) -> Select[Any]:
    """Return the query of requests that are not to be tried yet."""
    on = and_(failure.c.target == task.c.target, failure.c.target_id == task.c.target_id)
    return (
        select(task.c.request_id)
        .join(failure, on)
        .where(
            task.c.state == "failed", or_(failure.c.again_at.is_(None), failure.c.again_at > now)
        )
    )


def _task_of(row: Any) -> Any:
    is_waited_for = task.c.state.in_(["failed", "owed"])
    return and_(task.c.target == row.target, task.c.target_id == row.target_id, is_waited_for)

"""Workers: carry out requests as they come, and help each other.

Any number of them work on one workspace in PostgreSQL. One at a time starts the pending requests,
finds their records and rewrites the data; all of them prepare the models of the batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import or_, select

from erasable.core.errors import WorkspaceBusyError, WorkspaceDiskError, WorkspaceServerError
from erasable.workspace.context import Context
from erasable.workspace.ledger.schema import failure
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.ledger.states import IN_PLACE, WAITING
from erasable.workspace.locking import REQUESTS
from erasable.workspace.locking.leases import Leases
from erasable.workspace.requests import external_updates, failures, owed, steps
from erasable.workspace.requests.failures import BatchFailure, Failure, RetryPolicy
from erasable.workspace.requests.process import Processed, carry_out, deliver_due

_LONGEST_PAUSE = 60.0  # seconds, where the disk or the server fails
_LONGEST_QUIET = 600.0  # seconds between two attempts at what fails outside of the workspace


@dataclass(slots=True)
class Done:
    """The result of one turn of a worker; false if there was nothing to do.

    >>> bool(Done()), bool(Done(n_models=2))
    (False, True)
    """

    processed: Processed | None = None  # the batch it carried out
    n_models: int = 0  # prepared for the batch of another
    failure: Failure | None = None  # of a model or data set; the batch is pending again without it
    error: str | None = None  # another error; tried again after a pause
    busy: bool = False  # others hold the locks, or it is not to be tried yet; nothing was done

    def __bool__(self) -> bool:
        """Tell whether there was anything to do."""
        return bool(self.processed or self.n_models or self.failure or self.error)


@dataclass(slots=True)
class Worker:
    """A worker, until `stopped` is set."""

    context: Context
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    poll: float = 1.0  # seconds between two looks for requests
    tell: Callable[[Done], None] = lambda done: None  # called after each turn
    # ends the work after the current task
    stopped: threading.Event = field(default_factory=threading.Event)
    _quiet: float = field(init=False, repr=False)
    _quiet_until: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._quiet = self.patience.backoff

    def run(self, *, drain: bool = False) -> None:
        """Work until `stopped` is set or, with `drain`, until there is nothing to do now.

        If the disk or the server fails, try again after longer and longer pauses; not with `drain`.
        Raise WorkspaceError if the ledger is damaged, or of another version.
        """
        pause = self.poll
        while not self.stopped.is_set():
            try:
                done = self.turn()
            except (WorkspaceDiskError, WorkspaceServerError) as error:
                if drain:
                    raise
                self.tell(Done(error=" ".join(str(error).split())))
                self.stopped.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            pause = self.poll
            if done:
                self.tell(done)
                continue
            if drain and not done.busy and not self._is_busy():
                return
            self.stopped.wait(self.poll)

    def turn(self) -> Done:
        """Do the next task, if there is one."""
        try:
            n = steps.help_out(self.context) if self._is_under_way() else 0
            if n:
                return Done(n_models=n)
            return self._batch() if self._waits() else self._deliver()
        except WorkspaceBusyError:
            return Done(busy=True)

    def _batch(self) -> Done:
        done = carry_out(self.context, patience=self.patience, wait=0.0)
        if isinstance(done, BatchFailure):
            # What is not to be tried yet keeps only its requests waiting: the others come next.
            return Done(busy=True) if done.failure is None else Done(failure=done.failure)
        if done.requests or done.targets or done.hooks or done.warnings:
            return Done(processed=done)
        return Done()

    def _deliver(self) -> Done:
        """Do what a process did not come to that has died, or what failed; ever more seldom."""
        if time.monotonic() < self._quiet_until:
            return Done()
        if not external_updates.is_due(self.context):
            self._quiet = self.patience.backoff
            return Done()
        done = deliver_due(self.context)
        self._quiet_until = time.monotonic() + self._quiet
        self._quiet = min(2 * self._quiet, _LONGEST_QUIET)
        return Done(processed=done) if done.hooks or done.warnings else Done()

    def _waits(self) -> bool:
        """Tell whether there are requests to carry out, or to end."""
        now = self.context.now()
        r = request_table.c
        ready = or_(
            r.state.in_(IN_PLACE) & r.id.not_in(owed.owing()),
            r.state.in_(WAITING) & r.hold.is_(None) & r.id.not_in(failures.waiting_requests(now)),
        )
        with self.context.ledger.reading() as connection:
            if connection.execute(select(r.id).where(ready).limit(1)).first() is not None:
                return True
            return owed.is_due(connection, now)

    def _is_busy(self) -> bool:
        """Tell whether another is at requests, or something is tried again."""
        with self.context.ledger.reading() as connection:
            later = select(failure.c.target).where(failure.c.again_at.is_not(None)).limit(1)
            if connection.execute(later).first() is not None:
                return True
        return self._is_under_way()

    def _is_under_way(self) -> bool:
        """Tell whether another carries requests out; what a dead process began is begun anew."""
        locks = self.context.locks
        return isinstance(locks, Leases) and any(
            REQUESTS in each.resources for each in locks.holders()
        )


def tasks(context: Context) -> dict[str, Any]:
    """Return ``at_work`` (a list of Holder) and ``failed`` (a list of Failure)."""
    locks = context.locks
    with context.ledger.reading() as connection:
        failed = failures.listing(connection)
    return {"at_work": locks.holders() if isinstance(locks, Leases) else [], "failed": failed}

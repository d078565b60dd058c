"""A worker: carries out requests as they come, and helps others who do.

Any number of them work on one workspace in PostgreSQL. One at a time takes up the requests that
wait, finds their records, and rewrites the data; the models of the batch are prepared by all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import or_, select

from erasable.core.errors import (
    ErasableError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceServerError,
)
from erasable.workspace.data import erasing
from erasable.workspace.ledger.schema import failure
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.locking import REQUESTS
from erasable.workspace.locking.leases import Leases
from erasable.workspace.models import deleting, owed, published
from erasable.workspace.models.reading import Reader
from erasable.workspace.requests import batches, failures, steps
from erasable.workspace.requests.failures import (
    Failure,
    NotYetError,
    Patience,
    TaskFailedError,
)
from erasable.workspace.requests.process import Processed, process, tell_others
from erasable.workspace.site import Site

__all__ = ["Done", "Worker", "tasks"]

_LONGEST_PAUSE = 60.0  # seconds, where the disk or the server fails
_LONGEST_QUIET = 600.0  # seconds between two attempts at what fails outside of the workspace


@dataclass(slots=True)
class Done:
    """What a worker did in one go.

    Attributes
    ----------
    processed : Processed or None
        The batch it carried out.
    n_models : int
        Models it prepared for another's batch.
    failure : Failure or None
        What went wrong with a model or a data set; the batch was put back without it.
    error : str or None
        What went wrong otherwise: it is tried again after a pause.
    busy : bool
        Others had what it takes, or it is not to be tried yet; nothing was done.

    Examples
    --------
    >>> bool(Done()), bool(Done(n_models=2))
    (False, True)
    """

    processed: Processed | None = None
    n_models: int = 0
    failure: Failure | None = None
    error: str | None = None
    busy: bool = False

    def __bool__(self) -> bool:
        """Tell whether there was anything to do."""
        return bool(self.processed or self.n_models or self.failure or self.error)


@dataclass(slots=True)
class Worker:
    """Carries out requests as they come.

    Parameters
    ----------
    site : Site
    patience : Patience
        With models that fail.
    poll : float
        Seconds between two looks for requests.
    tell : callable
        Called with each `Done`.
    stopped : threading.Event
        Set from elsewhere, ends the work after what is under way.
    """

    site: Site
    patience: Patience = field(default_factory=Patience)
    poll: float = 1.0
    tell: Callable[[Done], None] = lambda done: None
    stopped: threading.Event = field(default_factory=threading.Event)
    _quiet: float = field(init=False, repr=False)
    _quiet_until: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._quiet = self.patience.backoff

    def run(self, *, drain: bool = False) -> None:
        """Work until `stopped` is set, or, with `drain`, until there is nothing to do now.

        Where the disk or the server fails it is tried again, ever more seldom; not with `drain`.

        Raises
        ------
        WorkspaceError
            It cannot go on: the ledger is damaged, or of another version.
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
        """Do what is next, if anything."""
        try:
            n = steps.help_out(self.site) if self._is_under_way() else 0
            if n:
                return Done(n_models=n)
            return self._batch() if self._waits() else self._tell_others()
        except WorkspaceBusyError:
            return Done(busy=True)

    @property
    def _shares(self) -> bool:
        return isinstance(self.site.locks, Leases)

    def _batch(self) -> Done:
        crew = _Crew(self.patience, shares=self._shares)
        try:
            done = process(self.site, crew=crew, wait=0.0)
        except NotYetError:  # who needs it waits from now on: the others come next
            return Done(busy=True)
        except (TaskFailedError, ErasableError):
            if crew.failure is None:
                raise
            return Done(failure=crew.failure)
        return Done(processed=done) if done.requests or done.hooks or done.warnings else Done()

    def _tell_others(self) -> Done:
        """Do what a process did not come to that has died, or what failed; ever more seldom."""
        if time.monotonic() < self._quiet_until:
            return Done()
        with self.site.ledger.reading() as connection:
            due = bool(owed.due(self.site, connection))
        if not due and not published.is_any_due(self.site):
            self._quiet = self.patience.backoff
            return Done()
        done = tell_others(self.site)
        self._quiet_until = time.monotonic() + self._quiet
        self._quiet = min(2 * self._quiet, _LONGEST_QUIET)
        return Done(processed=done) if done.hooks or done.warnings else Done()

    def _waits(self) -> bool:
        """Tell whether there are requests to carry out, or to end."""
        now = self.site.now()
        r = request_table.c
        ready = or_(
            r.state.in_(["swapped", "purged"]),
            r.state.in_(["pending", "in_progress"])
            & r.hold.is_(None)
            & r.id.not_in(failures.waiting_requests(now)),
        )
        with self.site.ledger.reading() as connection:
            return connection.execute(select(r.id).where(ready).limit(1)).first() is not None

    def _is_busy(self) -> bool:
        """Tell whether another is at requests, or something is tried again."""
        with self.site.ledger.reading() as connection:
            later = select(failure.c.target).where(failure.c.again_at.is_not(None)).limit(1)
            if connection.execute(later).first() is not None:
                return True
        return self._is_under_way()

    def _is_under_way(self) -> bool:
        """Tell whether another carries requests out; what one who has died began is begun anew."""
        locks = self.site.locks
        return isinstance(locks, Leases) and any(
            REQUESTS in each.resources for each in locks.holders()
        )


def tasks(site: Site) -> dict[str, Any]:
    """Return who is at work on what, and what failed.

    Returns
    -------
    dict
        at_work (list of Holder), failed (list of Failure).
    """
    locks = site.locks
    with site.ledger.reading() as connection:
        failed = failures.listing(connection)
    return {"at_work": locks.holders() if isinstance(locks, Leases) else [], "failed": failed}


class _Crew:
    """Prepares a batch with the help of others, and notes what failed."""

    def __init__(self, patience: Patience, *, shares: bool) -> None:
        self._patience, self._shares = patience, shares
        self._models: batches.Models = []
        self.failure: Failure | None = None

    def prepare(
        self, site: Site, batch: batches.Batch, models: batches.Models
    ) -> dict[int, deleting.Prepared]:
        """Prepare the fragments and the models of a batch."""
        self._models = models
        with site.ledger.reading() as connection:
            later = failures.not_yet(connection, site.now())
        for row, _, _ in models:
            if ("model", row.id) in later:
                raise NotYetError("model", row.id)
        if self._shares:
            return steps.share(site, batch, models)
        for erasure in batch.erasures:
            erasing.prepare(site, erasure)
        reader = Reader(site, batch.held())
        return {
            row.id: steps.prepare(site, row, version, ids, reader)
            for row, version, ids in sorted(models, key=lambda each: each[0].features or [])
        }

    def failed(self, site: Site, batch: batches.Batch, error: Exception) -> None:
        """Write down which model or data set failed, and who waits for it."""
        if isinstance(error, batches.DataSetFailedError):
            error = TaskFailedError("dataset", error.dataset_id, " ".join(str(error).split()))
        if not isinstance(error, TaskFailedError | NotYetError):
            return
        with site.ledger.transaction() as connection:
            if error.target == "dataset":
                waiting = batches.asking(connection, batch, error.target_id)
            else:
                waiting = self._asking(batch, error.target_id)
            if isinstance(error, NotYetError):
                failures.join(connection, error, batch.requests, waiting)
                return
            self.failure = failures.note(
                site, connection, error, batch.requests, waiting, self._patience
            )

    def _asking(self, batch: batches.Batch, model_id: int) -> set[str]:
        of, version = next((row, v) for row, v, _ in self._models if row.id == model_id)
        counts = batch.n_per_request(of, version)
        return {request for request, n in counts.items() if n or version is None}

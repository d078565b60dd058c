"""Leases in the database of a team: claims on data sets and models, from any machine.

*One writer per data set and model; readers wait for it, and it for them.* A process draws a
number and enters all of its claim at once. It is granted when no other claim that conflicts with it
is granted, or waits with a lower number: so no process waits for ever. A holder may claim more,
under the number it has. Only one at a time does so: the process that carries out requests, which it
claims first. So there is no deadlock.

*A dead process holds nothing.* A holder keeps a session of the database open, with an advisory
lock. When its process dies, or its machine, the server ends the session, and the lease with it: at
once, or as soon as the network says so. A holder that hangs does not renew its lease, which then
lapses.

*A process that has lost a lease changes nothing.* Every transaction of a holder reads its own
leases first, and keeps them from being taken until it has ended. If they were taken, it fails.

*A file of a process at work is not taken for garbage*: it has its owner's name in its own.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from erasable.core.errors import ErasableError, WorkspaceBusyError
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import lease
from erasable.workspace.locking import WHOLE, Claim
from erasable.workspace.locking.folder import busy

SPAN = 600.0
"""Seconds after which a lease lapses without renewal, by the clock of the server."""

_RENEWAL = 20.0  # seconds; a kernel may keep the thread that renews from running for longer
_PATIENCE = 0.03  # seconds between two looks at the claims before ours


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lease, or waits for one."""

    label: str  # machine and process
    resources: list[str]  # held, or waited for
    since: datetime


class Leases:
    """A `Lock` by rows of the table `lease`, in PostgreSQL."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held: list[_Lease] = []
        ledger.fence = self._fence
        ledger.check_held = self._check_held

    @property
    def owner(self) -> str:
        """The owner of files made now: the last claim."""
        return self._held[-1].owner if self._held else ""

    @contextmanager
    def hold(self, claim: Claim, wait: float) -> Iterator[None]:
        """Hold a claim inside the block; see `Lock.hold`.

        Raise OvertakenError if others were granted it since.
        """
        if any(each.claim.covers(claim) for each in self._held):
            yield  # a holder of the whole may claim a part of it
            return
        if not claim.changes and self._ledger.is_read_only:
            yield  # a role that may only read cannot enter a lease
            return
        self._ledger.backend.refuse_reader()
        own = _Lease(self._ledger, claim, self._held[0].turn if self._held else None)
        with self._ledger.backend.explained():
            own.enter(wait)
        self._held.append(own)
        try:
            yield
        except Exception as error:
            if own.is_lost():  # others have changed data that this one was reading
                raise _taken() from error
            raise
        finally:
            self._held.remove(own)
            own.leave()

    def others(self) -> set[str]:
        """Return the owners of files at work now, without our own.

        All other owners have lost their leases: their files may be removed, since they can commit
        no reference to one any more.
        """
        mine = {each.owner for each in self._held}
        with self._ledger.reading() as connection:
            rows = connection.execute(_LEASES).all()
        dead = [row.id for row in rows if not row.live and row.owner not in mine]
        if dead:
            with self._ledger.transaction() as connection:
                connection.execute(_TAKE_DEAD, {"ids": dead})
                rows = connection.execute(_LEASES).all()
        return {row.owner for row in rows} - mine

    def holders(self) -> list[Holder]:
        """Return the processes that are at work or wait, in the order of their arrival."""
        found: dict[str, Holder] = {}
        with self._ledger.reading() as connection:
            query = lease.select().where(text(_live("lease"))).order_by(lease.c.id)
            for row in connection.execute(query):
                known = found.setdefault(row.owner, Holder(row.label, [], row.since))
                known.resources.append(row.resource)
        return list(found.values())

    def _check_held(self) -> None:
        """Raise OvertakenError if others were granted a lease of this process."""
        if any(each.is_lost() for each in self._held):
            raise _taken()

    def _fence(self, connection: Connection) -> None:
        """Fail a transaction whose leases were taken by others; keep them until it has ended."""
        for each in self._held:
            kept = connection.execute(_KEEP, {"owner": each.owner}).all()
            if len(kept) != each.n_rows:
                raise _taken()


class _Lease:
    """The rows of one claim, the session that keeps them, and the thread that renews them."""

    def __init__(self, ledger: Ledger, claim: Claim, turn: int | None = None) -> None:
        self.claim = claim
        self.turn = turn or 0
        self._ledger = ledger
        self._number = secrets.randbits(62)
        self.owner = f"{self._number:016x}"
        self.n_rows = len(claim.changes) + len(claim.reads)
        self._ended = threading.Event()
        self._raw: Any = None
        self._session: Any = None
        self._thread = threading.Thread(target=self._renew, name="erasable-lease", daemon=True)

    def enter(self, wait: float) -> None:
        """Enter the claim, and wait until it is granted."""
        until = time.monotonic() + wait
        self._connect()
        try:
            self._write_rows()
            self._thread.start()
            while not self._is_granted():
                if time.monotonic() >= until:
                    raise busy(wait)
                self._ledger.pause(min(_PATIENCE, max(0.0, until - time.monotonic())))
        except BaseException:
            self.leave()
            raise

    def is_lost(self) -> bool:
        """Tell whether others were granted the claim; False if the server does not answer."""
        with suppress(Exception):
            return len(self._session.execute(_HELD, [self.owner]).fetchall()) != self.n_rows
        with suppress(Exception), self._ledger.reading() as connection:  # the session is lost
            owner = {"owner": self.owner}
            return len(connection.execute(_STILL, owner).all()) != self.n_rows
        return False

    def leave(self) -> None:
        """Release the claim; if the server does not answer, it lapses."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        with suppress(Exception):
            self._session.execute("DELETE FROM lease WHERE owner = %s", [self.owner])
        with suppress(Exception):
            self._session.close()

    def _connect(self) -> None:
        self._raw = self._ledger.engine.raw_connection()
        self._session = self._raw.driver_connection
        self._raw.detach()  # it is ours, until we close it
        self._session.autocommit = True
        self._session.execute(_KEEPALIVE)
        self._session.execute("SELECT pg_advisory_lock(%s)", [self._number])

    def _write_rows(self) -> None:
        named = [*((each, True) for each in sorted(self.claim.changes)),
                 *((each, False) for each in sorted(self.claim.reads))]  # fmt: skip
        with self._session.transaction():
            self._session.execute(_ONE_AT_A_TIME)
            if not self.turn:
                self.turn = self._session.execute(_DRAW).fetchone()[0]
            for resource, exclusive in named:
                values = [resource, exclusive, self.turn, self.owner, self._number, label(), SPAN]
                self._session.execute(_ENTER, values)

    def _is_granted(self) -> bool:
        """Grant the claim, unless a live one conflicts with it; take leases of the dead."""
        if any(live for _, live in self._in_the_way()):
            return False
        with self._session.transaction():
            self._session.execute(_ONE_AT_A_TIME)
            dead = [number for number, live in self._in_the_way() if not live]
            self._session.execute(_TAKE, [dead])
            if self._in_the_way():
                return False
            granted = self._session.execute(
                "UPDATE lease SET granted = true WHERE owner = %s", [self.owner]
            )
            if granted.rowcount != self.n_rows:
                raise _taken()
        return True

    def _in_the_way(self) -> list[tuple[int, bool]]:
        """Return the rows of others that go first, and whether their holders live."""
        found: list[tuple[int, bool]] = self._session.execute(
            _IN_THE_WAY, [self.owner, WHOLE, WHOLE]
        ).fetchall()
        return found

    def _renew(self) -> None:
        """Renew the lease until its release, also after a restart of the server."""
        while not self._ended.wait(_RENEWAL if not self._session.closed else 0.5):
            try:
                if self._session.closed:
                    with self._ledger.backend.explained():
                        self._connect()
                self._session.execute(_RENEW, [SPAN, self.owner])
            except ErasableError:
                continue  # the server does not answer: it is asked again
            except Exception:  # of the driver: the session is lost
                with suppress(Exception):
                    self._session.close()


class OvertakenError(WorkspaceBusyError):
    """Others were granted the leases of a process, because it did not renew them."""


def _taken() -> OvertakenError:
    return OvertakenError(
        "what this process was at work on was given to another, because it did not answer the "
        "database for too long; expected it to answer; nothing was changed, run the command again"
    )


def label() -> str:
    """Return the name of this process: its machine, and its number there."""
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


def _live(table: str) -> str:
    """Return the condition that a lease has not lapsed, and its holder's session exists."""
    return (
        f"({table}.until > {_NOW} AND {table}.number IN "
        "(SELECT (l.classid::bigint << 32) | l.objid::bigint FROM pg_locks l "
        "WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.database = "
        "(SELECT oid FROM pg_database WHERE datname = current_database())))"
    )


_ONE_AT_A_TIME = (
    "SELECT pg_advisory_xact_lock(hashtextextended('erasable leases ' || current_schema(), 0))"
)

_DRAW = "SELECT nextval(pg_get_serial_sequence('lease', 'id'))"

_ENTER = (
    "INSERT INTO lease (resource, exclusive, turn, granted, owner, number, label, since, until) "
    f"VALUES (%s, %s, %s, false, %s, %s, %s, {_NOW}, {_NOW} + %s * 1000000)"
)

_IN_THE_WAY = (
    f"SELECT theirs.id, {_live('theirs')} FROM lease theirs JOIN lease mine "
    "ON theirs.turn <> mine.turn AND (theirs.granted OR theirs.turn < mine.turn) "
    "AND (theirs.exclusive OR mine.exclusive) AND mine.owner = %s "
    "AND (theirs.resource = mine.resource OR theirs.resource = %s OR mine.resource = %s)"
)

# One that a transaction of its holder keeps is left alone.
_TAKE = (
    "DELETE FROM lease WHERE id IN (SELECT id FROM lease WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED)"
)

_HELD = "SELECT id FROM lease WHERE owner = %s"
_STILL = text("SELECT id FROM lease WHERE owner = :owner")

_LEASES = text(f"SELECT id, owner, {_live('lease')} AS live FROM lease")

_TAKE_DEAD = text(
    "DELETE FROM lease WHERE id IN (SELECT id FROM lease WHERE id = ANY(:ids) "
    f"AND NOT {_live('lease')} FOR UPDATE SKIP LOCKED)"
)

_RENEW = f"UPDATE lease SET until = {_NOW} + %s * 1000000 WHERE owner = %s"

_KEEP = text("SELECT id FROM lease WHERE owner = :owner FOR KEY SHARE")

# A machine that is gone is found out within a minute, by its network.
_KEEPALIVE = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
)

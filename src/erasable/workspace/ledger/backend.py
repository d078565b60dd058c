"""Base of the two kinds of ledger: what each does in its own way, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import Connection, Engine

from erasable.core.errors import LedgerError, WorkspaceDiskError


class Backend:
    """What each database does in its own way; what is not said here, none has to do.

    Attributes
    ----------
    url : str
        Where the database is, without a password.
    engine : Engine
        Its transactions begin as those of a ledger have to: a reader sees one state; a writer,
        with the execution option "erasable_writes", is the only one, and others wait.
    upgrades_itself : bool
        Whether opening the ledger brings its tables up to date.
    unreached : tuple of str
        What the database keeps of deleted rows beside its tables, where `rewrite` and `empty_log`
        do not reach.
    is_read_only : bool
        Whether nothing can be written to it: it is a copy, or the role may only read.
    """

    url: str
    engine: Engine
    upgrades_itself: bool
    unreached: tuple[str, ...] = ()

    @property
    def is_read_only(self) -> bool:
        """See above."""
        raise NotImplementedError

    def check_rights(self, connection: Connection) -> None:
        """Refuse a role that lacks a right on the tables, unless it may read all of them."""

    def check_making(self, connection: Connection) -> None:
        """Refuse a role that may not make the tables."""

    def refuse_reader(self) -> None:
        """Refuse a role that may only read."""

    def make_room(self, connection: Connection) -> None:
        """Make what the tables are in, before the first migration."""

    def configure_columns(self, connection: Connection) -> None:
        """Bring the tables into the state that `rewrite` relies on, after the last migration."""

    def explained(self) -> AbstractContextManager[None]:
        """Make errors of ours of what the database says inside the block."""
        raise NotImplementedError

    def rewrite(self, pause: Callable[[float], None]) -> None:
        """Write the tables anew, without what was deleted; `pause` waits for others."""
        raise NotImplementedError

    def empty_log(self, pause: Callable[[float], None]) -> None:
        """Empty the write-ahead log, where that is within reach; see `rewrite`."""


def no_disk(message: str) -> WorkspaceDiskError:
    """Return the error of a disk that fails.

    >>> str(no_disk("No space left on device"))[:63]
    'the ledger cannot be written or read (No space left on device);'
    """
    return WorkspaceDiskError(
        f"the ledger cannot be written or read ({message}); expected a working disk with free "
        "space; mend that and run the command again"
    )


def broken(message: str) -> LedgerError:
    """Return the error of a ledger that is damaged, or none.

    >>> str(broken("file is not a database"))[:55]
    'the ledger is damaged or is not a ledger (file is not a'
    """
    return LedgerError(
        f"the ledger is damaged or is not a ledger ({' '.join(message.split())}); expected one "
        "made by `erasable init`; restore it from a backup"
    )

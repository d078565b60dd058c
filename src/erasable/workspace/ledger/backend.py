"""Base of the two backends of the ledger, and their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager

from sqlalchemy import Connection, Engine

from erasable.core.errors import LedgerError, WorkspaceDiskError


class Backend(ABC):
    """Base of the databases of a ledger."""

    url: str  # without a password
    # Its transactions begin as those of a ledger have to: a reader sees one state; a writer, with
    # the execution option "erasable_writes", is the only one, and others wait.
    engine: Engine
    upgrades_itself: bool  # whether opening the ledger brings its tables up to date
    # Places beside the tables that keep deleted rows, and that `purge` and `empty_log` do not
    # reach.
    unreached: tuple[str, ...] = ()

    @property
    @abstractmethod
    def is_read_only(self) -> bool:
        """Whether nothing can be written: it is a copy, or the role may only read."""

    @abstractmethod
    def check_rights(self, connection: Connection) -> None:
        """Refuse a role that lacks a right on the tables, unless it may read all of them."""

    @abstractmethod
    def check_making(self, connection: Connection) -> None:
        """Refuse a role that may not make the tables."""

    @abstractmethod
    def refuse_reader(self) -> None:
        """Refuse a role that may only read."""

    @abstractmethod
    def make_room(self, connection: Connection) -> None:
        """Make the schema or file of the tables, before the first migration."""

    @abstractmethod
    def configure_columns(self, connection: Connection) -> None:
        """Bring the tables into the state that `purge` relies on, after the last migration."""

    @abstractmethod
    def explained(self) -> AbstractContextManager[None]:
        """Turn errors of the database inside the block into ours."""

    @abstractmethod
    def purge(self, pause: Callable[[float], None]) -> None:
        """Leave nothing in the tables' files of what was deleted; `pause` waits for others."""

    @abstractmethod
    def empty_log(self, pause: Callable[[float], None]) -> None:
        """Empty the write-ahead log, where that is within reach; see `purge`."""


def disk_failure(message: str) -> WorkspaceDiskError:
    """Return the error of a disk that fails."""
    return WorkspaceDiskError(
        f"the ledger cannot be written or read ({message}); expected a working disk with free "
        "space; mend that and run the command again"
    )


def damaged_ledger(message: str) -> LedgerError:
    """Return the error of a file or schema that is no ledger, or a damaged one."""
    return LedgerError(
        f"the ledger is damaged or is not a ledger ({' '.join(message.split())}); expected one "
        "made by `erasable init`; restore it from a backup"
    )

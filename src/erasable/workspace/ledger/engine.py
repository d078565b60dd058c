"""The ledger: one database, short transactions, and nothing left behind of what is deleted.

The law kept here: a transaction that has returned is on the disk, whatever happens then; of deleted
rows nothing is left after `purge`, in the database and in its write-ahead log.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.exc import DatabaseError, OperationalError

from erasable.core.errors import (
    ErasableError,
    LedgerError,
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceVersionError,
)
from erasable.workspace.ledger.kinds import fits, tampered
from erasable.workspace.ledger.schema import SETTINGS, meta
from erasable.workspace.store.points import at

__all__ = ["REVISION", "Ledger", "setting", "sqlite_url"]

REVISION = "0001"
"""The newest migration; a test compares it with Alembic's."""

_WAIT = 30.0  # seconds that a transaction waits for another
_PRAGMAS = (
    f"PRAGMA busy_timeout = {int(_WAIT * 1000)}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
)


class Ledger:
    """The database of a workspace.

    Parameters
    ----------
    url : str
        For SQLAlchemy: ``sqlite:///path/to/ledger.db``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(f"sqlite:///{folder}/ledger.db")
    ...     ledger.create()
    ...     with ledger.transaction() as connection:
    ...         _ = connection.execute(meta.insert().values(name="colour", value="red"))
    ...     with ledger.reading() as connection:
    ...         ledger.get(connection, "colour")
    'red'
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine: Engine = create_engine(url)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        if self._is_sqlite:
            event.listen(self.engine, "do_connect", _connect_sqlite)
            event.listen(self.engine, "connect", _open_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)

    def create(self) -> None:
        """Make the tables, by the migrations.

        Raises
        ------
        LedgerError
            They cannot be made.
        """
        from erasable.workspace.ledger.migrate import upgrade

        with _explained():
            upgrade(self)

    def check(self) -> None:
        """Hold the revision of the tables against this version of erasable; bring it up to date.

        Raises
        ------
        WorkspaceVersionError
            The tables were made by a newer version.
        LedgerError
            The file is no ledger.
        """
        with self.reading() as connection:
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        if found == REVISION:
            return
        if found is None or str(found) > REVISION:
            raise WorkspaceVersionError(
                f"the ledger has revision {found}; expected {REVISION} or older; "
                "install the version of erasable that made it, or a newer one"
            )
        self.create()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Change the ledger: all of the block, or nothing. One at a time; others wait.

        Raises
        ------
        WorkspaceBusyError
            Another process holds the ledger for too long.
        WorkspaceDiskError
            The disk is full or fails.
        """
        with _explained(), self.engine.connect() as connection:
            connection = connection.execution_options(erasable_writes=True)
            with connection.begin() as transaction:
                yield connection
                with at("commit", self.url):
                    transaction.commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See one state of the ledger, however many statements the block has."""
        with _explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close what is open; it opens again when it is asked."""
        self.engine.dispose()

    def get(self, connection: Connection, name: str, default: Any = None) -> Any:
        """Return an entry of the table `meta`; see `setting`."""
        return setting(connection, name, default)

    def set(self, connection: Connection, name: str, value: Any) -> None:
        """Write an entry of the table `meta`."""
        changed = connection.execute(meta.update().where(meta.c.name == name).values(value=value))
        if changed.rowcount == 0:
            connection.execute(meta.insert().values(name=name, value=value))

    def purge(self) -> None:
        """Write the database anew, and empty the write-ahead log: what was deleted is gone.

        Overwriting deleted rows is not enough. Where SQLite moves rows between pages it leaves
        copies in the unused middle of a page, which no later deletion reaches.

        Raises
        ------
        WorkspaceBusyError
            Another process is at work on the ledger, or reads an old state of it, for too long.
        WorkspaceDiskError
            The disk is full or fails.
        """
        if not self._is_sqlite:
            return
        with _explained():
            raw = self.engine.raw_connection()
            try:
                with at("commit", self.url):
                    raw.cursor().execute("VACUUM")
            finally:
                raw.close()
        self.checkpoint()

    def checkpoint(self) -> None:
        """Empty the write-ahead log; see `purge`.

        Raises
        ------
        WorkspaceBusyError
            Another process reads an old state of the ledger for too long.
        """
        if not self._is_sqlite:
            return
        until = time.monotonic() + _WAIT
        while True:
            with _explained():
                raw = self.engine.raw_connection()
                try:
                    with at("checkpoint", self.url):
                        busy = raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                finally:
                    raw.close()
            if not busy:
                return
            if time.monotonic() > until:
                raise WorkspaceBusyError(
                    "another process has been reading the ledger for too long; expected it to "
                    "end; stop it and run the command again"
                )
            time.sleep(0.05)


def setting(connection: Connection, name: str, default: Any = None) -> Any:
    """Return an entry of the table `meta`.

    Raises
    ------
    LedgerError
        It is not what is written there.
    """
    row = connection.execute(select(meta.c.value).where(meta.c.name == name)).first()
    if row is None:
        return default
    if not fits(row[0], SETTINGS.get(name, ...)):
        raise tampered(f"what does not belong there for {name!r}", meta.c.value)
    return row[0]


def _connect_sqlite(dialect: Any, record: Any, arguments: Any, parameters: Any) -> Any:
    with at("open", "ledger"):
        return dialect.connect(*arguments, **parameters)


def _open_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("erasable_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ErasableError:
        raise
    except OSError as error:
        raise _no_disk(error.strerror or str(error)) from None
    except (OperationalError, sqlite3.OperationalError) as error:
        told = str(getattr(error, "orig", error))
        if "locked" in told or "busy" in told:
            raise WorkspaceBusyError(
                "another process is writing to the ledger; expected it to end within "
                f"{_WAIT:.0f} seconds; run the command again"
            ) from None
        if any(word in told for word in ("full", "I/O", "readonly", "unable to open")):
            raise _no_disk(told) from None
        raise _broken(told) from None
    except (DatabaseError, sqlite3.DatabaseError) as error:
        raise _broken(str(getattr(error, "orig", error))) from None


def _no_disk(told: str) -> WorkspaceDiskError:
    return WorkspaceDiskError(
        f"the ledger cannot be written or read ({told}); expected a working disk with free "
        "space; mend that and run the command again"
    )


def _broken(told: str) -> LedgerError:
    return LedgerError(
        f"the ledger is damaged, or is none ({' '.join(told.split())}); expected one made by "
        "`erasable init`; restore it from a backup"
    )


def sqlite_url(path: Path) -> str:
    """Return the URL of a file."""
    return f"sqlite:///{path}"

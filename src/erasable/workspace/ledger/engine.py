"""The ledger: one database with short transactions, purged of deleted rows.

The law kept here: a transaction that has returned is on the disk, whatever happens then; of deleted
rows nothing is left after `purge`, in the files that the database keeps its tables in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, bindparam, select, text

from erasable.core.errors import WorkspaceVersionError
from erasable.workspace.ledger.backend import Backend
from erasable.workspace.ledger.kinds import fits_shape, tampered
from erasable.workspace.ledger.schema import SEAL, SEALED, SETTINGS, meta
from erasable.workspace.ledger.sqlite import Sqlite
from erasable.workspace.store.crash_points import crash_point

REVISION = "0006"
"""The newest migration; a test compares it with Alembic's."""
FIRST_REVISION = "0005"
LAST_TO_READ = "b2326690"
"""The last commit that can migrate older revisions."""

_MIGRATIONS = Path(__file__).parent / "migrations"
_SETTING = select(meta.c.value).where(meta.c.name == bindparam("wanted"))
_SETTINGS = select(meta.c.name, meta.c.value).where(
    meta.c.name.in_(bindparam("wanted", expanding=True))
)
_Read = TypeVar("_Read")
_CHANGE = meta.update().where(meta.c.name == bindparam("wanted")).values(value=bindparam("new"))


class Ledger:
    """The database of a workspace.

    `url` is for SQLAlchemy: ``sqlite:///path/to/ledger.db``, or
    ``postgresql://user@host/database``; `schema` is that of PostgreSQL.

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

    def __init__(self, url: str, schema: str | None = None) -> None:
        self.url = url
        # Called at the start of a transaction that changes something: raises where this process
        # may not change anything any more.
        self.fence: Callable[[Connection], None] | None = None
        # Called by `pause`: raises where others were granted what this process holds.
        self.check_held: Callable[[], None] | None = None
        # Returns the keyed hash of a setting, by name and value; see `workspace.evidence.seals`.
        self.sealer: Callable[[str, Any], str] | None = None
        self._open = threading.local()
        self.backend: Backend
        if schema is None:
            self.backend = Sqlite(url)
        else:
            from erasable.workspace.ledger.postgres import Postgres

            self.backend = Postgres(url, schema)

    @property
    def engine(self) -> Engine:
        """The engine of SQLAlchemy."""
        return self.backend.engine

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written to it: it is a copy, or the role may only read."""
        return self.backend.is_read_only

    def create(self) -> None:
        """Make the tables, by the migrations."""
        with self.transaction() as connection:
            self.build(connection)

    def build(self, connection: Connection, revision: str = "head") -> None:
        """Make the tables, or bring them up to a revision, in the caller's transaction."""
        from alembic import command
        from alembic.config import Config

        self.backend.make_room(connection)
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        self.backend.configure_columns(connection)

    def revision(self) -> str:
        """Return the revision of the tables."""
        with self.reading() as connection:
            self.backend.check_rights(connection)
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        if found is None or str(found) > REVISION:
            raise WorkspaceVersionError(
                f"the ledger has revision {found}; expected {FIRST_REVISION} to {REVISION}; "
                "install the version of erasable that made it, or a newer one"
            )
        if str(found) < FIRST_REVISION:
            raise WorkspaceVersionError(
                f"the ledger has revision {found}, of a version before the first release; expected "
                f"{FIRST_REVISION} to {REVISION}; `erasable workspace migrate` of the commit "
                f"{LAST_TO_READ} of erasable brings it to {FIRST_REVISION}"
            )
        return str(found)

    def check(self) -> None:
        """Check the revision of the tables against this version of erasable.

        A file is brought up to date. A database is not: others may be at work on it with an older
        version, and an operator has to decide. Raise WorkspaceVersionError if the tables were made
        by a newer version, or have to be migrated first.
        """
        found = self.revision()
        if found == REVISION:
            return
        if not self.backend.upgrades_itself:
            raise WorkspaceVersionError(
                f"the ledger has revision {found}; expected {REVISION}; stop whoever works with an "
                "older version of erasable, and run `erasable workspace migrate`"
            )
        self.create()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Change the ledger: all of the block, or nothing. One at a time; others wait.

        Raise WorkspaceBusyError if another process holds the ledger for too long.
        """
        self.backend.refuse_reader()
        with self.backend.explained(), self.engine.connect() as connection:
            connection = connection.execution_options(erasable_writes=True)
            with connection.begin() as transaction:
                if self.fence is not None:
                    self.fence(connection)
                with self._noting(connection):
                    yield connection
                with crash_point("commit", self.url):
                    transaction.commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Read one state of the ledger, for any number of statements."""
        with (
            self.backend.explained(),
            self.engine.connect() as connection,
            connection.begin(),
            self._noting(connection),
        ):
            yield connection

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """Read in the transaction that this thread is in already, or else in a new one.

        A second connection could deadlock with a process that waits for the first one to end, as
        a purge does.
        """
        connection = getattr(self._open, "connection", None)
        if connection is not None:
            yield connection
            return
        with self.reading() as connection:
            yield connection

    @contextmanager
    def _noting(self, connection: Connection) -> Iterator[None]:
        before = getattr(self._open, "connection", None)
        self._open.connection = connection
        try:
            yield
        finally:
            self._open.connection = before

    @contextmanager
    def holding(self) -> Iterator[Connection]:
        """Read one state of the ledger, which neither other processes nor the block change."""
        with self.backend.explained(), self.engine.connect() as connection:
            connection = connection.execution_options(erasable_writes=True)
            with connection.begin() as transaction:
                with self._noting(connection):
                    yield connection
                transaction.rollback()

    def close(self) -> None:
        """Close the connections; a later use opens new ones."""
        self.engine.dispose()

    def get(self, connection: Connection, name: str, default: Any = None) -> Any:
        """Return an entry of the table `meta`; see `setting`."""
        return setting(connection, name, default)

    def set(self, connection: Connection, name: str, value: Any) -> None:
        """Write an entry of the table `meta`, and the seal of a sealed setting."""
        changed = connection.execute(_CHANGE, {"wanted": name, "new": value})
        if changed.rowcount == 0:
            connection.execute(meta.insert().values(name=name, value=value))
        if name in SEALED and self.sealer is not None:
            self.set(connection, f"{SEAL}{name}", self.sealer(name, value))

    def purge(self) -> None:
        """Purge the tables, and empty the write-ahead log: deleted rows are gone.

        `unreached` names the copies that stay. Raise WorkspaceBusyError if another process works on
        the ledger, or reads an old state of it, for too long.
        """
        self.backend.purge(self.pause)
        self.checkpoint()

    def pause(self, seconds: float) -> None:
        """Wait for others; raise OvertakenError if they were granted the leases of this process."""
        time.sleep(seconds)
        if self.check_held is not None:
            self.check_held()

    def checkpoint(self) -> None:
        """Empty the write-ahead log; see `purge`."""
        self.backend.empty_log(self.pause)


def once(read: Callable[[Connection], _Read]) -> Callable[[Connection], _Read]:
    """Have a function read once in each transaction of `Ledger.reading`, which sees one state.

    In a transaction that may write, it reads each time. What it returns must not be changed.
    """
    found = WeakKeyDictionary[Connection, _Read]()  # a connection has one such transaction

    @wraps(read)
    def read_once(connection: Connection) -> _Read:
        if connection.get_execution_options().get("erasable_writes", False):
            return read(connection)
        if connection not in found:
            found[connection] = read(connection)
        return found[connection]

    return read_once


def setting(connection: Connection, name: str, default: Any = None) -> Any:
    """Return an entry of the table `meta`."""
    row = connection.execute(_SETTING, {"wanted": name}).first()
    return default if row is None else _fitting(name, row[0])


def settings(connection: Connection, names: Iterable[str]) -> dict[str, Any]:
    """Return the entries of the table `meta` that exist; see `setting`."""
    found = connection.execute(_SETTINGS, {"wanted": list(names)})
    return {name: _fitting(name, value) for name, value in found}


def _fitting(name: str, value: Any) -> Any:
    if not fits_shape(value, SETTINGS.get(name, ...)):
        raise tampered(f"what does not belong there for {name!r}", meta.c.value)
    return value

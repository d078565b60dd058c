"""The ledger in a schema of PostgreSQL, which several machines may be at work on.

Four promises, and what keeps each.

*One writer at a time.* A writer takes an advisory lock of the schema first, and gives it back with
the transaction. So statements may read what was committed last (READ COMMITTED): no other
transaction commits meanwhile, and nothing has to be tried again.

*A reader sees one state*: REPEATABLE READ, READ ONLY.

*Of deleted rows nothing is left.* A plain VACUUM leaves their bytes in the unused middle of a page.
VACUUM FULL writes tables and indexes anew; yet it copies rows that an open transaction might still
see. So the purge holds against the catalogue that none was left: `relfrozenxid` says before which
transaction no row of a table was deleted and kept, and waits for open transactions if there were.
ANALYZE keeps samples of values in a table of the server's; it is told to keep none of ours.

*What is out of reach is said*: see `UNREACHED`.
"""

from __future__ import annotations

import hashlib
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text

from erasable.core.errors import WorkspaceBusyError, WorkspaceServerError, WorkspaceVersionError
from erasable.workspace.ledger import rights
from erasable.workspace.ledger.backend import Backend
from erasable.workspace.ledger.refusals import WAIT, explained
from erasable.workspace.store.crash_points import crash_point

UNREACHED = (
    "the write-ahead log of the database server, and its archive",
    "replicas and backups of the database server",
    "the log files of the database server",
    "files that the database server leaves in its folder when it crashes",
)
"""What PostgreSQL keeps of deleted rows where only its administrator reaches."""

_OLDEST = 150000  # PostgreSQL 15, as its servers count
_PATIENCE = 0.05  # seconds between two looks for open transactions
_PASSING = "lease"  # it holds nothing personal, and every process at work writes to it


class Postgres(Backend):
    """What PostgreSQL does in its own way; see `erasable.workspace.ledger.engine.Backend`.

    Parameters
    ----------
    url : str
        ``postgresql://user@host:port/database``, with parameters of libpq. The password comes from
        where libpq finds it: ``PGPASSWORD``, or the file ``.pgpass``.
    schema : str
        Where the tables are; it is the workspace's own.
    """

    upgrades_itself = False
    unreached = UNREACHED

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema
        self._reader: str | None = None
        self.engine: Engine = _engine(make_url(url))
        event.listen(self.engine, "connect", partial(_open, schema))
        event.listen(self.engine, "begin", partial(_begin, _lock_key(schema)))
        weakref.finalize(self, self.engine.dispose)  # the server is told that we are gone

    def explained(self) -> AbstractContextManager[None]:
        """Make errors of ours of what the server says inside the block."""
        return explained(self.schema)

    @property
    def is_read_only(self) -> bool:
        """Whether the role may read the tables, and no more."""
        if self._reader is None:
            with self.explained(), self.engine.connect() as connection, connection.begin():
                self.check_rights(connection)
        return bool(self._reader)

    def check_rights(self, connection: Connection) -> None:
        """Raise WorkspaceServerError unless the role may write all tables, or read all."""
        self._reader = rights.check(connection, self.schema)

    def check_making(self, connection: Connection) -> None:
        """See that the role may make the schema, or tables in it; see `check_rights`."""
        rights.check_making(connection, self.schema)

    def refuse_reader(self) -> None:
        """Raise WorkspaceServerError if the role may only read."""
        if self.is_read_only:
            raise rights.lacks(str(self._reader), ["the right to write to any table of the ledger"])

    def make_room(self, connection: Connection) -> None:
        """Make the schema, unless it is there."""
        there = text("SELECT 1 FROM pg_namespace WHERE nspname = :schema")
        if connection.execute(there, {"schema": self.schema}).first() is None:
            connection.exec_driver_sql(f'CREATE SCHEMA "{self.schema}"')

    def configure_columns(self, connection: Connection) -> None:
        """Keep samples of values out of the statistics, and sort text as SQLite does: by bytes."""
        changes: dict[str, list[str]] = {}
        for table, column, kind, sorts in connection.execute(_TEXTS, {"schema": self.schema}):
            alter = changes.setdefault(table, [])
            alter.append(f'ALTER COLUMN "{column}" SET STATISTICS 0')
            if sorts:
                alter.append(f'ALTER COLUMN "{column}" TYPE {kind} COLLATE "C"')
        for table, alter in changes.items():
            connection.exec_driver_sql(f'ALTER TABLE "{self.schema}"."{table}" {", ".join(alter)}')

    def rewrite(self, pause: Callable[[float], None]) -> None:
        """Write every table anew, so that no deleted row is left.

        Raise WorkspaceBusyError if a transaction that began before is still open after half a
        minute.
        """
        until = time.monotonic() + WAIT
        with self.explained(), self.engine.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            now = alone.execute(text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
            deleted_before = now.scalar_one()
            with crash_point("commit", self.url):
                for table in self._tables(alone):
                    self._rewrite_table(alone, table, deleted_before, until, pause)

    # -- parts of these ----------------------------------------------------------------------------

    def _tables(self, connection: Connection) -> list[str]:
        """Return the tables that may hold what was erased.

        The smallest comes first, at which waiting costs least.
        """
        named = connection.execute(_TABLES, {"schema": self.schema})
        return [name for name, kind in named if kind == "r" and name != _PASSING]

    def _rewrite_table(
        self,
        connection: Connection,
        table: str,
        deleted_before: str,
        until: float,
        pause: Callable[[float], None],
    ) -> None:
        values = {"schema": self.schema, "table": table, "before": deleted_before}
        while True:
            connection.exec_driver_sql(f'VACUUM (FULL) "{self.schema}"."{table}"')
            if connection.execute(_CLEAN, values).scalar_one():
                return
            if time.monotonic() > until:
                raise WorkspaceBusyError(
                    "a transaction that began before the erasure is still open in the database, "
                    f"and may see what was erased; expected it to end within {WAIT:.0f} seconds; "
                    "end it, or stop what holds it (pg_stat_activity, pg_prepared_xacts, "
                    "pg_replication_slots), and run the command again"
                )
            pause(_PATIENCE)


def holds_tables(connection: Connection, schema: str) -> bool:
    """Tell whether a schema has anything in it."""
    return connection.execute(_TABLES, {"schema": schema}).first() is not None


_SETTINGS = {
    "lock_timeout": f"{WAIT:.0f}s",
    "statement_timeout": "0",  # a large table takes its time to be written anew
    "idle_in_transaction_session_timeout": "0",
    "synchronous_commit": "on",  # a transaction that has returned is on the server's disk
    "client_min_messages": "warning",
}

_TABLES = text(
    "SELECT c.relname, c.relkind::text "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = :schema AND c.relkind IN ('r', 'p', 'v', 'm', 'f') "
    "ORDER BY c.relpages, c.relname"
)

# Every row that was deleted by a transaction before this one is gone: none can be older.
_CLEAN = text(
    "SELECT age(c.relfrozenxid) <= age(CAST(CAST(CAST(:before AS text) AS xid8) AS xid)) "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = :schema AND c.relname = :table"
)

_TEXTS = text(
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), "
    "a.attcollation = 'pg_catalog.default'::regcollation "
    "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = :schema AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped "
    "AND a.atttypid IN ('varchar'::regtype, 'text'::regtype, 'json'::regtype, 'bytea'::regtype) "
    "ORDER BY c.relname, a.attnum"
)


def _engine(url: URL) -> Engine:
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,  # the server may have been started again
            connect_args={
                "connect_timeout": 10,
                "application_name": "erasable",
                "client_encoding": "utf8",
                "prepare_threshold": None,  # a pooler in between may not keep what is prepared
                **url.query,
            },
        )
        # Many rows in a statement: psycopg would send each of them in one of its own.
        engine.dialect.use_insertmanyvalues_wo_returning = True
        return engine
    except ModuleNotFoundError:
        raise WorkspaceServerError(
            "the driver of PostgreSQL is not installed; expected psycopg 3; "
            "run `pip install 'erasable[postgres]'`"
        ) from None


def _open(schema: str, raw: Any, record: Any) -> None:
    """Refuse a server that will not do, and set up one that does."""
    version = raw.info.server_version
    if version < _OLDEST:
        raise WorkspaceVersionError(
            f"the database server is PostgreSQL {version // 10000}; expected 15 or newer; "
            "upgrade it, or use another server"
        )
    coding = raw.info.parameter_status("server_encoding")
    if coding != "UTF8":
        raise WorkspaceServerError(
            f"the database keeps text as {coding}; expected UTF8; make one with "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    settings = [f"SET {name} TO '{value}'" for name, value in _SETTINGS.items()]
    raw.execute("; ".join([f'SET search_path TO "{schema}"', *settings]))
    raw.commit()


def _begin(key: int, connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") == "AUTOCOMMIT":
        return
    if options.get("erasable_writes", False):
        level = "READ COMMITTED, READ WRITE"
        lock = f"; SELECT pg_advisory_xact_lock({key})"
    else:
        level, lock = "REPEATABLE READ, READ ONLY", ""
    connection.exec_driver_sql(f"SET TRANSACTION ISOLATION LEVEL {level}{lock}")


def _lock_key(schema: str) -> int:
    digest = hashlib.sha256(f"erasable ledger {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)

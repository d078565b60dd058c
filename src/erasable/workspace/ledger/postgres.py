"""The ledger in a schema of PostgreSQL, for several machines.

*One writer at a time.* A writer takes an advisory lock of the schema first, and releases it with
the transaction. So statements may read what was committed last (READ COMMITTED): no other
transaction commits meanwhile, and nothing has to be tried again.

*A reader sees one state*: REPEATABLE READ, READ ONLY.

*Deleted rows leave nothing.* A plain VACUUM leaves their bytes in the unused middle of a page.
VACUUM FULL writes tables and indexes anew, but copies rows that an open transaction might still
see. So the purge checks the catalogue for such rows: `relfrozenxid` is the transaction before which
no deleted row of a table was kept; if there were any, the purge waits for open transactions.
ANALYZE keeps samples of values in a table of the server, and is set to keep none of the ledger's.

`UNREACHED` names the copies out of reach.
"""

from __future__ import annotations

import hashlib
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError

from erasable.core._optional import needs
from erasable.core.errors import (
    ErasableError,
    LedgerError,
    WorkspaceBusyError,
    WorkspaceError,
    WorkspaceServerError,
    WorkspaceVersionError,
)
from erasable.workspace.ledger.backend import Backend, damaged_ledger, disk_failure
from erasable.workspace.store.crash_points import crash_point

_WRITING = ("INSERT", "UPDATE", "DELETE")


def reader_role(connection: Connection, schema: str) -> str:
    """Return the role of a connection that may only read the tables of a schema.

    It is empty if the role may write, or there are no tables. Raise WorkspaceServerError if the
    role may not read all tables, or may write to some of them only.
    """
    there = connection.execute(_SCHEMA, {"schema": schema}).first()
    if there is None:
        return ""
    if not there.may_use:
        raise missing_rights(there.role, [f"the right USAGE on schema {schema!r}"])
    rows = connection.execute(_RIGHTS, {"schema": schema}).all()
    missing = [(row.what, _described(row)) for row in rows if not row.has]
    unread = [right for what, right in missing if what == "SELECT"]
    if unread:
        raise missing_rights(there.role, unread)
    if not any(row.has for row in rows if row.what in _WRITING):
        return str(there.role) if rows else ""
    if missing:
        raise missing_rights(there.role, [right for _, right in missing])
    return ""


def check_making(connection: Connection, schema: str) -> None:
    """Raise WorkspaceServerError unless the role may make tables in a schema, and the schema."""
    there = connection.execute(_SCHEMA, {"schema": schema}).first()
    if there is not None:
        missing = [
            f"the right {right} on schema {schema!r}"
            for right, has in (("USAGE", there.may_use), ("CREATE", there.may_create))
            if not has
        ]
        if missing:
            raise missing_rights(there.role, missing)
        return
    found = connection.execute(_DATABASE).one()
    if not found.may_create:
        raise missing_rights(found.role, [f"the right CREATE on database {found.name!r}"])


def missing_rights(role: str, missing: list[str]) -> WorkspaceServerError:
    """Return the error for a role without some rights."""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return WorkspaceServerError(
        f"the database role {role!r} lacks {missing[0]}{more}; expected one that owns the schema "
        "and all tables in it, or, to read alone, has USAGE on the schema and SELECT on every "
        "table; grant it, or connect as another"
    )


def _described(row: object) -> str:
    name, what, kind = row.name, row.what, row.kind  # type: ignore[attr-defined]
    if what == "ownership":
        return f"ownership of table {name!r}"
    return f"the right {what} on {kind} {name!r}"


_SCHEMA = text(
    "SELECT current_user::text AS role, has_schema_privilege(oid, 'USAGE') AS may_use, "
    "has_schema_privilege(oid, 'CREATE') AS may_create FROM pg_namespace WHERE nspname = :schema"
)

_DATABASE = text(
    "SELECT current_user::text AS role, current_database()::text AS name, "
    "has_database_privilege(current_database(), 'CREATE') AS may_create"
)

# VACUUM FULL takes the owner of the table or database, or, since PostgreSQL 17, MAINTAIN.
_RIGHTS = text(
    "WITH known AS (SELECT c.oid, c.relname, c.relkind, c.relowner FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = :schema) "
    "SELECT relname::text AS name, 'table' AS kind, what, CASE "
    "WHEN what <> 'ownership' THEN has_table_privilege(oid, what) "
    "WHEN pg_has_role(relowner, 'USAGE') THEN true "
    "WHEN (SELECT pg_has_role(datdba, 'USAGE') FROM pg_database "
    "WHERE datname = current_database()) THEN true "
    "WHEN current_setting('server_version_num')::int >= 170000 "
    "THEN has_table_privilege(oid, 'MAINTAIN') ELSE false END AS has "
    "FROM known, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'ownership']) AS what "
    "WHERE relkind = 'r' UNION ALL "
    "SELECT relname::text, 'sequence', 'USAGE', has_sequence_privilege(oid, 'USAGE') "
    "FROM known WHERE relkind = 'S' ORDER BY 3, 1"
)


WAIT = 30.0
"""Seconds that a transaction waits for another."""


@contextmanager
def explained(schema: str) -> Iterator[None]:
    """Turn errors of the server, or of the driver, inside the block into ours.

    They are WorkspaceServerError (no connection, or no right), WorkspaceBusyError (another process
    holds the ledger for too long), WorkspaceDiskError and LedgerError (`schema` holds no ledger, or
    a damaged one).
    """
    try:
        yield
    except ErasableError:
        raise
    except DBAPIError as error:
        raise _as_error(error.orig, schema, lost=error.connection_invalidated) from None
    except OSError as error:
        raise disk_failure(error.strerror or str(error)) from None
    except Exception as error:
        if not type(error).__module__.startswith("psycopg"):
            raise
        raise _as_error(error, schema, lost=False) from None  # of a COPY, which is the driver's own


def _as_error(said: Any, schema: str, *, lost: bool) -> WorkspaceError:
    code = getattr(said, "sqlstate", None) or ""
    words = _first_line(said)
    if code in ("55P03", "40001", "40P01"):
        return WorkspaceBusyError(
            "another process is at work on the ledger; expected it to end within "
            f"{WAIT:.0f} seconds; run the command again"
        )
    if code[:2] in ("53", "58") and code != "53300":
        return disk_failure(words)
    if code in ("42P01", "3F000"):
        return LedgerError(
            f"schema {schema!r} of the database holds no ledger; expected one; if `erasable init` "
            "or `workspace copy` was cut off run it again, else restore the database from a backup"
        )
    if code == "42501":
        return WorkspaceServerError(
            f"the database does not allow it ({words}); expected a role that may make the schema "
            f"{schema!r}, or owns it and its tables; grant that, or connect as another"
        )
    if code == "25006":
        return WorkspaceServerError(
            "the database can only be read; expected one that can be written to; connect to the "
            "primary server"
        )
    if code == "57014":
        return WorkspaceServerError(
            f"the database server ended a statement ({words}); expected it to be let run; run the "
            "command again, and ask the server's administrator if it is ended again"
        )
    if lost or code.startswith(("08", "57")):
        return WorkspaceServerError(
            f"the connection to the database was lost ({words}); expected it to last; a change "
            "that was under way is done or not, never half; run the command again"
        )
    if _is_refused(said, code):
        return _no_connection(words)
    if code.startswith("22") or type(said).__name__ == "DataError":
        return WorkspaceError(
            "the database cannot hold a value of this command; expected text without zero bytes "
            "and numbers that are finite"
        )
    return damaged_ledger(words)


def _is_refused(said: Any, code: str) -> bool:
    """Tell whether the server refused the connection: errors of libpq have no code."""
    return (
        code.startswith(("28", "3D"))
        or code == "53300"
        or (type(said).__name__ in ("OperationalError", "ConnectionTimeout") and not code)
    )


_REASONS = (
    (("password", "fe_sendauth"), "the right password",
     "give it in PGPASSWORD, or in the file .pgpass"),
    (("does not exist",), "a database and a role that are there",
     "make them, or correct the URL"),
    (("pg_hba",), "a server that lets this role in from here", "ask its administrator"),
    (("too many", "remaining connection"), "a server with connections to spare",
     "run the command again later"),
    (("starting up", "shutting down"), "a server that is up", "run the command again"),
)  # fmt: skip


def _no_connection(words: str) -> WorkspaceServerError:
    expected, remedy = "a server that can be reached", "start it, or correct the URL"
    for marks, *texts in _REASONS:
        if any(mark in words for mark in marks):
            expected, remedy = texts
            break
    return WorkspaceServerError(
        f"the database server cannot be used ({words}); expected {expected}; {remedy}"
    )


def _first_line(said: Any) -> str:
    """Return the message without details and hints, which may hold values."""
    primary = getattr(getattr(said, "diag", None), "message_primary", None)
    lines = [line.strip() for line in str(primary or said).splitlines() if line.strip()]
    # If several addresses were tried, the first message is enough.
    kept = next((line for line in lines if "failed:" in line), lines[0] if lines else "no reason")
    return " ".join(kept.removeprefix("connection failed:").removeprefix("- ").split())


UNREACHED = (
    "the write-ahead log of the database server, and its archive",
    "replicas and backups of the database server",
    "the log files of the database server",
    "files that the database server leaves in its folder when it crashes",
)
"""Places of deleted rows that only the administrator of PostgreSQL reaches."""

_OLDEST = 150000  # PostgreSQL 15, as its servers count
_PATIENCE = 0.05  # seconds between two looks for open transactions
_PASSING = "lease"  # it holds nothing personal, and every process at work writes to it


class Postgres(Backend):
    """The backend for a schema of PostgreSQL, which is the workspace's own.

    `url` is ``postgresql://user@host:port/database``, with parameters of libpq. The password comes
    from where libpq finds it: ``PGPASSWORD``, or the file ``.pgpass``.
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
        weakref.finalize(self, self.engine.dispose)  # ends the session

    def explained(self) -> AbstractContextManager[None]:
        """Turn errors of the server inside the block into ours."""
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
        self._reader = reader_role(connection, self.schema)

    def check_making(self, connection: Connection) -> None:
        """Raise WorkspaceServerError unless the role may make the schema, or tables in it."""
        check_making(connection, self.schema)

    def refuse_reader(self) -> None:
        """Raise WorkspaceServerError if the role may only read."""
        if self.is_read_only:
            raise missing_rights(
                str(self._reader), ["the right to write to any table of the ledger"]
            )

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

    def purge(self, pause: Callable[[float], None]) -> None:
        """Write every table anew, so that no deleted row is left.

        Raise WorkspaceBusyError if a transaction that began before is open for another half minute.
        """
        until = time.monotonic() + WAIT
        with self.explained(), self.engine.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            now = alone.execute(text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
            deleted_before = now.scalar_one()
            with crash_point("commit", self.url):
                for table in self._tables(alone):
                    self._rewrite_table(alone, table, deleted_before, until, pause)

    def empty_log(self, pause: Callable[[float], None]) -> None:
        """Leave the write-ahead log to the server's administrator; see `UNREACHED`."""

    # -- parts of these ----------------------------------------------------------------------------

    def _tables(self, connection: Connection) -> list[str]:
        """Return the tables that may hold what was erased, the smallest first: it waits best."""
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
    """Tell whether a schema has tables or other relations."""
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
    with needs("postgres", "a ledger in PostgreSQL"):
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,  # the server may have been started again
            connect_args={
                "connect_timeout": 10,
                "application_name": "erasable",
                "client_encoding": "utf8",
                "prepare_threshold": None,  # a pooler in between may not keep prepared statements
                **url.query,
            },
        )
    # Many rows in a statement: psycopg would send each of them in one of its own.
    engine.dialect.use_insertmanyvalues_wo_returning = True
    return engine


def _open(schema: str, raw: Any, record: Any) -> None:
    """Refuse an unsuitable server, and set up a session."""
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

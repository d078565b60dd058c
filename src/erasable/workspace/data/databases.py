"""Tables of databases, read by any driver of SQLAlchemy; nothing is ever written to them.

No error message repeats that of a driver: it may hold a password or a value.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import (
    ArgumentError,
    CompileError,
    NoSuchModuleError,
    NoSuchTableError,
    SQLAlchemyError,
)

from erasable.core.errors import SourceError
from erasable.workspace.data.column_types import array_of, mixed_types

_AT_ONCE = 10_000  # rows held as Python objects, at most
_FIRST = 1_000  # rows that are looked at for how long they are
_BYTES = 1 << 24  # of the values of such rows


def place_of(text: str, query: str | None) -> str:
    """Return a URL without user, password and parameters, with its ``#table`` where it has one.

    >>> place_of("postgresql://ann:secret@db.example/shop?sslkey=x#visits", None)
    'postgresql://db.example/shop#visits'
    """
    address, table = _split(text)
    url = _url(address)
    if (table is None) == (query is None):
        raise SourceError(
            f"the database was named with {'neither a' if table is None else 'both a'} table "
            f"{'nor a' if table is None else 'and a'} query; expected one of them; "
            "end the URL in #table, or pass --query"
        )
    if query is not None and not query.strip():
        raise SourceError(
            "the query is empty; expected a SELECT; write one, or end the URL in #table"
        )
    bare = _bare(url)
    if url.get_backend_name() == "sqlite":
        bare = bare.set(database=str(_sqlite_file(url)))
    place = bare.render_as_string()
    return place if table is None else f"{place}#{table}"


def sql_batches(given: str, place: str, query: str | None) -> Iterator[pa.Table]:
    """Read a table or the rows of a query in batches, with a cursor of the server.

    `given` holds the credentials, `place` is the URL for messages. The types of a batch follow from
    it alone; the first batch is empty, and has the columns.
    """
    address, table = _split(given)
    with _connected(_url(address), place) as connection:
        what = "query cannot be run" if query is not None else "table cannot be read"
        n_read = 0
        try:
            with closing(_select(connection, table, query, place)) as result:
                if not result.returns_rows:
                    raise SourceError(
                        "the query returns no rows at all; expected a SELECT; nothing was changed"
                    )
                names = list(result.keys())
                yield pa.Table.from_arrays([pa.nulls(0)] * len(names), names=names)
                at_once = min(_FIRST, _AT_ONCE)
                while rows := result.fetchmany(at_once):
                    found = _arrow(names, rows, place)
                    n_read += len(rows)
                    each = max(1, found.nbytes // len(rows))
                    at_once = max(1, min(_AT_ONCE, _BYTES // each))
                    yield found
        except SQLAlchemyError as error:
            where = f" after {n_read:,} records" if n_read else ""
            raise SourceError(
                f"the {what} at {place!r}{where} ({type(error).__name__}); expected a SELECT on "
                "tables that are there and that you may read, and a server that stays; try it in "
                "the database's own client"
            ) from None


def _bare(url: sa.URL) -> sa.URL:
    """Return a URL without user, password and parameters."""
    return sa.URL.create(url.drivername, host=url.host, port=url.port, database=url.database)


def table_names(given: str) -> list[str]:
    """Return the names of the tables of a database: those of its default schema.

    Of PostgreSQL, also those of other schemas, as "schema.name", and materialized views.
    """
    url = _url(given)
    place = _bare(url).render_as_string()
    with _connected(url, place) as connection:
        try:
            known = sa.inspect(connection)
            names = sorted(known.get_table_names())
            if connection.dialect.name == "postgresql":
                names += sorted(known.get_materialized_view_names())
                for schema in sorted(known.get_schema_names()):
                    if schema not in (known.default_schema_name, "information_schema"):
                        own = known.get_table_names(schema)
                        own += known.get_materialized_view_names(schema)
                        names += [f"{schema}.{name}" for name in sorted(own)]
        except SQLAlchemyError as error:
            raise SourceError(
                f"the tables of {place!r} cannot be listed ({type(error).__name__}); expected a "
                "database whose schema you may read; name a table, as in URL#TABLE"
            ) from None
    if not names:
        raise SourceError(
            f"the database at {place!r} has no table; expected one or more; name another database"
        )
    return names


def with_hidden_rows(connection: sa.Connection) -> set[tuple[str, str]]:
    """Return schemas and names of tables of which this user may see only some of the rows."""
    if connection.dialect.name != "postgresql":
        return set()
    rows = connection.exec_driver_sql(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where c.relkind in ('r', 'p') and row_security_active(c.oid)"
    )
    return {(schema, name) for schema, name in rows}


def hidden_rows(given: str) -> list[str]:
    """Return names of tables of which this user may see only some rows: all, or that of a URL."""
    address, table = _split(given)
    url = _url(address)
    place = _bare(url).render_as_string()
    with _connected(url, place) as connection:
        try:
            found = sorted(with_hidden_rows(connection))
        except SQLAlchemyError:  # a server that only speaks like PostgreSQL
            return []
    return [
        f"{schema}.{name}" for schema, name in found if table in (None, name, f"{schema}.{name}")
    ]


@contextmanager
def writable(given: str) -> Iterator[tuple[sa.Engine, str]]:
    """Open a database so that it can be changed; yields it with its URL for messages."""
    address, table = _split(given)
    if table is not None or "://" not in given:
        shown = "the URL" if "://" in given else repr(given[:80])  # which may have a password
        raise SourceError(
            f"{shown} names no database; expected DRIVER://USER:PASSWORD@HOST/DATABASE "
            "without a table; leave '#' and what follows out"
        )
    url = _url(address)
    place = _bare(url).render_as_string()
    if url.get_backend_name() == "sqlite" and url.get_driver_name() == "pysqlite":
        path = _sqlite_file(url)
        if not path.is_file():
            raise SourceError(f"{str(path)!r} is not there; expected a file of SQLite")
        at = sa.URL.create("sqlite", database=str(path))
        engine = sa.create_engine(at, creator=lambda: _open_writable(path), poolclass=sa.NullPool)
        sa.event.listen(engine, "begin", _begin)
    else:
        engine = _engine(url, place)
    try:
        yield engine, place
    finally:
        engine.dispose()


def _begin(connection: sa.Connection) -> None:
    """Begin a transaction of SQLite; one that may write has the lock at once."""
    options = connection.get_execution_options()
    if not options.get("keeps_foreign_keys", True):
        connection.exec_driver_sql("pragma foreign_keys = off")
    connection.exec_driver_sql("begin" if options.get("only_reads") else "begin immediate")


def _open_writable(path: Path) -> sqlite3.Connection:
    """Open a file of SQLite that clears what it deletes, and keeps foreign keys."""
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None)
    connection.text_factory = _text
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma secure_delete = on")
    return connection


class NotUnicode(bytes):
    """A text that is not valid UTF-8, as it is stored."""


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return NotUnicode(data)


def _split(text: str) -> tuple[str, str | None]:
    """Split a URL and its ``#table``; a '#' further left belongs to a path or a password."""
    head, slash, tail = text.rpartition("/")
    tail, mark, table = tail.partition("#")
    return head + slash + tail, table if mark else None


def _url(address: str) -> sa.URL:
    try:
        url = sa.make_url(address)
        url.get_dialect()
    except NoSuchModuleError:
        raise _no_driver(address) from None
    except (ImportError, SQLAlchemyError, ValueError, TypeError, AttributeError):
        raise SourceError(
            "the URL of the source cannot be read; expected DRIVER://USER:PASSWORD@HOST/DATABASE#"
            "TABLE; write special characters in it as %XX"
        ) from None
    return url


def _no_driver(address: str) -> SourceError:
    return SourceError(
        f"there is no driver for {address.partition('://')[0][:40]!r}; expected one that "
        "SQLAlchemy knows and that is installed; install it, or export the table as Parquet"
    )


def _sqlite_file(url: sa.URL) -> Path:
    if not url.database or url.database == ":memory:":
        raise SourceError(
            "the URL names no file of SQLite; expected one, as in sqlite:///shop.db#visits; "
            "add its path"
        )
    return Path(url.database).absolute()


@contextmanager
def _connected(url: sa.URL, place: str) -> Iterator[sa.Connection]:
    engine = _engine(url, place)
    try:
        connection = engine.connect()
    except (SQLAlchemyError, OSError, ValueError, TypeError, UnicodeError):
        advice = "check that it runs and that you may read it"
        if not url.username:
            advice = "check that it runs, and pass the URL with user and password if it wants them"
        raise SourceError(
            f"the database at {place!r} cannot be reached; expected one that answers; {advice}"
        ) from None
    try:
        yield connection
    finally:
        connection.close()  # without a commit
        engine.dispose()


def _engine(url: sa.URL, place: str) -> sa.Engine:
    try:
        if url.get_backend_name() != "sqlite" or url.get_driver_name() != "pysqlite":
            return sa.create_engine(url, poolclass=sa.NullPool)
    except ImportError:
        raise _no_driver(url.drivername) from None
    except (SQLAlchemyError, ValueError, TypeError):
        raise SourceError(
            f"the URL {place!r} does not suit its driver; expected what SQLAlchemy's pages on it "
            "say"
        ) from None
    path = _sqlite_file(url)
    if not path.is_file():
        raise SourceError(f"{str(path)!r} is not there; expected a file of SQLite")
    return sa.create_engine("sqlite://", creator=lambda: _open(path), poolclass=sa.NullPool)


def _open(path: Path) -> sqlite3.Connection:
    """Open a file of SQLite so that no statement writes to it, or to another file."""
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    return connection


def _select(
    connection: sa.Connection, table: str | None, query: str | None, place: str
) -> sa.CursorResult[Any]:
    if query is not None:  # as it stands: neither ':' nor '%' in it is a parameter
        return connection.execution_options(
            stream_results=True, no_parameters=True
        ).exec_driver_sql(query)
    name, schema = _resolve(connection, table or "", place)
    chosen: sa.Select[Any] = sa.select(sa.literal_column("*")).select_from(
        sa.table(name, schema=schema)
    )
    return connection.execution_options(stream_results=True).execute(chosen)


def _resolve(connection: sa.Connection, table: str, place: str) -> tuple[str, str | None]:
    schema, dot, name = table.rpartition(".")
    known = sa.inspect(connection)
    for one, where in [(table, None), *([(name, schema)] if dot and name and schema else [])]:
        try:
            if one and known.has_table(one, schema=where):
                return one, where
        except (NoSuchTableError, ArgumentError, CompileError):
            continue
    raise SourceError(
        f"there is no table {table[:60]!r} at {place!r}; expected one of the database; "
        "correct the name after '#'"
    )


def _arrow(names: Sequence[str], rows: Sequence[Any], place: str) -> pa.Table:
    arrays = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        if UUID in set(map(type, values)):
            values = tuple(str(value) if isinstance(value, UUID) else value for value in values)
        try:
            arrays.append(array_of(values))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise mixed_types(name, place) from None
    return pa.Table.from_arrays(arrays, names=list(names))

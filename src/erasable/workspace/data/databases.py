"""Read tables from databases, by any driver of SQLAlchemy; nothing is ever written to them.

No complaint repeats what a driver said: it may hold a password or a value.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

__all__ = ["place_of", "read_sql"]

_AT_ONCE = 10_000  # rows held as Python objects


def place_of(text: str, query: str | None) -> str:
    """Return a URL without user, password and parameters, with its ``#table`` where it has one.

    Raises
    ------
    SourceError
        It is no URL of a database, or does not say which records.

    Examples
    --------
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
    bare = sa.URL.create(url.drivername, host=url.host, port=url.port, database=url.database)
    if url.get_backend_name() == "sqlite":
        bare = bare.set(database=str(_sqlite_file(url)))
    place = bare.render_as_string()
    return place if table is None else f"{place}#{table}"


def read_sql(given: str, place: str, query: str | None) -> pa.Table:
    """Read a table or the rows of a query, some at a time.

    Parameters
    ----------
    given : str
        The URL with whatever it takes to connect.
    place : str
        The URL that may be shown.
    query : str or None
        The SQL, where `given` names no table.

    Raises
    ------
    SourceError
        See `erasable.workspace.data.sources.Source.read`.
    """
    address, table = _split(given)
    with _connected(_url(address), place) as connection:
        try:
            result = _select(connection, table, query, place)
            if not result.returns_rows:
                raise SourceError(
                    "the query returns no rows at all; expected a SELECT; nothing was changed"
                )
            names = list(result.keys())
            parts = [_arrow(names, rows, place) for rows in result.partitions(_AT_ONCE)] or [
                pa.Table.from_arrays([pa.nulls(0)] * len(names), names=names)
            ]
        except SQLAlchemyError as error:
            what = "query cannot be run" if query is not None else "table cannot be read"
            raise SourceError(
                f"the {what} at {place!r} ({type(error).__name__}); expected a SELECT on tables "
                "that are there and that you may read; try it in the database's own client"
            ) from None
    return _joined(names, parts, place)


def _split(text: str) -> tuple[str, str | None]:
    """Part a URL from its ``#table``; a '#' further left belongs to a path or a password."""
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
            "say; correct it"
        ) from None
    path = _sqlite_file(url)
    if not path.is_file():
        raise SourceError(
            f"{str(path)!r} is not there; expected a file of SQLite; correct the path"
        )
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
    for at, name in enumerate(names):
        values = [row[at] for row in rows]
        if any(isinstance(value, UUID) for value in values):
            values = [str(value) if isinstance(value, UUID) else value for value in values]
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise _mixed(name, place) from None
    return pa.Table.from_arrays(arrays, names=list(names))


def _joined(names: Sequence[str], parts: Sequence[pa.Table], place: str) -> pa.Table:
    """Join tables whose types were found in each alone: a column may begin with nulls."""
    columns = []
    for at, name in enumerate(names):
        arrays = [chunk for part in parts for chunk in part.column(at).chunks]
        schemas = [pa.schema([("", array.type)]) for array in arrays]
        try:
            kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
            columns.append(pa.chunked_array([array.cast(kind) for array in arrays], kind))
        except (pa.ArrowException, ValueError, TypeError):
            raise _mixed(name, place) from None
    return pa.Table.from_arrays(columns, names=list(names))


def _mixed(name: str, place: str) -> SourceError:
    return SourceError(
        f"column {name!r} at {place!r} holds values of several types, or of one that tables have "
        "not; expected numbers, text, booleans, days or times; cast it in --query"
    )

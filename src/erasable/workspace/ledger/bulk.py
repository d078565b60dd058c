"""Queries and changes of many rows in few statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    func,
    select,
    update,
)

AT_ONCE = 20_000
"""Rows of one statement that inserts."""
PARAMETERS = 5_000
"""Values of one condition ``IN (...)``; a database takes at least 32,000."""

_T = TypeVar("_T")


def in_parts(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Cut values into parts that one statement takes."""
    for start in range(0, len(values), PARAMETERS):
        yield values[start : start + PARAMETERS]


def rows_in(
    connection: Connection,
    query: Select[Any],
    column: ColumnElement[Any],
    values: Iterable[Any] | None,
) -> Iterator[Row[Any]]:
    """Return the rows of a query in which a column has one of many values; for None, all rows."""
    if values is None:
        yield from connection.execute(query)
        return
    for some in in_parts(list(values)):
        yield from connection.execute(query.where(column.in_(some)))


def values_held(connection: Connection, column: Column[Any], values: Iterable[Any]) -> set[Any]:
    """Return which of many values a column holds."""
    return {value for (value,) in rows_in(connection, select(column), column, values)}


def delete_in(
    connection: Connection, column: Column[Any], values: Iterable[Any], *where: ColumnElement[bool]
) -> int:
    """Delete the rows in which a column has one of many values; return how many there were."""
    return sum(
        connection.execute(delete(column.table).where(column.in_(some), *where)).rowcount
        for some in in_parts(list(values))
    )


def update_in(
    connection: Connection, column: Column[Any], values: Iterable[Any], **changes: Any
) -> None:
    """Change the rows in which a column has one of many values."""
    for some in in_parts(list(values)):
        connection.execute(update(column.table).where(column.in_(some)).values(**changes))


def insert_missing(
    connection: Connection, table: Table, columns: Mapping[str, Sequence[Any]]
) -> int:
    """Insert rows whose primary key is not there yet; return how many were new.

    `columns` holds the values by name, as many of each. PostgreSQL gets an array for each column,
    which is several times as fast as a row of parameters for each; SQLite repeats one statement.
    """
    n_rows = len(next(iter(columns.values())))
    n_new = 0
    for start in range(0, n_rows, AT_ONCE):
        some = {name: values[start : start + AT_ONCE] for name, values in columns.items()}
        if connection.dialect.name == "postgresql":
            n_new += _insert_arrays(connection, table, some)
        else:
            n_new += _insert_rows(connection, table, some)
    return n_new


def _insert_arrays(connection: Connection, table: Table, columns: Mapping[str, Any]) -> int:
    from sqlalchemy.dialects import postgresql  # each dialect where it is in use

    arrays = [
        func.unnest(bindparam(name, type_=postgresql.ARRAY(table.c[name].type))) for name in columns
    ]
    rows = postgresql.insert(table).from_select(list(columns), select(*arrays))
    given = {name: list(values) for name, values in columns.items()}
    return _n_inserted(connection, rows.on_conflict_do_nothing(), given)


def _insert_rows(connection: Connection, table: Table, columns: Mapping[str, Any]) -> int:
    from sqlalchemy.dialects import sqlite

    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _n_inserted(connection, sqlite.insert(table).on_conflict_do_nothing(), rows)


def _n_inserted(connection: Connection, statement: Insert, given: Any) -> int:
    # SQLAlchemy keeps the count of inserts only with this option.
    result = connection.execute(statement, given, execution_options={"preserve_rowcount": True})
    return result.rowcount

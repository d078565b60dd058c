"""Rows as a database keeps them, read in order and written into either kind of database.

The law kept here: a row that was written is read back as it was, whichever database it came from;
times are numbers, JSON is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import JSON, Connection, Table, func, select

from erasable.workspace.ledger.kinds import Json

AT_ONCE = 5_000
"""Rows that are held as Python objects."""

Row = tuple[Any, ...]


def read(
    connection: Connection, table: Table, columns: Sequence[str] | None = None
) -> Iterator[Row]:
    """Yield the rows of a table in the order of its key.

    A row has a value (int, float, str, bytes or None) for each of `columns`, by default all, in
    their order; JSON is text.
    """
    is_sqlite = connection.dialect.name == "sqlite"
    chosen = _chosen(table, columns)
    kept = [isinstance(table.c[name].type, Json | JSON) for name in chosen]
    names = [
        f'"{name}"' if is_sqlite or not json_ else f'"{name}"::text'
        for name, json_ in zip(chosen, kept, strict=True)
    ]
    order = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    with connection.exec_driver_sql(
        f'SELECT {", ".join(names)} FROM "{table.name}" ORDER BY {order}',
        execution_options={"yield_per": AT_ONCE},
    ) as found:
        for row in found:
            yield tuple(
                # SQLite makes a number of a text that looks like one.
                json.dumps(value) if json_ and isinstance(value, int | float) else value
                for value, json_ in zip(row, kept, strict=True)
            )


def write(
    connection: Connection,
    table: Table,
    rows: Iterable[Row],
    columns: Sequence[str] | None = None,
    schema: str | None = None,
) -> None:
    """Write rows, as `read` yields them, into a table that is empty.

    For `columns` see `read`; `schema` is None for SQLite.
    """
    chosen = _chosen(table, columns)
    names = ", ".join(f'"{name}"' for name in chosen)
    if connection.dialect.name == "sqlite":
        values = ", ".join("?" * len(chosen))
        left = iter(rows)
        while some := list(islice(left, AT_ONCE)):
            connection.exec_driver_sql(
                f'INSERT INTO "{table.name}" ({names}) VALUES ({values})', some
            )
        return
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(f'COPY "{table.name}" ({names}) FROM STDIN') as to:
        for row in rows:
            to.write_row(row)
    _set_counter(connection, table, schema)


def _chosen(table: Table, columns: Sequence[str] | None) -> list[str]:
    return [column.name for column in table.columns] if columns is None else list(columns)


def _set_counter(connection: Connection, table: Table, schema: str | None) -> None:
    """Have the next row get the number after the last; SQLite does by itself."""
    column = table.autoincrement_column
    if column is None:
        return
    last = connection.execute(select(func.max(column))).scalar()
    if last is not None:
        of = func.pg_get_serial_sequence(f'"{schema}"."{table.name}"', column.name)
        connection.execute(select(func.setval(of, last)))

"""Rows of a ledger as members of a backup: lines of JSON, in the order of their keys.

Both databases can load them, whichever they came from.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from typing import Any

from sqlalchemy import JSON, Connection, MetaData, Table, func, select

from erasable.core.errors import EvidenceError, LedgerError
from erasable.workspace.backups.archive import Archive, Writer, damaged_backup
from erasable.workspace.ledger.kinds import Json
from erasable.workspace.ledger.schema import PASSING, metadata

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
    """Write rows of `read` into an empty table.

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
    """Set the number of the next row to the one after the last; SQLite does so by itself."""
    column = table.autoincrement_column
    if column is None:
        return
    last = connection.execute(select(func.max(column))).scalar()
    if last is not None:
        of = func.pg_get_serial_sequence(f'"{schema}"."{table.name}"', column.name)
        connection.execute(select(func.setval(of, last)))


_BYTES = "base64"


def kept() -> list[Table]:
    """Return the tables that are backed up, in an order in which they can be loaded."""
    return [each for each in metadata.sorted_tables if each.name not in PASSING]


def dump(connection: Connection, writer: Writer) -> list[dict[str, Any]]:
    """Write every table into an archive; return name, columns and number of rows of each."""
    said = []
    for table in kept():
        left, n_rows, part = read(connection, table), 0, 0
        while some := list(islice(left, AT_ONCE)):
            text = "".join(f"{json.dumps([_plain(value) for value in row])}\n" for row in some)
            writer.add(_member(table.name, part), text.encode())
            n_rows, part = n_rows + len(some), part + 1
        columns = [column.name for column in table.columns]
        said.append({"name": table.name, "columns": columns, "n_rows": n_rows})
    return said


def load(
    connection: Connection, archive: Archive, said: dict[str, Any], schema: str | None
) -> None:
    """Write the rows of a table of `dump` into a ledger of the same revision."""
    name = said["name"]
    try:
        known = Table(name, MetaData(), autoload_with=connection)
        if {column.name for column in known.columns} != set(said["columns"]):
            raise KeyError(name)
    except Exception as error:
        raise damaged_backup(
            archive.path, f"its ledger has a table {name!r} that is none of its revision"
        ) from error
    table = metadata.tables.get(name, known)
    if {column.name for column in table.columns} != set(said["columns"]):
        table = known  # of an older revision
    given = partial(_rows, archive, said)
    if load_compared(connection, table, given, said["columns"], schema) != said["n_rows"]:
        raise damaged_backup(archive.path, f"table {name!r} has another number of rows")


def load_compared(
    connection: Connection,
    table: Table,
    given: Callable[[], Iterator[Row]],
    columns: Sequence[str] | None = None,
    schema: str | None = None,
) -> int:
    """Write rows into an empty table, compare the result row by row, and return their number.

    `given` is called twice. Raise LedgerError if a row arrived altered.
    """
    write(connection, table, given(), columns, schema)
    n_rows = 0
    for was, now in zip_longest(given(), read(connection, table, columns)):
        if was != now:
            raise LedgerError(
                f"row {n_rows + 1} of table {table.name!r} arrived altered; expected it as it "
                "was; nothing was kept, try again with another database"
            )
        n_rows += 1
    return n_rows


def _rows(archive: Archive, said: dict[str, Any]) -> Iterator[Row]:
    part = 0
    while (member := _member(said["name"], part)) in archive:
        for line in archive.read(member).splitlines():
            yield tuple(_value(each) for each in _listed(archive, line, len(said["columns"])))
        part += 1


def _listed(archive: Archive, line: bytes, n: int) -> list[Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) != n:
        raise damaged_backup(archive.path, "a row of its ledger is malformed")
    return found


def _member(table: str, part: int) -> str:
    return f"ledger/{table}/{part:06d}.jsonl"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {_BYTES: base64.b64encode(value).decode()}
    return value


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        try:
            return base64.b64decode(value[_BYTES], validate=True)
        except (KeyError, TypeError, ValueError):
            raise EvidenceError(
                "a row of the backup's ledger is malformed; expected what `erasable backup` wrote; "
                "take another backup"
            ) from None
    return value

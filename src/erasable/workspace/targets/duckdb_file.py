"""A file of DuckDB: deleted rows leave it where it is written anew, and its rows are searched.

Its columns are compressed, so the bytes alone prove nothing: all rows are read by DuckDB itself,
and no block may be free.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import sqlalchemy as sa

from erasable.workspace.targets.storages import FileStorage, as_bytes


class DuckStorage(FileStorage):
    """A file of DuckDB with its write-ahead log."""

    ends = (".wal",)
    error = duckdb.Error

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Copy all rows into a new file, which takes the place of the old one."""
        new = self.path.with_name(self.path.name + ".new")
        try:
            with closing(duckdb.connect()) as connection:
                connection.execute(f"attach {_quoted(self.path)} as old")  # nobody else has it
                connection.execute("checkpoint old")
                _remove(new)
                connection.execute(f"attach {_quoted(new)} as new")
                connection.execute("copy from database old to new")
                if difference := _difference(connection):
                    return [f"its {difference} cannot be copied into a new file"]
                connection.execute("checkpoint new")
                connection.execute("detach new")
                shutil.copymode(self.path, new)
                _sync(new)
                new.replace(self.path)
                _sync(self.path.parent)
        except (duckdb.Error, OSError) as error:
            return [
                f"the file could not be written anew ({type(error).__name__}): another program may "
                "have it, or a table refers to itself"
            ]
        finally:
            _remove(new)
        return []

    def values(self, reasons: list[str]) -> Iterator[bytes]:
        """Return the values of all rows as bytes."""
        if self.path.with_name(self.path.name + ".tmp").exists():
            reasons.append("a folder of temporary files is beside it")
        with closing(duckdb.connect(str(self.path), read_only=True)) as connection:
            n_free = connection.execute("select free_blocks from pragma_database_size()")
            if n := (n_free.fetchone() or (0,))[0]:
                reasons.append(f"{n} free blocks are left in the file")
            names = connection.execute(
                "select schema_name, table_name from duckdb_tables() where not internal"
            ).fetchall()
            for schema, name in names:
                of = f"{_identifier(schema)}.{_identifier(name)}"
                yield from as_bytes(connection.execute(f"select * from {of}"))


def _difference(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return what two attached databases do not have in common, None if nothing."""
    for what, columns in _PARTS.items():
        old, new = (
            connection.execute(
                f"select {columns} from duckdb_{what}() where database_name = ? order by all",
                (name,),
            ).fetchall()
            for name in ("old", "new")
        )
        if old != new:
            return what
    names = connection.execute(
        "select schema_name, table_name from duckdb_tables() where database_name = 'old'"
    ).fetchall()
    for schema, name in names:
        of = f"{_identifier(schema)}.{_identifier(name)}"
        old, new = (
            connection.execute(f"select count(*) from {base}.{of}").fetchall()
            for base in ("old", "new")
        )
        if old != new:
            return "rows"
    return None


_PARTS = {
    "tables": "schema_name, table_name, sql",
    "views": "schema_name, view_name, sql",
    "indexes": "schema_name, table_name, index_name, sql",
    "sequences": "schema_name, sequence_name, sql, last_value",
    "functions": "schema_name, function_name, macro_definition",
    "types": "schema_name, type_name, logical_type",
}
"""Parts of a database, which a copy must have as well."""


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _remove(path: Path) -> None:
    for end in ("", ".wal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

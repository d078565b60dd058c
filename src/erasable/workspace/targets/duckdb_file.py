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

from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.residue import Found


class DuckStorage:
    """A file of DuckDB with its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Copy all rows into a new file, which takes the place of the old one."""
        new = self._path.with_name(self._path.name + ".new")
        try:
            with closing(duckdb.connect()) as connection:
                connection.execute(f"attach {_quoted(self._path)} as old")  # nobody else has it
                connection.execute("checkpoint old")
                _remove(new)
                connection.execute(f"attach {_quoted(new)} as new")
                connection.execute("copy from database old to new")
                if difference := _difference(connection):
                    return [f"its {difference} cannot be copied into a new file"]
                connection.execute("checkpoint new")
                connection.execute("detach new")
                shutil.copymode(self._path, new)
                _sync(new)
                new.replace(self._path)
                _sync(self._path.parent)
        except (duckdb.Error, OSError) as error:
            return [
                f"the file could not be written anew ({type(error).__name__}): another program may "
                "have it"
            ]
        finally:
            _remove(new)
        return []

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Look in all rows, and in the bytes of the files."""
        found = Found()
        gone, stay = marks.every(), living.every()
        try:
            with closing(duckdb.connect(str(self._path), read_only=True)) as connection:
                there = residue.marks_among(_values(connection), gone | stay)
                n_free = connection.execute("select free_blocks from pragma_database_size()")
                if n := (n_free.fetchone() or (0,))[0]:
                    found.reasons.append(f"{n} free blocks are left in the file")
        except duckdb.Error as error:
            return Found(reasons=[f"its rows could not be read ({type(error).__name__})"])
        if in_rows := there & gone:
            found.where.append(f"{self._path.name}, in other rows")
        in_files = set[bytes]()
        for path in (self._path, self._path.with_name(self._path.name + ".wal")):
            if path.exists():
                of = residue.marks_in(path, gone)
                in_files |= of
                if of and not (in_rows and path == self._path):
                    found.where.append(path.name)
        if self._path.with_name(self._path.name + ".tmp").exists():
            found.reasons.append("a folder of temporary files is beside it")
        found.n_left, found.n_living = marks.count(in_rows | in_files), living.count(there)
        return found


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


def _values(connection: duckdb.DuckDBPyConnection) -> Iterator[bytes]:
    """Return the values of all rows as bytes."""
    names = connection.execute(
        "select schema_name, table_name from duckdb_tables() where not internal"
    ).fetchall()
    for schema, name in names:
        rows = connection.execute(f"select * from {_identifier(schema)}.{_identifier(name)}")
        while some := rows.fetchmany(1_000):
            yield b"\0".join(
                form for row in some for value in row for form in residue.bytes_of(value)
            )
        yield b"\0"


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

"""Files of databases: how deleted rows leave them, and a search for what is left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import SHORTEST, Marks
from erasable.workspace.targets.mysql import MysqlStorage
from erasable.workspace.targets.postgres import PostgresStorage
from erasable.workspace.targets.residue import Found


class Storage(Protocol):
    """The files of a database."""

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Have tables written anew, without deleted rows; return why that is not all, if so."""

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Look for values in the files that tables are in."""


_DUCKDB = "erasable.workspace.targets.duckdb_file"  # which imports its client


def of(engine: sa.Engine) -> Storage:
    """Return the files of a database."""
    if engine.dialect.name == "sqlite":
        return _Sqlite(Path(str(engine.url.database)))
    if engine.dialect.name == "postgresql":
        return PostgresStorage(engine)
    if engine.dialect.name in ("mysql", "mariadb"):
        return MysqlStorage(engine)
    if engine.dialect.name == "duckdb" and engine.url.database not in (None, "", ":memory:"):
        found: Storage = import_module(_DUCKDB).DuckStorage(Path(str(engine.url.database)))
        return found
    return _Unseen()


class _Unseen:
    """Files of a server that is not known."""

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        return [
            "the server keeps deleted rows in its files until it needs the place, and changes in "
            "its logs"
        ]

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        return Found(reasons=["its files cannot be seen from here"])


# -- SQLite ----------------------------------------------------------------------------------------


class _Sqlite:
    """A file of SQLite, with its write-ahead log and journal."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        reasons = []
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
                connection.execute("pragma secure_delete = on")
                connection.execute("vacuum")
                if connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
                    reasons.append("another program reads the file")
                if n := connection.execute("pragma freelist_count").fetchone()[0]:
                    reasons.append(f"{n} free pages are left in the file")
        except sqlite3.Error as error:
            reasons.append(
                f"the file could not be rewritten ({type(error).__name__}): another program may "
                "have it"
            )
        return reasons

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Look in the rows, where a long value is whole; and in the bytes of the files."""
        found = Found()
        gone, stay = marks.every(), living.every()
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)) as connection:
                form = connection.execute("pragma encoding").fetchone()[0]
                virtual = connection.execute(_VIRTUAL).fetchall()
                there = residue.marks_among(_values(connection), gone | stay)
        except sqlite3.Error as error:
            return Found(reasons=[f"its rows could not be read ({type(error).__name__})"])
        if virtual:
            names = ", ".join(sorted(repr(name) for (name,) in virtual))
            found.reasons.append(f"an index such as that of {names} may keep words of them")
        if in_rows := there & gone:
            found.where.append(f"{self._path.name}, in other rows")
        in_files = set[bytes]()
        coded = _coded(gone, form)
        for end in ("", "-wal", "-journal"):
            path = self._path.with_name(self._path.name + end)
            if path.exists() and (of := residue.marks_in(path, coded)):
                in_files |= {coded[each] for each in of}
                if not (in_rows and not end):
                    found.where.append(path.name)
        found.n_left, found.n_living = marks.count(in_rows | in_files), living.count(there)
        return found


_VIRTUAL = "select name from sqlite_master where type = 'table' and sql like 'create virtual%'"
_STORED = "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"


def _values(connection: sqlite3.Connection) -> Iterator[bytes]:
    """Return the values of all rows as bytes: in the file, a long one lies in several places."""
    connection.text_factory = bytes
    for (name,) in connection.execute(_STORED).fetchall():
        quoted = name.decode().replace('"', '""')
        rows = connection.execute(f'select * from "{quoted}"')
        while some := rows.fetchmany(1_000):
            yield b"\0".join(
                form for row in some for value in row for form in residue.bytes_of(value)
            )
        yield b"\0"


def _coded(marks: Iterable[bytes], form: str) -> dict[bytes, bytes]:
    """Return marks in the encoding of a file, each with the mark that it is of."""
    if form == "UTF-8":
        return {mark: mark for mark in marks}
    found = {mark: mark for mark in marks}  # vectors and other bytes are in it as they are
    for mark in marks:
        other = mark.decode(errors="ignore").encode(form)
        if len(other) >= SHORTEST:
            found[other] = mark
    return found

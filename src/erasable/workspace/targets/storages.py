"""Files of databases: how deleted rows leave them, and a search for what is left."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import SHORTEST, Marks
from erasable.workspace.targets.residue import Found


class Storage:
    """The files of a database; those of a server that is not known cannot be seen."""

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Have tables written anew, without deleted rows; return why that is not all, if so."""
        return [
            "the server keeps deleted rows in its files until it needs the place, and changes in "
            "its logs"
        ]

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Look for values in the files that tables are in."""
        return Found(reasons=["its files cannot be seen from here"])


class FileStorage(Storage, ABC):
    """A file that has a whole database, and those beside it, by the ends of their names."""

    ends: ClassVar[Sequence[str]]
    error: ClassVar[type[Exception]]  # of the client

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def values(self, reasons: list[str]) -> Iterator[bytes]:
        """Return the values of all rows as bytes; add to `reasons` what they do not show."""

    def coded(self, marks: Collection[bytes]) -> dict[bytes, bytes]:
        """Return marks as the file has them, each with the mark that it is of."""
        return {mark: mark for mark in marks}

    def scan(self, tables: Sequence[sa.Table], marks: Marks, living: Marks) -> Found:
        """Look in the rows, where a long value is whole; and in the bytes of the files."""
        found = Found()
        gone, stay = marks.every(), living.every()
        try:
            there = residue.marks_among(self.values(found.reasons), gone | stay)
            coded = self.coded(gone)
        except self.error as error:
            return Found(reasons=[f"its rows could not be read ({type(error).__name__})"])
        if in_rows := there & gone:
            found.where.append(f"{self.path.name}, in other rows")
        in_files = set[bytes]()
        for end in ("", *self.ends):
            path = self.path.with_name(self.path.name + end)
            if path.exists() and (of := residue.marks_in(path, coded)):
                in_files |= {coded[each] for each in of}
                if not (in_rows and not end):
                    found.where.append(path.name)
        found.n_left, found.n_living = marks.count(in_rows | in_files), living.count(there)
        return found


def as_bytes(rows: Any) -> Iterator[bytes]:
    """Return the values of a cursor's rows as bytes."""
    while some := rows.fetchmany(1_000):
        yield b"\0".join(form for row in some for value in row for form in residue.bytes_of(value))
    yield b"\0"


class SqliteStorage(FileStorage):
    """A file of SQLite, with its write-ahead log and journal."""

    ends = ("-wal", "-journal")
    error = sqlite3.Error

    def compact(self, tables: Sequence[sa.Table]) -> list[str]:
        """Write the file anew, and empty the log."""
        reasons = []
        try:
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
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

    def values(self, reasons: list[str]) -> Iterator[bytes]:
        """Return the values of all rows as bytes."""
        with closing(self._opened()) as connection:
            names = connection.execute(_TABLES.format("like")).fetchall()
            if virtual := ", ".join(sorted(repr(name) for (name,) in names)):
                reasons.append(f"an index such as that of {virtual} may keep words of them")
            connection.text_factory = bytes
            for (name,) in connection.execute(_TABLES.format("not like")).fetchall():
                quoted = name.decode().replace('"', '""')
                yield from as_bytes(connection.execute(f'select * from "{quoted}"'))

    def coded(self, marks: Collection[bytes]) -> dict[bytes, bytes]:
        """Return marks in the encoding of the file."""
        with closing(self._opened()) as connection:
            form = connection.execute("pragma encoding").fetchone()[0]
        found = super().coded(marks)  # vectors and other bytes are in it as they are
        for mark in marks if form != "UTF-8" else ():
            other = mark.decode(errors="ignore").encode(form)
            if len(other) >= SHORTEST:
                found[other] = mark
        return found

    def _opened(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)


_TABLES = "select name from sqlite_master where type = 'table' and sql {} 'create virtual%'"

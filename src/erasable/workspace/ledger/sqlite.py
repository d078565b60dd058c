"""The ledger in a file of SQLite: one writer at a time; deleted rows leave nothing."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, OperationalError

from erasable.core.errors import ErasableError, WorkspaceBusyError
from erasable.workspace.ledger.backend import Backend, damaged_ledger, disk_failure
from erasable.workspace.ledger.unused_bytes import CannotClearError, clear, open_handle
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.store.disk import may_write

_WAIT = 30.0  # seconds that a transaction waits for another
_FREE = 0.5  # of the pages: from there on the file is written anew, and is shorter
_PRAGMAS = (
    f"PRAGMA busy_timeout = {int(_WAIT * 1000)}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
)
_UNDECODED = re.compile(r"Could not decode to UTF-8 column '(\w+)'")
_DISK = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY
)  # fmt: skip
_PRAGMAS_OF_A_COPY = (_PRAGMAS[0], _PRAGMAS[-1])  # the others write


class Sqlite(Backend):
    """The backend for a file of SQLite."""

    upgrades_itself = True

    def __init__(self, url: str) -> None:
        self.url = url
        self._path = Path(url.removeprefix("sqlite:///"))
        # As a text it would end at a "?", as in the name of a folder.
        self.engine: Engine = create_engine(URL.create("sqlite", database=str(self._path)))
        event.listen(self.engine, "do_connect", self._connect)
        event.listen(self.engine, "connect", self._open)
        event.listen(self.engine, "begin", _begin)

    @property
    def is_read_only(self) -> bool:
        """Whether the file is a read-only copy, such as an auditor's."""
        path = self._path
        return path.exists() and not (may_write(path) and may_write(path.parent))

    def _connect(self, dialect: Any, record: Any, arguments: Any, parameters: Any) -> Any:
        with crash_point("open", "ledger"):
            if not self.is_read_only:
                return dialect.connect(*arguments, **parameters)
            return sqlite3.connect(_uri_of_copy(Path(arguments[0])), uri=True, **parameters)

    def _open(self, connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are begun by _begin
        for pragma in _PRAGMAS_OF_A_COPY if self.is_read_only else _PRAGMAS:
            connection.execute(pragma)

    def check_rights(self, connection: Connection) -> None:
        """Refuse nobody: the system refuses to open a file without the right to read it."""

    def check_making(self, connection: Connection) -> None:
        """Refuse nobody: the system refuses to make a file in a folder without the right to."""

    def refuse_reader(self) -> None:
        """Refuse nobody yet: SQLite refuses the first change of a copy for reading."""

    def make_room(self, connection: Connection) -> None:
        """Make nothing: SQLite has made the file when it opened it."""

    def configure_columns(self, connection: Connection) -> None:
        """Change nothing: SQLite keeps no samples of values, and sorts text by bytes."""

    def explained(self) -> Any:
        """Turn errors of SQLite inside the block into ours."""
        return _explained()

    def purge(self, pause: Callable[[float], None]) -> None:
        """Overwrite what is left of deleted rows in unused bytes, or write the file anew.

        SQLite overwrites deleted rows, but where it moves rows between pages it leaves copies in
        the unused middle of a page, which no later deletion reaches. To write the file anew takes
        several times as long; it is done where many pages are free, too.
        """
        until, is_clear = time.monotonic() + _WAIT, False
        try:
            while not is_clear and time.monotonic() < until:  # else others write all the time
                self.empty_log(pause)
                is_clear = self._clear_unused()
        except CannotClearError:
            pass
        if is_clear:
            return
        with _explained():
            raw = self.engine.raw_connection()
            try:
                with crash_point("commit", self.url):
                    raw.cursor().execute("VACUUM")
            finally:
                raw.close()

    def _clear_unused(self) -> bool:
        """Overwrite unused bytes; return False if others have written since the log was emptied."""
        log = self._path.with_name(f"{self._path.name}-wal")
        with _explained():
            raw = self.engine.raw_connection()
            cursor = raw.cursor()
            try:
                cursor.execute("BEGIN IMMEDIATE")
                if log.exists() and log.stat().st_size:
                    return False
                free, pages, version = (
                    cursor.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("freelist_count", "page_count", "user_version")
                )
                if free > _FREE * pages:
                    raise CannotClearError
                query = "SELECT rootpage FROM sqlite_master WHERE rootpage > 0"
                roots = [row[0] for row in cursor.execute(query)]
                with crash_point("write", self.url):
                    clear(open_handle(self._path), roots)
                with crash_point("commit", self.url):
                    # Other connections forget the pages that they keep in memory, as they were.
                    cursor.execute(f"PRAGMA user_version = {(version + 1) % 2**31}")
                    cursor.execute("COMMIT")
            finally:
                raw.invalidate()  # which rolls back, and forgets as well
        return True

    def empty_log(self, pause: Callable[[float], None]) -> None:
        """Empty the log; raise WorkspaceBusyError if another reads an old state for too long."""
        until = time.monotonic() + _WAIT
        while True:
            with _explained():
                raw = self.engine.raw_connection()
                try:
                    with crash_point("checkpoint", self.url):
                        busy = raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                finally:
                    raw.close()
            if not busy:
                return
            if time.monotonic() > until:
                raise WorkspaceBusyError(
                    "another process has been reading the ledger for too long; expected it to "
                    "end; stop it and run the command again"
                )
            pause(0.05)


def sqlite_url(path: Path) -> str:
    """Return the URL of a file."""
    return f"sqlite:///{path}"


def _uri_of_copy(path: Path) -> str:
    """Return the URI of a file in a folder that SQLite cannot write to."""
    log, index = (path.with_name(f"{path.name}-{what}") for what in ("wal", "shm"))
    is_empty = not log.exists() or log.stat().st_size == 0
    if not is_empty and not index.exists():
        raise disk_failure(
            f"it is a copy for reading alone, and {log.name!r} beside it holds what was written "
            "last; let somebody who may write open it first"
        )
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_empty else ''}"


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("erasable_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ErasableError:
        raise
    except OSError as error:
        raise disk_failure(error.strerror or str(error)) from None
    except (OperationalError, sqlite3.OperationalError) as error:
        raised = getattr(error, "orig", error)
        message, code = str(raised), getattr(raised, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise WorkspaceBusyError(
                "another process is writing to the ledger; expected it to end within "
                f"{_WAIT:.0f} seconds; run the command again"
            ) from None
        if code in _DISK:
            raise disk_failure(message) from None
        if undecoded := _UNDECODED.match(message):  # the rest repeats the value
            message = f"column {undecoded[1]!r} holds text that is not UTF-8"
        raise damaged_ledger(message) from None
    except (DatabaseError, sqlite3.DatabaseError) as error:
        raise damaged_ledger(str(getattr(error, "orig", error))) from None

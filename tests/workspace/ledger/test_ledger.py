"""The ledger: atomic, durable, and without a trace of what was deleted."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, delete, insert, select, text

import erasable.workspace.ledger as room
from erasable.core.errors import (
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceError,
    WorkspaceVersionError,
)
from erasable.workspace.ledger import engine, sqlite
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import identity, meta, metadata, suppression
from erasable.workspace.store import crash_points

MARKER = "5ec7e7a9" * 4


def make(folder: Path) -> Ledger:
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    ledger.create()
    return ledger


def test_migrations_make_the_schema(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    with ledger.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        differences = compare_metadata(context, metadata)
    assert [d for d in differences if "alembic_version" not in str(d)] == []


@pytest.mark.parametrize("name", ["a?b", "a?mode=ro&b=1", "a#b", "a%20b%3f", "a;b", "ä b"])
def test_a_folder_has_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    ledger = make(folder)
    ledger.purge()
    ledger.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (folder / "ledger.db").stat().st_size > 0


def test_the_newest_migration_is_the_one_that_is_checked() -> None:
    migrations = Path(room.__file__).parent / "migrations"
    assert ScriptDirectory(str(migrations)).get_current_head() == engine.REVISION


def test_all_or_nothing(tmp_path: Path) -> None:
    ledger = make(tmp_path)

    def stumble() -> None:
        with ledger.transaction() as connection:
            ledger.set(connection, "a", 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stumble()
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") is None
    with ledger.transaction() as connection:
        ledger.set(connection, "a", {"b": [1, None]})
        ledger.set(connection, "a", {"b": [2, None]})
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") == {"b": [2, None]}


def test_an_error_at_the_commit_leaves_nothing(tmp_path: Path) -> None:
    ledger = make(tmp_path)

    def fail(effect: str, where: str) -> None:
        if effect == "commit":
            raise OSError(28, "No space left on device")

    def change() -> None:
        with ledger.transaction() as connection:
            ledger.set(connection, "a", 1)

    with crash_points.watch(fail), pytest.raises(WorkspaceDiskError, match="No space"):
        change()
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") is None


def test_pragmas(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    with ledger.reading() as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}


def traces(folder: Path) -> int:
    return sum(path.read_bytes().count(MARKER.encode()) for path in folder.iterdir())


def fill_and_delete(ledger: Ledger) -> None:
    rows = [{"token": f"{MARKER}{i:04d}", "type": "id", "subject": "s"} for i in range(500)]
    with ledger.transaction() as connection:
        connection.execute(insert(identity), rows)
    with ledger.transaction() as connection:
        connection.execute(delete(identity).where(identity.c.token.like(f"{MARKER}%")))


def test_nothing_is_left_of_deleted_rows(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    keeps_the_log = ledger.engine.connect()  # the last to leave would empty it
    try:
        fill_and_delete(ledger)
        assert traces(tmp_path) > 0  # in the write-ahead log, until it is emptied
        ledger.checkpoint()
        assert traces(tmp_path) == 0
    finally:
        keeps_the_log.close()


def test_without_secure_delete_they_would_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = tuple(p for p in sqlite._PRAGMAS if "secure_delete" not in p)
    monkeypatch.setattr(sqlite, "_PRAGMAS", (*careless, "PRAGMA secure_delete = OFF"))
    ledger = make(tmp_path)
    fill_and_delete(ledger)
    ledger.checkpoint()
    assert traces(tmp_path) > 0


def test_a_reader_holds_up_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_WAIT", 0.05)
    monkeypatch.setattr(sqlite, "_PRAGMAS", ("PRAGMA busy_timeout = 50", *sqlite._PRAGMAS[1:]))
    ledger = make(tmp_path)
    with ledger.reading() as connection:
        connection.execute(select(meta)).all()
        with ledger.transaction() as other:
            ledger.set(other, "a", 1)
        with pytest.raises(WorkspaceBusyError, match="run the command again"):
            ledger.checkpoint()
    ledger.checkpoint()


def test_two_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_PRAGMAS", ("PRAGMA busy_timeout = 50", *sqlite._PRAGMAS[1:]))
    ledger = make(tmp_path)
    with ledger.transaction() as connection:
        ledger.set(connection, "a", 1)
        with pytest.raises(WorkspaceBusyError), ledger.transaction() as other:
            ledger.set(other, "a", 2)
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") == 1


def test_writers_of_several_processes_wait_for_each_other(tmp_path: Path) -> None:
    make(tmp_path)
    program = (
        "import sys\n"
        "from erasable.workspace.ledger.engine import Ledger\n"
        "ledger = Ledger(sys.argv[1])\n"
        "for i in range(40):\n"
        "    with ledger.transaction() as connection:\n"
        "        ledger.set(connection, 'n', ledger.get(connection, 'n', 0) + 1)\n"
    )
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    running = [subprocess.Popen([sys.executable, "-c", program, url]) for _ in range(3)]
    assert [each.wait() for each in running] == [0, 0, 0]
    ledger = Ledger(url)
    with ledger.reading() as connection:
        assert ledger.get(connection, "n") == 120


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.check()
    with ledger.transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(WorkspaceVersionError, match="newer one"):
        ledger.check()


def test_damage_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(WorkspaceError, match="restore it from a backup") as told:
        Ledger(f"sqlite:///{path}").check()
    assert "\n" not in str(told.value)


def test_another_database_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    sqlite3.connect(path).execute("CREATE TABLE t (x)")
    with pytest.raises(WorkspaceError, match="is damaged or is not a ledger"):
        Ledger(f"sqlite:///{path}").check()


def test_times_are_kept_to_the_microsecond(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    moments = [
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
        datetime(9999, 12, 31, tzinfo=UTC) - timedelta(microseconds=1),
    ]
    with ledger.transaction() as connection:
        for number, at in enumerate(moments):
            row = {"token": str(number), "type": "id", "request_id": "R", "since": at}
            connection.execute(insert(suppression).values(row))
    with ledger.reading() as connection:
        query = select(suppression.c.since).order_by(suppression.c.token)
        assert list(connection.execute(query).scalars()) == moments


def test_a_transaction_that_only_reads_reads_once(tmp_path: Path) -> None:
    ledger, asked = make(tmp_path), list[Connection]()

    @engine.once
    def colour(connection: Connection) -> object:
        asked.append(connection)
        return ledger.get(connection, "colour")

    with ledger.transaction() as connection:  # it sees what it writes
        assert colour(connection) is None
        ledger.set(connection, "colour", "red")
        assert colour(connection) == "red"
    assert len(asked) == 2
    with ledger.reading() as connection:
        assert [colour(connection) for _ in range(3)] == ["red"] * 3
        assert len(asked) == 3
        with ledger.transaction() as writer:
            ledger.set(writer, "colour", "blue")
        assert colour(connection) == ledger.get(connection, "colour") == "red"  # its state
    with ledger.reading() as connection:  # and no other transaction's
        assert colour(connection) == "blue"
    assert len(asked) == 4

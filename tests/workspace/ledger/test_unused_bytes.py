"""Copies of deleted rows in unused bytes of a ledger's file are overwritten."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from erasable.core.errors import WorkspaceDiskError
from erasable.workspace.ledger import sqlite, unused_bytes
from erasable.workspace.ledger.sqlite import Sqlite, sqlite_url
from erasable.workspace.store import crash_points

_TABLES = (
    "CREATE TABLE t (token TEXT PRIMARY KEY, value TEXT)",
    "CREATE INDEX ix ON t (value)",
    "CREATE TABLE w (token TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
)


def _pause(seconds: float) -> None:
    pass


def _backend(folder: Path) -> Sqlite:
    return Sqlite(sqlite_url(folder / "ledger.db"))


def _run(backend: Sqlite, *queries: tuple[str, list[Any]]) -> None:
    raw = backend.engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        for query, rows in queries:
            cursor.executemany(query, rows) if rows else cursor.execute(query)
        cursor.execute("COMMIT")
    finally:
        raw.close()


def _filled(folder: Path, seed: int = 0) -> tuple[Sqlite, set[str]]:
    """Return a database with rows that have come and gone at random, and the tokens gone."""
    backend, rng = _backend(folder), np.random.default_rng(seed)
    _run(backend, *((each, []) for each in _TABLES))
    left, away = set[str](), set[str]()
    for turn in range(30):
        new = [f"token-{turn:02d}-{n:09d}" for n in rng.integers(10**9, size=60)]
        long = [int(rng.choice([3, 40, 900, 9000], p=[0.4, 0.4, 0.15, 0.05])) for _ in new]
        rows = [(each, f"{each}/" * (n // 20 + 1)) for each, n in zip(new, long, strict=True)]
        gone = [each for each in sorted({*left, *new}) if rng.random() < 0.3]
        left, away = {*left, *new} - set(gone), {*away, *gone}
        grown = [(f"{each}/" * 3, each) for each in sorted(left) if rng.random() < 0.1]
        queries = [
            (query.replace("?t", table), values)
            for table in "tw"
            for query, values in (
                ("INSERT INTO ?t VALUES (?, ?)", rows),
                ("DELETE FROM ?t WHERE token = ?", [(each,) for each in gone]),
                ("UPDATE ?t SET value = ? WHERE token = ?", grown),
            )
            if values
        ]
        _run(backend, *queries)
    backend.empty_log(_pause)
    return backend, away


def _traces(folder: Path, gone: set[str]) -> int:
    """Count the tokens of deleted rows in the files."""
    data = b"".join(path.read_bytes() for path in folder.iterdir())
    return sum(data.count(each.encode()) for each in gone)


def _rows(backend: Sqlite) -> list[Any]:
    raw = backend.engine.raw_connection()
    try:
        cursor = raw.cursor()
        assert cursor.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [cursor.execute(f"SELECT * FROM {each} ORDER BY token").fetchall() for each in "tw"]
    finally:
        raw.close()


@pytest.fixture
def vacuums(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List the statements that write the file anew."""
    found: list[str] = []
    opened = Sqlite._open

    def watched(self: Sqlite, connection: Any, record: Any) -> None:
        opened(self, connection, record)
        connection.set_trace_callback(lambda each: found.append(each) if each == "VACUUM" else None)

    monkeypatch.setattr(Sqlite, "_open", watched)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_rows_that_were_moved_are_overwritten(
    tmp_path: Path, vacuums: list[str], seed: int
) -> None:
    backend, gone = _filled(tmp_path, seed)
    before = _rows(backend)
    assert _traces(tmp_path, gone) > 0  # although each was overwritten where it was deleted
    backend.purge(_pause)
    backend.empty_log(_pause)
    assert _traces(tmp_path, gone) == 0
    assert _rows(backend) == before
    assert vacuums == []


def test_pages_that_another_connection_holds_in_memory_do_not_bring_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, gone = _filled(tmp_path)
    empty = backend.empty_log
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("PRAGMA cache_size = -65536")
    other.execute("PRAGMA secure_delete = ON")

    def emptied(pause: Any) -> None:
        empty(pause)
        for each in "tw":
            other.execute(f"SELECT count(*) FROM {each} WHERE value LIKE '%.'").fetchall()

    monkeypatch.setattr(backend, "empty_log", emptied)
    backend.purge(_pause)
    for each in "tw":
        other.execute(f"UPDATE {each} SET value = substr(value, 1, length(value) - 1) || '+'")
    other.close()
    empty(_pause)
    assert _traces(tmp_path, gone) == 0


def test_locks_of_the_process_stay(tmp_path: Path) -> None:
    backend, _ = _filled(tmp_path)
    kept = backend.engine.connect()  # it reads and writes through the log, which nobody removes
    kept.exec_driver_sql("SELECT count(*) FROM t")
    kept.commit()
    backend.purge(_pause)
    program = (
        "import sqlite3, sys\n"
        "sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM t').fetchall()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "ledger.db")], check=True)
    assert (tmp_path / "ledger.db-wal").exists()
    kept.close()


def test_what_others_write_meanwhile_is_cleared_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vacuums: list[str]
) -> None:
    backend, gone = _filled(tmp_path)
    rows = [(f"token-{n}", "late") for n in range(3)]
    empty = backend.empty_log
    tries = []

    def emptied(pause: Any) -> None:
        empty(pause)
        tries.append(pause)
        if len(tries) < 3:
            _run(backend, ("INSERT INTO t VALUES (?, ?)", [rows[len(tries)]]))

    monkeypatch.setattr(backend, "empty_log", emptied)
    backend.purge(_pause)
    assert len(tries) == 3
    empty(_pause)
    assert _traces(tmp_path, gone) == 0
    assert vacuums == []


def _no_handle(monkeypatch: pytest.MonkeyPatch, backend: Sqlite) -> None:
    monkeypatch.setattr(unused_bytes, "_FOLDER", "/nowhere")


def _autovacuum(monkeypatch: pytest.MonkeyPatch, backend: Sqlite) -> None:
    raw = backend.engine.raw_connection()
    raw.cursor().execute("PRAGMA auto_vacuum = FULL")
    raw.cursor().execute("VACUUM")
    raw.close()
    backend.empty_log(_pause)


def _much_is_free(monkeypatch: pytest.MonkeyPatch, backend: Sqlite) -> None:
    _run(backend, ("DELETE FROM w", []), ("DROP INDEX ix", []))


@pytest.mark.parametrize("cause", [_no_handle, _autovacuum, _much_is_free])
def test_else_the_file_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vacuums: list[str], cause: Any
) -> None:
    backend, gone = _filled(tmp_path)
    cause(monkeypatch, backend)
    vacuums.clear()
    backend.purge(_pause)
    backend.empty_log(_pause)
    assert vacuums == ["VACUUM"]
    assert _traces(tmp_path, gone) == 0
    assert (tmp_path / "ledger.db").stat().st_size % 4096 == 0
    _rows(backend)


def test_a_file_with_reserved_bytes_is_not_changed(tmp_path: Path) -> None:
    """Pages have checksums there, or are encrypted."""
    backend, _ = _filled(tmp_path)
    backend.engine.dispose()
    path = tmp_path / "ledger.db"
    content = path.read_bytes()
    path.write_bytes(content[:20] + b"\x08" + content[21:])
    before = path.read_bytes()
    with path.open("r+b") as file, pytest.raises(unused_bytes.CannotClearError):
        unused_bytes.clear(file.fileno(), [2])
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [b"\0" * 4096, b"\xff" * 4096, b"\x05\x00\x08" + b"\x90" * 4093])
def test_nothing_of_an_unknown_layout_is_changed(tmp_path: Path, damage: bytes) -> None:
    backend, _ = _filled(tmp_path)
    backend.engine.dispose()
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    query = "SELECT rootpage FROM sqlite_master WHERE rootpage > 0"
    roots = [row[0] for row in connection.execute(query)]
    connection.close()
    with path.open("r+b") as file:
        file.seek(4096 * (roots[0] - 1))
        file.write(damage)
    before = path.read_bytes()
    with path.open("r+b") as file, pytest.raises(unused_bytes.CannotClearError):
        unused_bytes.clear(file.fileno(), roots[::-1])
    assert path.read_bytes() == before


def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, gone = _filled(tmp_path)

    def fail(effect: str, where: str) -> None:
        if effect == "write":
            raise OSError(5, "Input/output error")

    with crash_points.watch(fail), pytest.raises(WorkspaceDiskError, match="Input/output"):
        backend.purge(_pause)
    assert _traces(tmp_path, gone) > 0
    monkeypatch.setattr(sqlite, "_WAIT", 5.0)  # nobody holds a lock
    backend.purge(_pause)
    backend.empty_log(_pause)
    assert _traces(tmp_path, gone) == 0

"""A copy in PostgreSQL is the source, row by row; or there is none."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from backends import copy_of
from contexts import visits, write_csv
from crashes import fork, make_workspace
from filelock import FileLock
from postgres_server import Server
from sqlalchemy import insert, select
from test_in_a_database import tables as tables_of

from erasable.core.errors import (
    ErasableError,
    EvidenceError,
    LedgerError,
    NotInWorkspaceError,
    WorkspaceBusyError,
    WorkspaceError,
    WorkspaceServerError,
)
from erasable.workspace import Workspace
from erasable.workspace.backups import tables
from erasable.workspace.context import LEDGER, LOCK, Context
from erasable.workspace.evidence import consistency, receipts
from erasable.workspace.identity.keys import ELSEWHERE, KEYS
from erasable.workspace.ledger.address import PLACE, Address
from erasable.workspace.ledger.schema import PASSING, dataset, metadata
from erasable.workspace.store import crash_points


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which requests are completed, denied, held and pending."""
    path = make_workspace(tmp_path_factory.mktemp("source"))
    workspace = Workspace.open(path)
    workspace.process()
    workspace.head()
    denied, _, held = workspace.request(
        ["marker-patient-020", "marker-patient-021", "marker-patient-022"]
    )
    workspace.deny(denied.id, "a legal duty")
    workspace.hold(held.id, "identity in doubt")
    workspace.verify()
    workspace.context.ledger.close()
    return path


@pytest.fixture
def source(made: Path, tmp_path: Path) -> Path:
    path = copy_of(made, tmp_path / "ws")
    ledger = Context.open(path).ledger
    ledger.checkpoint()  # or whoever closes it last writes to the file
    ledger.close()
    return path


def content(workspace: Workspace) -> dict[str, list[tuple[object, ...]]]:
    """Return all rows as the rest of the workspace sees them, by the types of its columns."""
    with workspace.context.ledger.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }


def digest_of(folder: Path) -> dict[str, str]:
    """Digest every file but the lock, and what SQLite makes by looking."""
    by_looking = {LOCK, f"{LEDGER}-shm", f"{LEDGER}-wal"}
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in by_looking
    }


def test_a_copy_is_the_source(server: Server, database: str, source: Path, tmp_path: Path) -> None:
    workspace, before = Workspace.open(source), digest_of(source)
    copied = workspace.copy(tmp_path / "copy", database=server.url(database), schema="team")
    assert digest_of(source) == before
    other = Workspace.open(tmp_path / "copy")
    here, there = content(workspace), content(other)
    assert here == there
    assert copied.rows == {n: len(rows) for n, rows in here.items() if n not in PASSING}
    assert {"request", "receipt", "log_entry", "holding"} <= {
        n for n, k in copied.rows.items() if k
    }
    assert copied.path == str(tmp_path / "copy")
    assert copied.n_files == len(list(workspace.context.store.list())) > 4
    assert sorted(other.context.store.list()) == sorted(workspace.context.store.list())
    assert copied.n_receipts == 5
    assert (copied.log_size, copied.log_root) == (workspace.head()["size"], other.head()["root"])
    assert other.verify_log() == []
    for request in other.requests(["completed"]):
        body = other.receipt(request.id)
        assert body == workspace.receipt(request.id)
        assert receipts.check(body, workspace.public_key).request == request.id


def test_null_and_nothing_stay_apart(
    server: Server, database: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON's null is not SQL's; numbers and text of JSON stay what they are."""
    monkeypatch.setattr(consistency, "_strays", lambda _: [])
    workspace = Workspace.open(source)
    values = {"n": 1, "x": 1.5, "text": "1", "none": None, "deep": [{"a": "\0\u20ac\\"}, 10**18]}
    with workspace.context.ledger.transaction() as connection:
        for name, value in values.items():
            workspace.context.ledger.set(connection, name, value)
    workspace.copy(tmp_path / "copy", database=server.url(database))
    nothing = "SELECT count(*), count(tokens), count(condition) FROM request"
    counts = []
    for path in (source, tmp_path / "copy"):
        context = Context.open(path)
        with context.ledger.reading() as connection:
            found = {name: context.ledger.get(connection, name, "?") for name in values}
            assert found == values
            assert list(map(type, found.values())) == list(map(type, values.values()))
            counts.append(tuple(connection.exec_driver_sql(nothing).one()))
    assert counts[0] == counts[1]


def test_work_goes_on_in_the_copy(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    Workspace.open(source).copy(tmp_path / "copy", database=server.url(database))
    shutil.rmtree(source)
    workspace = Workspace.open(tmp_path / "copy")
    write_csv(tmp_path / "others.csv", visits(9, start=900))
    workspace.add_dataset("others", tmp_path / "others.csv", id_column="visit")
    with workspace.context.ledger.reading() as connection:
        ids = list(connection.execute(select(dataset.c.id).order_by(dataset.c.id)).scalars())
    assert ids == [1, 2, 3]  # counted on from the last
    done = workspace.process()
    assert len(done.requests) == 1
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    assert workspace.verify_log() == []


def test_from_one_database_to_another(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    url = server.url(database)
    Workspace.open(source).copy(tmp_path / "copy", database=url, schema="one")
    again = Workspace.open(tmp_path / "copy").copy(tmp_path / "again", database=url, schema="two")
    assert content(Workspace.open(source)) == content(Workspace.open(again.path))


def test_keys_that_lie_elsewhere_stay_there(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ELSEWHERE, str(tmp_path / "secrets" / "erasable.json"))
    workspace = Workspace.create(tmp_path / "ws")
    copied = workspace.copy(tmp_path / "copy", database=server.url(database))
    assert not (tmp_path / "copy" / KEYS).exists()
    assert Workspace.open(copied.path).public_key == workspace.public_key


def test_its_owner_alone_may_read_it(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    copied = Workspace.open(source).copy(tmp_path / "copy", database=server.url(database))
    places = [Path(copied.path), *Path(copied.path).rglob("*")]
    assert [path.name for path in places if path.stat().st_mode & 0o077] == []


# -- what is refused -------------------------------------------------------------------------------


def refused(source: Path, target: Path, url: str, error: type[ErasableError], match: str) -> None:
    """See that nothing is copied, and nothing changed."""
    before, there = digest_of(source), target.exists()
    with pytest.raises(error, match=match) as told:
        Workspace(Context.open(source, wait=0.01)).copy(target, database=url, schema="team")
    assert "\n" not in str(told.value)
    assert "; expected " in str(told.value)
    assert digest_of(source) == before
    assert target.exists() == there


def test_a_folder_that_is_in_use(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    url = server.url(database)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("full", "file", "ws", "ws/artifacts/copy", "missing/copy"):
        refused(source, tmp_path / name, url, WorkspaceError, "in use|of the workspace|be made")
    assert (tmp_path / "full" / "x").read_text() == "mine"
    assert tables_of(server, database) == 0


def test_an_empty_folder_will_do(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "copy").mkdir()
    Workspace.open(source).copy(tmp_path / "copy", database=server.url(database))
    assert Workspace.open(tmp_path / "copy").verify_log() == []


def test_an_empty_folder_stays_as_it_was(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "copy").mkdir(mode=0o755)
    lose_a_file(source)
    url = server.url(database)
    refused(source, tmp_path / "copy", url, NotInWorkspaceError, "is not in the workspace")
    assert list((tmp_path / "copy").iterdir()) == []
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o755


def test_a_schema_that_is_in_use(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    Workspace.create(tmp_path / "first", database=server.url(database), schema="team")
    url = server.url(database)
    refused(source, tmp_path / "copy", url, WorkspaceError, "'team' of the database is in use")
    assert Workspace.open(tmp_path / "first").verify_log() == []


def test_a_server_that_is_not_there(source: Path, tmp_path: Path) -> None:
    url = f"postgresql://ann@/db?host={tmp_path}"
    refused(source, tmp_path / "copy", url, WorkspaceServerError, "can be reached")


def test_another_process_is_at_work(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    with FileLock(source / LOCK, is_singleton=False):
        refused(source, tmp_path / "copy", server.url(database), WorkspaceBusyError, "at work")
    assert tables_of(server, database) == 0


def tamper(source: Path, statement: str) -> None:
    with closing(sqlite3.connect(source / LEDGER)) as ledger:
        assert ledger.execute(statement).rowcount > 0
        ledger.commit()
        ledger.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def lose_a_file(source: Path) -> None:
    next(path for path in (source / "artifacts").rglob("*") if path.is_file()).unlink()


def alter_a_file(source: Path) -> None:
    path = next(path for path in (source / "artifacts").rglob("*") if path.is_file())
    path.write_bytes(path.read_bytes() + b"x")


ALTERED = "CAST(replace(CAST(body AS TEXT), 'payload', 'paylaod') AS BLOB)"
DAMAGES: dict[str, tuple[Callable[[Path], None], type[ErasableError], str]] = {
    "a file is lost": (lose_a_file, NotInWorkspaceError, "is not in the workspace"),
    "a file is altered": (alter_a_file, WorkspaceError, "altered or damaged"),
    "an entry of the log is removed": (
        lambda path: tamper(path, "DELETE FROM log_entry WHERE position = 3"),
        EvidenceError, "run `erasable log verify` on the source",
    ),
    "a request is removed": (
        lambda path: tamper(path, "DELETE FROM request WHERE state = 'denied'"),
        EvidenceError, "run `erasable log verify` on the source",
    ),
    "somebody is taken off the list": (
        lambda path: tamper(path, "DELETE FROM suppression WHERE rowid = 1"),
        EvidenceError, "run `erasable log verify` on the source",
    ),
    "a receipt is altered": (
        lambda path: tamper(path, f"UPDATE receipt SET body = {ALTERED}"),
        EvidenceError, "receipt",
    ),
    "a name is too long": (
        lambda path: tamper(path, f"UPDATE model SET hook = 1, state = '{'x' * 17}'"),
        WorkspaceError, "cannot hold a value",
    ),
    "JSON is none": (
        lambda path: tamper(path, "UPDATE request SET types = 'xyz'"),
        WorkspaceError, "cannot hold a value",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_a_source_that_does_not_hold(
    server: Server, database: str, source: Path, tmp_path: Path, name: str
) -> None:
    damage, error, match = DAMAGES[name]
    damage(source)
    refused(source, tmp_path / "copy", server.url(database), error, match)
    assert tables_of(server, database) == 0


def test_a_row_that_arrives_altered(
    server: Server, database: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison is by row: here the database rounds one number."""
    settled = tables._set_counter

    def alter(writing, table, schema):  # type: ignore[no-untyped-def]
        settled(writing, table, schema)
        if table.name == "measurement":
            writing.exec_driver_sql("UPDATE measurement SET seconds = seconds + 1e-9 WHERE id = 2")

    monkeypatch.setattr(tables, "_set_counter", alter)
    told = "row 2 of table 'measurement' arrived altered"
    refused(source, tmp_path / "copy", server.url(database), LedgerError, told)
    assert tables_of(server, database) == 0


@pytest.mark.parametrize("kind", ["lost", "twice"])
def test_a_row_that_is_lost_or_comes_twice(
    server: Server, database: str, source: Path, tmp_path: Path, kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    settled = tables._set_counter

    def change(writing, table, schema):  # type: ignore[no-untyped-def]
        settled(writing, table, schema)
        if table.name == "holding" and kind == "lost":
            writing.exec_driver_sql(
                "DELETE FROM holding WHERE token = (SELECT max(token) FROM holding)"
            )
        elif table.name == "holding":
            writing.execute(insert(table).values(token="z" * 64, dataset_id=1, bucket=0))

    monkeypatch.setattr(tables, "_set_counter", change)
    told = "of table 'holding' arrived altered"
    refused(source, tmp_path / "copy", server.url(database), LedgerError, told)


# -- it is cut off ---------------------------------------------------------------------------------


def effects(server: Server, source: Path, folder: Path) -> list[str]:
    """Return the effects of a copy, in order."""
    passed: list[str] = []
    name, workspace = server.database(), Workspace.open(source)
    with crash_points.watch(lambda effect, where: passed.append(effect)):
        workspace.copy(folder, database=server.url(name))
    server.drop(name)
    return passed


def test_a_disk_that_fails_leaves_nothing(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    url, before = server.url(database), digest_of(source)
    every = effects(server, source, tmp_path / "whole")
    for number in sorted({1, 2, 9, len(every) // 2, len(every) - 1, len(every)}):
        passed = 0

        def fail(effect: str, where: str, number: int = number) -> None:
            nonlocal passed
            passed += 1
            if passed == number:
                raise OSError(28, "No space left on device")

        workspace = Workspace.open(source)
        with crash_points.watch(fail), pytest.raises(WorkspaceError, match="No space"):
            workspace.copy(tmp_path / "copy", database=url)
        assert not (tmp_path / "copy").exists()
        assert tables_of(server, database) == 0
        assert digest_of(source) == before


def test_a_copy_that_was_killed_is_none(
    server: Server, database: str, source: Path, tmp_path: Path
) -> None:
    """Only the commit makes it; the schema stays empty before, and the folder can be removed."""
    url, before = server.url(database), digest_of(source)
    every = effects(server, source, tmp_path / "whole")
    for number in sorted({1, 9, len(every) // 2, len(every)}):

        def run(number: int = number) -> None:
            passed = 0

            def kill(effect: str, where: str) -> None:
                nonlocal passed
                passed += 1
                if passed == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            workspace = Workspace.open(source)
            with crash_points.watch(kill):
                workspace.copy(tmp_path / "copy", database=url)

        assert fork(run) == -signal.SIGKILL
        with pytest.raises(WorkspaceError):
            Workspace.open(tmp_path / "copy")
        assert tables_of(server, database) == 0
        assert digest_of(source) == before
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    Workspace.open(source).copy(tmp_path / "copy", database=url)


def test_the_source_takes_no_change_meanwhile(
    server: Server, database: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from erasable.workspace.ledger import sqlite

    quick = ("PRAGMA busy_timeout = 50", *sqlite._PRAGMAS[1:])
    monkeypatch.setattr(sqlite, "_PRAGMAS", quick)
    tried = []

    def ask(effect: str, where: str) -> None:
        if where.endswith(PLACE) and effect == "rename":
            with pytest.raises(WorkspaceBusyError):
                Workspace.open(source).request(["somebody"])
            tried.append(effect)

    with crash_points.watch(ask):
        Workspace.open(source).copy(tmp_path / "copy", database=server.url(database))
    assert tried
    assert Address.read(Context.find(tmp_path / "copy").disk) is not None

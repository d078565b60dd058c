"""What a server of PostgreSQL refuses is told in one line, with what to do."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from deleted_rows import fill_and_delete, traces
from postgres_server import SECRET, Server, running
from sqlalchemy import func, insert, select, text

from erasable.core.errors import (
    LedgerError,
    MissingPackageError,
    WorkspaceError,
    WorkspaceServerError,
    WorkspaceVersionError,
)
from erasable.workspace.ledger import postgres
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import identity, meta


def told(error: pytest.ExceptionInfo[WorkspaceError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert "; expected " in message
    assert SECRET not in message
    return message


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def roles(server: Server) -> Iterator[Server]:
    server.run(f"CREATE ROLE keyed LOGIN PASSWORD '{SECRET}'")
    server.run("CREATE ROLE guest LOGIN")
    yield server
    server.run("DROP ROLE keyed")
    server.run("DROP ROLE guest")


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(WorkspaceServerError, match="server that can be reached") as error:
        Ledger(f"postgresql://ann@127.0.0.1:{unused_port()}/db", "ws").check()
    told(error)


def test_a_host_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceServerError, match="start it, or correct the URL") as error:
        Ledger(f"postgresql://ann@/db?host={tmp_path}", "ws").check()
    told(error)


@pytest.mark.parametrize("given", [None, "wrong"])
def test_a_password_that_is_wrong_or_missing(
    roles: Server, database: str, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    if given is not None:
        monkeypatch.setenv("PGPASSWORD", given)
    with pytest.raises(WorkspaceServerError, match=r"PGPASSWORD, or in the file \.pgpass") as error:
        Ledger(roles.url(database, "keyed"), "ws").check()
    told(error)


def test_a_password_is_taken_from_the_environment(
    roles: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    roles.run(f"GRANT CREATE ON DATABASE {database} TO keyed")
    ledger = Ledger(roles.url(database, "keyed"), "ws")
    ledger.create()
    ledger.check()
    fill_and_delete(ledger)
    ledger.purge()  # a role that owns nothing but its schema may
    ledger.close()
    assert traces(roles, database) == 0
    roles.drop(database)


@pytest.mark.parametrize(("database", "role"), [("nowhere", "postgres"), ("postgres", "nobody")])
def test_a_database_or_role_that_is_not_there(server: Server, database: str, role: str) -> None:
    with pytest.raises(WorkspaceServerError, match="does not exist") as error:
        Ledger(server.url(database, role), "ws").check()
    told(error)


def test_a_role_that_may_not_make_a_schema(roles: Server, database: str) -> None:
    with pytest.raises(WorkspaceServerError, match="does not allow it") as error:
        Ledger(roles.url(database, "guest"), "ws").create()
    told(error)


def test_a_schema_that_was_made_for_it_will_do(roles: Server, database: str) -> None:
    with psycopg.connect(roles.url(database), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA ws AUTHORIZATION guest")
    ledger = Ledger(roles.url(database, "guest"), "ws")
    ledger.create()
    ledger.check()
    ledger.close()
    roles.drop(database)


def test_a_server_that_is_too_old(
    server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_OLDEST", 990000)
    with pytest.raises(WorkspaceVersionError, match="expected 15 or newer") as error:
        Ledger(server.url(database), "ws").check()
    ((number,),) = server.run("SHOW server_version_num")
    assert told(error).startswith(f"the database server is PostgreSQL {int(str(number)) // 10000};")


def test_a_database_in_another_coding(server: Server) -> None:
    server.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(WorkspaceServerError, match="keeps text as LATIN1; expected UTF8") as error:
        Ledger(server.url("latin"), "ws").check()
    told(error)
    server.drop("latin")


@pytest.mark.parametrize("made", [False, True], ids=["no schema", "an empty one"])
def test_a_schema_without_a_ledger(server: Server, database: str, made: bool) -> None:
    if made:
        with psycopg.connect(server.url(database), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA ws")
    with pytest.raises(LedgerError, match="schema 'ws' of the database holds no ledger") as error:
        Ledger(server.url(database), "ws").check()
    told(error)


def test_a_newer_ledger_is_refused(ledger: Ledger) -> None:
    ledger.check()
    with ledger.transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(WorkspaceVersionError, match="newer one"):
        ledger.check()


def test_a_value_that_it_cannot_hold(ledger: Ledger) -> None:
    def write(value: object) -> Callable[[], None]:
        def run() -> None:
            with ledger.transaction() as connection:
                connection.execute(insert(identity).values(token=value, type="id", subject="s"))

        return run

    for value in ("a\0b", "x" * 65):
        with pytest.raises(WorkspaceError, match="cannot hold a value of this command") as error:
            write(value)()
        assert "a\0b" not in told(error)


def test_a_server_that_can_only_be_read(ledger: Ledger) -> None:
    def write() -> None:
        with ledger.transaction() as connection:
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            ledger.set(connection, "a", 1)

    with pytest.raises(WorkspaceServerError, match="primary server"):
        write()


def test_a_statement_that_the_server_ends(ledger: Ledger) -> None:
    def wait() -> None:
        with ledger.transaction() as connection:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 1")
            connection.exec_driver_sql("SELECT pg_sleep(60)")

    with pytest.raises(WorkspaceServerError, match="ended a statement") as error:
        wait()
    told(error)


@pytest.mark.parametrize("at_commit", [False, True], ids=["before a statement", "at the commit"])
def test_a_connection_that_is_lost(
    server: Server, database: str, ledger: Ledger, at_commit: bool
) -> None:
    def lose() -> None:
        with ledger.transaction() as connection:
            ledger.set(connection, "a", 1)
            server.release(database)
            if not at_commit:
                ledger.set(connection, "b", 1)

    with pytest.raises(WorkspaceServerError, match="the connection to the database was lost") as e:
        lose()
    told(e)
    with ledger.reading() as connection:  # by a new one
        assert ledger.get(connection, "a") is None


def test_a_server_that_is_started_again_is_found_again() -> None:
    with running() as own:
        ledger = Ledger(own.url("postgres"), "ws")
        ledger.create()
        with ledger.transaction() as connection:
            ledger.set(connection, "a", 1)
        own.stop(signal.SIGQUIT)
        with pytest.raises(WorkspaceServerError), ledger.transaction() as connection:
            ledger.set(connection, "a", 2)
        own.start()
        with ledger.reading() as connection:
            assert ledger.get(connection, "a") == 1
            assert connection.execute(select(func.count()).select_from(meta)).scalar() == 1
        ledger.close()


def test_the_driver_is_missing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'erasable\[postgres\]'") as error:
        Ledger("postgresql://ann@db.example/models", "ws")
    assert "\n" not in str(error.value)


def test_waiting_is_as_long_as_it_says() -> None:
    assert postgres._SETTINGS["lock_timeout"] == f"{postgres.WAIT:.0f}s"

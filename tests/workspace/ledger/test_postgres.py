"""The ledger on PostgreSQL: as on SQLite, one writer, one state, and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
import threading

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from deleted_rows import MARKER, fill_and_delete, traces
from postgres_server import Server
from sqlalchemy import delete, insert, select, text, update

from erasable.core.errors import (
    WorkspaceBusyError,
    WorkspaceDiskError,
    WorkspaceServerError,
)
from erasable.workspace.ledger import postgres
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.postgres import Postgres
from erasable.workspace.ledger.schema import identity, meta, metadata, request
from erasable.workspace.store import crash_points


def test_migrations_make_the_schema(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        differences = compare_metadata(context, metadata)
    assert [d for d in differences if "alembic_version" not in str(d)] == []


def test_all_or_nothing(ledger: Ledger) -> None:
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
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") == {"b": [1, None]}


def test_an_error_at_the_commit_leaves_nothing(ledger: Ledger) -> None:
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


def test_two_workspaces_share_a_database(server: Server, database: str, ledger: Ledger) -> None:
    other = Ledger(server.url(database), "other")
    other.create()
    for one, value in ((ledger, "here"), (other, "there")):
        with one.transaction() as connection:
            one.set(connection, "place", value)
    with ledger.transaction() as mine, other.transaction() as theirs:  # nobody waits
        assert (ledger.get(mine, "place"), other.get(theirs, "place")) == ("here", "there")
    other.close()


# -- who is at work at the same time ---------------------------------------------------------------


def test_two_writers(impatient: None, ledger: Ledger) -> None:
    with ledger.transaction() as connection:
        ledger.set(connection, "a", 1)
        with pytest.raises(WorkspaceBusyError, match="run"), ledger.transaction() as other:
            ledger.set(other, "a", 2)
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") == 1


@pytest.mark.parametrize("alone", [True, False], ids=["ours", "without the lock"])
def test_writers_of_several_processes_wait_for_each_other(ledger: Ledger, alone: bool) -> None:
    program = (
        "import sys\n"
        "from erasable.workspace.ledger import postgres\n"
        "from erasable.workspace.ledger.engine import Ledger\n"
        "ledger = Ledger(sys.argv[1], 'ws')\n"
        "if not int(sys.argv[2]):\n"
        "    postgres._lock_key = lambda schema: __import__('os').getpid()\n"
        "    ledger = Ledger(sys.argv[1], 'ws')\n"
        "print(flush=True)\n"
        "sys.stdin.read()\n"
        "for i in range(60):\n"
        "    with ledger.transaction() as connection:\n"
        "        n = ledger.get(connection, 'n', 0)\n"
        "        ledger.set(connection, 'n', n + 1)\n"
    )
    with ledger.transaction() as connection:
        ledger.set(connection, "n", 0)
    running_ones = [
        subprocess.Popen(
            [sys.executable, "-c", program, ledger.url, str(int(alone))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for each in running_ones:
        assert each.stdout is not None
        each.stdout.readline()
    for each in running_ones:
        assert each.stdin is not None
        each.stdin.close()
    assert [each.wait() for each in running_ones] == [0, 0, 0]
    for each in running_ones:
        assert each.stdout is not None
        each.stdout.close()
    with ledger.reading() as connection:
        assert (ledger.get(connection, "n") == 180) is alone


def test_who_reads_sees_one_state_and_cannot_write(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") is None
        with ledger.transaction() as other:
            ledger.set(other, "a", 1)
        assert ledger.get(connection, "a") is None
    with ledger.reading() as connection:
        assert ledger.get(connection, "a") == 1
    with pytest.raises(WorkspaceServerError, match="only be read"), ledger.reading() as connection:
        ledger.set(connection, "a", 2)


def test_a_writer_sees_what_was_committed_while_it_waited(ledger: Ledger) -> None:
    """A snapshot that was taken before the lock would not show it."""
    begun, seen = threading.Event(), []

    def wait_and_look() -> None:
        begun.set()
        with ledger.transaction() as other:
            seen.append(ledger.get(other, "a"))

    waiting = threading.Thread(target=wait_and_look)
    with ledger.transaction() as connection:
        ledger.set(connection, "a", 1)
        waiting.start()
        begun.wait()
        held = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        while not connection.execute(held).scalar():
            pass
    waiting.join()
    assert seen == [1]


# -- what is left ----------------------------------------------------------------------------------


def test_nothing_is_left_of_deleted_rows(server: Server, database: str, ledger: Ledger) -> None:
    fill_and_delete(ledger)
    assert traces(server, database) > 0
    ledger.purge()
    assert traces(server, database) == 0


def test_the_log_of_the_server_is_out_of_reach_as_is_said(
    server: Server, database: str, ledger: Ledger
) -> None:
    fill_and_delete(ledger)
    ledger.purge()
    assert traces(server, database) == 0
    log = [path for path in (server.data / "pg_wal").iterdir() if path.is_file()]
    assert sum(path.read_bytes().count(MARKER.encode()) for path in log) > 0
    assert any("write-ahead log" in each for each in ledger.backend.unreached)


def test_after_a_plain_vacuum_they_would_be_left(
    server: Server, database: str, ledger: Ledger
) -> None:
    fill_and_delete(ledger)
    server.files(database)
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute("VACUUM ws.identity")
        left = connection.execute("SELECT count(*) FROM ws.identity").fetchone()
    assert left == (0,)
    assert traces(server, database) > 0


def test_nothing_is_left_of_what_was_too_long_for_a_row(
    server: Server, database: str, ledger: Ledger
) -> None:
    """Such values lie in a table of their own, here not compressed: in 2,000 pieces of a token."""
    pieces = [[f"{MARKER}{i:06d}", f"{i * 7919 % 10**9:09d}" * 4] for i in range(2000)]
    with ledger.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE request ALTER COLUMN tokens SET STORAGE EXTERNAL")
        connection.execute(
            text(
                "INSERT INTO request (id, state, regulation, received_at, changed_at, tokens) "
                "VALUES ('R-1', 'pending', 'none', 0, 0, CAST(:tokens AS json))"
            ),
            {"tokens": str(pieces).replace("'", '"')},
        )
    assert traces(server, database) > 1000
    with ledger.transaction() as connection:
        connection.execute(update(request).values(tokens=None))
    ledger.purge()
    assert traces(server, database) == 0


@pytest.mark.parametrize("kept", [False, True], ids=["ours", "as the server would"])
def test_no_sample_is_kept_in_the_statistics(
    server: Server, database: str, ledger: Ledger, kept: bool
) -> None:
    rows = [{"token": f"{MARKER}{i:04d}", "type": "id", "subject": "s"} for i in range(500)]
    with ledger.transaction() as connection:
        if kept:
            connection.exec_driver_sql("ALTER TABLE identity ALTER COLUMN token SET STATISTICS -1")
        connection.execute(insert(identity), rows)
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute("ANALYZE")
        with ledger.transaction() as deleting:
            deleting.execute(delete(identity))
        ledger.purge()
        sampled = connection.execute(  # compressed, so that a search for bytes might miss it
            "SELECT count(*) FROM pg_stats WHERE schemaname = 'ws' AND (strpos("
            f"histogram_bounds::text, '{MARKER}') > 0 OR attname = 'token')"
        ).fetchone()
    assert traces(server, database) == 0
    assert sampled == (int(kept),)


def test_a_reader_holds_up_a_purge(impatient: None, ledger: Ledger) -> None:
    fill_and_delete(ledger)
    with ledger.reading() as connection:
        connection.execute(select(meta)).all()
        with pytest.raises(WorkspaceBusyError, match="run the command again"):
            ledger.purge()
    ledger.purge()


class Trusting(Postgres):
    """Does not look whether the server kept deleted rows."""

    def _rewrite_table(self, connection, table, *given):  # type: ignore[no-untyped-def]
        connection.exec_driver_sql(f'VACUUM (FULL) "{self.schema}"."{table}"')


def test_so_does_who_reads_something_else_in_the_database(
    server: Server, database: str, ledger: Ledger, impatient: None
) -> None:
    with psycopg.connect(server.url(database)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM pg_class")
        fill_and_delete(ledger)
        with pytest.raises(WorkspaceBusyError, match="still open in the database, and may see"):
            ledger.purge()
        ours, ledger.backend = ledger.backend, Trusting(ledger.url, "ws")
        ledger.purge()
        ledger.close()
        ledger.backend = ours
        assert traces(server, database) > 0  # so it has to be looked
    ledger.purge()
    assert traces(server, database) == 0


def test_so_does_a_transaction_that_was_prepared(
    server: Server, database: str, ledger: Ledger, impatient: None
) -> None:
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute("CREATE TABLE theirs (x int)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO theirs VALUES (1)")
        connection.execute("PREPARE TRANSACTION 'forgotten'")
        fill_and_delete(ledger)
        with pytest.raises(WorkspaceBusyError, match="pg_prepared_xacts"):
            ledger.purge()
        connection.execute("ROLLBACK PREPARED 'forgotten'")
    ledger.purge()
    assert traces(server, database) == 0


def test_transactions_are_counted_beyond_32_bits(ledger: Ledger) -> None:
    """As on a server that has had more than four billion of them."""
    values = {"schema": "ws", "table": "identity"}
    with ledger.reading() as connection:
        now = connection.execute(text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text"))
        number = int(now.scalar_one())
        for before, clean in ((3, True), (number + 10**6, False)):
            for epoch in (0, 7 * 2**32):
                found = connection.execute(postgres._CLEAN, {**values, "before": before + epoch})
                assert found.scalar_one() is clean


def test_a_view_that_somebody_made_is_no_table(
    server: Server, database: str, ledger: Ledger
) -> None:
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute("CREATE VIEW ws.waiting AS SELECT id FROM ws.request")
    fill_and_delete(ledger)
    ledger.purge()
    assert traces(server, database) == 0


def test_who_reads_another_database_does_not(
    server: Server, database: str, ledger: Ledger, impatient: None
) -> None:
    with psycopg.connect(server.url("postgres")) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT count(*) FROM pg_class")
        fill_and_delete(ledger)
        ledger.purge()
    assert traces(server, database) == 0


def test_text_is_sorted_as_sqlite_sorts_it(ledger: Ledger) -> None:
    with ledger.reading() as connection:
        sorts = text(
            "SELECT count(*) FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE "
            "relnamespace = 'ws'::regnamespace AND relkind = 'r') AND attcollation = "
            "'\"default\"'::regcollation"
        )
        assert connection.execute(sorts).scalar() == 0

"""A workspace whose ledger is in PostgreSQL: made, found again, and refused where it should be."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psycopg
import pytest
from contexts import scan, visits, write_csv
from crashes import MARKERS, fork, make_workspace
from postgres_server import SECRET, Server
from sqlalchemy import text

from erasable.core.errors import (
    EvidenceError,
    LedgerError,
    WorkspaceBusyError,
    WorkspaceError,
    WorkspaceServerError,
    WorkspaceVersionError,
)
from erasable.workspace import Workspace
from erasable.workspace.context import LEDGER, Context
from erasable.workspace.evidence import receipts
from erasable.workspace.ledger.address import PLACE, Address
from erasable.workspace.ledger.engine import REVISION, Ledger
from erasable.workspace.store import crash_points


def tables(server: Server, database: str) -> int:
    """Count the tables of a database that are not the server's own."""
    with psycopg.connect(server.url(database)) as connection:
        found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname !~ '^(pg|inf)'")
        ((n,),) = found.fetchall()
        return int(n)


def test_the_folder_says_where_the_ledger_is(server: Server, database: str, tmp_path: Path) -> None:
    Workspace.create(tmp_path / "ws", database=server.url(database), schema="clinic")
    said = json.loads((tmp_path / "ws" / PLACE).read_text())
    assert said == {"version": 1, "url": server.url(database), "schema": "clinic"}
    assert not (tmp_path / "ws" / LEDGER).exists()
    assert (tmp_path / "ws" / PLACE).stat().st_mode & 0o077 == 0
    workspace = Workspace.open(tmp_path / "ws")
    assert workspace.verify_log() == []
    assert workspace.context.ledger.engine.dialect.name == "postgresql"


def test_what_is_out_of_reach_is_told(server: Server, database: str, tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws", database=server.url(database))
    (request,) = workspace.request(["nobody"])
    workspace.process()
    told = receipts.show(workspace.receipt(request.id))["out_of_reach"]
    assert told == workspace.status()["unreached"]
    more = [each for each in told if "database server" in each]
    assert [each.partition(" of ")[0] for each in more] == [
        "the write-ahead log", "replicas and backups", "the log files",
        "files that the database server leaves in its folder when it crashes",
    ]  # fmt: skip
    alone = Workspace.create(tmp_path / "alone").status()["unreached"]
    assert told == [*alone, *more]


def test_two_workspaces_share_a_database(server: Server, database: str, tmp_path: Path) -> None:
    url = server.url(database)
    one = Workspace.create(tmp_path / "one", database=url, schema="one")
    other = Workspace.create(tmp_path / "other", database=url, schema="other")
    one.request(["somebody"])
    assert (len(one.requests()), len(other.requests())) == (1, 0)
    other.process()
    assert one.status()["requests"] == {"pending": 1}


@pytest.mark.parametrize("by", ["a workspace", "something else"])
def test_a_schema_that_is_in_use_is_refused(
    server: Server, database: str, tmp_path: Path, by: str
) -> None:
    if by == "a workspace":
        Workspace.create(tmp_path / "one", database=server.url(database))
    else:
        with psycopg.connect(server.url(database), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA erasable CREATE VIEW erasable.v AS SELECT 1")
    before = tables(server, database)
    with pytest.raises(WorkspaceError, match="schema 'erasable' of the database is in use") as told:
        Workspace.create(tmp_path / "other", database=server.url(database))
    assert "\n" not in str(told.value)
    assert not (tmp_path / "other").exists()
    assert tables(server, database) == before


@pytest.mark.parametrize("first", ["sqlite", "postgres"])
def test_a_folder_that_holds_a_workspace_is_refused(
    server: Server, database: str, tmp_path: Path, first: str
) -> None:
    Workspace.create(tmp_path, database=server.url(database) if first == "postgres" else None)
    for url in (None, server.url("postgres")):
        with pytest.raises(WorkspaceError, match="holds a workspace already"):
            Workspace.create(tmp_path, database=url)
    with pytest.raises(WorkspaceError):
        Workspace.create(tmp_path, database=server.url(database))
    assert Workspace.open(tmp_path).verify_log() == []
    assert tables(server, "postgres") == 0


def test_a_server_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    url = f"postgresql://ann@/db?host={tmp_path}"
    with pytest.raises(WorkspaceServerError, match="expected a server that can be reached"):
        Workspace.create(tmp_path / "ws", database=url)
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(
    ("url", "schema", "told"),
    [
        (f"postgresql://ann:{SECRET}@db.example/models", None, "holds a password"),
        (f"postgresql://ann@db.example/models?password={SECRET}", None, "holds a password"),
        ("postgresql://ann@db.example/models?options=-cx", None, "holds a password or options"),
        ("postgresql://ann@db.example", None, "cannot be used"),
        ("mysql://ann@db.example/models", None, "cannot be used"),
        ("sqlite:///ledger.db", None, "cannot be used"),
        ("postgresql+asyncpg://ann@db.example/models", None, "cannot be used"),
        ("models", None, "cannot be used"),
        ("", None, "cannot be used"),
        ("postgresql://ann@db.example/models", "public", "cannot be the schema"),
        ("postgresql://ann@db.example/models", "pg_mine", "cannot be the schema"),
        ("postgresql://ann@db.example/models", 'a"; drop', "cannot be the schema"),
        ("postgresql://ann@db.example/models", "a" * 64, "cannot be the schema"),
        ("postgresql://ann@db.example/models", "", "cannot be the schema"),
        (None, "clinic", "without a database"),
    ],
)
def test_an_address_that_cannot_be_used(
    tmp_path: Path, url: str | None, schema: str | None, told: str
) -> None:
    with pytest.raises(WorkspaceError, match=told) as error:
        Workspace.create(tmp_path / "ws", database=url, schema=schema)
    assert "\n" not in str(error.value)
    assert SECRET not in str(error.value)
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize("url", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_url_is_kept_in_one_way(url: str) -> None:
    found = Address.parse(f"{url}://ann@db.example:5433/models?sslmode=require")
    assert found.url == "postgresql://ann@db.example:5433/models?sslmode=require"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"version": 2, "url": "postgresql://a@b/c", "schema": "d"}',
                '{"version": 1, "url": 3, "schema": "d"}'],
)  # fmt: skip
def test_a_damaged_place_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / PLACE).write_text(content)
    with pytest.raises(LedgerError, match="does not say where the ledger is") as told:
        Workspace.open(tmp_path)
    assert "\n" not in str(told.value)


def test_the_ledger_of_another_workspace_is_found_out(
    server: Server, database: str, tmp_path: Path
) -> None:
    url = server.url(database)
    Workspace.create(tmp_path / "one", database=url, schema="one")
    Workspace.create(tmp_path / "other", database=url, schema="other")
    (tmp_path / "one" / PLACE).write_bytes((tmp_path / "other" / PLACE).read_bytes())
    with pytest.raises(EvidenceError, match="the keys are not those of this workspace"):
        Workspace.open(tmp_path / "one").request(["somebody"])


def test_two_that_are_made_in_one_schema_at_once(
    server: Server, database: str, tmp_path: Path
) -> None:
    url, other = server.url(database), []

    def meanwhile(effect: str, where: str) -> None:
        if where.endswith(f"first/{PLACE}") and effect == "rename":
            other.append(Workspace.create(tmp_path / "second", database=url))

    with crash_points.watch(meanwhile), pytest.raises(WorkspaceError, match="is in use"):
        Workspace.create(tmp_path / "first", database=url)
    assert not (tmp_path / "first" / PLACE).exists()
    other[0].request(["somebody"])
    assert other[0].verify_log() == []


# -- making it is cut off --------------------------------------------------------------------------


def test_a_making_that_fails_leaves_no_workspace(
    server: Server, database: str, tmp_path: Path
) -> None:
    def fail(effect: str, where: str) -> None:
        if effect == "commit":
            raise OSError(28, "No space left on device")

    with crash_points.watch(fail), pytest.raises(WorkspaceError, match="No space"):
        Workspace.create(tmp_path / "ws", database=server.url(database))
    assert not (tmp_path / "ws" / PLACE).exists()
    assert tables(server, database) == 0
    Workspace.create(tmp_path / "ws", database=server.url(database))


def test_a_making_that_was_killed_can_be_done_again(
    server: Server, database: str, tmp_path: Path
) -> None:
    """At each of its effects: it is made, or it is made when it is asked for again."""
    url, made = server.url(database), []
    for number in range(1, 100):
        path = tmp_path / str(number)

        def create(path: Path = path, number: int = number) -> None:
            passed = 0

            def kill(effect: str, where: str) -> None:
                nonlocal passed
                passed += 1
                if passed == number:
                    os.kill(os.getpid(), signal.SIGKILL)

            with crash_points.watch(kill):
                Workspace.create(path, database=url, schema=f"s{number}")

        died = fork(create) == -signal.SIGKILL
        if died:
            with pytest.raises(WorkspaceError):
                Workspace.open(path)
            Workspace.create(path, database=url, schema=f"s{number}")
        assert Workspace.open(path).verify_log() == []
        made.append(died)
        if not died:
            break
    assert made == [True] * (len(made) - 1) + [False]
    assert len(made) > 5


def test_a_request_is_not_completed_while_somebody_may_see_what_was_erased(
    server: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from erasable.workspace.ledger import postgres

    monkeypatch.setattr(postgres, "WAIT", 0.2)
    workspace = Workspace.create(tmp_path / "ws", database=server.url(database))
    write_csv(tmp_path / "visits.csv", visits(30))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    (request,) = workspace.request(["marker-patient-3"])
    token = workspace.context.keys.token("id", "marker-patient-3")
    looking = psycopg.connect(server.url(database))
    with looking:
        looking.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        looking.execute("SELECT 1 FROM pg_class LIMIT 1")
        with pytest.raises(WorkspaceBusyError, match="may see what was erased"):
            workspace.process()
        assert workspace.requests()[0].state != "completed"
    looking.close()
    assert workspace.process().requests == [request.id]
    assert workspace.requests()[0].state == "completed"
    held = server.files_of_table(database, "erasable", "suppression")
    left = {each.name for each in server.files(database) if token.encode() in each.read_bytes()}
    assert left
    assert left <= held


# -- its tables are brought up to date -------------------------------------------------------------


def test_an_older_ledger_waits_until_it_is_told_to_go_on(
    server: Server, database: str, tmp_path: Path, newer: str
) -> None:
    path = tmp_path / "ws"
    Workspace.create(path, database=server.url(database))
    set_back(Context.find(path).ledger)
    with pytest.raises(WorkspaceVersionError, match="run `erasable workspace migrate`") as told:
        Workspace.open(path)
    assert "\n" not in str(told.value)
    assert Workspace.migrate(path) == (REVISION, newer)
    assert Workspace.migrate(path) == (newer, newer)
    assert Workspace.open(path).verify_log() == []


def test_an_older_file_is_brought_up_to_date_when_it_is_opened(tmp_path: Path, newer: str) -> None:
    Workspace.create(tmp_path)
    set_back(Context.find(tmp_path).ledger)
    assert Workspace.open(tmp_path).context.ledger.revision() == newer
    set_back(Context.find(tmp_path).ledger)
    assert Workspace.migrate(tmp_path) == (REVISION, newer)


def test_a_file_from_before_the_first_release_is_refused(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path)
    with workspace.context.ledger.transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    workspace.context.ledger.close()
    for attempt in (Workspace.open, Workspace.migrate):
        with pytest.raises(
            WorkspaceVersionError, match=r"revision 0004, of a .*the commit b2326690"
        ):
            attempt(tmp_path)


def test_a_migration_that_fails_changes_nothing(
    server: Server, database: str, tmp_path: Path, newer: str
) -> None:
    from erasable.workspace.ledger import engine

    path = tmp_path / "ws"
    Workspace.create(path, database=server.url(database))
    set_back(Context.find(path).ledger)
    (last,) = (engine._MIGRATIONS / "versions").glob("9999*")
    failing = "def upgrade():\n    upgrade_not()\n    raise OSError(28, 'No space')\n"
    said = last.read_text().replace("def upgrade", "def upgrade_not")
    last.write_text(f"{said}\n\n{failing}")
    with pytest.raises(WorkspaceError, match="No space"):
        Workspace.migrate(path)
    assert Context.find(path).ledger.revision() == REVISION


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have a version of erasable that knows one more revision; return its name."""
    import shutil

    from erasable.workspace import facade
    from erasable.workspace.ledger import engine

    shutil.copytree(engine._MIGRATIONS, tmp_path / "migrations")
    (tmp_path / "migrations" / "versions" / "9999_note.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n\n"
        f"revision, down_revision = '9999', '{REVISION}'\n"
        "branch_labels = depends_on = None\n\n"
        "def upgrade():\n    op.add_column('garbage', sa.Column('note', sa.Text()))\n\n"
        "def downgrade():\n    with op.batch_alter_table('garbage') as table:\n"
        "        table.drop_column('note')\n"
    )
    monkeypatch.setattr(engine, "_MIGRATIONS", tmp_path / "migrations")
    for module in (engine, facade):
        monkeypatch.setattr(module, "REVISION", "9999")
    return "9999"


def set_back(ledger: Ledger) -> None:
    """Make the tables those of the revision before."""
    from alembic import command
    from alembic.config import Config

    from erasable.workspace.ledger import engine

    config = Config()
    config.set_main_option("script_location", str(engine._MIGRATIONS))
    with ledger.transaction() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, REVISION)
    ledger.close()


def test_a_text_column_of_a_later_revision_keeps_no_samples_either(
    server: Server, database: str, tmp_path: Path, newer: str
) -> None:
    path = tmp_path / "ws"
    Workspace.create(path, database=server.url(database))
    set_back(Context.find(path).ledger)
    Workspace.migrate(path)
    with psycopg.connect(server.url(database)) as connection:
        kept = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'erasable.garbage'::regclass "
            "AND attnum > 0 AND coalesce(attstattarget, -1) <> 0 AND NOT attisdropped"
        ).fetchall()
    assert kept == []


def test_nothing_is_left_in_the_files_of_the_server(
    server: Server, database: str, tmp_path: Path
) -> None:
    """Markers of people are no tokens: none of them ever reaches the database, but a condition."""
    path = make_workspace(tmp_path)
    copied = Workspace.open(path).copy(tmp_path / "copy", database=server.url(database))
    workspace = Workspace.open(copied.path)
    (request,) = workspace.request(where="note = 'zqliteral0001'", dataset="visits")
    at_first = b"".join(each.read_bytes() for each in server.files(database))
    assert b"zqliteral0001" in at_first
    workspace.process()
    after = b"".join(each.read_bytes() for each in server.files(database))
    assert b"zqliteral0001" not in after
    assert request.id.encode() in after
    tokens = workspace.context.keys.tokens("id", MARKERS)
    assert scan(tmp_path / "copy" / "artifacts", *MARKERS) == []
    assert all(after.count(token.encode()) > 0 for token in tokens if token)  # the list keeps them

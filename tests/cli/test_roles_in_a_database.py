"""A role of PostgreSQL that lacks a right is told which; one that may only read can look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import Server
from psycopg import sql

from cli.running import erasable, make_tiny, told
from erasable.workspace.ledger import postgres
from erasable.workspace.ledger.address import SCHEMA
from erasable.workspace.ledger.schema import metadata

ROLE = "clerk"
WRITES = "SELECT, INSERT, UPDATE, DELETE"


class Team:
    """A workspace in a database of the administrator's, and a role that is given rights on it."""

    def __init__(self, server: Server, database: str, folder: Path) -> None:
        self.server, self.database, self.folder = server, database, folder

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.server.url(self.database), autocommit=True) as connection:
            for statement in statements:
                connection.execute(sql.SQL(statement))  # type: ignore[arg-type]

    def enter_as(self, role: str) -> None:
        place = self.folder / "ledger.json"
        url = self.server.url(self.database)
        place.write_text(place.read_text().replace(url, self.server.url(self.database, role)))


@pytest.fixture(scope="module")
def made(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder, database = tmp_path_factory.mktemp("team"), server.database()
    states = make_tiny(folder)
    told("workspace", "copy", "team", "--database", server.url(database), folder=folder)
    (folder / "team" / "completed").write_text(states["completed"])
    server.run(f"CREATE ROLE {ROLE} LOGIN")
    team = Team(server, database, folder / "team")
    team.enter_as(ROLE)
    yield team
    server.drop(database)
    server.run(f"DROP ROLE {ROLE}")


@pytest.fixture
def team(made: Team) -> Iterator[Team]:
    yield made
    made.run(f"REASSIGN OWNED BY {ROLE} TO postgres", f"DROP OWNED BY {ROLE}")


def refused(team: Team, *args: str) -> str:
    result = erasable(*args, folder=team.folder)
    assert (result.exit_code, result.fault) == (2, None), result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: the database role {ROLE!r} lacks ")
    assert "; expected " in line
    return line


ALL = f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}"
READ = f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}"
WRITE = f"GRANT {WRITES} ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}"
COUNT = f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {ROLE}"
MISSING = [
    ([], f"the right USAGE on schema {SCHEMA!r};"),
    ([ALL], "the right SELECT on table 'alembic_version' and "),
    ([ALL, READ, f"REVOKE SELECT ON {SCHEMA}.task FROM {ROLE}"],
     "the right SELECT on table 'task';"),
    ([ALL, READ, WRITE, COUNT, f"REVOKE UPDATE ON {SCHEMA}.task FROM {ROLE}"],
     "the right UPDATE on table 'task' and "),
    ([ALL, READ, WRITE], "the right USAGE on sequence 'dataset_id_seq' and "),
    ([ALL, READ, WRITE, COUNT], "ownership of table "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "lacks"), MISSING,
    ids=["schema", "read", "one read", "one write", "sequence", "vacuum"],
)  # fmt: skip
@pytest.mark.parametrize("args", ["status", "process", "verify"])
def test_the_right_that_is_missing_is_named(
    team: Team, given: list[str], lacks: str, args: str
) -> None:
    team.run(*given)
    assert lacks in refused(team, args)


def test_without_the_look_it_was_taken_for_no_ledger(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    monkeypatch.setattr(postgres, "reader_role", lambda *_: "")
    result = erasable("status", folder=team.folder)
    assert "holds no ledger" in result.stderr


def test_who_owns_all_lacks_nothing(team: Team) -> None:
    team.run(f"GRANT postgres TO {ROLE}")
    try:
        assert erasable("request", "patient-9", folder=team.folder).exit_code == 0
        assert erasable("process", folder=team.folder).exit_code == 0
    finally:
        team.run(f"REVOKE postgres FROM {ROLE}")


def test_who_may_read_can_look(team: Team, tmp_path: Path) -> None:
    team.run(ALL, READ)
    completed = (team.folder / "completed").read_text()
    before = everything(team)
    for args in (
        ["status"], ["verify"], ["verify", "risk"], ["log", "verify"], ["log", "show"],
        ["receipt", "show", completed], ["requests"], ["dataset", "list"], ["model", "list"],
        ["tasks"], ["report", str(tmp_path / "page.html")],
    ):  # fmt: skip
        result = erasable(*args, folder=team.folder)
        assert (result.exit_code, result.fault) == (0, None), (args, result.stderr)
    for writes in (["process"], ["request", "patient-8"], ["log", "head"],
                   ["model", "retire", "risk"], ["suppress", "release", "patient-4"]):  # fmt: skip
        assert "lacks the right to write to any table of the ledger" in refused(team, *writes)
    assert everything(team) == before


def everything(team: Team) -> list[Any]:
    with psycopg.connect(team.server.url(team.database)) as connection:
        return [
            connection.execute(f"SELECT t::text FROM {SCHEMA}.{table.name} t ORDER BY 1").fetchall()
            for table in metadata.sorted_tables
        ]


@pytest.mark.parametrize(
    ("given", "lacks"),
    [
        ([], "the right CREATE on database "),
        (["CREATE SCHEMA clinic"], "the right USAGE on schema 'clinic' and 1 more"),
        (["CREATE SCHEMA clinic", f"GRANT USAGE ON SCHEMA clinic TO {ROLE}"],
         "the right CREATE on schema 'clinic';"),
    ],
    ids=["database", "schema", "in it"],
)  # fmt: skip
@pytest.mark.parametrize("how", ["init", "copy"])
def test_who_may_make_no_ledger_is_told_before(
    team: Team, database: str, tmp_path: Path, given: list[str], lacks: str, how: str
) -> None:
    other = Team(team.server, database, tmp_path)
    other.run(*given)
    url = ["--database", team.server.url(database, ROLE), "--schema", "clinic"]
    if how == "copy":
        told("init", folder=tmp_path)
    args = ["init", *url] if how == "init" else ["workspace", "copy", "new", *url]
    assert lacks in refused(other, *args)
    assert not list(tmp_path.rglob("ledger.json"))
    other.run(f"DROP OWNED BY {ROLE}")

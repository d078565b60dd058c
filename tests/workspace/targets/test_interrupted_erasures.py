"""An erasure that is killed, or loses its rights or its disk: all of it happened, or nothing."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from erased_people import erased_from
from refusals import refused

from erasable.workspace import Workspace
from erasable.workspace.data import databases
from erasable.workspace.targets.databases import DatabaseTarget
from erasable.workspace.targets.people import Suppressed
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import NOT_PROVED

N, GONE = 60, tuple(range(0, 60, 4))
MAIL = Subject("people.mail", "email")
SHOP = """
create table people (id integer primary key, mail text);
create table orders (id integer primary key, who integer references people on delete cascade);
create table notes (id integer primary key, who integer references people on delete set null);
"""


def address(i: int) -> str:
    return f"marker{i:04d}@example.org"


FILLED = SHOP + "".join(
    f"insert into people values ({i}, '{address(i)}'); insert into orders values ({i}, {i});"
    f"insert into notes values ({i}, {i});"
    for i in range(N)
)
ALL = {"people": N, "orders": N, "notes": N}
LEFT = {"people": N - len(GONE), "orders": N - len(GONE), "notes": N}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold sixty people, of whom fifteen are erased."""
    folder = tmp_path_factory.mktemp("known")
    people = {"mail": [address(i) for i in range(N)]}
    erased_from(folder, people, {"email": [address(i) for i in GONE]})
    return folder / "ws"


@pytest.fixture
def workspace(known: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(known, tmp_path / "ws")
    return Workspace.open(tmp_path / "ws")


def filled(path: Path) -> str:
    with closing(sqlite3.connect(path)) as base:
        base.executescript(FILLED)
    return f"sqlite:///{path}"


def counts(place: str) -> dict[str, int]:
    """Count rows by the database's own client."""
    with closing(
        sqlite3.connect(place.removeprefix("sqlite:///"))
        if place.startswith("sqlite")
        else psycopg.connect(place)
    ) as base:
        rows = {
            table: base.execute(f"select count(*) from {table}").fetchone()  # type: ignore[union-attr]
            for table in ALL
        }
        return {table: n for table, (n,) in rows.items()}


def residue(place: str) -> int:
    """Count the addresses of erased people in a file; of a server, 0."""
    if not place.startswith("sqlite"):
        return 0
    path = Path(place.removeprefix("sqlite:///"))
    bytes_ = b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))
    assert address(1).encode() in bytes_
    return sum(address(i).encode() in bytes_ for i in GONE)


# -- kills -----------------------------------------------------------------------------------------

EVENTS = ("before_cursor_execute", "commit")  # of all engines: the place's, and the ledger's


def watched(watch: Callable[..., None], action: Callable[[], Any]) -> None:
    for name in EVENTS:
        sa.event.listen(sa.Engine, name, watch)
    try:
        action()
    finally:
        for name in EVENTS:
            sa.event.remove(sa.Engine, name, watch)


def dies_at(n: int, action: Callable[[], Any]) -> None:
    """Run an action in a process that is killed before its n-th statement or commit."""
    child = os.fork()
    if not child:
        left = [None] * n

        def kill(*_: Any) -> None:
            left.pop()
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            watched(kill, action)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def erase(root: Path, place: str) -> Any:
    return Workspace.open(root).erase_target(place, ["people.mail:email"])


def check_kills(known: Path, tmp_path: Path, made: Callable[[int], str], n_points: int) -> None:
    """Kill an erasure at points from its first statement to its last one, each time anew."""
    passed = list[None]()
    shutil.copytree(known, tmp_path / "whole")
    place = made(0)
    watched(lambda *_: passed.append(None), lambda: erase(tmp_path / "whole", place))
    assert counts(place) == LEFT
    states = set()
    for n in sorted({1 + i * (len(passed) - 1) // (n_points - 1) for i in range(n_points)}):
        root = shutil.copytree(known, tmp_path / f"ws{n}")
        place = made(n)
        dies_at(n, lambda root=root, place=place: erase(root, place))  # type: ignore[misc]
        after = counts(place)
        assert after in (ALL, LEFT)
        kinds = [entry["kind"] for entry in Workspace.open(root).log_entries()]
        assert after == ALL or "target-started" in kinds
        states.add((after == LEFT, "target-started" in kinds, "target-erased" in kinds))
        done = erase(root, place)
        assert counts(place) == LEFT
        if "target-erased" not in kinds:
            changed = {"orders": len(GONE), "people": len(GONE)}
            assert (done.n_people, done.changed) == (len(GONE), changed)
            assert done.verdict == NOT_PROVED or after == ALL
            assert residue(place) == 0
        else:
            assert (done.changed, done.verdict) == ({}, None)
        assert Workspace.open(root).verify_log() == []
    assert {(False, False, False), (False, True, False), (True, True, False)} <= states


def test_kills_in_a_file(known: Path, tmp_path: Path) -> None:
    check_kills(known, tmp_path, lambda n: filled(tmp_path / f"shop{n}.db"), 16)


def test_kills_on_a_server(known: Path, tmp_path: Path, server: Any) -> None:
    made = []

    def fresh(_: int) -> str:
        made.append(server.database())
        with psycopg.connect(server.url(made[-1])) as connection:
            connection.execute(FILLED)
        return str(server.url(made[-1]))

    try:
        check_kills(known, tmp_path, fresh, 10)
    finally:
        for name in made:
            server.drop(name)


# -- rights and room that are lost midway ----------------------------------------------------------


def target(place: str) -> DatabaseTarget:
    return DatabaseTarget(place, Settings((MAIL,)))


@pytest.fixture
def guest(server: Any, database: str) -> Iterator[str]:
    """Have a role that may change the rows of a shop."""
    with psycopg.connect(server.url(database)) as connection:
        connection.execute(FILLED)
    server.run("create role clerk login")
    with psycopg.connect(server.url(database)) as connection:
        connection.execute("grant all on people, orders, notes to clerk")
    yield server.url(database, "clerk")
    with psycopg.connect(server.url(database)) as connection:
        connection.execute("drop owned by clerk")
    server.run("drop role clerk")


@pytest.mark.parametrize(
    "revoked", ["revoke delete on orders from clerk", "alter role clerk nologin"]
)
def test_rights_that_are_revoked_midway(
    workspace: Workspace, server: Any, database: str, guest: str, revoked: str
) -> None:
    with target(guest) as of:
        plan = of.find(Suppressed(workspace.context))
        assert plan.changed == {"orders": len(GONE), "people": len(GONE)}
        with psycopg.connect(server.url(database)) as connection:
            connection.execute(revoked)
        with refused("nothing was changed"):
            of.erase(plan)
    assert counts(server.url(database)) == ALL


def test_a_user_who_may_not_compact_is_told(workspace: Workspace, guest: str) -> None:
    done = workspace.erase_target(guest, ["people.mail:email"])
    assert "this user may not have table 'people' written anew" in str(done.reason)
    assert "its files cannot be seen from here" in str(done.reason)
    assert counts(guest) == LEFT


def test_a_full_disk(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = filled(tmp_path / "shop.db")
    real = databases._open_writable

    def full(path: Path) -> sqlite3.Connection:
        connection = real(path)
        n = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {n}")
        return connection

    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("create trigger grows after delete on people begin insert into notes "
                     "select null, null from notes, notes; end")  # fmt: skip
    monkeypatch.setattr(databases, "_open_writable", full)
    for dry_run in (True, False):
        with refused("nothing was changed"):
            workspace.erase_target(place, ["people.mail:email"], dry_run=dry_run)
    assert counts(place) == ALL
    assert "target-started" not in [entry["kind"] for entry in workspace.log_entries()]

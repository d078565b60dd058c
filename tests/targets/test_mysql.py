"""A server of MariaDB of the tests' own: people leave its tables along foreign keys."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest

pymysql = pytest.importorskip("pymysql", reason="pymysql is not installed")

import mariadb_server  # noqa: E402
from refusals import refused  # noqa: E402

from erasable.workspace.targets.databases import DatabaseTarget  # noqa: E402
from erasable.workspace.targets.protocol import Settings, Subject  # noqa: E402
from erasable.workspace.targets.steps import NOT_PROVED  # noqa: E402
from people import Named, erased  # noqa: E402

pytestmark = pytest.mark.skipif(
    not mariadb_server.IS_THERE, reason="there is no server of MariaDB on this machine"
)

DEADLOCK = 1213  # after which, as its manual says, a client of InnoDB begins again
N = 2_000
MAIL = Subject("people.mail", "email")
PEOPLE = [f"marker{i:06d}@example.org" for i in range(N)]
GONE = PEOPLE[::2]  # 1,000
SHOP = (
    "create table people (id int primary key, mail varchar(60), city varchar(20))",
    "create table accounts (id int primary key, person int, "
    "foreign key (person) references people (id) on delete cascade)",
    "create table orders (id int primary key, account int not null, "
    "foreign key (account) references accounts (id) on delete cascade)",
    "create table lines_ (n int, orders int, primary key (n, orders), "
    "foreign key (orders) references orders (id) on delete cascade)",
    "create table notes (id int primary key, person int, t varchar(40), "
    "foreign key (person) references people (id) on delete set null)",
)


@pytest.fixture(scope="module")
def socket() -> Iterator[Path]:
    """Have a server."""
    with mariadb_server.running() as found:
        yield found


@pytest.fixture
def shop(socket: Path) -> Iterator[str]:
    with closing(connected(socket)) as base, base.cursor() as cursor:
        cursor.execute("create database shop")
        cursor.execute("use shop")
        for each in SHOP:
            cursor.execute(each)
        cursor.executemany("insert into people values (%s, %s, 'Reykjavik')",
                           list(enumerate(PEOPLE)))  # fmt: skip
        cursor.executemany("insert into accounts values (%s, %s)", [(i, i) for i in range(N)])
        cursor.executemany("insert into orders values (%s, %s)", [(i, i) for i in range(N)])
        cursor.executemany("insert into lines_ values (1, %s)", [(i,) for i in range(N)])
        cursor.executemany("insert into notes values (%s, %s, 'note')", [(i, i) for i in range(N)])
    yield f"mysql+pymysql://root@/shop?unix_socket={quote(str(socket), safe='')}"
    with closing(connected(socket)) as base, base.cursor() as cursor:
        cursor.execute("drop database shop")


def connected(socket: Path, database: str | None = None) -> Any:
    return pymysql.connect(unix_socket=str(socket), user="root", database=database, autocommit=True)


def rows(socket: Path, query: str) -> list[Any]:
    with closing(connected(socket, "shop")) as base, base.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def test_a_writer_is_at_work(socket: Path, shop: str) -> None:
    people, n = Named(*GONE), len(GONE)
    expected = {"lines_": n, "orders": n, "accounts": n, "people": n}
    stop, failed, written = threading.Event(), list[Exception](), list[int]()

    def write() -> None:
        try:
            with closing(connected(socket, "shop")) as base, base.cursor() as cursor:
                while not stop.is_set() or len(written) < 20:
                    i = 10_000 + len(written)
                    try:
                        cursor.execute("begin")
                        cursor.execute("insert into people values (%s, 'new@x.org', 'Oslo')", (i,))
                        cursor.execute("insert into accounts values (%s, %s)", (i, i))
                        cursor.execute("update notes set t = 'seen' where id = 1")
                        cursor.execute("commit")
                    except pymysql.err.OperationalError as error:
                        if error.args[0] != DEADLOCK:
                            raise
                    else:
                        written.append(i)
        except Exception as error:
            failed.append(error)

    with DatabaseTarget(shop, Settings((MAIL,))) as of:
        told = of.find(people)
        assert rows(socket, "select count(*) from people") == [(N,)]
        writer = threading.Thread(target=write)
        writer.start()
        try:
            plan, verdict = erased(of, *GONE)
        finally:
            stop.set()
            writer.join()
    assert not failed
    assert told.changed == plan.changed == expected
    assert told.detached == plan.detached == {"notes.person": n}
    assert verdict.word == NOT_PROVED
    assert "binary log" in str(verdict.reason)
    assert rows(socket, "select count(*) from people where id % 2 = 0 and id < 10000") == [(0,)]
    assert rows(socket, "select count(*) from people") == [(N - n + len(written),)]
    assert rows(socket, "select count(*) from accounts where person is null") == [(0,)]
    assert rows(socket, "select count(*) from notes where id % 2 = 1 and person = id") == [(n,)]


def test_tables_without_transactions_are_not_tried(socket: Path, shop: str) -> None:
    rows(socket, "create table old (id int primary key, mail varchar(60)) engine = MyISAM")
    rows(socket, f"insert into old values (1, '{GONE[0]}'), (2, '{PEOPLE[1]}')")
    with DatabaseTarget(shop, Settings((Subject("old.mail", "email"),))) as of:
        assert of.find(Named(*GONE)).changed == {"old": 1}
        assert rows(socket, "select count(*) from old") == [(2,)]
        erased(of, *GONE)
    assert rows(socket, "select id from old") == [(2,)]


def test_a_user_who_may_not_delete_changes_nothing(socket: Path, shop: str) -> None:
    rows(socket, "create user clerk identified by ''")
    try:
        rows(socket, "grant all on shop.* to clerk")
        with DatabaseTarget(shop.replace("root@", "clerk@"), Settings((MAIL,))) as of:
            plan = of.find(Named(*GONE))
            rows(socket, "revoke all on shop.* from clerk")
            rows(socket, "grant select on shop.* to clerk")
            with refused("nothing was changed"):
                of.erase(plan)
    finally:
        rows(socket, "drop user clerk")
    assert rows(socket, "select count(*) from lines_") == [(N,)]


def test_what_a_client_still_finds_is_told(socket: Path, shop: str) -> None:
    """The reason names what an independent client finds after the erasure."""
    with DatabaseTarget(shop, Settings((MAIL,))) as of:
        _, verdict = erased(of, GONE[0])
    assert not any(word in str(verdict.reason) for word in ("triggers", "versions"))
    rows(socket, "create table kept (mail varchar(60))")
    rows(socket, "create trigger keeps after delete on people for each row "
         "insert into kept values (old.mail)")  # fmt: skip
    rows(socket, "alter table notes add system versioning")
    with DatabaseTarget(shop, Settings((MAIL,))) as of:
        told = of.find(Named(GONE[1]))
        plan, verdict = erased(of, GONE[1])
    assert told.triggers == plan.triggers == ["people.keeps"]
    assert "triggers may have copied rows: people.keeps" in str(verdict.reason)
    assert "table 'notes' keeps old versions of its rows" in str(verdict.reason)
    assert rows(socket, "select mail from kept") == [(GONE[1],)]
    versions = "select person from notes for system_time all where id = 2 order by person"
    assert rows(socket, versions) == [(None,), (2,)]


def test_rows_of_other_databases_do_not_leave_untold(socket: Path, shop: str) -> None:
    rows(socket, "create database other")
    try:
        rows(socket, "create table other.bills (id int primary key, person int, "
             "foreign key (person) references shop.people (id) on delete cascade)")  # fmt: skip
        rows(socket, "insert into other.bills values (1, 0)")
        with (
            DatabaseTarget(shop, Settings((MAIL,))) as of,
            refused("'other.bills' refers to rows of 'people'"),
        ):
            of.find(Named(*GONE))
        assert rows(socket, "select count(*) from other.bills") == [(1,)]
    finally:
        rows(socket, "drop database other")


@pytest.mark.parametrize(
    ("kind", "values", "gone"),
    [
        ("varbinary(60)", [b"marker1@shop.org", b"marker2@shop.org"], "marker1@shop.org"),
        ("binary(16)", [UUID(int=7 << 90).bytes, UUID(int=9).bytes], UUID(int=7 << 90)),
        ("uuid", [str(UUID(int=7 << 90)), str(UUID(int=9))], UUID(int=7 << 90)),
    ],
)  # fmt: skip
def test_identities_may_be_bytes(
    socket: Path, shop: str, kind: str, values: list[Any], gone: Any
) -> None:
    rows(socket, f"create table devices (id int primary key, who {kind})")
    with closing(connected(socket, "shop")) as base, base.cursor() as cursor:
        cursor.executemany("insert into devices values (%s, %s)", list(enumerate(values)))
    with DatabaseTarget(shop, Settings((Subject("devices.who", "id"),))) as of:
        plan, _ = erased(of, gone)
    assert plan.changed == {"devices": 1}
    assert rows(socket, "select id from devices") == [(1,)]


def test_a_column_that_names_nobody_is_refused(socket: Path, shop: str) -> None:
    rows(socket, "create table tags (id int primary key, who set('a', 'b'), day date)")
    rows(socket, "insert into tags values (1, 'a,b', '2026-01-01')")
    for column, kind in (("who", "set"), ("day", "date")):
        with (
            DatabaseTarget(shop, Settings((Subject(f"tags.{column}", "id"),))) as of,
            refused(f"has a value of the type {kind}"),
        ):
            of.find(Named())

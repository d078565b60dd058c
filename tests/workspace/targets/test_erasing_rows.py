"""People leave a database along its foreign keys: what happens is what the dry run says."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from erased_people import erased_from
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from effort import examples
from erasable.core.errors import InvalidParameterError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED

N, ERASED = 40, tuple(range(0, 40, 5))


def address(i: int) -> str:
    return f"marker{i:04d}@example.org"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Hold forty people, of whom eight are erased."""
    folder = tmp_path_factory.mktemp("known")
    people = {"mail": [address(i) for i in range(N)]}
    return erased_from(folder, people, {"email": [address(i) for i in ERASED]})


def made(path: Path, script: str) -> str:
    with closing(sqlite3.connect(path)) as base:
        base.executescript(script)
    return f"sqlite:///{path}"


def content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as base:
        names = [name for (name,) in base.execute("select name from sqlite_master where sql != ''")]
        return {name: sorted(base.execute(f"select * from {name}"), key=repr) for name in names}


def difference(before: Any, after: Any) -> dict[str, int]:
    """Count the rows that are no longer there, by table."""
    counts = {name: len(rows) - len(after[name]) for name, rows in before.items()}
    return {name: n for name, n in counts.items() if n}


CUSTOMERS = "create table customers (id integer primary key, mail text, name text not null);"
FILLED = CUSTOMERS + "".join(
    f"insert into customers values ({i}, '{address(i).upper()}', 'name {i}');" for i in range(N)
)


# -- against what SQLite does itself ---------------------------------------------------------------


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """Draw up to four tables below the customers, with rows, cycles within a table included."""
    script, above = [FILLED], ["customers"]
    for number in range(draw(st.integers(1, 4))):
        name = f"t{number}"
        parents = draw(st.lists(st.sampled_from([*above, name]), min_size=1, max_size=2))
        columns, rows = ["id integer primary key"], []
        for at, parent in enumerate(parents):
            what = "set null" if parent == name else draw(st.sampled_from(["cascade", "set null"]))
            columns.append(f"p{at} integer references {parent} (id) on delete {what}")
        for row in range(draw(st.integers(0, 30))):
            cells = []
            for parent in parents:
                most = N if parent == "customers" else row if parent == name else sizes[parent]
                some = st.integers(0, most - 1) if most else st.none()
                cells.append(draw(st.one_of(st.none(), some)))
            rows.append((row, *cells))
        sizes[name] = len(rows)
        script.append(f"create table {name} ({', '.join(columns)});")
        for row in rows:
            cells = ", ".join("null" if cell is None else str(cell) for cell in row)
            script.append(f"insert into {name} values ({cells});")
        above.append(name)
    return "".join(script)


sizes: dict[str, int] = {}


@given(script=schemas())
@settings(max_examples=examples(40))
def test_it_does_what_the_foreign_keys_say(
    known: Workspace, tmp_path_factory: pytest.TempPathFactory, script: str
) -> None:
    folder = tmp_path_factory.mktemp("shop")
    place = made(folder / "ours.db", script)
    made(folder / "theirs.db", script)
    before = content(folder / "ours.db")
    told = known.erase_target(place, ["customers.mail:email"], dry_run=True)
    assert content(folder / "ours.db") == before
    done = known.erase_target(place, ["customers.mail:email"])
    with closing(sqlite3.connect(folder / "theirs.db")) as base:
        base.execute("pragma foreign_keys = on")
        gone = ", ".join(map(str, ERASED))
        base.execute(f"delete from customers where id in ({gone})")
        base.commit()
    assert content(folder / "ours.db") == content(folder / "theirs.db")
    assert told.changed == done.changed == difference(before, content(folder / "theirs.db"))
    assert told.detached == done.detached
    assert (told.verdict, done.verdict) == (None, PURGED)


# -- what the schema does not say ------------------------------------------------------------------

ORDERS = (
    FILLED + "create table orders (id integer primary key, who integer references customers (id));"
    "create table lines (number integer, id integer references orders (id) on delete cascade, "
    "primary key (number, id));"
    "insert into orders values (1, 0), (2, 5), (3, 7), (4, null);"
    "insert into lines values (1, 1), (2, 1), (1, 2), (1, 3);"
)


def test_rows_that_would_refer_to_nothing_are_refused(known: Workspace, tmp_path: Path) -> None:
    place = made(tmp_path / "shop.db", ORDERS)
    before = content(tmp_path / "shop.db")
    with refused(r"2 rows of table 'orders'.*--cascade"):
        known.erase_target(place, ["customers.mail:email"])
    assert content(tmp_path / "shop.db") == before
    done = known.erase_target(place, ["customers.mail:email"], cascade=["orders"])
    assert done.changed == {"lines": 3, "orders": 2, "customers": 8}
    after = content(tmp_path / "shop.db")
    assert after["orders"] == [(3, 7), (4, None)]
    assert after["lines"] == [(1, 3)]


def test_a_row_in_a_circle_loses_its_reference_first(known: Workspace, tmp_path: Path) -> None:
    circle = (
        "create table teams (id integer primary key, head integer references staff (id));"
        "create table staff (id integer primary key, mail text, "
        "team integer {} references teams (id) on delete cascade);"
        f"insert into teams values (1, null); insert into staff values (1, '{address(0)}', 1), "
        f"(2, '{address(1)}', 1); update teams set head = 1;"
    )
    place = made(tmp_path / "shop.db", circle.format("not null"))
    done = known.erase_target(place, ["staff.mail:email"], cascade=["teams"])
    assert done.changed == {"staff": 2, "teams": 1}
    strict = circle.replace("head integer", "head integer not null").replace("(1, null)", "(1, 1)")
    place = made(tmp_path / "strict.db", strict.format("not null"))
    before = content(tmp_path / "strict.db")
    with refused("in a circle"):
        known.erase_target(place, ["staff.mail:email"], cascade=["teams"])
    assert content(tmp_path / "strict.db") == before


@pytest.mark.parametrize(
    ("subjects", "more", "error", "message"),
    [
        ([], {}, InvalidParameterError, "no field says"),
        (["customers.mial:email"], {}, SourceError, "no column 'customers.mial'"),
        (["mail:email"], {}, SourceError, "expected TABLE.COLUMN"),
        (["customers.mail:mail"], {}, InvalidParameterError, "no type of identity"),
        (["customers.mail:email"], {"action": "drop"}, InvalidParameterError, "expected one of"),
        (["customers.mail:email"], {"cascade": ["order"]}, SourceError, "no table 'order'"),
        (
            ["customers.mail:email"],
            {"action": "null"},
            SourceError,
            "'name' of 'customers' may not",
        ),
        (
            ["customers.mail:email"],
            {"action": "mask", "keep": ["mail"]},
            SourceError,
            "would stay, as one of a key or of --keep",
        ),
        (["customers.id"], {"action": "mask"}, SourceError, "would stay, as one of a key"),
        (["bare.mail:email"], {}, SourceError, "'bare' has no primary key"),
    ],
)
def test_bad_input(
    known: Workspace, tmp_path: Path, subjects: Any, more: Any, error: Any, message: str
) -> None:
    place = made(tmp_path / "shop.db", FILLED + "create table bare (mail text);")
    before = content(tmp_path / "shop.db")
    with pytest.raises(error, match=message):
        known.erase_target(place, subjects, **more)
    assert content(tmp_path / "shop.db") == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("sqlite:///nothing.db", "is not there"),
        ("sqlite:///shop.db#customers", "without a table"),
        ("nosuch://host/base", "nothing opens 'nosuch'"),
        ("oracle://host/base", "no driver"),
    ],
)
def test_bad_places(known: Workspace, place: str, message: str) -> None:
    with refused(message):
        known.erase_target(place, ["customers.mail:email"])


# -- rows that stay --------------------------------------------------------------------------------


def test_rows_are_emptied(known: Workspace, tmp_path: Path) -> None:
    place = made(tmp_path / "shop.db", ORDERS)
    before = content(tmp_path / "shop.db")
    done = known.erase_target(place, ["customers.mail:email"], action="null", keep=["name"])
    assert (done.changed, done.verdict) == ({"customers": 8}, PURGED)
    after = content(tmp_path / "shop.db")
    assert after == {
        **before,
        "customers": sorted(
            ((i, None if i in ERASED else mail, name) for i, mail, name in before["customers"]),
            key=repr,
        ),
    }


def test_texts_are_masked_also_where_they_are_unique(known: Workspace, tmp_path: Path) -> None:
    unique = FILLED.replace("mail text", "mail text unique, age integer").replace(
        "insert into customers", "insert into customers (id, mail, name)"
    )
    place = made(tmp_path / "shop.db", unique)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("update customers set age = id")
        base.commit()
    known.erase_target(place, ["customers.mail:email"], action="mask")
    masked = [row for row in content(tmp_path / "shop.db")["customers"] if row[0] in ERASED]
    assert {(row[2], row[3]) for row in masked} == {(None, "erased")}
    assert len({row[1] for row in masked}) == len(ERASED)
    others = [row for row in content(tmp_path / "shop.db")["customers"] if row[0] not in ERASED]
    assert others == sorted(
        ((i, address(i).upper(), i, f"name {i}") for i in range(N) if i not in ERASED), key=repr
    )


# -- what is left on the disk ----------------------------------------------------------------------


def residue(path: Path) -> int:
    bytes_ = b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))
    return sum(address(i).upper().encode() in bytes_ for i in ERASED)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_nothing_is_left_in_the_file(known: Workspace, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "shop.db"
    place = made(path, f"pragma journal_mode = {mode};" + FILLED)
    with closing(sqlite3.connect(tmp_path / "plain.db")) as base:  # what a deletion alone leaves
        base.executescript("pragma secure_delete = off;" + FILLED)
        base.execute(f"delete from customers where id in ({', '.join(map(str, ERASED))})")
        base.commit()
    assert residue(tmp_path / "plain.db") == len(ERASED)
    assert known.erase_target(place, ["customers.mail:email"]).verdict == PURGED
    assert residue(path) == 0
    assert len(content(path)["customers"]) == N - len(ERASED)


def test_an_identity_in_another_row_is_told(known: Workspace, tmp_path: Path) -> None:
    place = made(
        tmp_path / "shop.db",
        FILLED + "create table notes (text text);"
        f"insert into notes values ('call {address(5).upper()}, please');",
    )
    done = known.erase_target(place, ["customers.mail:email"])
    assert done.verdict == NOT_PROVED
    n = 2 * len(ERASED)  # an address and a name of each
    assert done.reason == f"1 of {n} values of these records are still in shop.db, in other rows"


def test_a_file_that_another_program_reads_is_not_proved(known: Workspace, tmp_path: Path) -> None:
    place = made(tmp_path / "shop.db", "pragma journal_mode = wal;" + FILLED)
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from customers").fetchone()
        done = known.erase_target(place, ["customers.mail:email"])
    assert done.verdict == NOT_PROVED


def test_nothing_happens_where_nobody_is_found(known: Workspace, tmp_path: Path) -> None:
    place = made(tmp_path / "shop.db", CUSTOMERS + "insert into customers values (1, 'a@b.c', 'a')")
    before = (tmp_path / "shop.db").read_bytes()
    done = known.erase_target(place, ["customers.mail:email"])
    assert (done.changed, done.verdict) == ({}, None)
    assert (tmp_path / "shop.db").read_bytes() == before


def test_the_log_says_what_was_done(known: Workspace, tmp_path: Path) -> None:
    place = made(tmp_path / "shop.db", FILLED)
    known.erase_target(place, ["customers.mail:email"])
    first, last = known.log_entries()[-2:]
    assert [first["kind"], last["kind"]] == ["target-started", "target-erased"]
    assert first["changed"] == last["changed"] == {"customers": len(ERASED)}
    assert "arker" not in str(last)
    assert known.verify_log() == []


# -- on a server, with somebody else at work -------------------------------------------------------

SHOP = """
create table people (id int primary key, mail text);
create table accounts (id int primary key, person int references people on delete cascade);
create table orders (
    id int primary key, account int not null references accounts on delete cascade
);
create table lines (
    n int, orders int references orders on delete cascade, primary key (n, orders)
);
create table notes (id int primary key, person int references people on delete set null, t text);
"""


@pytest.fixture
def shop(server: Any, database: str) -> Iterator[str]:
    with psycopg.connect(server.url(database)) as connection:
        connection.execute(SHOP)
        connection.execute(
            "insert into people select g, 'marker' || lpad((g % 40)::text, 4, '0') || "
            "'@example.org' from generate_series(0, 3999) g"
        )
        connection.execute("insert into accounts select g, g from generate_series(0, 3999) g")
        connection.execute("insert into orders select g, g / 2 from generate_series(0, 7999) g")
        connection.execute("insert into lines select g % 3, g from generate_series(0, 7999) g")
        connection.execute("insert into notes select g, g, 'note' from generate_series(0, 3999) g")
    return server.url(database)


def test_a_writer_is_at_work(known: Workspace, shop: str) -> None:
    told = known.erase_target(shop, ["people.mail:email"], dry_run=True)
    stop, failed, n_written = threading.Event(), list[Exception](), 0

    def write() -> None:
        nonlocal n_written
        try:
            with psycopg.connect(shop, autocommit=True) as connection:
                while not stop.is_set() or n_written < 50:
                    i = 10_000 + n_written
                    with connection.transaction():
                        connection.execute("insert into people values (%s, 'new@x.org')", (i,))
                        connection.execute("insert into accounts values (%s, %s)", (i, i))
                        connection.execute("update notes set t = 'seen' where id = 1")
                    n_written += 1
        except Exception as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = known.erase_target(shop, ["people.mail:email"])
    finally:
        stop.set()
        writer.join()
    assert not failed
    n = 4000 * len(ERASED) // N
    expected = {"lines": 2 * n, "orders": 2 * n, "accounts": n, "people": n}
    assert told.changed == done.changed == expected
    assert told.detached == done.detached == {"notes.person": n}
    assert done.verdict == NOT_PROVED
    gone = f"(select g from generate_series(0, 3999) g where g % 40 in {ERASED})"
    with psycopg.connect(shop) as connection:
        for table, column, total in (
            ("people", "id", 4000 - n + n_written), ("accounts", "person", 4000 - n + n_written),
            ("orders", "account", 8000 - 2 * n),
        ):  # fmt: skip
            assert connection.execute(f"select count(*) from {table}").fetchone() == (total,)
            left = f"select count(*) from {table} where {column} in {gone}"
            assert connection.execute(left).fetchone() == (0,)
        assert connection.execute("select count(*) from notes").fetchone() == (4000,)
        assert connection.execute(
            f"select count(*) from notes where id not in {gone} and person is distinct from id"
        ).fetchone() == (0,)


def test_rows_of_other_schemas_are_told(known: Workspace, shop: str) -> None:
    with psycopg.connect(shop) as connection:
        connection.execute("create schema billing")
        connection.execute(
            "create table billing.bills (id int primary key, "
            "person int references people on delete cascade)"
        )
        connection.execute("insert into billing.bills values (1, 0), (2, 1), (3, 5)")
    told = known.erase_target(shop, ["people.mail:email"], dry_run=True)
    assert told.changed["billing.bills"] == 2
    assert known.erase_target(shop, ["people.mail:email"]).changed == told.changed
    with psycopg.connect(shop) as connection:
        assert connection.execute("select id from billing.bills").fetchall() == [(2,)]

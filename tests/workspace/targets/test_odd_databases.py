"""Erasure from databases of any shape: it does what is told, or changes nothing and says why."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from erased_people import erased_from
from refusals import refused

from erasable.core.errors import InvalidParameterError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.data import databases
from erasable.workspace.targets import erasing
from erasable.workspace.targets.databases import DatabaseTarget
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED

GONE, STAYS = "marker1@example.org", "marker2@example.org"
NUMBER = 41  # of somebody who is erased


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("known")
    people = {"mail": [GONE, STAYS], "who": [NUMBER, 42]}
    return erased_from(folder, people, {"email": [GONE], "id": [NUMBER]}, ["mail:email", "who"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.executescript(script)


def rows(path: Path, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as base:
        return base.execute(f"select * from {table} order by 1").fetchall()


def erased(known: Workspace, place: str, *subjects: str, **more: Any) -> erasing.Erased:
    """Erase; what the dry run says must come true."""
    told = known.erase_target(place, list(subjects), dry_run=True, **more)
    done = known.erase_target(place, list(subjects), **more)
    assert (told.changed, told.detached, told.triggers) == (
        done.changed, done.detached, done.triggers,
    )  # fmt: skip
    return done


def changes_nothing(known: Workspace, path: Path, subject: str, message: str, **more: Any) -> None:
    """Expect the same error of the dry run and of the erasure, and nothing changed."""
    with closing(sqlite3.connect(path)) as base:
        before = list(base.iterdump())
    for dry_run in (True, False):
        with refused(message) as caught:
            known.erase_target(f"sqlite:///{path}", [subject], dry_run=dry_run, **more)
        assert "arker" not in str(caught.value)
    with closing(sqlite3.connect(path)) as base:
        assert list(base.iterdump()) == before


PEOPLE = (
    "create table people (id integer primary key, mail text, code text unique collate nocase);"
    f"insert into people values (1, '{GONE}', 'x'), (2, '{STAYS}', 'y');"
)


# -- foreign keys and keys -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "values"),
    [
        ("integer references PEOPLE (ID)", (1, 2)),
        ("integer references people", (1, 2)),
        ("text references people (code)", ("X", "Y")),
        ("references people (id)", ("1", "2")),
    ],
    ids=["another case", "no column", "collation", "affinity"],
)
def test_rows_that_refer_are_found_as_sqlite_finds_them(
    known: Workspace, path: Path, reference: str, values: Any
) -> None:
    run(path, PEOPLE + f"create table orders (id integer primary key, who {reference} on delete "
        "cascade)")  # fmt: skip
    with closing(sqlite3.connect(path)) as base:
        base.executemany("insert into orders values (?, ?)", enumerate(values))
        base.commit()
    done = erased(known, f"sqlite:///{path}", "people.mail:email")
    assert done.changed == {"orders": 1, "people": 1}
    assert len(rows(path, "orders")) == 1


def test_two_references_of_one_column_keep_their_own_actions(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + "create table a (id integer primary key); insert into a values (1), (2);"
        "create table orders (id integer primary key, who integer references people on delete "
        "set null references a on delete cascade);"
        "insert into orders values (1, 1), (2, 2)")  # fmt: skip
    done = erased(known, f"sqlite:///{path}", "people.mail:email")
    assert (done.changed, done.detached) == ({"people": 1}, {"orders.who": 1})
    assert rows(path, "orders") == [(1, None), (2, 2)]


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        ("datetime", "2026-01-01 10:00:00"), ("datetime", 5), ("date", "01/02/2026"),
        ("decimal(30, 20)", 0.1234567890123), ("boolean", 7), ("blob", b"\0\xff"), ("json", "{"),
        ("", "any"),
    ],
)  # fmt: skip
def test_keys_are_taken_as_they_are_stored(
    known: Workspace, path: Path, declared: str, key: Any
) -> None:
    run(path, f"create table visits (mail text, at {declared}, primary key (mail, at))")
    with closing(sqlite3.connect(path)) as base:
        base.executemany("insert into visits values (?, ?)", [(GONE, key), (STAYS, key)])
        base.commit()
    assert erased(known, f"sqlite:///{path}", "visits.mail:email").changed == {"visits": 1}
    assert rows(path, "visits") == [(STAYS, key)]


def test_names_may_have_any_characters(known: Workspace, path: Path) -> None:
    run(path, """create table "Or der.x'y""z" ("se.lect" text primary key, "group.by" text)
        without rowid;""" + f"""insert into "Or der.x'y""z" values ('k', '{GONE}')""")  # fmt: skip
    done = erased(known, f"sqlite:///{path}", "Or der.x'y\"z.group.by:email")
    assert (sum(done.changed.values()), done.verdict) == (1, PURGED)


def test_a_reference_to_a_table_that_is_not_there(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + "create table orders (id integer primary key, who integer references people "
        "on delete cascade, a references nowhere, b references none (x));"
        "create table others (id integer primary key, a references nowhere);"
        "insert into orders values (1, 1, null, null), (2, 2, null, null)")  # fmt: skip
    done = erased(known, f"sqlite:///{path}", "people.mail:email")
    assert done.changed == {"orders": 1, "people": 1}
    assert rows(path, "orders") == [(2, 2, None, None)]
    with closing(sqlite3.connect(path)) as base:
        base.execute("pragma foreign_keys = on")
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            base.execute("delete from orders")  # which SQLite alone does not take


def test_texts_that_are_not_unicode(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + "alter table people add note text; "
        "update people set note = cast(x'e4e4e4e4e4e4' as text)")  # fmt: skip
    assert erased(known, f"sqlite:///{path}", "people.mail:email").changed == {"people": 1}
    with refused(r"'people\.note' has a text that is not UTF-8"):
        known.erase_target(f"sqlite:///{path}", ["people.note"])


def test_an_index_is_made_for_a_reference_and_goes(known: Workspace, path: Path) -> None:
    n = 40
    run(path, PEOPLE.replace("integer primary key", "integer primary key") + "delete from people;"
        "create table orders (id integer primary key, who integer references people on delete "
        "cascade)")  # fmt: skip
    with closing(sqlite3.connect(path)) as base:
        people = [(i, GONE if i < n else STAYS, str(i)) for i in range(2 * n)]
        base.executemany("insert into people values (?, ?, ?)", people)
        base.executemany("insert into orders values (?, ?)", [(i, i) for i in range(2 * n)])
        base.commit()
        before = base.execute("select sql from sqlite_master").fetchall()
    done = erased(known, f"sqlite:///{path}", "people.mail:email")
    assert done.changed == {"orders": n, "people": n}
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("select sql from sqlite_master").fetchall() == before
        assert base.execute("pragma integrity_check").fetchone() == ("ok",)


def test_identities_may_be_bytes(known: Workspace, path: Path) -> None:
    """A text of sixteen letters is no UUID."""
    run(path, PEOPLE + f"update people set mail = cast(mail as blob) where mail = '{GONE}'")
    with closing(sqlite3.connect(path)) as base:
        assert base.execute("select typeof(mail) from people").fetchall() == [("blob",), ("text",)]
    assert erased(known, f"sqlite:///{path}", "people.mail:email").changed == {"people": 1}
    assert [row[0] for row in rows(path, "people")] == [2]


# -- what is refused, by the dry run as well -------------------------------------------------------


def test_a_person_in_a_row_without_a_whole_key_is_not_passed_over(
    known: Workspace, path: Path
) -> None:
    run(path, f"create table people (k text primary key, mail text);"
        f"insert into people values (null, '{GONE}'), (null, '{STAYS}')")  # fmt: skip
    changes_nothing(known, path, "people.mail:email", "a key is null")


def test_the_dry_run_fails_where_the_erasure_does(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + "create table notes (id integer primary key, who integer not null "
        "references people on delete set null); insert into notes values (1, 1)")  # fmt: skip
    changes_nothing(known, path, "people.mail:email", "IntegrityError")


@pytest.mark.parametrize("value", ["x'ff00'", "x'00'", f"x'{'00' * 17}'"])
def test_values_that_name_nobody_are_not_passed_over(
    known: Workspace, path: Path, value: str
) -> None:
    run(path, PEOPLE + f"insert into people values (3, {value}, 'z')")
    changes_nothing(known, path, "people.mail:email", "has a value of the type bytes")


@pytest.mark.parametrize(("n", "others", "message"), [(10, 0, "all 10 records"), (9, 0, ""),
                                                      (10, 1, "")])  # fmt: skip
def test_a_table_of_one_person_is_asked_about(
    known: Workspace, path: Path, n: int, others: int, message: str
) -> None:
    run(path, "create table orders (id integer primary key, shop text)")
    with closing(sqlite3.connect(path)) as base:
        base.executemany("insert into orders values (?, ?)", [(i, GONE) for i in range(n)])
        base.executemany("insert into orders values (?, ?)", [(n + i, None) for i in range(others)])
        base.commit()
    if message:
        changes_nothing(known, path, "orders.shop:email", message)
    else:
        assert erased(known, f"sqlite:///{path}", "orders.shop:email").changed == {"orders": n}


def test_a_column_to_keep_must_be_there(known: Workspace, path: Path) -> None:
    run(path, PEOPLE)
    for wrong in ("cod", "orders.code"):
        changes_nothing(
            known, path, "people.mail:email", f"no column '{wrong}'", action="null", keep=[wrong]
        )
    done = erased(
        known, f"sqlite:///{path}", "people.mail:email", action="null", keep=["people.code"]
    )
    assert done.changed == {"people": 1}
    assert rows(path, "people")[0] == (1, None, "x")


@pytest.mark.parametrize("more", [{"keep": ["code"]}, {"action": "null", "cascade": ["people"]}])
def test_options_of_another_action_are_refused(known: Workspace, path: Path, more: Any) -> None:
    run(path, PEOPLE)
    with pytest.raises(InvalidParameterError, match="alone"):
        known.erase_target(f"sqlite:///{path}", ["people.mail:email"], **more)
    assert len(rows(path, "people")) == 2


def test_no_message_has_the_password() -> None:
    with (
        refused("names no database"),
        databases.writable("postgresql://ann:hunter2@host/base#people"),
    ):
        pass


# -- overwriting -----------------------------------------------------------------------------------


def test_columns_that_others_refer_to_and_computed_ones_stay(known: Workspace, path: Path) -> None:
    run(path, "create table people (id integer primary key, mail text, code text unique, "
        "low text generated always as (lower(mail)) stored);"
        f"insert into people values (1, '{GONE}', 'x');"
        "create table orders (id integer primary key, code text references people (code) "
        "on update cascade); insert into orders values (1, 'x')")  # fmt: skip
    assert erased(known, f"sqlite:///{path}", "people.mail:email", action="null").changed == {
        "people": 1
    }
    assert rows(path, "people") == [(1, None, "x", None)]
    assert rows(path, "orders") == [(1, "x")]


UNIQUE = "create unique index by_mail on people (lower(mail))"


def test_masks_differ_in_a_unique_index_of_an_expression(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + f"insert into people values (3, 'erased', 'z');{UNIQUE}")
    place = f"sqlite:///{path}"
    assert erased(known, place, "people.mail:email", action="mask").changed == {"people": 1}
    assert rows(path, "people")[0][1].startswith("erased-")


def test_triggers_are_told(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + "create table seen (id integer); create trigger Watch after delete on People"
        " begin delete from seen; end")  # fmt: skip
    assert erased(known, f"sqlite:///{path}", "people.mail:email").triggers == ["people.Watch"]


# -- the verdict -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "more", "reason"),
    [
        (GONE.upper(), f"create table l (t text); insert into l values ('{GONE}')", "other rows"),
        (f"Ann <{GONE}>", f"create table l (t text); insert into l values ('{GONE}')", "other row"),
        (
            GONE,
            "create virtual table f using fts5(mail, content='people', content_rowid='id');"
            "insert into f (f) values ('rebuild')",
            "keep words",
        ),
    ],
    ids=["case", "name and address", "index of words"],
)
def test_what_is_left_in_another_spelling_is_not_called_purged(
    known: Workspace, path: Path, spelled: str, more: str, reason: str
) -> None:
    run(path, PEOPLE.replace(GONE, spelled) + more)
    done = erased(known, f"sqlite:///{path}", "people.mail:email")
    assert done.verdict == NOT_PROVED
    assert reason in str(done.reason)


def test_a_long_row_that_lies_in_several_pages_is_searched(known: Workspace, path: Path) -> None:
    run(path, PEOPLE + "create table l (t text); insert into l values ('')")
    with closing(sqlite3.connect(path)) as base:
        base.execute("pragma secure_delete = on")
        for n in range(4_000, 8_200, 8):  # the pages of a long row are full from its end
            base.execute("update l set t = ?", ("x" * 9_000 + GONE + "y" * n,))
            base.commit()
            if path.read_bytes().count(GONE.encode()) == 1:  # that of the row of people
                break
        else:
            pytest.fail("no border of a page was met")
    assert erased(known, f"sqlite:///{path}", "people.mail:email").verdict == NOT_PROVED
    assert path.read_bytes().count(GONE.encode()) == 0  # the file alone would not tell


def test_numbers_too_short_to_search_for_are_told(known: Workspace, path: Path) -> None:
    run(path, f"create table people (id integer primary key); insert into people values ({NUMBER})")
    done = erased(known, f"sqlite:///{path}", "people.id")
    assert done.verdict == NOT_PROVED
    assert done.reason == "1 of their values are too short to be looked for"


def test_an_erasure_is_written_down_although_the_look_after_it_fails(
    known: Workspace, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(path, PEOPLE)
    real, calls = DatabaseTarget.find, []

    def fails_later(*given: Any) -> Any:
        calls.append(given)
        if len(calls) > 1:
            raise SourceError("gone")
        return real(*given)

    monkeypatch.setattr(DatabaseTarget, "find", fails_later)
    done = known.erase_target(f"sqlite:///{path}", ["people.mail:email"])
    assert (done.changed, done.verdict) == ({"people": 1}, NOT_PROVED)
    assert known.log_entries()[-1]["kind"] == "target-erased"


# -- servers ---------------------------------------------------------------------------------------


@pytest.fixture
def place(server: Any, database: str) -> Iterator[str]:
    with psycopg.connect(server.url(database)) as connection:
        connection.execute(PEOPLE.replace(" collate nocase", ""))
    return server.url(database)


def sql(place: str, statement: str) -> None:
    with psycopg.connect(place) as connection:
        connection.execute(statement)


def test_rows_of_partitions_are_counted_once(known: Workspace, place: str) -> None:
    sql(place, "create table orders (id int, who int references people on delete cascade, "
        "primary key (id)) partition by range (id);"
        "create table o1 partition of orders for values from (0) to (10);"
        "create table o2 partition of orders for values from (10) to (20);"
        "insert into orders values (1, 1), (11, 1), (2, 2)")  # fmt: skip
    assert erased(known, place, "people.mail:email").changed == {"orders": 2, "people": 1}


def test_a_user_who_sees_only_some_rows_is_refused(
    known: Workspace, server: Any, database: str, place: str
) -> None:
    sql(place, "create table orders (id int primary key, who int references people on delete "
        "cascade); insert into orders values (1, 1), (2, 1);"
        "alter table orders enable row level security;"
        "create policy half on orders using (id = 2)")  # fmt: skip
    server.run("create role guest login")
    try:
        sql(place, "grant all on people, orders to guest")
        guest = server.url(database, "guest")
        for dry_run in (True, False):
            with refused("may hide rows of table 'orders'"):
                known.erase_target(guest, ["people.mail:email"], dry_run=dry_run)
        assert "public.orders" in known.scan_target(guest).warnings[-1]
        assert known.scan_target(f"{guest}#people").warnings == []
        assert erased(known, place, "people.mail:email").changed == {"orders": 2, "people": 1}
    finally:
        sql(place, "drop owned by guest")
        server.run("drop role guest")


def test_keys_that_inherit_are_not_taken_for_one_row(known: Workspace, place: str) -> None:
    sql(place, f"create table more () inherits (people); insert into more values (1, '{STAYS}')")
    with refused("inherit"):
        known.erase_target(place, ["people.mail:email"])


def test_checks_that_wait_fail_in_the_dry_run(known: Workspace, place: str) -> None:
    sql(place, "create function no() returns trigger language plpgsql as "
        "$$begin raise exception 'no'; end$$;"
        "create constraint trigger late after delete on people deferrable initially deferred "
        "for each row execute function no()")  # fmt: skip
    for dry_run in (True, False):
        with refused("nothing was changed"):
            known.erase_target(place, ["people.mail:email"], dry_run=dry_run)


def test_it_is_not_said_that_nothing_was_changed_where_nobody_knows(
    known: Workspace, place: str
) -> None:
    sql(place, "create function off() returns trigger language plpgsql as "
        "$$begin perform pg_terminate_backend(pg_backend_pid()); return null; end$$;"
        "create constraint trigger late after delete on people deferrable initially deferred "
        "for each row execute function off()")  # fmt: skip
    with refused("or everything: a dry run tells which"):
        known.erase_target(place, ["people.mail:email"])


@pytest.mark.parametrize(
    ("kind", "value"), [("real", "0.1"), ("money", "'1.50'"), ("xid8", "'7'"), ("pg_lsn", "'0/1'")]
)
def test_keys_by_which_no_row_is_found_are_refused(
    known: Workspace, place: str, kind: str, value: str
) -> None:
    sql(place, f"create table odd (k {kind} primary key, mail text);"
        f"insert into odd values ({value}, '{GONE}')")  # fmt: skip
    with refused("has a type by whose values"):
        known.erase_target(place, ["odd.mail:email"])


def test_lists_are_refused(known: Workspace, place: str) -> None:
    sql(place, "create table a (id int primary key, mail text[]); create table b (id int[] primary "
        "key, mail text)")  # fmt: skip
    with refused("holds lists"):
        known.erase_target(place, ["a.mail:email"])
    with refused("lists or JSON in its primary key"):
        known.erase_target(place, ["b.mail:email"])


def test_all_schemas_and_materialized_views_are_scanned(known: Workspace, place: str) -> None:
    sql(place, "create schema old; create table old.people as select * from people;"
        "create materialized view copies as select * from people")  # fmt: skip
    found = known.scan_target(place, subjects=["mail:email"]).columns
    assert {each.place.rpartition("#")[2]: each.n_erased for each in found} == {
        "people": 1, "copies": 1, "old.people": 1,
    }  # fmt: skip


def test_keys_that_refer_to_tables_that_inherit_are_refused(known: Workspace, place: str) -> None:
    sql(place, f"create table more (primary key (id)) inherits (people);"
        f"insert into more values (3, '{GONE}');"
        "create table orders (id int primary key, who int references more on delete cascade);"
        "insert into orders values (1, 3)")  # fmt: skip
    for dry_run in (True, False):
        with refused("'orders' refers to rows of 'people' by a foreign key that is not followed"):
            known.erase_target(place, ["people.mail:email"], dry_run=dry_run)
    with psycopg.connect(place) as connection:
        assert connection.execute("select count(*) from orders").fetchone() == (1,)


def test_what_a_client_still_finds_is_told(known: Workspace, place: str) -> None:
    """The reason names what an independent client finds after the erasure."""
    reason = erased(known, place, "people.mail:email").reason
    assert not any(word in str(reason) for word in ("view", "large objects", "triggers"))
    sql(place, f"insert into people values (1, '{GONE}', 'x');"
        "create view plain as select * from people;"
        "create materialized view copies as select * from plain;"
        "alter table people add photo oid;"
        "update people set photo = lo_from_bytea(0, 'face of marker1') where id = 1;"
        "create table kept (mail text);"
        "create rule keeps as on delete to people do also insert into kept values (old.mail)"
        )  # fmt: skip
    done = erased(known, place, "people.mail:email")
    assert (done.changed, done.triggers) == ({"people": 1}, ["people.keeps"])
    with psycopg.connect(place) as connection:
        for found in (
            f"select 1 from copies where mail = '{GONE}'",
            "select 1 from pg_largeobject where data = 'face of marker1'",
            f"select 1 from kept where mail = '{GONE}'",
        ):
            assert connection.execute(found).fetchone() == (1,)
    for told in (
        "materialized view 'copies'", "large objects of people", "copied rows: people.keeps",
    ):  # fmt: skip
        assert told in str(done.reason)


def test_times_that_python_has_not_are_not_read(known: Workspace, place: str) -> None:
    sql(place, "alter table people add until timestamptz default 'infinity', "
        "add day date default '-infinity', add age interval default '1 month'")  # fmt: skip
    assert erased(known, place, "people.mail:email").changed == {"people": 1}


def test_masks_differ_in_a_unique_index_of_an_expression_of_postgres(
    known: Workspace, place: str
) -> None:
    sql(place, f"insert into people values (3, 'erased', 'z');{UNIQUE}")
    done = erased(known, place, "people.mail:email", action="mask", keep=["code"])
    assert done.changed == {"people": 1}


def test_a_reference_loses_the_columns_that_the_schema_names(known: Workspace, place: str) -> None:
    """As where each row has a tenant, which stays."""
    sql(
        place,
        """alter table people add tenant int default 1, add unique (tenant, id);
        create table orders (id int primary key, tenant int not null, "Who is" int,
        foreign key (tenant, "Who is") references people (tenant, id)
        on delete set null ("Who is")); insert into orders values (1, 1, 1), (2, 1, 2)""",
    )
    done = erased(known, place, "people.mail:email")
    assert (done.changed, done.detached) == ({"people": 1}, {"orders.Who is": 1})
    with psycopg.connect(place) as connection:
        found = connection.execute("select * from orders order by id").fetchall()
    assert found == [(1, 1, None), (2, 1, 2)]

"""Identities inside JSON or a dotted text, as stores of agents and of documents keep them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from refusals import refused

from erasable.workspace.targets.databases import DatabaseTarget
from erasable.workspace.targets.layout import at_path
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED
from people import Named as Users
from people import erased

GONE, STAYS = "marker-one", "marker-two"
STORE = "create table store (prefix text, key text, value {}, primary key (prefix, key))"
"""The columns of LangGraph's SqliteStore and PostgresStore."""


def rows(user: str, city: str = "Reykjavik") -> list[tuple[str, str, str]]:
    """Return the rows of one user, some of which do not name the user in their value."""
    memory = {
        "user": {"ids": [user]},
        "text": f"a memory of {user[::-1]} - \u00e9t\u00e9",
        "city": city,
    }
    return [
        (f"memories.{user}", "m1", json.dumps(memory)),
        (f"memories.{user}", "m2", json.dumps({"user": None, "n": 3})),
        ("shared.all", user, json.dumps({"user": {"ids": [user]}})),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "store.db")) as base:
        base.execute(STORE.format("text"))
        odd = [("shared.odd", "o1", "no json"), ("shared", "o2", "[1, 2]"), ("", "o3", "7")]
        base.executemany("insert into store values (?, ?, ?)", [*rows(GONE), *rows(STAYS), *odd])
        base.commit()
    return tmp_path / "store.db"


def left(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as base:
        return set(base.execute("select prefix, key from store"))


def target(place: str, *fields: str, **more: Any) -> DatabaseTarget:
    return DatabaseTarget(place, Settings(tuple(Subject(each, "id") for each in fields), **more))


OTHERS = {("shared.odd", "o1"), ("shared", "o2"), ("", "o3"), ("shared.all", STAYS)} | {
    (f"memories.{STAYS}", "m1"), (f"memories.{STAYS}", "m2")
}  # fmt: skip


def test_keys_of_json_and_parts_of_a_prefix(path: Path) -> None:
    with target(f"sqlite:///{path}", "store.prefix.1", "store.value.user.ids.0") as of:
        plan, verdict = erased(of, GONE)
    assert plan.changed == {"store": 3}
    assert left(path) == OTHERS
    assert (verdict.word, verdict.reason) == (PURGED, None)
    assert GONE.encode() not in path.read_bytes()
    assert STAYS.encode() in path.read_bytes()


def test_one_of_them_alone_is_not_called_purged(path: Path) -> None:
    with target(f"sqlite:///{path}", "store.prefix.1") as of:
        plan, verdict = erased(of, GONE)
    assert plan.changed == {"store": 2}
    assert left(path) == {*OTHERS, ("shared.all", GONE)}
    assert verdict.word == NOT_PROVED
    assert "in other rows" in str(verdict.reason)


@pytest.mark.parametrize("kind", ["json", "jsonb", "text"])
def test_json_of_a_server(server: Any, database: str, kind: str) -> None:
    url = server.url(database)
    with psycopg.connect(url) as base:
        base.execute(STORE.format(kind))
        with base.cursor() as cursor:
            cursor.executemany("insert into store values (%s, %s, %s)", rows(GONE) + rows(STAYS))
    with target(url, "store.value.user.ids.0") as of:
        told = of.find(erasing := Users(GONE))
        plan, _ = erased(of, GONE)
        assert not of.find(erasing)
    assert told.changed == plan.changed == {"store": 2}
    with psycopg.connect(url) as base:
        found = base.execute("select prefix, key from store order by 1, 2").fetchall()
    assert found == [
        (f"memories.{GONE}", "m2"), (f"memories.{STAYS}", "m1"), (f"memories.{STAYS}", "m2"),
        ("shared.all", STAYS),
    ]  # fmt: skip


def test_a_column_of_json_is_emptied(server: Any, database: str) -> None:
    url = server.url(database)
    with psycopg.connect(url) as base:
        base.execute(STORE.format("jsonb"))
        with base.cursor() as cursor:
            cursor.executemany("insert into store values (%s, %s, %s)", rows(GONE) + rows(STAYS))
    with target(url, "store.value.user.ids.0", action="null") as of:
        erased(of, GONE)
    with psycopg.connect(url) as base:
        found = base.execute("select count(*), count(value) from store").fetchone()
    assert found == (6, 4)  # null, not the null of JSON


def test_a_whole_name_comes_before_a_path(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as base:
        base.execute('create table t (id integer primary key, "v" text, "v.user" text)')
        base.execute("insert into t values (1, ?, ?)", (json.dumps({"user": STAYS}), GONE))
        base.commit()
    with target(f"sqlite:///{tmp_path / 'a.db'}", "t.v.user") as of:
        assert erased(of, GONE)[0].changed == {"t": 1}


def test_a_column_that_is_not_there(path: Path) -> None:
    with (
        target(f"sqlite:///{path}", "store.valeu.user") as of,
        refused(r"no column 'store\.valeu\.user'"),
    ):
        of.find(Users(GONE))


@pytest.mark.parametrize(
    ("value", "where", "found"),
    [
        ({"a": {"b": 7}}, "a.b", 7), ('{"a": [1, {"b": "x"}]}', "a.1.b", "x"), ("7", "0", "7"),
        ('{"a": "{\\"b\\": 5}"}', "a.b", 5), ("users.ann.notes", "1", "ann"), ("a.b", "2", None),
        ("a.b", "x", None), ({"a": True}, "a", None), ({"a": {}}, "a", None), (None, "a", None),
        ('{"a": null}', "a", None), ("1.2", "1", "2"), ({"a": [1]}, "a.-1", None),
        (b"\xff", "a", None),
    ],
)  # fmt: skip
def test_paths(value: Any, where: str, found: Any) -> None:
    assert at_path(value, where.split(".")) == found


def test_a_path_that_no_row_has_is_refused(path: Path) -> None:
    with target(f"sqlite:///{path}", "store.value.usr.ids.0") as of, refused("no row has an ident"):
        of.find(Users())
    with target(f"sqlite:///{path}", "store.value.user.ids.0") as of:
        assert not of.find(Users())


@pytest.mark.parametrize("field", ["store.value.user.ids", "store.value.users.id"])
def test_several_identities_in_a_row_are_not_passed_over(path: Path, field: str) -> None:
    with closing(sqlite3.connect(path)) as base:
        both = {"users": [{"id": STAYS}, {"id": GONE}], "user": {"ids": [STAYS, GONE]}}
        base.execute("insert into store values ('both', 'k', ?)", (json.dumps(both),))
        base.commit()
    before = left(path)
    with target(f"sqlite:///{path}", field) as of, refused("a list of identities in a row"):
        erased(of, GONE)
    assert left(path) == before

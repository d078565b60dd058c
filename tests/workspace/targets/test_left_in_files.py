"""The search of a file of SQLite finds what a deletion has left there, in each encoding."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from erasable.workspace.targets.databases import DatabaseTarget
from erasable.workspace.targets.protocol import Settings, Subject
from people import Named, erased

N = 40
PEOPLE = [f"marker{i:04d}@example.org" for i in range(N)]
GONE = PEOPLE[::5]


@pytest.fixture(params=["utf-8", "utf-16le", "utf-16be"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute(f"pragma encoding = '{request.param}'")
        base.execute("create table people (id integer primary key, mail text, body text, x blob)")
        base.executemany(
            "insert into people values (?, ?, ?, ?)",
            [
                (i, PEOPLE[i], f"a long text of {i * i}, " * 20, bytes([200 + i] * 30))
                for i in range(N)
            ],
        )
        base.commit()
    return tmp_path / "shop.db"


def target(path: Path) -> DatabaseTarget:
    return DatabaseTarget(f"sqlite:///{path}", Settings((Subject("people.mail", "email"),)))


def test_what_another_client_leaves_is_found(path: Path) -> None:
    with target(path) as of:
        plan = of.find(Named(*GONE))
        assert len(plan.marks) == 3 * len(GONE)
        with closing(sqlite3.connect(path)) as base:
            base.execute("pragma secure_delete = off")
            base.execute("delete from people where id % 5 = 0")
            base.commit()
        found = of.scan(plan.marks, plan.living)
        assert found.n_left > len(GONE)
        assert found.where == ["shop.db"]
        assert of.compact() == []
        found = of.scan(plan.marks, plan.living)
        assert (found.n_left, found.where, found.reasons) == (0, [], [])
        assert found.n_living


def test_values_of_others_are_not_looked_for(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("create table people (id integer primary key, mail text, city text)")
        cities = ["Reykjavik", "Akureyri"]
        base.executemany(
            "insert into people values (?, ?, ?)", [(i, PEOPLE[i], cities[i % 2]) for i in range(N)]
        )
        base.execute("update people set city = 'Isafjordur' where id = 0")
        base.commit()
    with target(tmp_path / "shop.db") as of:
        plan, verdict = erased(of, *GONE)
    assert len(plan.marks) == len(GONE) + 1  # that of nobody else
    assert (verdict.word, verdict.reason) == ("purged", None)


def test_two_subjects_of_one_table(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("create table mails (id integer primary key, sender text, receiver text)")
        rows = [(1, PEOPLE[0], PEOPLE[1]), (2, PEOPLE[1], PEOPLE[0]), (3, PEOPLE[1], PEOPLE[2]),
                (4, PEOPLE[0], PEOPLE[0])]  # fmt: skip
        base.executemany("insert into mails values (?, ?, ?)", rows)
        base.commit()
    subjects = (Subject("mails.sender", "email"), Subject("mails.receiver", "email"))
    with DatabaseTarget(f"sqlite:///{tmp_path / 'shop.db'}", Settings(subjects)) as of:
        plan, _ = erased(of, PEOPLE[0])
    assert (plan.changed, plan.n_records) == ({"mails": 3}, {PEOPLE[0]: 3})
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        assert base.execute("select id from mails").fetchall() == [(3,)]

"""Vectors in PostgreSQL: nothing is left in the files of a table once it was written anew."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from math import sin
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from erasable.workspace.targets.databases import DatabaseTarget  # noqa: E402
from erasable.workspace.targets.protocol import Settings, Subject  # noqa: E402
from erasable.workspace.targets.steps import NOT_PROVED  # noqa: E402
from people import Named, erased  # noqa: E402

N = 600
MAIL = Subject("docs.mail", "email")
PEOPLE = [f"marker{i:06d}@example.org" for i in range(N)]
GONE = PEOPLE[::20]
MADE = """
create extension vector;
create table docs (id int primary key, mail text, body text, city text, e vector(16));
create index on docs using hnsw (e vector_l2_ops);
create index on docs (mail);
"""


def body(i: int) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


def vector(i: int) -> list[float]:
    return [sin(i * i + each) for each in range(16)]


@pytest.fixture
def docs(server: Any) -> Iterator[str]:
    name = server.database()
    with psycopg.connect(server.url(name)) as connection:
        connection.execute(MADE)
        with connection.cursor() as cursor:
            cursor.executemany(
                "insert into docs values (%s, %s, %s, 'Reykjavik', %s)",
                [(i, PEOPLE[i], body(i), str(vector(i))) for i in range(N)],
            )
    with psycopg.connect(server.url(name)) as connection:
        connection.execute("analyze docs")  # which copies values into pg_statistic
    yield name
    server.drop(name)


def residue(files: list[Path], numbers: range) -> tuple[int, int, int]:
    """Count addresses, texts and vectors of people in files, in a way of its own."""
    bytes_ = b"".join(each.read_bytes() for each in files)
    return (
        sum(PEOPLE[i].encode() in bytes_ for i in numbers),
        sum(body(i).encode() in bytes_ for i in numbers),
        sum(struct.pack("<16f", *vector(i)) in bytes_ for i in numbers),
    )


def test_nothing_is_left_in_the_files_of_the_database(server: Any, docs: str) -> None:
    gone, stay, n = range(0, N, 20), range(1, N, 20), len(GONE)
    assert residue(server.files(docs), gone) == (n, n, n)
    with DatabaseTarget(server.url(docs), Settings((MAIL,))) as of:
        plan, verdict = erased(of, *GONE)
        found = of.scan(plan.marks, plan.living)
    assert plan.changed == {"docs": n}
    assert len(plan.marks) == 3 * n  # the city is that of others, too
    assert residue(server.files(docs), gone) == (0, 0, 0)
    assert residue(server.files(docs), stay) == (n, n, n)
    assert verdict.word == NOT_PROVED
    assert found.where == ["the write-ahead log"]
    assert residue(sorted((server.data / "pg_wal").glob("0*")), gone)[1] > 0


def test_a_deletion_alone_leaves_them(server: Any, docs: str) -> None:
    with DatabaseTarget(server.url(docs), Settings((MAIL,))) as of:
        plan = of.find(Named(*GONE))
        of.erase(plan)
        server.run("checkpoint")
        found = of.scan(plan.marks, plan.living)
    assert found.n_left == len(plan.marks)
    assert found.n_living
    assert found.where == ["table 'docs'", "table 'pg_statistic'", "the write-ahead log"]


def test_slots_and_archives_are_told(server: Any, docs: str) -> None:
    server.run("select pg_create_physical_replication_slot('standby')")
    try:
        with DatabaseTarget(server.url(docs), Settings((MAIL,))) as of:
            _, verdict = erased(of, *GONE)
    finally:
        server.run("select pg_drop_replication_slot('standby')")
    assert "replication slots keep changes for others: standby" in str(verdict.reason)


def test_another_server_is_not_taken_for_this_one(server: Any, docs: str) -> None:
    control = server.data / "global" / "pg_control"
    kept = control.read_bytes()
    with DatabaseTarget(server.url(docs), Settings((MAIL,))) as of:
        plan = of.find(Named(*GONE))
        server.run("checkpoint")
        try:
            control.write_bytes(bytes(8) + kept[8:])
            found = of.scan(plan.marks, plan.living)
        finally:
            control.write_bytes(kept)
    assert found.reasons[-1] == "its files cannot be seen from here"

"""A file of DuckDB: people leave its tables, and the file once it was written anew."""

from __future__ import annotations

import hashlib
import os
import signal
import struct
from contextlib import closing
from math import sin
from pathlib import Path
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
pytest.importorskip("duckdb_engine", reason="duckdb-engine is not installed")

from refusals import refused  # noqa: E402

from erasable.workspace.targets.databases import DatabaseTarget  # noqa: E402
from erasable.workspace.targets.protocol import Settings, Subject  # noqa: E402
from erasable.workspace.targets.steps import NOT_PROVED, PURGED  # noqa: E402
from people import Named, erased  # noqa: E402

N = 600
MAIL = Subject("people.mail", "email")
PEOPLE = [f"marker{i:06d}@example.org" for i in range(N)]
GONE = PEOPLE[::20]


def body(i: int) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


def vector(i: int) -> list[float]:
    return [sin(i * i + each) for each in range(16)]


def made(path: Path, *more: str) -> str:
    with closing(duckdb.connect(str(path))) as base:
        base.execute("create table people (id integer primary key, mail text, body text, "
                     "city text, e float[16])")  # fmt: skip
        base.execute("create table orders (id integer primary key, "
                     "who integer references people (id), t text)")  # fmt: skip
        rows = [(i, PEOPLE[i], body(i), "Reykjavik", vector(i)) for i in range(N)]
        base.executemany("insert into people values (?, ?, ?, ?, ?)", rows)
        base.executemany(
            "insert into orders values (?, ?, ?)", [(i, i, body(N + i)) for i in range(N)]
        )
        base.execute("create view cities as select distinct city from people")
        base.execute("create index by_city on people (city)")
        for each in more:
            base.execute(each)
    return f"duckdb:///{path}"


def target(place: str, *cascade: str, **more: Any) -> DatabaseTarget:
    return DatabaseTarget(place, Settings((MAIL,), cascade=cascade, **more))


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(duckdb.connect(str(path), read_only=True)) as base:
        found: list[tuple[Any, ...]] = base.execute(query).fetchall()
        return found


def residue(path: Path, numbers: range) -> int:
    """Count values of people in the bytes of the files: those of small tables are stored plain."""
    bytes_ = b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))
    forms = [form for i in numbers for form in (
        PEOPLE[i].encode(), body(i).encode(), struct.pack("<16f", *vector(i))
    )]  # fmt: skip
    return sum(form in bytes_ for form in forms)


def test_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    place = made(path)
    others = rows(path, "select * from people where id % 20 != 0 order by id")
    n_before = residue(path, range(0, N, 20))
    assert n_before >= 2 * len(GONE)
    with target(place, "orders") as of:
        told = of.find(Named(*GONE))
        plan, verdict = erased(of, *GONE)
    assert told.changed == plan.changed == {"orders": len(GONE), "people": len(GONE)}
    assert (verdict.word, verdict.reason) == (PURGED, None)
    assert residue(path, range(0, N, 20)) == 0
    assert residue(path, range(1, N, 20)) == n_before  # the look finds those who stay
    assert rows(path, "select * from people order by id") == others
    assert rows(path, "select count(*) from orders") == [(N - len(GONE),)]
    assert rows(path, "select * from cities") == [("Reykjavik",)]
    assert rows(path, "select index_name from duckdb_indexes()") == [("by_city",)]
    assert list(tmp_path.iterdir()) == [path]


def test_a_deletion_alone_leaves_them(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with target(made(path), "orders") as of:
        plan = of.find(Named(*GONE))
        of.erase(plan)
        found = of.scan(plan.marks, plan.living)
    assert found.n_left
    assert found.reasons or found.where
    assert residue(path, range(0, N, 20)) > 0


def test_rows_that_would_refer_to_nothing_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    before = path.read_bytes() if path.exists() else None
    with target(made(path)) as of, refused(r"table 'orders'.*--cascade"):
        of.find(Named(*GONE))
    assert before is None
    assert rows(path, "select count(*) from people") == [(N,)]


def test_a_value_in_another_table_is_told(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    place = made(path, "create table notes (t text)",
                 f"insert into notes values ('call {GONE[0].upper()}, please')")  # fmt: skip
    with target(place, "orders") as of:
        _, verdict = erased(of, *GONE)
    assert verdict.word == NOT_PROVED
    assert "in other rows" in str(verdict.reason)


def test_a_file_that_is_open_elsewhere_is_an_error(tmp_path: Path) -> None:
    place = made(tmp_path / "shop.duckdb")
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))):
            os.write(ready[1], b"x")
            os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        with target(place, "orders") as of, refused("nothing was changed"):
            of.find(Named(*GONE))
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)
        for end in (*ready, *done):
            os.close(end)


POINTS = [("_remove", 1), ("_difference", 1), ("_sync", 1), ("_sync", 2), ("_remove", 2)]


@pytest.mark.parametrize("point", POINTS)
def test_kills_while_the_file_is_written_anew(tmp_path: Path, point: tuple[str, int]) -> None:
    path = tmp_path / "shop.duckdb"
    place = made(path)
    child = os.fork()
    if not child:
        try:
            from erasable.workspace.targets import duckdb_file

            name, n = point
            left = [None] * n
            real = getattr(duckdb_file, name)

            def kill(*given: Any) -> Any:
                if left:
                    left.pop()
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given)

            setattr(duckdb_file, name, kill)
            with target(place, "orders") as of:
                erased(of, *GONE)
        finally:
            os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert rows(path, "select count(*) from people") == [(N - len(GONE),)]
    with target(place, "orders") as of:
        _, verdict = erased(of, *GONE)
        assert verdict.word == PURGED  # nobody was found
        assert of.compact() == []
    assert residue(path, range(0, N, 20)) == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("what", ["mail", "lower(mail)"])
def test_masks_differ_in_a_unique_index(tmp_path: Path, what: str) -> None:
    place = made(tmp_path / "a.db", "drop table orders",
                 f"create unique index by_mail on people ({what})")  # fmt: skip
    with target(place, action="mask", keep=("body",)) as of:
        erased(of, *GONE[:2])
    with closing(duckdb.connect(str(tmp_path / "a.db"))) as base:
        masks = base.execute("select mail from people where mail like 'erased%'").fetchall()
    assert len(set(masks)) == 2

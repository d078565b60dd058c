"""A scan of other places finds the people who are known or erased, and changes nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from cli.running import erasable
from erasable.core.errors import InvalidParameterError, SourceError
from erasable.workspace import Workspace

ERASED = (3, 8)
KNOWN = tuple(i for i in range(12) if i not in ERASED)


def address(i: int) -> str:
    return f"Marker{i}@Example.org"


@pytest.fixture
def known(tmp_path: Path) -> Iterator[Workspace]:
    """Hold twelve people, by ids, addresses and telephone numbers; two of them are erased."""
    path = tmp_path / "visits.csv"
    table = {
        "visit": [f"v{i}" for i in range(12)],
        "who": [str(7000 + i) for i in range(12)],
        "mail": [address(i).lower() for i in range(12)],
        "call": [f"+49 30 9010 10{i:02d}" for i in range(12)],
    }
    pyarrow.csv.write_csv(pa.table(table), path)
    workspace = Workspace.create(tmp_path / "ws")
    workspace.add_dataset(
        "visits", path, id_column="visit", subjects=["who", "mail:email", "call:phone:DE"]
    )
    workspace.request([7000 + i for i in ERASED], type="id")
    workspace.process()
    return workspace


def shop(path: Path, people: range) -> str:
    """Make a database of customers and orders, one without a customer, and an empty table."""
    with sqlite3.connect(path) as base:
        base.execute("create table customers (number integer primary key, mail text, name text)")
        base.execute("create table orders (id text, customer integer, price real)")
        base.execute("create table plans (mail text)")
        base.executemany(
            "insert into customers values (?, ?, ?)",
            [(7000 + i, f" {address(i).upper()} ", f"Marker {i}") for i in people],
        )
        rows = [(f"o{n}", 7000 + i, 1.5) for i in people for n in range(3)]
        base.executemany("insert into orders values (?, ?, ?)", [*rows, ("last", None, 2.0)])
    base.close()
    return f"sqlite:///{path}"


def told(workspace: Workspace, place: str, **more: Any) -> set[tuple[Any, ...]]:
    found = workspace.scan_target(place, **more)
    assert not found.warnings
    return {
        (Path(each.place).name, each.column, each.type, each.n_rows, each.n_attributed,
         each.n_known, each.n_erased)
        for each in found.columns
    }  # fmt: skip


def test_tables_of_a_database(known: Workspace, tmp_path: Path) -> None:
    place = shop(tmp_path / "shop.db", range(6, 20))
    before = (tmp_path / "shop.db").read_bytes()
    there = range(6, 12)
    n_known, n_erased = len(set(there) & set(KNOWN)), len(set(there) & set(ERASED))
    assert told(known, place) == {
        ("shop.db#customers", "number", "id", 14, 6, n_known, n_erased),
        ("shop.db#customers", "mail", "email", 14, 6, n_known, n_erased),
        ("shop.db#orders", "customer", "id", 43, 18, n_known, n_erased),
    }
    assert (tmp_path / "shop.db").read_bytes() == before


def test_one_table_and_a_query(known: Workspace, tmp_path: Path) -> None:
    place = shop(tmp_path / "shop.db", range(12))
    named = told(known, f"{place}#customers", subjects=["mail:email"])
    assert named == {("shop.db#customers", "mail", "email", 12, 12, 10, 2)}
    chosen = known.scan_target(place, query="select customer from orders where customer < 7002")
    assert [(each.column, each.n_rows, each.n_known) for each in chosen.columns] == [
        ("customer", 6, 2)
    ]


def test_files_of_a_folder(known: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    (folder / "2026").mkdir(parents=True)
    numbers = [f"030 / 90101{i:03d}" for i in (0, 3)]
    pyarrow.csv.write_csv(pa.table({"call": numbers, "x": [1.5, 2.5]}), folder / "calls.csv")
    mails = pa.array([f"Ann <{address(8)}>", "stranger@example.org", None]).dictionary_encode()
    pq.write_table(pa.table({"mail": mails}), folder / "2026" / "mails.parquet")
    (folder / "log.jsonl").write_text(json.dumps({"user": 7001}) + "\n")
    (folder / "notes.txt").write_text("no table")
    assert told(known, str(folder)) == {
        ("calls.csv", "call", "phone", 2, 2, 1, 1),
        ("mails.parquet", "mail", "email", 3, 1, 0, 1),
        ("log.jsonl", "user", "id", 1, 1, 1, 0),
    }


def test_leading_zeros_of_a_text_file_stay(known: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "padded.csv"
    path.write_text("who\n07001\n7001.0\n")
    assert told(known, str(path)) == {("padded.csv", "who", "id", 2, 1, 1, 0)}


def test_addresses_of_strangers_are_shown_without_people(known: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "others.csv"
    path.write_text("contact,age\nann@example.net,41\nbob@example.net,28\n")
    assert told(known, str(path)) == {("others.csv", "contact", "email", 2, 0, 0, 0)}


def test_the_folder_of_the_workspace_is_left_out(known: Workspace, tmp_path: Path) -> None:
    (known.context.root / "copy.csv").write_text("who\n7001\n")
    assert {name for name, *_ in told(known, str(tmp_path))} == {"visits.csv"}


def test_a_table_that_cannot_be_read_is_told(known: Workspace, tmp_path: Path) -> None:
    place = shop(tmp_path / "shop.db", range(3))
    with sqlite3.connect(tmp_path / "shop.db") as base:
        base.execute("create table odd (cell)")
        base.executemany("insert into odd values (?)", [(1,), ("Marker 1",), (b"x",)])
    base.close()
    found = known.scan_target(place)
    assert {each.column for each in found.columns} == {"number", "mail", "customer"}
    assert len(found.warnings) == 1
    assert "Marker" not in found.warnings[0]
    with pytest.raises(SourceError, match="several types"):
        known.scan_target(f"{place}#odd")


def test_a_check_fails_where_a_table_cannot_be_read(known: Workspace, tmp_path: Path) -> None:
    folder = ["--workspace", str(known.context.root)]
    place = shop(tmp_path / "shop.db", range(20, 25))
    assert erasable("target", "scan", place, "--check", *folder).exit_code == 0
    with sqlite3.connect(tmp_path / "shop.db") as base:
        base.execute("create table odd (cell)")
        base.executemany("insert into odd values (?)", [(1,), ("Marker 1",), (b"x",)])
    base.close()
    checked = erasable("target", "scan", place, "--check", *folder)
    assert checked.exit_code == 1
    assert "not scanned" in checked.stderr
    assert erasable("target", "scan", place, *folder).exit_code == 0


def test_an_empty_table_has_nobody(known: Workspace, tmp_path: Path) -> None:
    place = shop(tmp_path / "shop.db", range(3))
    assert told(known, f"{place}#plans") == set()
    assert told(known, f"{place}#plans", subjects=["mail:email"]) == set()


@pytest.mark.parametrize(
    ("place", "columns", "error", "message"),
    [
        ("nothing.csv", (), SourceError, "is not there"),
        ("folder", (), SourceError, "no file that can be read"),
        ("shop.db", ("mial:email",), SourceError, "has no column 'mial'"),
        ("shop.db", ("mail:mail",), InvalidParameterError, "no type of identity"),
        ("bare.db", (), SourceError, "has no table"),
    ],
)
def test_bad_places(
    known: Workspace, tmp_path: Path, place: str, columns: Any, error: Any, message: str
) -> None:
    shop(tmp_path / "shop.db", range(3))
    sqlite3.connect(tmp_path / "bare.db").execute("create table a (b)").connection.execute(
        "drop table a"
    )
    (tmp_path / "folder").mkdir()
    url = f"sqlite:///{tmp_path / place}" if place.endswith(".db") else str(tmp_path / place)
    with pytest.raises(error, match=message):
        known.scan_target(url, subjects=columns)


def test_on_the_command_line(known: Workspace, tmp_path: Path) -> None:
    folder = ["--workspace", str(known.context.root)]
    place = shop(tmp_path / "shop.db", range(12))
    checked = erasable("target", "scan", place, "--check", *folder)
    assert checked.exit_code == 1
    assert "6 identities of people who were erased" in checked.stdout
    assert "arker" not in checked.stdout
    strangers = shop(tmp_path / "others.db", range(20, 25))
    clean = erasable("target", "scan", strangers, "--check", "--json", *folder)
    assert clean.exit_code == 0
    assert [each["n_attributed"] for each in json.loads(clean.stdout)["columns"]] == [0]

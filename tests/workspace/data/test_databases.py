"""Databases as sources: read in parts, never written to, and no credential kept or shown."""

from __future__ import annotations

import json
import sqlite3
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core.errors import SourceError
from erasable.workspace.data import databases
from erasable.workspace.data.column_types import Widening
from erasable.workspace.data.databases import place_of
from erasable.workspace.data.sources import Source
from naming import named

SECRET = "Bloggs"


@pytest.fixture
def shop(tmp_path):
    """A file of SQLite with some tables; returns its URL."""
    path = tmp_path / "my shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            f"""
            CREATE TABLE visits (id INTEGER, who TEXT, x REAL);
            INSERT INTO visits VALUES (1, '007', 0.5), (2, ' ', NULL), (3, '{SECRET}', 2);
            CREATE TABLE "odd name.x" (id INTEGER);
            INSERT INTO "odd name.x" VALUES (7);
            CREATE TABLE empty (id INTEGER);
            CREATE TABLE mixed (id);
            INSERT INTO mixed VALUES (1), ('{SECRET}');
            CREATE TABLE large (id);
            INSERT INTO large VALUES (1e30), (9223372036854775807);
            CREATE TABLE raw (id, data BLOB);
            INSERT INTO raw VALUES (1, x'00ff');
            CREATE VIEW seen AS SELECT id FROM visits WHERE x > 1;
            """
        )
    connection.close()
    return f"sqlite:///{path}"


def read(text, *columns, query=None) -> pa.Table:
    return Source.parse(text, query).read(columns)


def refused(text, *columns, query=None) -> str:
    with pytest.raises(SourceError) as told:
        read(text, *columns, query=query)
    message = str(told.value)
    assert "\n" not in message
    assert "; expected " in message
    assert SECRET not in message
    return message


def test_a_table_is_read(shop):
    table = read(f"{shop}#visits", "id", "who")
    assert table.to_pydict() == {
        "id": [1, 2, 3],
        "who": ["007", None, SECRET],
        "x": [0.5, None, 2.0],
    }
    assert table.schema.types == [pa.int64(), pa.string(), pa.float64()]


@pytest.mark.parametrize(
    ("table", "ids"),
    [("odd name.x", [7]), ("main.visits", [1, 2, 3]), ("seen", [3]), ("VISITS", [1, 2, 3])],
)
def test_tables_of_every_name(shop, table, ids):
    assert read(f"{shop}#{table}")["id"].to_pylist() == ids


def test_rows_of_a_query_are_read(shop):
    query = "SELECT id, ':no %s parameter' AS t FROM visits WHERE who LIKE '0%' -- :x"
    assert read(shop, "id", query=query).to_pydict() == {"id": [1], "t": [":no %s parameter"]}


def test_types_are_joined_over_parts(shop, monkeypatch):
    monkeypatch.setattr(databases, "_AT_ONCE", 2)
    query = (
        "SELECT column1 AS id, column2 AS late, column3 AS wide FROM "
        "(VALUES (1, NULL, 1), (2, NULL, 2), (3, 'x', 0.5), (4, NULL, NULL), (5, 'y', 3))"
    )
    assert read(shop, query=query).to_pydict() == {
        "id": [1, 2, 3, 4, 5],
        "late": [None, None, "x", None, "y"],
        "wide": [1.0, 2.0, 0.5, None, 3.0],
    }


@given(st.lists(st.tuples(st.integers(-9, 9), st.none() | st.text("ab", max_size=2)), min_size=1))
@settings(max_examples=examples(30))
def test_parts_of_any_size_give_the_same_table(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("parts") / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, v TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    connection.close()
    tables = []
    for n in (1, 3, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(databases, "_AT_ONCE", n)
            tables.append(read(f"sqlite:///{path}#t").to_pylist())
    assert tables[0] == tables[1] == tables[2] == [{"id": i, "v": v} for i, v in rows]


def test_values_of_other_drivers():
    """What SQLite does not have: other databases hand out such objects."""
    rows = [
        (UUID(int=1), Decimal("1.50"), date(2024, 1, 2), datetime(2024, 1, 2, 3), True, None),
        (None, Decimal("100.5"), None, None, False, None),
    ]
    names = ["uuid", "number", "day", "at", "yes", "none"]
    parts, wide = [databases._arrow(names, [row], "db") for row in rows], Widening("db")
    for part in parts:
        wide.add(part.schema)
    table = pa.concat_tables(map(wide.cast, parts))
    assert [row["uuid"] for row in table.to_pylist()] == [str(UUID(int=1)), None]
    assert table["number"].to_pylist() == [Decimal("1.50"), Decimal("100.5")]
    assert table["day"].to_pylist() == [date(2024, 1, 2), None]
    assert table["yes"].to_pylist() == [True, False]
    assert table["none"].null_count == 2


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("nothing", "no table 'nothing'"),
        ("", "no table ''"),
        ("temp.visits", "no table"),
        ("visits.", "no table"),
        ("visits; DROP TABLE visits", "no table"),
        ("x" * 300, "no table"),
        ("empty", "no records"),
        ("mixed", "column 'id'"),
        ("large", "column 'id'"),
    ],
    ids=named,
)
def test_wrong_tables_are_refused(shop, table, told):
    assert told in refused(f"{shop}#{table}", "id")


def test_missing_columns_are_refused(shop):
    assert "no column 'patient'" in refused(f"{shop}#visits", "id", "patient")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "query is empty"),
        (f"SELEC '{SECRET}'", "cannot be run"),
        (f"SELECT * FROM nothing WHERE who = '{SECRET}'", "cannot be run"),
        (f"SELECT 1; SELECT '{SECRET}'", "cannot be run"),
        ("SELECT id, who AS id FROM visits", "more than once"),
        ("SELECT id FROM visits WHERE id > 99", "no records"),
        ("-- nothing", "returns no rows"),
        ("DROP TABLE visits", "cannot be run"),
        ("DELETE FROM visits", "cannot be run"),
        ("CREATE TABLE new (x)", "cannot be run"),
        ("ATTACH DATABASE 'other.db' AS other", "cannot be run"),
        ("VACUUM INTO 'other.db'", "cannot be run"),
        ("SELECT 1 AS \0", "cannot be run"),
    ],
    ids=named,
)
def test_wrong_queries_are_refused_and_change_nothing(shop, query, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert told in refused(shop, "id", query=query)
    assert read(f"{shop}#visits").num_rows == 3
    assert sorted(tmp_path.iterdir()) == before


def test_missing_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "x.db"
    assert "is not there" in refused(f"sqlite:///{path}#visits")
    assert not path.exists()
    path.write_text(f"no database: {SECRET}" * 100)
    refused(f"sqlite:///{path}#visits")
    refused(f"sqlite:///{path}", query="SELECT * FROM visits")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("postgresql://ann:pw@db/shop#t", "postgresql://db/shop#t"),
        ("postgresql+psycopg://ann:p%40w@db:5432/shop?sslpassword=pw#s.t",
         "postgresql+psycopg://db:5432/shop#s.t"),
        ("mysql://ann:p#w@db/shop#t", "mysql://db/shop#t"),
        ("mysql://:pw@db/shop#t", "mysql://db/shop#t"),
        ("mssql+pyodbc:///?odbc_connect=UID%3Dann%3BPWD%3Dpw#t", "mssql+pyodbc:///#t"),
        ("sqlite:////a/b.db?key=pw#t", "sqlite:////a/b.db#t"),
        ("sqlite:////a#b/c.db#t", "sqlite:////a%23b/c.db#t"),
    ],
    ids=named,
)  # fmt: skip
def test_credentials_and_parameters_are_not_kept(given, place):
    source = Source.parse(given)
    assert source.to_json() == {"kind": "sql", "place": place}
    for shown in (repr(source), str(source), json.dumps(source.to_json())):
        assert "ann" not in shown
        assert "pw" not in shown


def test_kept_sources_are_read_again(shop):
    kept = json.loads(json.dumps(Source.parse(shop, "SELECT id FROM visits").to_json()))
    assert kept["query"] == "SELECT id FROM visits"
    assert Source.from_json(kept).read(["id"])["id"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "query", "told"),
    [
        ("nosuch://db/x#t", None, "no driver for 'nosuch'"),
        ("https://ann:Bloggs@x.org/y.csv#t", None, "no driver"),
        ("oracle://ann:Bloggs@db/x#t", None, "no driver"),
        ("postgresql://ann:Bloggs@db:port/x#t", None, "cannot be read"),
        ("postgresql://ann:Bloggs@db/x", None, "neither a table nor a query"),
        ("postgresql://ann:Bloggs@db/x#t", "SELECT 1", "both a table and a query"),
        ("://Bloggs#t", None, "cannot be read"),
        ("sqlite://#t", None, "no file of SQLite"),
        ("sqlite:///:memory:#t", None, "no file of SQLite"),
        ("postgresql+nosuch://ann:Bloggs@db/x#t", None, "no driver"),
        ("sqlite+aiosqlite:///x.db#t", None, "no driver"),
    ],
    ids=named,
)
def test_wrong_urls_are_refused(text, query, told):
    assert told in refused(text, "id", query=query)


def test_databases_that_do_not_answer_are_refused(monkeypatch):
    def fail(*args, **kwargs):
        raise sa.exc.OperationalError("connect", {}, Exception(f"no password for {SECRET}"))

    monkeypatch.setattr(databases, "_engine", lambda url, place: sa.create_engine("sqlite://"))
    monkeypatch.setattr(sa.Engine, "connect", fail)
    assert "pass the URL with user" in refused("postgresql://db/shop#t")
    message = refused(f"postgresql://ann:{SECRET}@db/shop#t")
    assert "'postgresql://db/shop#t' cannot be reached" in message
    assert "pass the URL" not in message


@settings(max_examples=examples(300))
@given(
    st.sampled_from(["sqlite:///", "postgresql://", "sqlite://", "mysql+x://", "", "a://"]),
    st.text("a:@/#?=%[]. \n1\u00e9", max_size=15),
    st.none() | st.just("SELECT 1"),
)
def test_any_url_is_a_place_or_refused_in_one_line(head, tail, query):
    try:
        place = place_of(f"{head}{tail}", query)
    except SourceError as error:
        place = str(error)
    assert "\n" not in place or "\n" in tail

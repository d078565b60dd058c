"""Queries of a PostgreSQL server as sources: a cursor of the server's, and a server that goes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import backends
import psycopg
import pytest
from contexts import make_context, scan

import operations
from erasable.core.errors import SourceError
from erasable.workspace import Workspace
from erasable.workspace.data import catalogue, databases, pulling
from erasable.workspace.data.sources import Source

QUERY = "SELECT * FROM visits WHERE id >= 0"
TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"


@pytest.fixture
def shop(server: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database with a table; returns its URL."""
    monkeypatch.setattr(databases, "_AT_ONCE", 100)
    with psycopg.connect(server.url(database)) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT g AS id, 'p' || g / 3 AS who, g::numeric / 4 AS dose, "
            "CASE WHEN g > 500 THEN 'late' END AS note, DATE '2024-01-01' + g AS day "
            "FROM generate_series(0, 999) AS g"
        )
    return server.url(database)


def test_a_query_is_read_by_a_cursor_of_the_server(server: Any, shop: str, database: str) -> None:
    parts = Source.parse(shop, QUERY).batches(["id", "who"])
    sizes = [next(parts).num_rows for _ in range(3)]
    (asked,) = server.queries(database, 1)
    assert asked.startswith("FETCH FORWARD")
    sizes += [part.num_rows for part in parts]
    assert sizes == [0, *[100] * 10]
    assert server.queries(database, 0) == []


@pytest.mark.parametrize("ledger", ["postgres", pytest.param("sqlite", marks=pytest.mark.soak)])
def test_a_query_is_added_appended_and_synced(
    server: Any, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: str
) -> None:
    monkeypatch.setattr(pulling, "_HELD", 10_000)
    if ledger == "postgres":
        with backends.on(server):
            context, _ = make_context(tmp_path / "ws")
    else:
        context, _ = make_context(tmp_path / "ws")
    workspace = Workspace(context)
    first = "SELECT * FROM visits WHERE id < 700"
    change = workspace.add_dataset("visits", shop, id_column="id", subjects=["who"], query=first)
    assert (change.version, change.n_records) == (1, 700)
    assert workspace.dataset("visits")["source"]["query"] == first
    change = workspace.append("visits", shop, query="SELECT * FROM visits WHERE id >= 700")
    assert (change.version, change.n_records, change.n_added) == (2, 1000, 300)
    with psycopg.connect(shop) as connection:
        connection.execute("UPDATE visits SET note = NULL WHERE id BETWEEN 495 AND 504")
        connection.execute("UPDATE visits SET who = 'p1' WHERE id = 999")
    change = workspace.sync("visits", shop, query=QUERY)
    assert (change.version, change.n_records, change.n_added) == (3, 1000, 0)
    assert (change.n_changed, change.n_removed) == (5, 0)
    change = workspace.sync("visits", shop)  # by the query it was added with
    assert (change.version, change.n_records, change.n_removed) == (4, 700, 300)
    workspace.request(["p1"])
    workspace.process()
    assert workspace.sync("visits", shop).n_suppressed == 3
    with context.ledger.reading() as connection:
        known = catalogue.find(connection, "visits")
        table = catalogue.read_version(context, connection, known.id)
    assert sorted(table["id"].to_pylist()) == [i for i in range(700) if i // 3 != 1]
    assert dict(known.columns) == {
        "id": "int64", "who": "string", "dose": "double", "note": "string", "day": "date32[day]",
    }  # fmt: skip
    assert workspace.verify_log() == []
    assert "postgres@" not in str(workspace.dataset("visits")["source"])


@pytest.mark.parametrize("verb", ["add", "append", "sync"])
def test_a_server_that_goes_midway_changes_nothing(
    server: Any,
    shop: str,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
) -> None:
    monkeypatch.setattr(pulling, "_HELD", 1)
    context, _ = make_context(tmp_path / "ws")
    source = Source.parse(shop, QUERY)
    if verb != "add":
        some = Source.parse(shop, "SELECT * FROM visits WHERE id < 50")
        operations.add(context, "visits", some, id_column="id", subjects=[("who", "id")])
    before = sorted(context.store.list())
    take, taken, waiting = pulling._take_in, [], []

    def gone(*given: Any) -> None:
        take(*given)
        taken.append(given)
        if len(taken) == 4:
            waiting.extend((context.root / "scratch").rglob("*.arrow"))
            server.run(TERMINATE.format(database))

    monkeypatch.setattr(pulling, "_take_in", gone)
    actions: dict[str, Any] = {
        "add": partial(operations.add, id_column="id", subjects=[("who", "id")]),
        "append": operations.append,
        "sync": operations.sync,
    }
    with pytest.raises(SourceError, match=r"query cannot be run at .* after 300 records") as told:
        actions[verb](context, "visits", source)
    assert "\n" not in str(told.value)
    assert "terminat" not in str(told.value)  # what the server said
    assert len(waiting) == 3
    assert list((context.root / "scratch").iterdir()) == []
    assert sorted(context.store.list()) == before
    assert Workspace(context).verify_log() == []
    assert [each["version"] for each in Workspace(context).datasets()] == [1] * (verb != "add")
    assert scan(context.root, "late") == []

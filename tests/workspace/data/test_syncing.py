"""What is new, changed or gone in a source, counted a bucket at a time."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from contexts import make_context
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulls import (
    NAMES,
    add,
    as_kept,
    contents,
    nothing_beside,
    put,
    record,
    records,
    rows,
    small,
)

import operations
from effort import examples
from erasable.core.errors import SourceError
from erasable.workspace import Workspace
from erasable.workspace.context import Context


@pytest.fixture(scope="module")
def place(backend: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Context, Path]:
    folder = tmp_path_factory.mktemp("place")
    return make_context(folder / "ws")[0], folder


@settings(max_examples=examples(24), suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**6), st.integers(1, 50), st.integers(0, 5))
def test_sync_against_dictionaries(
    place: tuple[Context, Path], seed: int, n: int, bits: int
) -> None:
    context, folder = place
    name = f"s{next(NAMES)}"
    draw = random.Random(seed)
    before = {row["visit"]: row for row in records(n, seed)}
    after = {
        visit: {**row, **(record(0, draw) if draw.random() < bits / 10 else {}), "visit": visit}
        for visit, row in before.items()
        if draw.random() > bits / 10
    }
    after |= {row["visit"]: row for row in records(draw.randrange(bits + 1), seed, start=n)}
    if not after:
        after = {"v0": record(0, draw)}
    with small():
        add(context, put(folder / name, list(before.values())), name)
        kept = contents(context, name)
        listed = draw.sample(list(after.values()), len(after))
        half = len(listed) // 2
        change = operations.sync(
            context, name, put(folder / f"{name}-2", listed[:half], listed[half:])
        )
    stayed = before.keys() & after.keys()
    n_changed = sum(before[visit] != after[visit] for visit in stayed)
    expected = (len(after.keys() - stayed), n_changed, len(before.keys() - stayed))
    assert (change.n_added, change.n_changed, change.n_removed) == expected
    assert change.version == (2 if any(expected) else 1)
    assert rows(context, name) == {v: as_kept(context, row) for v, row in after.items()}
    assert any(expected) or contents(context, name) == kept
    nothing_beside(context)


@pytest.mark.backend("sqlite")
def test_sync_by_another_query(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER, who TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, f"p{i}") for i in range(9)])
    connection.close()
    workspace = Workspace(make_context(tmp_path / "ws")[0])
    place, first = f"sqlite:///{tmp_path / 'shop.db'}", "SELECT * FROM t WHERE id < 4"
    workspace.add_dataset("t", place, id_column="id", subjects=["who"], query=first)
    assert workspace.sync("t").version == 1
    assert workspace.sync("t", query="SELECT * FROM t WHERE id < 6").n_added == 2
    assert workspace.sync("t", place).n_removed == 2  # by the query it was added with
    assert workspace.sync("t", f"{place}#t").n_added == 5
    with pytest.raises(SourceError, match="both a table and a query"):
        workspace.sync("t", f"{place}#t", query=first)


def test_nan_is_no_change(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    source = put(tmp_path / "in", [{**row, "dose": float("nan")} for row in records(30)])
    add(context, source)
    assert operations.sync(context, "visits", source).version == 1
    whole = [
        {**row, "dose": 1.0 if at == 3 else float("nan")} for at, row in enumerate(records(30))
    ]
    change = operations.sync(context, "visits", put(tmp_path / "in", whole))
    assert (change.version, change.n_changed) == (2, 1)

"""Data sets pulled in batches: as if they were read whole, and in little memory."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contexts import make_context
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulls import (
    NAMES,
    Row,
    add,
    as_kept,
    contents,
    nothing_beside,
    put,
    records,
    rows,
    small,
)

from effort import examples
from erasable.workspace import Workspace
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue, fragments, pulling
from erasable.workspace.data.sources import Source


@pytest.fixture(scope="module")
def place(backend: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Context, Path]:
    folder = tmp_path_factory.mktemp("place")
    return make_context(folder / "ws")[0], folder


def divided(
    place: tuple[Context, Path], whole: list[Row], sizes: list[int], seed: int, **limits: int
) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Add records at once, and shuffled in files of some sizes; return what came of both."""
    context, folder = place
    a, b = f"a{next(NAMES)}", f"b{next(NAMES)}"
    with small(at_once=10**6, held=10**9):
        add(context, put(folder / a, whole), a)
    shuffled = random.Random(seed).sample(whole, len(whole))
    parts = []
    for size in sizes:
        parts.append(shuffled[:size])
        shuffled = shuffled[size:]
    with small(**limits):
        add(context, put(folder / b, *parts, shuffled), b)
    return contents(context, a), contents(context, b)


@settings(max_examples=examples(24), suppress_health_check=list(HealthCheck))
@given(
    st.integers(1, 60),
    st.lists(st.integers(0, 20), max_size=4),
    st.integers(0, 99),
    st.integers(1, 9),
    st.sampled_from([1, 400, 3000]),
)
def test_however_it_is_divided(
    place: tuple[Context, Path], n: int, sizes: list[int], seed: int, at_once: int, held: int
) -> None:
    whole, parts = divided(place, records(n, seed), sizes, seed, at_once=at_once, held=held)
    assert whole == parts
    assert sum(map(len, whole.values())) >= min(n, 2) // 2


@pytest.mark.backend("sqlite")
def test_an_order_that_mattered_would_be_found(
    place: tuple[Context, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: buckets as their records came."""

    def as_they_came(found: pulling.Pulled, number: int) -> pa.Table:
        return found.spool.read(range(number, fragments.PARTS, found.known.n_buckets))

    monkeypatch.setattr(pulling.Pulled, "bucket", as_they_came)
    whole, parts = divided(place, records(41), [20], 3)
    assert whole != parts


def test_what_came_in_is_what_was_there(place: tuple[Context, Path]) -> None:
    context, folder = place
    whole = records(80, 7)
    with small():
        change = add(context, put(folder / "many", whole[:33], whole[33:]), "many")
    assert rows(context, "many") == {row["visit"]: as_kept(context, row) for row in whole}
    nobody = sum(row["patient"] is None and row["doctor"] is None for row in whole)
    assert (change.n_records, change.n_added, change.n_without_subject) == (80, 80, nobody)
    with context.ledger.reading() as connection:
        assert catalogue.find(connection, "many").n_buckets == 16
    assert Workspace(context).verify_log() == []  # the index of people included
    nothing_beside(context)


def test_types_that_show_late(tmp_path: Path) -> None:
    """Gaps at first, then whole numbers, then others: in batches that went to the disk apart."""
    context, _ = make_context(tmp_path / "ws")
    (tmp_path / "in").mkdir()
    for number, ages in enumerate([[None, None], [1, 2], [0.5, None]]):
        ids = [f"{number}{i}" for i in range(2)]
        table = pa.table({"visit": ids, "patient": ids, "doctor": ids, "age": pa.array(ages)})
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    with small(held=1):
        add(context, Source.parse(str(tmp_path / "in")))
    assert sorted(str(row["age"]) for row in rows(context).values()) == [
        "0.5", "1.0", "2.0", "None", "None", "None",
    ]  # fmt: skip


@pytest.mark.backend("sqlite")
def test_memory_does_not_grow_with_the_source(tmp_path: Path) -> None:
    """What Arrow holds at most: alike for five times the records, unless none go to the disk."""
    context, _ = make_context(tmp_path / "ws")
    sources = {
        n: put(
            tmp_path / f"{n}", [{**r, "patient": f"p{i % 200}"} for i, r in enumerate(records(n))]
        )
        for n in (1_000, 5_000)  # of as many people: of each a token is held
    }

    def peak(n: int, held: int) -> int:
        before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
        pa.set_memory_pool(pool)
        try:
            with small(at_once=100, held=held, each=60):
                add(context, sources[n], f"held-{held}-{n}")
        finally:
            pa.set_memory_pool(before)
        return int(pool.max_memory())

    assert peak(5_000, 10_000) < 2 * peak(1_000, 10_000)
    assert peak(5_000, 10**9) > 4 * peak(1_000, 10**9)

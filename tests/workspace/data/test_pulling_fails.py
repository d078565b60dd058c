"""Data sets pulled in batches: all or nothing, and nothing left beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contexts import make_context, scan
from crashes import count, die_at
from pulls import (
    SCHEMA,
    add,
    contents,
    nothing_beside,
    put,
    records,
    rows,
    small,
)

import operations
from effort import THOROUGH
from erasable.core.errors import InvalidIdsError, SourceError, WorkspaceDiskError
from erasable.workspace import Workspace
from erasable.workspace.data import catalogue
from erasable.workspace.data.sources import Source
from erasable.workspace.store import crash_points

# -- all or nothing --------------------------------------------------------------------------------


def damaged(folder: Path) -> None:
    """Cut into a page of the third file: its footer is whole."""
    put(folder, *(records(40, start=40 * i) for i in range(3)))
    path = folder / "2.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 60] = b"\xff" * 60
    path.write_bytes(bytes(data))


def truncated(folder: Path) -> None:
    """Cut the footer of the second file off."""
    put(folder, *(records(40, start=40 * i) for i in range(3)))
    path = folder / "1.parquet"
    path.write_bytes(path.read_bytes()[:-9])


def large_then_broken(folder: Path) -> None:
    """A whole number that no float is, and floats at the end."""
    put(folder, [{**row, "age": 2**53 + 1} for row in records(20)])
    other = SCHEMA.set(3, pa.field("age", pa.float64()))
    last = [{**row, "age": 0.5} for row in records(5, start=20)]
    pq.write_table(pa.Table.from_pylist(last, other), folder / "1.parquet")


def without(column: str) -> Callable[[Path], None]:
    def lay_out(folder: Path) -> None:
        put(folder, records(9))
        for path in folder.glob("*"):
            pq.write_table(pq.read_table(path).drop_columns([column]), path)

    return lay_out


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "damaged at the end": (damaged, r"\(file 3 of 3, sorted by path\) is not Parquet, is damaged"),
    "cut off": (truncated, r"\(file 2 of 3, sorted by path\) is not Parquet, is damaged"),
    "no ids": (without("visit"), "no column 'visit'"),
    "no subjects": (without("doctor"), "no column 'doctor'"),
    "an empty folder": (lambda folder: folder.mkdir(), "no Parquet files"),
    "no records": (lambda folder: put(folder, [], []), "no records"),
    "far copies": (
        lambda folder: put(folder, records(30), records(30, start=30), records(1, seed=4)),
        "'visit' repeats 1 of its 61 values",
    ),
    "a copy of another person's": (
        lambda folder: put(
            folder, [*records(30), {**records(1)[0], "patient": "else", "doctor": None}]
        ),
        "'visit' repeats 1 of its 31 values",
    ),
    "a late gap": (
        lambda folder: put(folder, records(30), [{**records(1)[0], "visit": None}]),
        "'visit' has 1 gaps",
    ),
    "a number that does not fit": (large_then_broken, "column 'age'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_changes_nothing(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out, told = BAD[name]
    context, _ = make_context(tmp_path / "ws")
    add(context, put(tmp_path / "good", records(30, seed=9, start=1000)), "good")
    before = contents(context, "good")
    lay_out(tmp_path / "bad")
    source = Source.parse(str(tmp_path / "bad"))
    actions = {
        "add": lambda: add(context, source, "bad"),
        "append": lambda: operations.append(context, "good", source),
        "sync": lambda: operations.sync(context, "good", source),
    }
    for action in actions.values():
        with small(), pytest.raises((SourceError, InvalidIdsError), match=told) as error:
            action()
        assert "\n" not in str(error.value)
        assert "marker" not in str(error.value)
        assert contents(context, "good") == before
        nothing_beside(context)
    with context.ledger.reading() as connection:
        assert [each.name for each in catalogue.all_datasets(connection)] == ["good"]


def test_append_finds_what_is_there_in_any_bucket(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    with small():
        add(context, put(tmp_path / "in", records(40)))
        again = [{**records(1, start=39)[0], "patient": "somebody else"}]
        source = put(tmp_path / "more", records(20, start=40), again)
        with pytest.raises(InvalidIdsError, match="1 of 21 values of 'visit' are in 'visits'"):
            operations.append(context, "visits", source)
    nothing_beside(context)


@pytest.mark.backend("sqlite")
def test_a_disk_that_is_full_while_records_wait_on_it(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    source = put(tmp_path / "in", records(40))

    def full(effect: str, where: str) -> None:
        if "scratch" in where and where.endswith("2.arrow"):
            raise OSError(28, "No space left on device")

    with (
        small(),
        crash_points.watch(full),
        pytest.raises(WorkspaceDiskError, match="No space left"),
    ):
        add(context, source)
    nothing_beside(context)


@pytest.mark.parametrize("kept", [pa.int64(), pa.string()], ids=str)
def test_ids_that_come_as_another_type_are_the_same(tmp_path: Path, kept: pa.DataType) -> None:
    """Whole numbers and text, as from Parquet and CSV: told apart, each would be there twice."""
    context, _ = make_context(tmp_path / "ws")
    other = pa.string() if kept == pa.int64() else pa.int64()

    def laid_out(name: str, numbers: list[int], kind: pa.DataType) -> Source:
        ids = pa.array(numbers).cast(kind)
        people = [f"p{i % 3}" for i in numbers]
        pq.write_table(
            pa.table({"visit": ids, "patient": people, "doctor": people}), tmp_path / name
        )
        return Source.parse(str(tmp_path / name))

    add(context, laid_out("a.parquet", [1, 2, 3], kept))
    with pytest.raises(InvalidIdsError, match="1 of 2 values of 'visit' are in 'visits'"):
        operations.append(context, "visits", laid_out("b.parquet", [3, 4], other))
    assert operations.sync(context, "visits", laid_out("c.parquet", [3, 1, 2], other)).version == 1
    if kept == pa.int64():
        source = laid_out("e.parquet", [1, 2, 3], pa.float64())  # as pandas has them beside gaps
        assert operations.sync(context, "visits", source).version == 1
        table = pa.table({"visit": ["7", "07"], "patient": ["a", "b"], "doctor": ["a", "b"]})
        pq.write_table(table, tmp_path / "d.parquet")
        with pytest.raises(InvalidIdsError, match="repeats 1 of its 2"):
            operations.append(context, "visits", Source.parse(str(tmp_path / "d.parquet")))


def test_gaps_say_nothing_of_a_type(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    add(context, put(tmp_path / "in", records(20)))
    whole = pa.Table.from_pylist(records(5, start=20), SCHEMA)
    at = SCHEMA.get_field_index("age")
    pq.write_table(whole.set_column(at, "age", pa.nulls(5)), tmp_path / "more.parquet")
    operations.append(context, "visits", Source.parse(str(tmp_path / "more.parquet")))
    with context.ledger.reading() as connection:
        assert dict(catalogue.find(connection, "visits").columns)["age"] == "int64"


# -- what is left ----------------------------------------------------------------------------------


@pytest.mark.backend("sqlite")
def test_nobody_is_in_what_waits_on_the_disk(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    source = put(tmp_path / "in", records(60))
    seen: list[tuple[list[str], list[str]]] = []

    def look(effect: str, where: str) -> None:
        if effect == "write" and "artifacts" in where and not seen:
            token = context.keys.token("id", "marker-3")
            scratch = context.root / "scratch"
            seen.append((scan(scratch, "marker-"), scan(scratch, token)))

    with small(), crash_points.watch(look):
        add(context, source)
    ((people, tokens),) = seen
    assert people == []
    assert len(tokens) > 3


def test_nothing_is_left_of_an_erasure(tmp_path: Path) -> None:
    context, _ = make_context(tmp_path / "ws")
    with small():
        add(context, put(tmp_path / "in", records(60, seed=2)))
        workspace = Workspace(context)
        token = context.keys.token("id", "marker-3")
        gone = {v for v, row in rows(context).items() if token in (row["patient"], row["doctor"])}
        assert gone
        workspace.request(["marker-3"])
        workspace.process()
        assert rows(context).keys() == {f"v{i}" for i in range(60)} - gone
        change = operations.sync(context, "visits", Source.parse(str(tmp_path / "in")))
    assert (change.version, change.n_suppressed) == (1, len(gone))
    listed = [line for line in scan(context.root, token) if "ledger.db" not in line]
    assert [line for line in listed if "artifacts" in line or "scratch" in line] == []


@pytest.mark.thorough
@pytest.mark.backend("sqlite")
def test_killed_midway(tmp_path: Path) -> None:
    """At points of an `add` that has records on the disk: then another is as if new."""
    source = str(put(tmp_path / "in", records(20)).place)

    def adding(workspace: Workspace) -> None:
        with small(at_once=8, held=900, each=10):
            workspace.add_dataset("visits", source, id_column="visit", subjects=["patient"])

    def made(number: int) -> Path:
        path = tmp_path / f"ws{number}"
        Workspace.create(path).context.ledger.close()
        return path

    n_points = count(adding, made(0))
    left = 0
    for number in range(1, n_points, 2 if THOROUGH else 11):
        path = made(number)
        assert die_at(number, adding, path)
        left += any((path / "scratch").rglob("*.arrow"))
        workspace = Workspace.open(path)
        if workspace.datasets():
            assert number == n_points - 1  # the last one is behind the commit
            continue
        adding(workspace)
        nothing_beside(workspace.context)
        assert workspace.datasets()[0]["n_records"] == 20
    assert left > 0

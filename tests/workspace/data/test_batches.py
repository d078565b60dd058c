"""Sources in batches: the same types and records wherever batches and files begin."""

from __future__ import annotations

import io
import sqlite3
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core import _arrow_files as arrow_files
from erasable.core.errors import SourceError
from erasable.workspace.data import delimited, parquet
from erasable.workspace.data.column_types import Widening
from erasable.workspace.data.pulling import Ids
from erasable.workspace.data.sources import Source

VISITS = pa.table({"id": [1, 2, 3], "who": ["a", "b", None], "x": [0.5, 1.5, None]})


def put(path: Path, table: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def refused(source: str | Path, *columns: str) -> str:
    with pytest.raises(SourceError) as told:
        Source.parse(str(source)).read(columns)
    message = str(told.value)
    assert "\n" not in message
    return message


# -- text files ------------------------------------------------------------------------------------

CELLS = (
    "", "1", "0", "-7", "007", "true", "2024-01-02", "12:30:00", "2024-01-02 03:04:05",
    "2024-01-02T03:04:05Z", "2024-01-02 03:04:05.25", "1.5", "1e5", "NA", "x", " 1",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(*[st.sampled_from(CELLS)] * 3), min_size=1, max_size=12),
    st.integers(80, 140),  # bytes, of a row or more
)
@example([("1", "", "x")] * 9 + [("true", "1", "x")], 80)  # no longer a number: text
@example([("0", "", "")] * 9 + [("true", "2024-01-02", "1.5")], 80)  # a truth value
@example([("2024-01-02", "1", "")] * 9 + [("2024-01-02 03:04:05.25", "1.5", "")], 80)
def test_a_column_has_the_type_that_the_whole_file_has(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], block: int
) -> None:
    """Against the reader of whole files."""
    body = "a,b,c\n" + "".join(",".join(row) + "\n" for row in rows)
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_text(body)
    expected = pa.csv.read_csv(
        io.BytesIO(body.encode()), convert_options=pa.csv.ConvertOptions(strings_can_be_null=False)
    )
    units = {"timestamp[s]": pa.timestamp("us"), "timestamp[s, tz=UTC]": pa.timestamp("us", "UTC"),
             "timestamp[ns]": pa.timestamp("us"), "time32[s]": pa.time64("us")}  # fmt: skip
    kinds = [field.with_type(units.get(str(field.type), field.type)) for field in expected.schema]
    expected = expected.cast(pa.schema(kinds))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_BLOCK", block)
        parts = list(Source.parse(str(path)).batches())
    assert {part.schema for part in parts} == {expected.schema}
    assert pa.concat_tables(parts).equals(expected)


def test_text_of_identities_stays_in_every_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_BLOCK", 64)
    (tmp_path / "x.csv").write_text("id,who\n" + "".join(f"{i},00{i}\n" for i in range(99)))
    parts = list(Source.parse(str(tmp_path / "x.csv")).batches(["who"]))
    assert len(parts) > 9
    found = [who for part in parts for who in part["who"].to_pylist()]
    assert found == [f"00{i}" for i in range(99)]


def test_a_block_that_is_wrong_is_told_with_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_BLOCK", 64)
    (tmp_path / "x.csv").write_text("id,who\n" + "1,a\n" * 99 + "1,b,c\n")
    assert "has 3 columns in row 101; expected 2" in refused(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_bytes(b"id,who\n" + b"1,a\n" * 99 + b"1,\xfc\n")
    assert "not encoded in UTF-8" in refused(tmp_path / "x.csv")
    assert "not encoded in UTF-8" in refused(tmp_path / "x.csv", "who")


# -- Parquet ---------------------------------------------------------------------------------------


def test_partitions_of_two_levels_and_of_nulls(tmp_path: Path) -> None:
    put(tmp_path / "year=2024" / "ward=a%20b" / "0.parquet", VISITS)
    put(tmp_path / "ward=__HIVE_DEFAULT_PARTITION__" / "year=2025" / "0.parquet", VISITS)
    table = Source.parse(str(tmp_path)).read(["id"])
    assert (table.schema.field("year").type, table.schema.field("ward").type) == (
        pa.int64(),
        pa.string(),
    )
    found = set(zip(table["year"].to_pylist(), table["ward"].to_pylist(), strict=True))
    assert found == {(2024, "a b"), (2025, None)}


def test_a_person_in_the_name_of_a_folder_stays_text(tmp_path: Path) -> None:
    for who in ("007", "8"):
        put(tmp_path / f"who={who}" / "0.parquet", VISITS.drop_columns(["who"]))
    source = Source.parse(str(tmp_path))
    assert set(source.read(["id", "who"])["who"].to_pylist()) == {"007", "8"}
    assert set(source.read(["id"])["who"].to_pylist()) == {7, 8}


def test_a_column_that_is_in_files_and_folders_has_to_agree(tmp_path: Path) -> None:
    both = VISITS.append_column("year", pa.array([2024] * 3, pa.int32()))
    put(tmp_path / "year=2024" / "0.parquet", both)
    assert Source.parse(str(tmp_path)).read()["year"].to_pylist() == [2024] * 3
    put(tmp_path / "year=2025" / "0.parquet", both)
    assert "'year' that differ from the name of its folder" in refused(tmp_path)


@pytest.mark.parametrize("place", ["0.parquet", "ward=a/0.parquet", "year=2024/ward=a/0.parquet"])
def test_mixed_layouts_are_refused(tmp_path: Path, place: str) -> None:
    put(tmp_path / "year=2024" / "0.parquet", VISITS)
    put(tmp_path / place, VISITS)
    assert "and others do not; expected the same partitions of each" in refused(tmp_path)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 7))
def test_batches_are_no_longer_than_they_may_be(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], at_once: int
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    for number, size in enumerate(sizes):
        put(folder / f"{number}.parquet", pa.table({"id": pa.array(range(size), pa.int64())}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_files, "_AT_ONCE", at_once)
        parts = parquet.parquet_batches("x", [], None, str(folder))
        found = [part["id"].to_pylist() for part in parts]
    assert max(map(len, found)) <= at_once
    assert [x for part in found for x in part] == [i for size in sizes for i in range(size)]


def test_long_records_come_in_small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "_BYTES", 4000)
    notes = [chr(97 + i % 26) * 1000 + str(i) for i in range(20)]
    put(tmp_path / "x.parquet", pa.table({"note": notes}))
    parts = list(Source.parse(str(tmp_path / "x.parquet")).batches())
    assert max(part.num_rows for part in parts) <= 4
    assert [note for part in parts for note in part["note"].to_pylist()] == notes


# -- object stores ---------------------------------------------------------------------------------


def test_a_folder_of_an_object_store_is_read() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for year in (2024, 2025):
        with store.open(f"/visits/year={year}/0.parquet", "wb") as file:
            pq.write_table(VISITS, file)
    source = Source.parse("memory://visits/")
    assert source.to_json() == {"kind": "parquet", "place": "memory://visits"}
    table = Source.from_json(source.to_json()).read(["id"])
    assert table["year"].to_pylist() == [2024] * 3 + [2025] * 3
    assert "is not there" in refused("memory://nothing")
    with store.open("/visits/year=2025/1.parquet", "wb") as file:
        file.write(b"no Parquet")
    assert "is not Parquet" in refused("memory://visits", "id")


def test_a_store_that_fails_is_told_without_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("denied to AKIA-SECRET")

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "info", fail)
    message = refused("memory://visits")
    assert "the store at 'memory://visits' cannot be read (RuntimeError)" in message
    assert "AKIA" not in message


@pytest.mark.parametrize(
    "url", ["s3://KEY:SECRET@bucket/x", "s3://bucket/x?key=SECRET", "s3://bucket/x#SECRET", "s3://"]
)
def test_urls_of_stores_hold_no_credentials(url: str) -> None:
    message = refused(url)
    assert "cannot be kept" in message
    assert "SECRET" not in message


def test_a_store_without_a_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    assert "there is no driver for 's3'; expected fsspec" in refused("s3://bucket/x")


# -- databases -------------------------------------------------------------------------------------


def test_a_query_that_fails_midway_is_told(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(3000)])
        connection.execute("INSERT INTO t VALUES (-9223372036854775808)")  # it has no abs
    connection.close()
    source = Source.parse(f"sqlite:///{path}", "SELECT id, abs(id) AS size FROM t")
    with pytest.raises(SourceError, match=r"cannot be run at .* after 1,000 records") as told:
        source.read(["id"])
    assert "\n" not in str(told.value)


# -- types and ids ---------------------------------------------------------------------------------

KINDS: dict[str, list[Any]] = {
    "null": [None], "int64": [1, None], "double": [0.5, None], "string": ["x"],
    "date32[day]": [date(2024, 1, 2)], "bool": [True, None],
}  # fmt: skip
JOINED = {frozenset(["int64", "double"]): "double"} | {frozenset([k]): k for k in KINDS}


@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6))
def test_parts_have_one_type_in_any_order(kinds: list[str]) -> None:
    wide = Widening("x")
    parts = [pa.table({"a": pa.array(KINDS[kind])}) for kind in kinds]
    expected = JOINED.get(frozenset(kinds) - {"null"}, None if set(kinds) - {"null"} else "null")
    try:
        for part in parts:
            wide.add(part.schema)
        found: str | None = str(wide.schema.field("a").type)
    except SourceError:
        found = None
    assert found == expected
    if found is not None:
        values = pa.concat_tables([wide.cast(part) for part in parts])["a"].to_pylist()
        assert values == [value for kind in kinds for value in KINDS[kind]]


@given(
    st.sampled_from([str, int]),
    st.lists(st.lists(st.none() | st.integers(-5, 5), max_size=5), min_size=1, max_size=5),
    st.lists(st.integers(-6, 6), max_size=5),
)
def test_ids_are_counted_as_in_a_counter(
    kind: Any, parts: list[list[int | None]], others: list[int]
) -> None:
    ids, typed = Ids(), pa.string() if kind is str else pa.int64()
    for part in parts:
        ids.add(pa.array([None if i is None else kind(i) for i in part], typed))
    counts = Counter(i for part in parts for i in part if i is not None)
    assert len(ids) == counts.total()
    assert ids.n_gaps == sum(i is None for part in parts for i in part)
    assert ids.n_repeated() == counts.total() - len(counts)
    column = pa.array([kind(i) for i in others], typed)
    assert ids.n_of(column) == sum(i in counts for i in others)
    more = Ids()
    more.add(column)
    assert ids.n_shared(more) == ids.n_of(column)

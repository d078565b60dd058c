"""Sources: read as they are, or refused in one line without a value."""

from __future__ import annotations

import csv
import gzip
import json
import os
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core.errors import DialectWarning, SourceError
from erasable.workspace.data import delimited
from erasable.workspace.data.sources import Source
from naming import named

SECRET = "Bloggs"  # a value; no message may repeat it


def read(path, *columns) -> pa.Table:
    return Source.parse(str(path)).read(columns)


def refused(path, *columns) -> str:
    with pytest.raises(SourceError) as told:
        read(path, *columns)
    message = str(told.value)
    assert "\n" not in message
    assert "; expected " in message
    assert SECRET not in message
    return message


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# -- text files ------------------------------------------------------------------------------------

ROWS = 'visit,patient,age,name\n1,007,41,"Oslo, N"\n2,,,"two\nlines"\n3, ,28.5,NA\n'


@pytest.mark.parametrize("ending", [".csv", ".CSV", ".tsv", ".csv.gz", ".tsv.gz"])
def test_text_files_are_read(tmp_path, ending):
    text = ROWS
    if "tsv" in ending:
        text = ROWS.replace("Oslo, N", "Oslo; N").replace(",", "\t").replace("Oslo; N", "Oslo, N")
    data = text.encode()
    path = write(tmp_path / f"visits{ending}", gzip.compress(data) if "gz" in ending else data)
    table = read(path, "visit", "patient")
    assert table.to_pydict() == {
        "visit": ["1", "2", "3"],
        "patient": ["007", None, None],
        "age": [41.0, None, 28.5],
        "name": ["Oslo, N", "two\nlines", "NA"],
    }


def test_somebody_may_be_called_null(tmp_path):
    names = ["NA", "null", "NaN", "N/A", "None", "true", "2024-01-01", "1e5", "007"]
    path = write(
        tmp_path / "x.csv", "id,who\n" + "".join(f"{i},{n}\n" for i, n in enumerate(names))
    )
    assert read(path, "who")["who"].to_pylist() == names


def test_mark_of_utf8_and_windows_lines_are_read(tmp_path):
    path = write(tmp_path / "x.csv", b"\xef\xbb\xbfid,x\r\n1,2\r\n")
    assert read(path, "id").to_pydict() == {"id": ["1"], "x": [2]}


def test_a_type_that_shows_late_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 12)
    body = "".join(f"{i},{i}\n" for i in range(5000)) + "5000,x\n"
    assert read(write(tmp_path / "x.csv", "id,v\n" + body))["v"].to_pylist()[-1] == "x"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("id,who\n", "no records"),
        (f"id,who\n1,a\n2,{SECRET},3\n", "has 3 columns in row 3; expected 2"),
        (f"id,who\n{SECRET}\n", "has 1 columns in row 2; expected 2"),
        (f"id,id\n1,{SECRET}\n", "'id' more than once"),
        (f"who,x\n{SECRET},1\n", "no column 'id'"),
        (f"id,who\n1,{SECRET}\xfc\n".encode("latin1"), "not encoded in UTF-8"),
        (f"id,s\xfc\n1,{SECRET}\n".encode("latin1"), "not encoded in UTF-8"),
        (f"i\xfcd,id\n1,{SECRET}\n".encode("latin1"), "not encoded in UTF-8"),
        (f"id\n{SECRET}\xfc\n".encode("latin1"), "not encoded in UTF-8"),
        (f"id,who\n1,{SECRET}\n".encode("utf-16-le"), "not encoded in UTF-8"),
    ],
    ids=named,
)
def test_wrong_text_files_are_refused(tmp_path, data, told):
    assert told in refused(write(tmp_path / "x.csv", data), "id")


def test_a_quote_that_does_not_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 12)
    body = f'id,who\n1,"{SECRET}\n' + "2,x\n" * 5000
    assert "quote" in refused(write(tmp_path / "x.csv", body), "id")


@pytest.mark.parametrize(
    ("body", "row"),
    [
        ('id,a\n1,"b\n2,c\n3,d\n', 2),
        ('id,a\n1,b\n2,"c\n3,"d"\n', 3),
        ('id,a\n1,"two\nlines"\n2,"c\n3,d\n', 3),
        ('"id","a"\r\n"1","b\r\n"2","c"\r\n', 2),
    ],
)
def test_a_quote_that_swallows_records_is_refused(tmp_path, body, row):
    told = refused(write(tmp_path / "x.csv", body), "id")
    assert f"a quote in row {row} that is not closed" in told or f"in row {row}; expected" in told


@pytest.mark.filterwarnings("ignore::erasable.core.errors.DialectWarning")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("packed", [False, True])
def test_it_is_refused_in_any_encoding(tmp_path, encoding, packed):
    path = tmp_path / ("x.csv.gz" if packed else "x.csv")
    for body, is_whole in (('id,a\n1,"b\nc"\n2,d\n', True), ('id,a\n1,"b\n2,d\n', False)):
        data = body.encode(encoding)
        write(path, gzip.compress(data) if packed else data)
        if is_whole:  # the control: a value of two lines
            assert read(path, "id")["a"].to_pylist() == ["b\nc", "d"]
        else:
            assert "a quote in row 2 that is not closed" in refused(path, "id")


@given(body=st.text('xy",\n', max_size=30))
@settings(max_examples=examples(200))
@example(body='"\n",')
def test_no_record_is_swallowed(tmp_path_factory, body):
    """The oracle is the reader of Python; where it finds something wrong, each line is a record.

    Blank text is no identity, and is read as a missing one.
    """
    path = write(tmp_path_factory.getbasetemp() / "swallowed.csv", f"id,a\nz,x\n{body}")
    try:
        found = read(path, "id").to_pylist()
    except SourceError:
        return
    cells = [[each["id"] or "", each["a"] or ""] for each in found]
    with path.open(newline="") as file:
        try:
            rows = [row for row in csv.reader(file, strict=True) if row][1:]
        except csv.Error:
            assert len(cells) == len(list(filter(None, body.split("\n")))) + 1
        else:
            assert cells == [[name if name.strip() else "", *rest] for name, *rest in rows]


@pytest.mark.parametrize(
    "data",
    [b"id,who\n1,a\n", gzip.compress(b"id,who\n" + b"1,a\n" * 999, mtime=0)[:-30]],
    ids=["none", "cut"],
)
def test_wrong_compression_is_refused(tmp_path, data):
    refused(write(tmp_path / "x.csv.gz", data), "id")


@settings(max_examples=examples(300))
@given(st.binary(max_size=120) | st.text('a1,"\n\r\t \0\u00e9', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_line(tmp_path_factory, data):
    path = write(tmp_path_factory.mktemp("any") / "x.csv", data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DialectWarning)
            table = read(path)
    except SourceError as error:
        told = str(error)
    else:
        told = ""
        assert table.num_rows
    assert "\n" not in told


# -- Parquet ---------------------------------------------------------------------------------------

VISITS = pa.table({"id": [1, 2, 3], "who": ["a", " ", None], "x": [0.5, 1.5, None]})


def test_parquet_keeps_its_types(tmp_path):
    pq.write_table(VISITS, tmp_path / "x.parquet")
    table = read(tmp_path / "x.parquet", "id", "who")
    assert table.schema.types == [pa.int64(), pa.string(), pa.float64()]
    assert table.to_pydict() == {"id": [1, 2, 3], "who": ["a", None, None], "x": [0.5, 1.5, None]}


def test_nan_among_subjects_is_a_gap(tmp_path):
    table = pa.table({"id": ["a", "b"], "who": [17.0, float("nan")], "x": [float("nan"), 1.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    found = read(tmp_path / "x.parquet", "id", "who")
    assert found["who"].to_pylist() == [17.0, None]
    assert found["x"].null_count == 0


def test_subjects_in_a_dictionary_are_text(tmp_path):
    table = pa.table({"who": pa.array(["a", "", "a"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet", "who")["who"].to_pylist() == ["a", None, "a"]


def test_folders_are_read_whole(tmp_path):
    pq.write_table(VISITS, tmp_path / "1.parquet")
    (tmp_path / "deeper").mkdir()
    pq.write_table(VISITS.select(["x", "who", "id"]), tmp_path / "deeper" / "2.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    table = read(tmp_path, "id")
    assert sorted(table["id"].to_pylist()) == [1, 1, 2, 2, 3, 3]
    assert sorted(table["x"].drop_null().to_pylist()) == [0.5, 0.5, 1.5, 1.5]


def test_types_that_widen_are_joined(tmp_path):
    first = VISITS.set_column(2, "x", pa.nulls(3))
    second = VISITS.set_column(0, "id", pa.array([4, 5, 6], pa.int32()))
    pq.write_table(first, tmp_path / "1.parquet")
    pq.write_table(second, tmp_path / "2.parquet")
    table = read(tmp_path, "id")
    assert table["x"].to_pylist() == [None, None, None, 0.5, 1.5, None]
    assert table["id"].to_pylist() == [1, 2, 3, 4, 5, 6]


def test_partitions_become_columns(tmp_path):
    for year in (2024, 2025):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(VISITS, tmp_path / f"year={year}" / "x.parquet")
    assert read(tmp_path, "id")["year"].to_pylist() == [2024] * 3 + [2025] * 3


def test_wrong_parquet_is_refused(tmp_path):
    file = tmp_path / "x.parquet"
    assert "is not Parquet" in refused(write(file, f"id,who\n1,{SECRET}\n"))
    assert "is not Parquet" in refused(write(file, b""))
    pq.write_table(VISITS, file)
    assert "is not Parquet" in refused(write(file, file.read_bytes()[:-50]))
    pq.write_table(VISITS.slice(0, 0), file)
    assert "no records" in refused(file)
    pq.write_table(VISITS, file)
    assert "no column 'visit'; expected one of its own: 'id', 'who', 'x'" in refused(file, "visit")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    pq.write_table(twice, file)
    assert "more than once" in refused(file)


@pytest.mark.parametrize(
    "values",
    [[["a"], ["b"]], [[[1.5]], None], [{"a": SECRET}, {"a": ""}], [{"a": {"b": 1}}, None]],
    ids=named,
)
def test_nested_columns_are_refused(tmp_path, values):
    pq.write_table(pa.table({"id": [1, 2], "deep": values}), tmp_path / "x.parquet")
    message = refused(tmp_path / "x.parquet", "id")
    assert "has structures, or lists of other than numbers, in 'deep'" in message


def test_files_that_differ_are_refused(tmp_path):
    pq.write_table(VISITS, tmp_path / "1.parquet")
    for other, told in [
        (VISITS.drop_columns(["x"]), "differ in the columns 'x'"),
        (VISITS.append_column("y", VISITS["x"]), "differ in the columns 'y'"),
        (VISITS.set_column(0, "id", pa.array([SECRET] * 3)), "differ in type"),
    ]:
        pq.write_table(other, tmp_path / "2.parquet")
        assert told in refused(tmp_path, "id")


def test_folders_with_other_files_are_refused(tmp_path):
    assert "no Parquet files" in refused(tmp_path)
    pq.write_table(VISITS, tmp_path / "1.parquet")
    write(tmp_path / "readme.txt", "hello")
    assert "is not Parquet" in refused(tmp_path)


@settings(max_examples=examples(150))
@given(st.data())
def test_a_flipped_bit_is_read_or_refused_in_one_line(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flip") / "x.parquet"
    pq.write_table(VISITS, path)
    bits = bytearray(path.read_bytes())
    bits[data.draw(st.integers(0, len(bits) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read(write(path, bytes(bits)), "id", "who")
    except SourceError as error:
        told = str(error)
    else:
        told = ""
    assert "\n" not in told


# -- places ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["x.csv", "x.parquet", "x.tsv.gz", "none/x.csv", "x" * 300 + ".csv"]
)
def test_missing_files_are_refused(tmp_path, name):
    assert "is not there" in refused(tmp_path / name, "id")


def test_folders_that_look_like_files_are_folders(tmp_path):
    (tmp_path / "x.csv").mkdir()
    assert "no Parquet files" in refused(tmp_path / "x.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_files_that_may_not_be_read_are_refused(tmp_path, ending):
    path = write(tmp_path / f"x{ending}", "id\n1\n")
    path.chmod(0)
    assert "permissions" in refused(path)


@pytest.mark.parametrize(
    "text",
    ["", " ", "x", "x.xlsx", "x.csv.bz2", "a\0.csv", "\ud800.csv", "x" * 5000, ".", "~nobody/x"],
    ids=named,
)
def test_what_is_no_source_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(text)


def test_places_do_not_depend_on_the_folder_one_is_in(tmp_path, monkeypatch):
    write(tmp_path / "x.csv", "id\n1\n")
    monkeypatch.chdir(tmp_path)
    kept = json.loads(json.dumps(Source.parse("x.csv").to_json()))
    assert kept == {"kind": "csv", "place": str(tmp_path / "x.csv")}
    monkeypatch.chdir("/")
    assert Source.from_json(kept).read(["id"])["id"].to_pylist() == ["1"]


def test_a_query_needs_a_database(tmp_path):
    with pytest.raises(SourceError, match="expected the URL of a database"):
        Source.parse(str(tmp_path / "x.csv"), "SELECT 1")


def test_a_file_with_other_separators_is_told_from_a_wrong_name(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("visit;patient\nv1;p1\nv2\n")
    with pytest.raises(SourceError, match="say what separates them with --delimiter"):
        Source.parse(str(path)).read(["visit", "patient"])
    path.write_text("visit,patient\nv1,p1\n")
    with pytest.raises(SourceError, match="has no column 'visits'"):
        Source.parse(str(path)).read(["visits"])

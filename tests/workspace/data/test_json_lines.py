"""JSON lines: a column has the type that the whole file has, and no value is changed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.core.errors import SourceError
from erasable.workspace import Workspace
from erasable.workspace.data import json_lines
from erasable.workspace.data.catalogue import find, read_version
from erasable.workspace.data.sources import Source

SECRET = "Bloggs"


def write(path: Path, *lines: Any) -> Path:
    texts = [each if isinstance(each, str | bytes) else json.dumps(each) for each in lines]
    data = b"".join((t.encode() if isinstance(t, str) else t) + b"\n" for t in texts)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def read(path: Path, *columns: str) -> pa.Table:
    return Source.parse(str(path)).read(columns)


def refused(path: Path, *columns: str) -> str:
    with pytest.raises(SourceError) as raised:
        read(path, *columns)
    message = str(raised.value)
    assert "; expected " in message
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.jsonl.gz", "X.NDJSON", "x.ndjson.gz"])
def test_values_come_as_they_are(tmp_path: Path, name: str) -> None:
    rows = [
        {"id": "007", "n": 2**53 + 1, "x": 0.5, "flag": True, "text": "1.50"},
        {"id": "8", "n": None, "x": 3, "text": "NA", "late": "é\n"},
        {"id": " ", "n": -1, "x": 1e300, "flag": False, "text": ""},
    ]
    found = read(write(tmp_path / name, *rows), "id")
    assert found.column_names == ["id", "n", "x", "flag", "text", "late"]
    assert [str(kind) for kind in found.schema.types] == [
        "string", "int64", "double", "bool", "string", "string",
    ]  # fmt: skip
    assert found.to_pydict() == {
        "id": ["007", "8", None],
        "n": [2**53 + 1, None, -1],
        "x": [0.5, 3.0, 1e300],
        "flag": [True, None, False],
        "text": ["1.50", "NA", ""],
        "late": [None, "é\n", None],
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("[1, -1]", "int64"),
        ("[9223372036854775807, -9223372036854775808]", "int64"),
        ("[18446744073709551615, 0]", "uint64"),
        ("[18446744073709551616, 1]", "double"),
        ("[1, 1.0]", "double"),
        ("[NaN, Infinity]", "double"),
        ("[null, NaN]", "null"),
        ('["1", "2024-01-02"]', "string"),
        ("[true, null]", "bool"),
    ],
)
def test_types(tmp_path: Path, values: str, kind: str) -> None:
    cells = values.strip("[]").split(", ")
    path = write(tmp_path / "x.jsonl", *(f'{{"v": {cell}}}' for cell in cells))
    assert str(read(path)["v"].type) == kind
    given = [None if value != value else value for value in json.loads(values)]
    assert read(path)["v"].to_pylist() == given


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['{"v": 1}', '{"v": 1'], "holds no JSON object in line 2; expected one in each line"),
        (['{"v": 1}', "", "[1]"], "holds no JSON object in line 3"),
        ([f'{{"v": {SECRET}}}'], "holds no JSON object in line 1"),
        (['{"v": 1, "v": 2}'], "holds no JSON object in line 1"),
        (['{"v": 1e999}'], "holds no JSON object in line 1"),
        (['{"v": "\\ud800"}'], "holds no JSON object in line 1"),
        (["[" * 99_999], "holds no JSON object in line 1"),
        (["1" * 9_999], "holds no JSON object in line 1"),
        (['{"v": 1}', '{"v": {"a": 1}}'], "has a structure or list in 'v' in line 2"),
        (['{"v": [1, 2]}'], "has a structure or list in 'v' in line 1"),
        (['{"v": 1}', '{"v": "x"}'], "column 'v' holds 'x' in line 2 of"),
        (['{"v": true}', '{"v": 1}'], "column 'v' holds 1 in line 2 of"),
        (['{"v": "a"}', '{"v": false}'], "column 'v' holds false in line 2 of"),
        (['{"v": 0.5}', '{"v": 9007199254740993}'], "column 'v' holds 9007199254740993 in line 2"),
        ([f'{{"v": {10**400 + 1}}}'], "column 'v' holds 1000000"),
        ([""], "has no records"),
        ([], "has no records"),
        (["{}"], "has no column 'v'"),
        (['{"v": "é"}'.encode("latin1")], "is not encoded in UTF-8, but in an older encoding"),
        (['{"v": "é"}'.encode("utf-16")], "is not encoded in UTF-8, but in UTF-16; expected"),
        ([b"PAR1\0"], "is a Parquet file; expected JSON lines; name it .parquet"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(
    tmp_path: Path, lines: list[str | bytes], told: str
) -> None:
    columns = ["v"] if lines == ["{}"] else []
    message = refused(write(tmp_path / "x.jsonl", *lines), *columns)
    assert told in message
    assert "--encoding" not in message


def test_values_of_ids_are_not_repeated(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", {"id": 1}, {"id": SECRET})
    assert "column 'id' holds a value in line 2 of" in refused(path, "id")


def test_compression_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl.gz", *({"id": n} for n in range(999)))
    path.write_bytes(path.read_bytes()[:-9])
    assert "cannot be read as a table; expected a text file, whole" in refused(path)
    path.write_text('{"id": 1}\n')
    assert "is not compressed by gzip" in refused(path)


def test_a_mark_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", b'\xef\xbb\xbf{"id": 1}\r', "  ", '{"id": 2}', "")
    assert read(path)["id"].to_pylist() == [1, 2]


def test_a_line_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "_BYTES", 99)
    path = write(tmp_path / "x.jsonl", {"v": "x"}, {"v": "x" * 100})
    assert "holds no JSON object in line 2" in refused(path)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64), st.floats(allow_nan=False), st.text()
)


@settings(max_examples=examples(300))
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1),
    st.integers(1, 5),
)
def test_batches_do_not_show(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], at_once: int
) -> None:
    path = write(tmp_path_factory.mktemp("any") / "x.jsonl", *rows)

    def outcome() -> tuple[list[str], Any]:
        try:
            found = read(path)
        except SourceError as error:
            return [], str(error)
        return [str(kind) for kind in found.schema.types], found.to_pylist()

    whole = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "_AT_ONCE", at_once)
        assert outcome() == whole
    names = list(dict.fromkeys(name for row in rows for name in row))
    if whole[0]:
        assert whole[1] == [{name: row.get(name) for name in names} for row in rows]


def rows_of(workspace: Workspace) -> dict[Any, dict[str, Any]]:
    with workspace.context.ledger.reading() as connection:
        whole = read_version(workspace.context, connection, find(connection, "d").id)
    return {row["id"]: row for row in whole.drop_columns(["who"]).to_pylist()}


def test_a_later_file_has_the_types_of_the_data_set(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "ws")
    head = "id,who,zip,day,flag,x\n"
    (tmp_path / "x.csv").write_text(f"{head}a,p,A1,2024-01-02,true,1.5\n")
    made.add_dataset("d", tmp_path / "x.csv", id_column="id", subjects=["who"])
    row = {"id": "b", "who": "p", "zip": "01", "day": "2024-01-03", "flag": 1, "x": 7}
    made.append("d", write(tmp_path / "y.jsonl", row))
    found = rows_of(made)["b"]
    assert (found["zip"], str(found["day"]), found["flag"], found["x"]) == (
        "01", "2024-01-03", True, 7.0,
    )  # fmt: skip
    for name, value, told in [
        ("zip", 7, "'zip' holds 7 (int64) in row 2; expected text"),
        ("day", "soon", "'day' holds 'soon' in row 2; expected days"),
        ("flag", 0.5, "'flag' holds 0.5 (double) in row 2; expected true or false"),
        ("x", "y", "'x' holds 'y' in row 2; expected numbers that floats hold"),
    ]:
        path = write(tmp_path / "z.jsonl", {**row, "id": "c", name: None}, {**row, name: value})
        with pytest.raises(SourceError) as raised:
            made.append("d", path)
        assert told in str(raised.value)
    change = made.append("d", write(tmp_path / "y.jsonl", {"id": "g", "who": "q", "zip": "1"}))
    assert change.warnings == ("no line of the source has 'day', 'flag', 'x': these are gaps",)
    assert rows_of(made)["g"] == {"id": "g", "zip": "1", "day": None, "flag": None, "x": None}
    made.correct("d", write(tmp_path / "c.ndjson", {"id": "a", "x": 2}))
    made.process()
    assert rows_of(made)["a"]["x"] == 2.0
    assert set(rows_of(made)) == {"a", "b", "g"}

"""Types that a user declares for the columns of a new data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.core.errors import DialectWarning, InvalidIdsError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.data.catalogue import find, read_version

SECRET = "Ann Bloggs"
BODY = """id,who,zip,n,x,yes,day,at,clock,gap
01,Ann Bloggs,007,5,5,1,2024-01-02,2024-01-02,10:15,
02,p2,NA,NA,NA,0,NA,2024-01-03 10:15:30Z,10:15:30.5,
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def write(path: Path, body: str = BODY) -> Path:
    path.write_text(body)
    return path


def add(workspace: Workspace, source: Path, types: dict[str, str], **given: Any) -> dict[str, str]:
    workspace.add_dataset("d", source, id_column="id", subjects=["who"], types=types, **given)
    return {each["name"]: each["type"] for each in workspace.dataset("d")["columns"]}


def values(workspace: Workspace, column: str) -> list[Any]:
    with workspace.context.ledger.reading() as connection:
        whole = read_version(workspace.context, connection, find(connection, "d").id)
    return whole.sort_by("id")[column].to_pylist()


def test_declared_types_override_those_of_the_cells(workspace: Workspace, tmp_path: Path) -> None:
    source = write(tmp_path / "d.csv")
    types = {"zip": "text", "n": "number", "x": "text", "yes": "boolean", "at": "timestamp",
             "day": "timestamp", "gap": "text", "id": "integer"}  # fmt: skip
    found = add(workspace, source, types)
    assert found == {
        "id": "int64", "who": "string", "zip": "string", "n": "double", "x": "string",
        "yes": "bool",
        "day": "timestamp[us]", "at": "timestamp[us]", "clock": "time64[us]", "gap": "string",
    }  # fmt: skip
    assert values(workspace, "zip") == ["007", "NA"]
    assert values(workspace, "n") == [5.0, None]
    assert values(workspace, "x") == ["5", "NA"]
    assert values(workspace, "yes") == [True, False]
    assert values(workspace, "id") == [1, 2]


def test_others_have_the_types_of_their_cells(workspace: Workspace, tmp_path: Path) -> None:
    plain = Workspace.create(tmp_path / "plain")
    source = write(tmp_path / "d.csv")
    assert add(workspace, source, {"x": "text"}) == {**add(plain, source, {}), "x": "string"}


@pytest.mark.parametrize("types", [{"x": "number"}, {"zip": "text", "x": "number", "y": "number"}])
def test_a_declared_number_shows_the_decimal_mark(
    workspace: Workspace, tmp_path: Path, types: dict[str, str]
) -> None:
    source = write(tmp_path / "d.csv", "id;who;zip;x;y\n1;a;007;1,5;1\n2;b;008;2,75;NA\n")
    with pytest.warns(DialectWarning, match="decimal commas"):
        assert add(workspace, source, types)["x"] == "double"
    assert values(workspace, "x") == [1.5, 2.75]


def test_later_files_follow_them(workspace: Workspace, tmp_path: Path) -> None:
    add(workspace, write(tmp_path / "d.csv"), {"zip": "text", "x": "text", "gap": "integer"})
    later = (
        BODY.replace("01,Ann", "03,Ann").replace("02,p2", "04,p2").replace("10:15,\n", "10:15,7\n")
    )
    workspace.append("d", write(tmp_path / "later.csv", later))
    assert values(workspace, "x") == ["5", "NA", "5", "NA"]
    assert values(workspace, "gap") == [None, None, 7, None]
    assert workspace.sync("d", write(tmp_path / "d.csv", BODY)).n_removed == 2


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ({"zap": "text"}, "has no column 'zap'; expected one of its own: 'id', 'who', 'zip'"),
        ({"zip": "string"}, "the type of column 'zip' is 'string'; expected one of text, integer"),
        ({"zip": "integer", "x": ""}, "the type of column 'x' is ''; expected one of text"),
        ({"zip": ["text"]}, "the type of column 'zip' is \"['text']\"; expected one of text"),
        ({7: "text"}, "has no column 7; expected one of its own"),
        ({"who": "text"}, "column 'who' came with a type, and is a column of subjects"),
        ({"clock": "integer"}, "'clock' holds '10:15' in row 2, and 1 other that"),
        ({"zip": "date"}, "'zip' holds '007' in row 2; expected days, as in 2026-03-01 (date32"),
        ({"at": "date"}, "'at' holds '2024-01-03 10:15:30Z' in row 3; expected days"),
        ({"day": "number"}, "'day' holds '2024-01-02' in row 2; expected numbers"),
        ({"n": "time"}, "'n' holds '5' in row 2; expected times of day"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    workspace: Workspace, tmp_path: Path, types: dict[str, str], told: str
) -> None:
    with pytest.raises(SourceError) as refused:
        add(workspace, write(tmp_path / "d.csv"), types)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)
    assert workspace.datasets() == []


@pytest.mark.parametrize(
    "cell", ["1.5", "1e5", "1_000", "x", "9223372036854775808", "0x1F", "true"]
)
def test_integers_do_not_become_others(workspace: Workspace, tmp_path: Path, cell: str) -> None:
    with pytest.raises(SourceError, match="in row 3; expected whole numbers"):
        add(
            workspace, write(tmp_path / "d.csv", f"id,who,n\na,p,1\nb,p,{cell}\n"), {"n": "integer"}
        )


@pytest.mark.parametrize("kind", ["integer", "date"])
def test_an_id_that_does_not_fit_is_not_repeated(
    workspace: Workspace, tmp_path: Path, kind: str
) -> None:
    source = write(tmp_path / "d.csv", f"id,who,n\n{SECRET},p,1\n")
    with pytest.raises(SourceError, match=r"'id' holds a value \(string\) in row 2") as refused:
        add(workspace, source, {"id": kind})
    assert SECRET not in str(refused.value)
    with pytest.raises(InvalidIdsError, match="expected integers or text, which name each"):
        add(workspace, write(tmp_path / "d.csv", "id,who,n\n2024-01-02,p,1\n"), {"id": "date"})


def test_a_decimal_mark_and_blocks_do_not_matter(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("erasable.workspace.data.delimited._BLOCK", 64)
    body = "id;who;x;t\n" + "".join(f"{i:02};p{i};{i},5;0{i}\n" for i in range(40))
    found = add(
        workspace, write(tmp_path / "d.csv", body), {"t": "text"}, delimiter=";", decimal=","
    )
    assert (found["x"], found["t"]) == ("double", "string")
    assert values(workspace, "t")[7] == "07"


def test_other_sources_take_them(workspace: Workspace, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": [1], "who": ["p"], "n": [3], "t": ["4"]}), tmp_path / "d.parquet"
    )
    found = add(workspace, tmp_path / "d.parquet", {"n": "number", "t": "integer"})
    assert (found["n"], found["t"]) == ("double", "int64")
    lines = Workspace.create(tmp_path / "lines")
    write(tmp_path / "d.jsonl", json.dumps({"id": 1, "who": "p", "n": 3, "t": "007"}) + "\n")
    found = add(lines, tmp_path / "d.jsonl", {"n": "number", "t": "text"})
    assert (found["n"], found["t"]) == ("double", "string")
    with pytest.raises(SourceError, match=r"'n' holds 3 \(int64\) in row 1; expected text"):
        add(Workspace.create(tmp_path / "other"), tmp_path / "d.jsonl", {"n": "text"})

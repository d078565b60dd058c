"""What a column holds is decided when a data set is added, and by nothing that comes later."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erasable.core.errors import InvalidDataError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.data import pulling
from erasable.workspace.data.catalogue import find, read_version

HEAD = "id,who,zip,price,flag,day,seen,n,big,y"
FIRST = [
    "a,p1,01234,1.50,true,2024-01-02,2024-01-02 03:04:05,1,9007199254740993,0",
    "b,p2,NA,2.25,false,2024-01-03,2024-01-03,2,2,1",
    "c,p3,A1,1e5,true,2024-01-04,2024-01-04 00:00:00,3,3,1",
    "d,p4,TRUE,7,NA,,NA,nan,4,0",
]
LATER = [  # each would be of another type, alone
    "e,p5,007,7,1,2024-01-05,2024-01-05,4,5,1",
    "f,p6,1.50,8,0,2024-01-06,2024-01-06,5,6,0",
]


def write(path: Path, *rows: str, head: str = HEAD) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.create(tmp_path / "ws")
    source = write(tmp_path / "d.csv", *FIRST)
    made.add_dataset("d", source, id_column="id", subjects=["who"])
    return made


def rows(workspace: Workspace) -> dict[str, dict[str, Any]]:
    with workspace.context.ledger.reading() as connection:
        whole = read_version(workspace.context, connection, find(connection, "d").id)
    return {row["id"]: row for row in whole.drop_columns(["who"]).to_pylist()}


def types(workspace: Workspace) -> dict[str, str]:
    return {each["name"]: each["type"] for each in workspace.dataset("d")["columns"]}


def of_whole(tmp_path: Path, *files: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    other = Workspace.create(tmp_path / "whole")
    source = write(tmp_path / "whole.csv", *[row for each in files for row in each])
    other.add_dataset("d", source, id_column="id", subjects=["who"])
    return rows(other), types(other)


def test_a_later_file_has_the_types_of_the_data_set(workspace: Workspace, tmp_path: Path) -> None:
    for number, row in enumerate(LATER):
        workspace.append("d", write(tmp_path / f"{number}.csv", row))
    assert (rows(workspace), types(workspace)) == of_whole(tmp_path, FIRST, LATER)
    assert rows(workspace)["e"]["zip"] == "007"
    assert rows(workspace)["f"]["zip"] == "1.50"


def test_a_part_of_the_file_has_not_changed(workspace: Workspace, tmp_path: Path) -> None:
    change = workspace.sync("d", write(tmp_path / "d.csv", *FIRST[:1]))
    assert (change.n_changed, change.n_removed) == (0, 3)


def test_a_file_that_is_typed_by_itself_would_be_found(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: as it was, the types are those that the file has, and are cast."""
    monkeypatch.setattr(pulling, "ColumnTypes", SimpleNamespace(of=lambda known: None))
    workspace.append("d", write(tmp_path / "0.csv", LATER[0]))
    assert rows(workspace)["e"]["zip"] == "7"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("g,p,1,x,1,,,1,1,0", "'price' holds 'x' in row 3; expected numbers"),
        ("g,p,1,1,0.5,,,1,1,0", "'flag' holds '0.5' in row 3; expected true or false"),
        ("g,p,1,1,1,2024-01-02 10:00,,1,1,0", "'day' holds '2024-01-02 10:00' in row 3; expected"),
        ("g,p,1,1,1,,tomorrow,1,1,0", "'seen' holds 'tomorrow' in row 3; expected times"),
        ("g,p,1,1,1,,,2024-01-02,1,0", "'n' holds '2024-01-02' in row 3; expected whole numbers"),
        ("g,p,1,9007199254740993,1,,,1,1,0", "'price' holds '9007199254740993' in row 3"),
        ("g,p,1,1,1,,,1,1.5,0", "'big' in 'd' holds whole numbers that floats do not hold"),
    ],
)
def test_what_does_not_parse_is_refused(
    workspace: Workspace, tmp_path: Path, row: str, told: str
) -> None:
    before = rows(workspace), sorted(workspace.context.store.list())
    path = write(tmp_path / "new.csv", LATER[0], row)
    with pytest.raises(SourceError) as refused:
        workspace.append("d", path)
    assert told in str(refused.value)
    with pytest.raises(SourceError) as refused:
        workspace.sync("d", path)
    assert told in str(refused.value)
    assert (rows(workspace), sorted(workspace.context.store.list())) == before


def test_whole_numbers_widen_where_none_is_lost(workspace: Workspace, tmp_path: Path) -> None:
    workspace.append("d", write(tmp_path / "0.csv", "g,p,1,1,1,,,7.0,1,0"))
    assert types(workspace)["n"] == "int64"
    workspace.append("d", write(tmp_path / "1.csv", "h,p,1,1,1,,,7.5,1,0"))
    assert types(workspace)["n"] == "double"
    assert [rows(workspace)[name]["n"] for name in "agh"] == [1.0, 7.0, 7.5]


def parquet(path: Path, **columns: list[Any]) -> Path:
    given = {
        "id": ["g"], "who": ["p"], "zip": ["1"], "price": [1.0], "flag": [True], "day": [None],
        "seen": [None], "n": [1], "big": [1], "y": [1], **columns,
    }  # fmt: skip
    pq.write_table(pa.table(given), path)
    return path


def moment(unit: str, value: int) -> list[Any]:
    return list(pa.array([value], pa.timestamp(unit)).to_pylist())


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"zip": [1234]}, "'zip' holds 1234 (int64) in row 1; expected text"),
        ({"price": [True]}, "'price' holds true (bool) in row 1; expected numbers"),
        ({"flag": [0.5]}, "'flag' holds 0.5 (double) in row 1; expected true or false"),
        ({"flag": [2]}, "'flag' holds 2 (int64) in row 1; expected true or false"),
        ({"day": moment("s", 60)}, "'day' holds 1970-01-01 00:01:00"),
        ({"n": moment("s", 60)}, "'n' holds 1970-01-01 00:01:00"),
        ({"seen": [7]}, "'seen' holds 7 (int64) in row 1; expected times"),
        ({"price": [2**53 + 1]}, "'price' holds 9007199254740993 (int64) in row 1"),
    ],
)
def test_what_cannot_be_cast_is_refused(
    workspace: Workspace, tmp_path: Path, columns: dict[str, list[Any]], told: str
) -> None:
    with pytest.raises(SourceError) as refused:
        workspace.append("d", parquet(tmp_path / "new.parquet", **columns))
    assert told in str(refused.value)


def test_what_is_the_same_value_is_cast(workspace: Workspace, tmp_path: Path) -> None:
    columns = {"price": [2], "flag": [1], "day": moment("s", 86_400), "n": ["7"], "seen": [None]}
    workspace.append("d", parquet(tmp_path / "new.parquet", **columns))
    row = rows(workspace)["g"]
    assert (row["price"], row["flag"], str(row["day"]), row["n"]) == (2.0, True, "1970-01-02", 7)


def test_corrections_are_read_as_the_data_set_is(workspace: Workspace, tmp_path: Path) -> None:
    head = "id,zip,price,flag"
    workspace.correct("d", write(tmp_path / "c.csv", "a,007,3,1", head=head))
    workspace.correct("d", ids=["b"], values={"zip": "1.50", "price": "4", "flag": "1"})
    workspace.process()
    found = rows(workspace)
    assert [found[name]["zip"] for name in "ab"] == ["007", "1.50"]
    assert [found[name]["price"] for name in "ab"] == [3.0, 4.0]
    assert [found[name]["flag"] for name in "ab"] == [True, True]
    with pytest.raises(SourceError, match="'price' holds 'x' in row 2; expected numbers"):
        workspace.correct("d", write(tmp_path / "c.csv", "a,007,x,1", head=head))
    with pytest.raises(InvalidDataError, match=r"'flag' holds '0\.5'; expected true or false"):
        workspace.correct("d", ids=["b"], values={"flag": "0.5"})


@pytest.fixture
def texts(workspace: Workspace) -> Workspace:
    workspace.fit(
        "m", "preprocessing.OneHotEncoder,naive_bayes.BernoulliNB", datasets=["d"],
        features=["zip"], target="y", params={"onehotencoder__handle_unknown": "ignore"},
    )  # fmt: skip
    return workspace


def test_a_prediction_does_not_depend_on_other_rows(texts: Workspace, tmp_path: Path) -> None:
    def predicted(*rows: str) -> list[Any]:
        path = write(tmp_path / "p.csv", *rows, head="id,zip")
        return list(texts.predict("m", path)["prediction"].to_pylist())

    alone = predicted("x,01234")
    assert predicted("x,01234", "y,A1") == [*alone, *predicted("y,A1")]
    assert predicted("x,01234", "y,A1") == [0, 1]


def test_names_of_folders_are_text_until_the_data_set_says_more(tmp_path: Path) -> None:
    def put(folder: Path, **values: str) -> Path:
        for name, code in values.items():
            place = folder / f"code={code}"
            place.mkdir(parents=True)
            pq.write_table(pa.table({"id": [name], "who": ["p"]}), place / "0.parquet")
        return folder

    made = Workspace.create(tmp_path / "ws")
    first = put(tmp_path / "first", a="01", b="A1")
    made.add_dataset("d", first, id_column="id", subjects=["who"])
    made.append("d", put(tmp_path / "second", c="02"))
    assert rows(made)["c"]["code"] == "02"


def test_two_spellings_of_one_value_are_told_and_mended(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert workspace.dataset("d")["warnings"] == []
    with monkeypatch.context() as patch:  # as earlier versions read it
        patch.setattr(pulling, "ColumnTypes", SimpleNamespace(of=lambda known: None))
        workspace.append("d", write(tmp_path / "0.csv", "e,p5,01234,7,1,,,4,5,1"))
    (told,) = workspace.dataset("d")["warnings"]
    assert told.startswith("column 'zip' holds '01234' and '1234', which may be one value in two")
    whole = write(tmp_path / "whole.csv", *FIRST, "e,p5,01234,7,1,,,4,5,1")
    assert workspace.sync("d", whole).n_changed == 1
    assert workspace.dataset("d")["warnings"] == []

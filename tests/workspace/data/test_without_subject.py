"""Whom a record belongs to where its subject is empty, is called "NA", or is a decimal number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from erasable.core.errors import InvalidIdsError, InvalidParameterError
from erasable.workspace import Workspace
from naming import named


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def write(folder: Path, cells: Sequence[str]) -> Path:
    path = folder / "visits.csv"
    rows = [f"v{i},{cell},{i}" for i, cell in enumerate(cells)]
    path.write_text("\n".join(["visit,patient,age", *rows]) + "\n")
    return path


def records_of(workspace: Workspace, value: str) -> int:
    found: int = workspace.subject(value)["datasets"].get("visits", 0)
    return found


def test_empty_is_nobody_and_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, ["p1", "", '""', '"  "', "p1"])
    change = workspace.add_dataset("visits", path, id_column="visit", subjects=["patient"])
    assert (change.n_records, change.n_without_subject, change.warnings) == (5, 3, ())
    assert records_of(workspace, "p1") == 2
    workspace.request(["p1"])
    assert workspace.process().n_records == 2
    assert workspace.datasets()[0]["n_records"] == 3


def test_null_is_nobody_in_every_kind_of_column(workspace: Workspace, tmp_path: Path) -> None:
    columns = {
        "text": pa.array(["a", None, "", " "]),
        "whole": pa.array([1, None, None, None], pa.int64()),
        "float": pa.array([1.0, None, float("nan"), float("nan")]),
        "decimal": pa.array([Decimal("1.0"), None, None, None]),
    }
    for name, column in columns.items():
        table = pa.table({"visit": [1, 2, 3, 4], "patient": column, "age": [1, 2, 3, 4]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
        change = workspace.add_dataset(
            name, tmp_path / f"{name}.parquet", id_column="visit", subjects=["patient"]
        )
        assert change.n_without_subject == 3, name


def test_a_record_of_two_has_nobody_only_where_both_are_empty(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "mails.csv").write_text("id,to,from\n1,a,\n2,,b\n3,,\n4,a,b\n")
    change = workspace.add_dataset(
        "mails", tmp_path / "mails.csv", id_column="id", subjects=["to", "from"]
    )
    assert change.n_without_subject == 1


@pytest.mark.parametrize("cell", ["NA", "nan", "None", "null", "NULL", "N/A", " NaN "], ids=named)
def test_what_programs_write_for_a_gap_is_an_identity_and_is_remarked_on(
    workspace: Workspace, tmp_path: Path, cell: str
) -> None:
    path = write(tmp_path, ["p1", cell, cell])
    change = workspace.add_dataset("visits", path, id_column="visit", subjects=["patient"])
    assert change.n_without_subject == 0
    (line,) = change.warnings
    assert line.startswith("in 2 of 3 records the subject column 'patient' holds what programs")
    assert records_of(workspace, cell) == 2
    path = write(tmp_path, ["p1", cell, cell])
    assert workspace.sync("visits").warnings == change.warnings
    (tmp_path / "more.csv").write_text(f"visit,patient,age\nv9,{cell},1\n")
    assert "in 1 of 1 records" in workspace.append("visits", tmp_path / "more.csv").warnings[0]


def test_in_a_column_of_numbers_they_are_gaps(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("visit,patient,age,ward\n1,p1,NA,NA\n2,p2,3,north\n")
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    types = {each["name"]: each["type"] for each in workspace.dataset("visits")["columns"]}
    assert (types["age"], types["ward"]) == ("int64", "string")
    assert records_of(workspace, "p1") == 1


# -- decimal numbers -------------------------------------------------------------------------------


def decimals(folder: Path, values: Sequence[str | None], kind: pa.DataType) -> Path:
    numbers = pa.array([None if each is None else Decimal(each) for each in values], kind)
    table = pa.table({"visit": [f"v{i}" for i in range(len(values))], "patient": numbers})
    pq.write_table(table, folder / "visits.parquet")
    return folder / "visits.parquet"


@pytest.mark.parametrize("kind", [pa.decimal128(38, 2), pa.decimal256(76, 2)], ids=str)
def test_decimals_keep_all_of_their_digits(
    workspace: Workspace, tmp_path: Path, kind: pa.DataType
) -> None:
    """As floats, the first two would be one person, and refused."""
    large = "123456789012345678901234"
    path = decimals(tmp_path, [f"{large}.00", f"{large[:-1]}5.00", "17.00", None], kind)
    change = workspace.add_dataset("visits", path, id_column="visit", subjects=["patient"])
    assert change.n_without_subject == 1
    assert [records_of(workspace, each) for each in (large, f"{large[:-1]}5", "17")] == [1, 1, 1]
    assert records_of(workspace, "17.00") == 1
    assert workspace.sync("visits").n_changed == 0


def test_decimals_that_are_not_whole_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    path = decimals(tmp_path, ["1.10", "2.00"], pa.decimal128(9, 2))
    with pytest.raises(InvalidIdsError, match=r"a Decimal .* expected a whole number") as told:
        workspace.add_dataset("visits", path, id_column="visit", subjects=["patient"])
    assert "\n" not in str(told.value)
    assert "1.1" not in str(told.value)
    assert workspace.datasets() == []


# -- what says whose records they are --------------------------------------------------------------


def test_without_a_subject_that_is_remarked_on(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path, ["p1", "p2", "NA"])
    change = workspace.add_dataset("visits", path, id_column="visit")
    (line,) = change.warnings
    assert line.startswith("no column says whose the records of 'visits' are: nobody can be taken")
    assert change.n_without_subject == 3
    workspace.request(where="patient = 'p1'")
    assert workspace.process().n_records == 1


def test_a_colon_in_the_name_of_a_column(workspace: Workspace, tmp_path: Path) -> None:
    table = pa.table({"visit": ["v1"], "J:R": ["Somebody@X.com"], "age": [3]})
    pyarrow.csv.write_csv(table, tmp_path / "visits.csv")
    add = lambda name, subject: workspace.add_dataset(  # noqa: E731
        name, tmp_path / "visits.csv", id_column="visit", subjects=[subject]
    )
    with pytest.raises(InvalidParameterError, match="write 'J:R:id'") as told:
        add("visits", "J:R")
    assert "'R' is no type of identity" in str(told.value)
    assert "\n" not in str(told.value)
    add("visits", "J:R:email")
    add("others", ("J:R", "exact"))
    assert records_of(workspace, "somebody@x.com") == 1
    assert workspace.subject("Somebody@X.com", type="exact")["datasets"] == {"others": 1}

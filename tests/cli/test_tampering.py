"""A ledger in which somebody wrote by hand is told as such, by whatever command meets it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny
from erasable.workspace.ledger.kinds import Json, Moment
from erasable.workspace.ledger.schema import PASSING, metadata
from naming import named

COMMANDS = [
    ["log", "verify"], ["suppress", "list"], ["model", "show", "risk"], ["verify", "risk"],
    ["tasks"],
]  # fmt: skip
"""Together they read every table."""

KEPT = [
    (table.name, column.name)
    for table in metadata.sorted_tables
    if table.name not in PASSING
    for column in table.columns
    if isinstance(column.type, Json | Moment)
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    make_tiny(folder)
    return folder


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny, tmp_path / "copy")
    return tmp_path / "copy"


def tamper(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        assert ledger.execute(statement, values).rowcount > 0
        ledger.commit()


def test_every_kind_of_column_is_tried() -> None:
    assert len(KEPT) > 20
    assert {("request", "due_at"), ("request", "tokens")} <= set(KEPT)


@pytest.mark.parametrize(("table", "column"), KEPT, ids=named)
def test_what_cannot_be_read_is_an_error_of_the_ledger(copy: Path, table: str, column: str) -> None:
    if table == "failure":  # of which a life without workers has none
        tamper(copy, "insert into failure values ('model', 1, 1, 'it failed', 0, 0)")
    tamper(copy, f"update {table} set {column} = 'xyz'")
    told = set()
    for args in COMMANDS:
        result = erasable(*args, folder=copy)
        assert result.fault is None
        if result.exit_code == 2:
            assert "has a fault" not in result.stderr, (args, result.stderr)
            told |= set(result.stderr.splitlines())
    (line,) = {line for line in told if f"{column!r} of its table {table!r}" in line}
    assert "restore it from a backup" in line


@pytest.mark.parametrize("garbage", ["17", '[{"a": 1}]'], ids=named)
@pytest.mark.parametrize(
    ("table", "column", "args"),
    [
        ("meta", "value", ["subject", "show", "patient-4"]),
        ("dataset", "subjects", ["dataset", "list"]),
        ("model", "recipe", ["verify", "risk"]),
        ("request", "tokens", ["process"]),
    ],
    ids=named,
)
def test_json_of_another_shape_is_an_error_of_the_ledger(
    copy: Path, table: str, column: str, args: list[str], garbage: str
) -> None:
    tamper(copy, f"update {table} set {column} = ?", garbage)
    result = erasable(*args, folder=copy)
    assert (result.exit_code, result.fault) == (2, None)
    (line,) = result.stderr.splitlines()
    assert f"{column!r} of its table {table!r}" in line


def test_verify_does_not_take_a_damaged_ledger_for_a_model_that_differs(copy: Path) -> None:
    tamper(copy, "update dataset set columns = 'xyz'")
    result = erasable("verify", "risk", folder=copy)
    assert result.exit_code == 2
    assert "the ledger holds no JSON in 'columns' of its table 'dataset'" in result.stderr
    assert "different" not in result.output


def test_a_damaged_ledger_is_no_reason_to_give_a_model_up(copy: Path) -> None:
    tamper(copy, "update dataset_version set columns = 'xyz'")
    result = erasable("process", folder=copy)
    assert result.exit_code == 2
    assert "'columns' of its table 'dataset_version'" in result.stderr
    assert "retire" not in result.stderr


def test_a_request_that_asks_for_nothing_is_told(copy: Path) -> None:
    tamper(copy, "update request set tokens = null where state = 'pending'")
    result = erasable("process", folder=copy)
    assert result.exit_code == 2
    assert "says neither whose records" in result.stderr

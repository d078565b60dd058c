"""A ledger in which somebody wrote by hand is told as such, by whatever command meets it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny
from erasable.workspace.ledger import kinds
from erasable.workspace.ledger.kinds import Bytes, Json, Moment, Real, Whole, Words
from erasable.workspace.ledger.schema import (
    PASSING,
    log_entry,
    measurement,
    meta,
    metadata,
    model,
    request,
)
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
    if isinstance(column.type, Bytes | Json | Moment)
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
        assert "has a fault" not in result.stderr, (args, result.stderr)
        if result.exit_code:
            told |= {line.removeprefix("error: ") for line in result.output.splitlines()}
    (line,) = {line for line in told if f"{column!r} of its table {table!r}" in line}
    assert "restore it from a backup" in line


COUNTED = {(table, "id") for table in ("dataset", "fragment", "model", "measurement", "target")}
"""SQLite takes nothing but whole numbers there."""

EVERY = [
    (table.name, column.name, garbage)
    for table in metadata.sorted_tables
    if table.name not in PASSING
    for column in table.columns
    if isinstance(column.type, Real | Whole | Words) and (table.name, column.name) not in COUNTED
    for garbage in (b"\x00\xff", *(["xyz"] if isinstance(column.type, Whole) else []))
]

UNREAD = {*(("measurement", column.name) for column in measurement.c), ("model_version", "number")}
"""What estimates are made of, and the number of a version that is superseded."""

LOOKS = [["log", "verify"], ["requests"], ["status"], ["tasks"], ["process"]]


def test_every_column_has_a_kind_that_is_checked() -> None:
    assert [
        (table.name, column.name)
        for table in metadata.sorted_tables
        for column in table.columns
        if not isinstance(column.type, Bytes | Json | Moment | Real | Whole | Words)
    ] == [("lease", "exclusive"), ("lease", "granted")]
    assert len(EVERY) > 100


def answers(folder: Path, *looks: list[str]) -> str:
    """Run commands, none of which may have a fault; return what was told by those that failed."""
    found = []
    for args in looks or LOOKS:
        result = erasable(*args, folder=folder)
        assert (result.fault, "has a fault" in result.stderr) == (None, False), (args, result)
        found += [result.output] if result.exit_code else []
    return "".join(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("table", "column", "garbage"), EVERY, ids=named)
def test_another_type_is_no_fault_in_any_column(
    copy: Path, table: str, column: str, garbage: object
) -> None:
    rows = {
        "failure": "('model', 2, 1, 'it failed', 0, 0)", "vacated": "(1, 9)", "garbage": "('k')",
    }  # fmt: skip
    if table in rows:
        tamper(copy, f"insert into {table} values {rows[table]}")
    tamper(copy, f"update or ignore {table} set {column} = ?", garbage)
    assert bool(answers(copy)) == ((table, column) not in UNREAD)


def test_without_the_kinds_it_was(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    monkeypatch.setattr(kinds.Whole, "_classes", (int, str))
    tamper(copy, "update log_entry set position = 'xyz' where position = 3")
    with pytest.raises(AssertionError, match="fault"):
        answers(copy)


@pytest.mark.parametrize("value", ["[]", "[7001]", "[1, 1]"])
@pytest.mark.parametrize("column", ["model.datasets", "model_version.dataset_versions"])
def test_a_list_of_another_length_is_no_fault(copy: Path, column: str, value: str) -> None:
    table, _, name = column.partition(".")
    tamper(copy, f"update {table} set {name} = ?", value)
    assert answers(copy, *LOOKS, ["model", "list"], ["model", "show", "risk"], ["verify"])


@pytest.mark.parametrize("table", ["dataset", "model", "fragment", "request"])
def test_another_key_is_no_fault(copy: Path, table: str) -> None:
    value = "R-OTHER" if table == "request" else 7001
    tamper(copy, f"update or ignore {table} set id = ?", value)
    assert answers(copy)


WORDS = [
    (table.name, column.name)
    for table in (log_entry, meta, model, request)
    for column in table.columns
    if isinstance(column.type, Json | Words) and not column.primary_key
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("table", "column"), WORDS, ids=named)
def test_text_that_utf8_cannot_hold_is_named_by_log_verify(
    copy: Path, table: str, column: str
) -> None:
    is_json = isinstance(metadata.tables[table].c[column].type, Json)
    made = "'\"\\ud800 Ann\"'" if is_json else "cast(x'ff416e6e' as text)"
    first = f"(select min(rowid) from {table})"
    tamper(copy, f"update {table} set {column} = {made} where rowid = {first}")
    result = erasable("log", "verify", folder=copy)
    assert (result.exit_code, result.fault) == (1, None), result.output
    assert column in result.stdout
    assert "Ann" not in result.output
    assert "restore it from a backup" in result.stdout
    assert answers(copy)


@pytest.mark.parametrize("place", ["recipe", "setting", "entry"])
def test_half_a_character_in_json_is_named_by_log_verify(copy: Path, place: str) -> None:
    """Of the right shape, but no text that can be hashed or printed."""
    half = {
        "recipe": "update model set recipe = json_set(recipe, '$.kind', json('\"\\ud800\"'))",
        "setting": "update meta set value = '\"\\udfff\"' where name = 'export'",
        "entry": "update log_entry set body = cast(replace(cast(body as text), '{', "
        '\'{"a":"\\ud800",\') as blob) where position = 3',
    }[place]
    tamper(copy, half)
    result = erasable("log", "verify", folder=copy)
    assert (result.exit_code, result.fault) == (1, None), result.output
    named = {"recipe": "'recipe' of its table 'model'", "setting": "'value' of its table 'meta'",
             "entry": "entry 3 of the log was altered"}  # fmt: skip
    assert named[place] in result.stdout
    assert answers(copy)


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
    assert result.exit_code == 1
    assert "in its identities or condition" in result.stderr

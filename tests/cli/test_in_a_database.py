"""The command line of a workspace whose ledger is in PostgreSQL; what goes wrong is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from cli.running import erasable, make_tiny, told
from erasable.workspace.ledger.engine import REVISION


@pytest.fixture
def copied(server: Any, database: str, tmp_path: Path) -> Path:
    make_tiny(tmp_path)
    told("workspace", "copy", "team", "--database", server.url(database), folder=tmp_path)
    return tmp_path / "team"


def test_a_life(server: Any, database: str, tmp_path: Path) -> None:
    rows = "".join(f"v{i},p{i // 2},{20 + i},{i % 2}\n" for i in range(40))
    (tmp_path / "visits.csv").write_text(f"visit,patient,age,sick\n{rows}")
    made = erasable("init", "--database", server.url(database), "--schema", "clinic",
                    folder=tmp_path)  # fmt: skip
    assert made.exit_code == 0, made.output
    assert "its ledger is in the schema clinic of the database" in made.stdout
    run = lambda *args: told(*args, folder=tmp_path)  # noqa: E731
    assert run("workspace", "migrate") == {
        "before": REVISION,
        "after": REVISION,
        "changed": False,
    }
    run("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient")
    run("model", "fit", "risk", "--dataset", "visits", "--estimator", "naive_bayes.GaussianNB",
        "--target", "sick")  # fmt: skip
    (request,) = run("request", "p7")["requests"]
    run("process")
    assert erasable("verify", folder=tmp_path).exit_code == 0
    assert erasable("log", "verify", folder=tmp_path).exit_code == 0
    says = run("receipt", "show", request["id"])["says"]
    assert says["out_of_reach"] == run("status")["unreached"]
    assert "archive; replicas" in erasable("status", folder=tmp_path).stdout


def test_a_copy_is_told_of(server: Any, database: str, tmp_path: Path) -> None:
    make_tiny(tmp_path)
    url = server.url(database)
    result = erasable("workspace", "copy", "team", "--database", url, folder=tmp_path)
    assert result.exit_code == 0, result.output
    first, second, third = result.stdout.splitlines()
    assert "rows of 19 tables" in first
    assert second.startswith("all are equal; the log of ")
    assert "an erasure in one does not reach the other" in third
    assert told("requests", folder=tmp_path / "team") == told("requests", folder=tmp_path)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["init", "--database", "postgresql://ann:zq-secret@db/x"], "holds a password"),
        (["init", "--database", "nonsense"], "expected postgresql://USER@HOST:PORT/DATABASE"),
        (["init", "--schema", "clinic"], "without a database"),
        (["init", "--database", "postgresql://ann@127.0.0.1:1/x"], "can be reached"),
        (["workspace", "copy", "team"], "--database is missing"),
        (["workspace", "migrate"], "holds no workspace"),
    ],
    ids=str,
)
def test_errors_are_one_line(tmp_path: Path, args: list[str], expected: str) -> None:
    if args[1] == "copy":
        erasable("init", folder=tmp_path)
    before = sorted(tmp_path.rglob("*"))
    result = erasable(*args, folder=tmp_path)
    assert (result.exit_code, result.stdout, result.fault) == (2, "", None)
    (line,) = result.stderr.splitlines()
    assert expected in line
    assert "zq-secret" not in line
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("table", "column", "value", "args"),
    [
        ("meta", "value", '"xyz"', ["subject", "show", "patient-4"]),
        ("dataset", "subjects", '[{"a": 1}]', ["dataset", "list"]),
        ("model", "recipe", "17", ["verify", "risk"]),
        ("request", "tokens", '"xyz"', ["process"]),
        ("request", "due_at", "9000000000000000000", ["log", "verify"]),
    ],
)
def test_what_was_tampered_with_is_told(
    server: Any, database: str, copied: Path, table: str, column: str, value: str, args: list[str]
) -> None:
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute(f"UPDATE erasable.{table} SET {column} = '{value}'")
    result = erasable(*args, folder=copied)
    finds = args == ["log", "verify"]  # and prints what it finds
    assert (result.exit_code, result.fault) == (1 if finds else 2, None)
    (line,) = [
        each
        for each in (result.stdout if finds else result.stderr).splitlines()
        if "restore it" in each
    ]
    assert f"{column!r} of its table {table!r}" in line
    assert "restore it from a backup" in line


def test_hooks_that_are_due_in_both_are_told(server: Any, database: str, tmp_path: Path) -> None:
    make_tiny(tmp_path)
    told("model", "fit", "risk", "--hook", "false", folder=tmp_path)
    told("process", folder=tmp_path)
    other = server.database()
    for url, name in ((server.url(database), "one"), (server.url(other), "two")):
        result = erasable("workspace", "copy", name, "--database", url, folder=tmp_path)
        assert result.exit_code == 0, result.output
        due = told("status", folder=tmp_path)["hooks_due"]
        assert due == (["risk"] if name == "one" else [])
        assert ("hooks are due in both, and would run twice: risk" in result.stderr) == bool(due)
        told("model", "fit", "risk", "--hook", "true", folder=tmp_path)
        told("process", folder=tmp_path)
    server.drop(other)

"""A file of many requests: what is done is told as it goes, and grows with the file alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from cli.running import erasable, rows_of, told
from erasable.cli import progress
from erasable.workspace import Workspace
from erasable.workspace.ledger import bulk
from erasable.workspace.ledger.engine import Ledger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text(rows_of(0, 60))
    told("init", folder=tmp_path)
    told("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient",
         folder=tmp_path)  # fmt: skip
    return tmp_path


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "PARAMETERS", 10)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)


def _write(folder: Path, n: int) -> None:
    (folder / "many.txt").write_text("".join(f"patient-{i}\n" for i in range(n)))


@pytest.mark.usefixtures("at_once")
def test_it_is_told_how_far_it_is(folder: Path) -> None:
    _write(folder, 35)
    result = erasable("request", "--file", "many.txt", folder=folder)
    assert result.exit_code == 0
    for label in ("reading identities", "entering requests"):
        assert re.findall(rf"^{label} (\d+)/35$", result.stderr, re.M) == ["10", "20", "30"]
        assert label not in result.stdout
    assert "patient-" not in result.output
    dry = erasable("request", "--file", "many.txt", "--dry-run", folder=folder)
    assert "reading identities 10/35" in dry.stderr
    assert "entering" not in dry.stderr


@pytest.mark.usefixtures("at_once")
def test_all_are_entered_as_if_at_once(folder: Path) -> None:
    before = len(told("requests", folder=folder)["requests"])
    _write(folder, 35)
    taken = told("request", "--file", "many.txt", folder=folder)["requests"]
    listed = told("requests", folder=folder)["requests"]
    assert len({each["id"] for each in taken}) == 35
    assert len(listed) == before + 35
    assert erasable("log", "verify", folder=folder).exit_code == 0


@pytest.mark.usefixtures("at_once")
def test_a_line_that_is_wrong_leaves_nothing(folder: Path) -> None:
    before = told("requests", folder=folder)["requests"]
    _write(folder, 35)
    with (folder / "many.txt").open("a") as file:
        file.write("no number\n")
    result = erasable("request", "--file", "many.txt", "--type", "integer", folder=folder)
    assert result.exit_code == 2
    assert told("requests", folder=folder)["requests"] == before


def _statements(folder: Path, n: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the statements that a request of so many identities takes."""
    _write(folder, n)
    seen: list[Any] = []
    right = Ledger.__init__

    def counting(self: Any, *args: Any, **options: Any) -> None:
        right(self, *args, **options)
        event.listen(self.engine, "before_cursor_execute", lambda *each: seen.append(each[2]))

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "__init__", counting)
        told("request", "--file", "many.txt", folder=folder)
    return len(seen)


def test_statements_do_not_grow_with_the_lines(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (_statements(folder, n, monkeypatch) for n in (20, 2000))
    assert 0 < few == many
    monkeypatch.setattr(bulk, "PARAMETERS", 1)  # the negative control: a statement for each
    assert _statements(folder, 200, monkeypatch) > many + 200


def test_a_retired_model_says_why(tmp_path: Path) -> None:
    told("init", folder=tmp_path)
    rows = "".join(f"v{n},{'anna' if n else 'bob'},{n}\n" for n in range(4))
    (tmp_path / "visits.csv").write_text(f"visit,patient,age\n{rows}")
    line = ("visits.csv", "--id", "visit", "--subject", "patient")
    told("dataset", "add", "visits", *line, folder=tmp_path)
    fit = ("--dataset", "visits", "--estimator", "cluster.KMeans")
    for name, n in (("two", 2), ("one", 1)):
        told("model", "fit", name, *fit, "--param", f"n_clusters={n}", folder=tmp_path)
    told("request", "anna", folder=tmp_path)
    shown = erasable("process", folder=tmp_path).stdout
    (why,) = [line for line in shown.splitlines() if "is retired: " in line]
    assert why == (
        "'two' is retired: deleting 3 of 4 records would leave 1; KMeans needs at least 2"
    )


def test_some_are_carried_out_and_others_wait(folder: Path) -> None:
    _write(folder, 3)
    first, second, third = [
        each["id"] for each in told("request", "--file", "many.txt", folder=folder)["requests"]
    ]
    assert told("process", second, folder=folder)["completed"] == [second]
    states = {each["id"]: each["state"] for each in told("requests", folder=folder)["requests"]}
    assert [states[each] for each in (first, second, third)] == ["pending", "completed", "pending"]
    told("hold", third, "--reason", "in doubt", folder=folder)
    refused = {second: "is completed", third: "is on hold", "R-0000000000": "there is no request"}
    for given, why in refused.items():
        result = erasable("process", first, given, folder=folder)
        assert result.exit_code == 2
        assert why in result.stderr
        assert "expected" in result.stderr
    states = {each["id"]: each["state"] for each in told("requests", folder=folder)["requests"]}
    assert states[first] == "pending"
    told("cancel", first, "--reason", "asked by mistake", folder=folder)
    assert Workspace.open(folder).requests(["cancelled"])[0].reason == "asked by mistake"

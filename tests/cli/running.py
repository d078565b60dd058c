"""Run command lines in this process, and make small workspaces with them."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import warnings
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import typer.main
from typer.testing import CliRunner

from erasable.cli.app import app

__all__ = ["ROOT", "TINY", "Result", "erasable", "make_tiny", "rows_of", "told"]

_RUNNER = CliRunner()
ROOT = typer.main.get_command(app)
"""The whole command line; to build it anew for each run would take most of the time."""

TINY = 60
"""Records of the tiny workspace: two of each of 30 patients."""


@dataclass(frozen=True)
class Result:
    """How a command line ended; `fault` is what it raised but should not have."""

    exit_code: int
    stdout: str
    stderr: str
    fault: BaseException | None = None

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def erasable(*args: str, folder: Path | None = None, stdin: str | bytes | None = None) -> Result:
    """Run one command line, in a folder."""
    before = Path.cwd()
    code, fault = 0, None
    with ExitStack() as stack:
        stack.callback(os.chdir, before)
        os.chdir(before if folder is None else folder)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")  # as a user has them: lines, and none for developers
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        out, err, _ = stack.enter_context(_RUNNER.isolation(stdin, env={"COLUMNS": "100"}))
        try:
            ROOT.main(args)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 99
        except BaseException as error:
            code, fault = 99, error
        sys.stdout.flush()
        sys.stderr.flush()
        printed = [each.getvalue().decode(errors="replace") for each in (out, err)]
    return Result(code, *printed, fault)


def told(*args: str, folder: Path, stdin: str | None = None) -> dict[str, Any]:
    """Run one command line with --json, which must go well; return what it printed."""
    result = erasable(*args, "--json", folder=folder, stdin=stdin)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def rows_of(first: int, last: int) -> str:
    """Return CSV of records, two for each patient."""
    lines = [
        f"v{i},patient-{i // 2},p{i // 2}@example.org,{20 + i * 7 % 50},{i * 13 % 17 / 4},{i % 2}"
        for i in range(first, last)
    ]
    return "visit,patient,mail,age,dose,sick\n" + "\n".join(lines) + "\n"


def make_tiny(folder: Path) -> dict[str, str]:
    """Make a workspace with a bit of everything, and files around it; return requests by state."""
    (folder / "visits.csv").write_text(rows_of(0, TINY))
    (folder / "more.csv").write_text(rows_of(TINY, TINY + 6))
    table = pyarrow.csv.read_csv(folder / "more.csv")
    pyarrow.parquet.write_table(table, folder / "more.parquet")
    (folder / "withdrawn.txt").write_text("patient-20\npatient-21\n")
    for name, patient in (("clinic", "patient-9"), ("more", "patient-3")):
        with closing(sqlite3.connect(folder / f"{name}.db")) as base:
            base.execute("create table patients (id text primary key)")
            base.execute("insert into patients values (?)", [patient])
            base.commit()
    run = lambda *args: told(*args, folder=folder)  # noqa: E731
    run("init", "--export", "elsewhere")
    subject = "patient,mail:email"
    run("dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", subject)
    run("model", "fit", "risk", "--dataset", "visits", "--estimator", "naive_bayes.GaussianNB",
        "--target", "sick")  # fmt: skip
    run("model", "fit", "tree", "--dataset", "visits", "--estimator",
        "sklearn.tree.DecisionTreeClassifier", "--target", "sick")  # fmt: skip
    run("model", "register", "ranker", "--dataset", "visits")
    states = {"completed": _id(run("request", "patient-3"))}
    run("process")
    run("log", "head", "--output", "head.json")
    run("receipt", "show", states["completed"], "--output", "receipt.json")
    (folder / "workspace.pub").write_text(run("key")["public_key"])
    run("suppress", "export", "--output", "erased.json")
    states["pending"] = _id(run("request", "patient-4"))
    states["held"] = _id(run("request", "patient-5", "--hold", "identity in doubt"))
    states["denied"] = _id(run("request", "patient-6"))
    run("deny", states["denied"], "--reason", "a legal duty")
    run("target", "add", "clinic", f"sqlite:///{folder}/clinic.db", "--subject", "patients.id")
    return states


def _id(taken: dict[str, Any]) -> str:
    request: str = taken["requests"][0]["id"]
    return request

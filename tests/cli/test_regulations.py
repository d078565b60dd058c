"""A regulation is one row of a table: a row that is added while it runs is known everywhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from cli.running import rows_of

ADDED = """
from erasable.workspace.requests.regulations import REGULATIONS, Period, Regulation

REGULATIONS["law-x"] = Regulation(
    "law-x", "Law X", Period(10, "day"), Period(3, "month"), "section 5 of Law X", "Ask Y."
)
from erasable.cli import run

run()
"""


def run(folder: Path, *args: str) -> str:
    command = [sys.executable, "-c", ADDED, *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_row_makes_a_regulation(tmp_path: Path) -> None:
    assert "law-x (10 days)" in re.sub(r"[│\s]+", " ", run(tmp_path, "correct", "--help"))
    (tmp_path / "visits.csv").write_text(rows_of(0, 20))
    run(tmp_path, "init")
    run(tmp_path, "dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", "patient")
    asked = ("request", "patient-3", "--regulation", "law-x", "--json")
    (taken,) = json.loads(run(tmp_path, *asked))["requests"]
    received, due = (datetime.fromisoformat(taken[name]) for name in ("received_at", "due_at"))
    assert (taken["regulation"], (due - received).days) == ("law-x", 10)
    extended = json.loads(
        run(tmp_path, "extend", taken["id"], "--reason", "many requests", "--json")
    )
    assert f"and not by {due:%Y-%m-%d}" in extended["notice"]
    assert extended["notice"].endswith(
        "The law is section 5 of Law X, which allows three further months. Ask Y."
    )
    assert (datetime.fromisoformat(extended["request"]["due_at"]) - due).days in range(89, 93)
    run(tmp_path, "process")
    assert re.search("regulation +law-x", run(tmp_path, "receipt", "show", taken["id"]))
    run(tmp_path, "report", "page.html")
    assert "Law X" in (tmp_path / "page.html").read_text()
    run(tmp_path, "log", "verify")

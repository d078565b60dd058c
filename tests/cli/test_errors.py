"""Errors are one line, say what to do, and do not repeat who is meant."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny
from erasable.cli import show
from naming import named


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    make_tiny(folder)
    (folder / "huge.csv").write_text(
        "visit,patient,mail,age,dose,sick\nv1,p,m,3,2,1\nv2,p,m,4,1e39,0\n"
    )
    return folder


def _error(*args: str, folder: Path, stdin: str | None = None) -> str:
    result = erasable(*args, folder=folder, stdin=stdin)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "; expected " in line, line
    return line


_FIT = ["model", "fit", "m", "--dataset", "visits", "--target", "sick", "--estimator"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["datset"], "did you mean `dataset`?"),
        (["dataset"], "a command is missing after `erasable dataset`"),
        (["dataset", "ad"], "expected one of: add, append, sync, list, show"),
        (["dataset", "add", "x"], "SOURCE is missing"),
        (["dataset", "add", "x", "visits.csv"], "--id is missing"),
        (["dataset", "list", "--josn"], "there is no option '--josn'; expected perhaps --json"),
        (["dataset", "show", "a", "b"], "more arguments than `erasable dataset show` takes"),
        (["dataset", "show", "gone"], "there is no data set 'gone'"),
        (["dataset", "add", "x", "gone.csv", "--id", "visit"], "gone.csv"),
        (["status", "--json=yes"], "--json came with a value"),
        (["status", "--workspace"], "--workspace came without a value"),
        (["status", "--workspace", "a\0b"], "--workspace cannot be read: it holds a zero byte"),
        (["status", "--workspace", "\udc80"], "--workspace cannot be read: it is not UTF-8"),
        (["status", "--workspace", "gone"], "run `erasable init` there"),
        (["init"], "holds a workspace already"),
        (["request"], "neither or both of identities and a condition"),
        (["request", "--regulation", "GDPR", "x"], "expected one of: gdpr, uk-gdpr, ccpa, none"),
        (["request", "--received", "31.1.2026", "x"], "expected a date or time as 2026-03-31"),
        (["request", "--file", "gone.txt"], "there is no file 'gone.txt'"),
        (["requests", "--state", "gone"], "--state is 'gone'"),
        (["hold", "R-0000000000"], "neither or both of --reason and --lift"),
        (["deny", "R-0000000000", "--reason", "x"], "there is no request 'R-0000000000'"),
        (["deny", "someone@example.org", "--reason", "x"], "that is no id of a request"),
        (["model", "fit", "m", "-p", "C"], "expected NAME=VALUE"),
        (
            [*_FIT, "cluster.KMeans", "-p", "n_init=10"],
            "KMeans was given n_init=10; expected n_clusters, max_iter, tol, n_jobs, random_state, "
            "or n_init='auto' or 1, which changes nothing; there is one run",
        ),
        (
            [*_FIT, "linear_model.Ridge", "-p", "alpa=1"],
            "alpha, fit_intercept, n_jobs; did you mean",
        ),
        (["model", "predict", "risk", "more.csv", "--output", "x.txt"], "neither in .csv nor"),
        (["model", "predict", "tree", "huge.csv"], "beyond float32, in row 1, column 'dose' of X"),
        (["log", "show", "--since", "-1"], "expected the number of an entry"),
        (["log", "verify", "--since", "visits.csv"], "holds no JSON object"),
        (["log", "head", "--output", "gone/head.json"], "No such file or directory"),
        (["log", "head", "--output", "."], "Is a directory"),
        (["report", "page/"], "Is a directory"),
        (["log", "head", "--output", "keys.json"], "a file of the workspace itself"),
        (["report", "./ledger.db"], "a file of the workspace itself"),
        (["model", "export", "risk", "artifacts/x"], "a file of the workspace itself"),
        (["receipt", "check", "receipt.json", "--key", "head.json"], "holds no public key"),
        (["subject", "show"], "0 identities were given; expected one"),
        (["subject", "link", "a"], "1 different identities were given; expected two"),
    ],
    ids=named,
)
def test_one_line(tiny: Path, args: list[str], told: str) -> None:
    assert told in _error(*args, folder=tiny)


def test_a_parameter_that_changes_nothing_is_ignored(tiny: Path) -> None:
    given = [*_FIT, "linear_model.LogisticRegression", "-p"]
    result = erasable(*given, "max_iter=100", "-p", "C=2", folder=tiny)
    assert result.exit_code == 0, result.output
    assert "solver='liblinear'; expected C," in _error(*given, "solver=liblinear", folder=tiny)


@pytest.mark.parametrize(
    "args",
    [
        ["subject", "show", "secret-1", "secret-2"],
        ["subject", "show", "--secret-1"],
        ["request", "-secret-1"],
        ["request", "secret-1", "--type", "integer"],
        ["subject", "link", "secret-1", "secret-2"],
        ["suppress", "release", "secret-1"],
        ["deny", "secret-1", "--reason", "x"],
        ["receipt", "show", "secret-1"],
    ],
    ids=named,
)
def test_identities_are_not_repeated(tiny: Path, args: list[str]) -> None:
    assert "secret" not in _error(*args, folder=tiny)


def test_identities_from_standard_input_are_not_repeated(tiny: Path) -> None:
    line = _error("subject", "show", "--file", "-", folder=tiny, stdin="secret-1\nsecret-2\n")
    assert "secret" not in line


def test_a_fault_is_one_line(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr("erasable.workspace.facade.Workspace.status", broken)
    assert "secret" not in _error("status", folder=tiny)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "the memory ran out"),
        (PermissionError(13, "Permission denied", "/x"), "'/x': Permission denied"),
    ],
    ids=["memory", "system"],
)
def test_what_comes_from_outside(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, told: str
) -> None:
    def broken(self: object) -> None:
        raise error

    monkeypatch.setattr("erasable.workspace.facade.Workspace.status", broken)
    assert told in _error("status", folder=tiny)


def test_debugging_shows_where(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERASABLE_DEBUG", "1")
    result = erasable("dataset", "show", "gone", folder=tiny)
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_nothing_given_is_help() -> None:
    result = erasable()
    assert result.exit_code == 0
    assert "Usage: erasable" in result.stdout


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
def test_a_reader_who_leaves_is_no_fault(tiny: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "erasable", "log", "show"]
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            line, cwd=tiny, stdout=pipe, stderr=subprocess.PIPE, check=False, env=os.environ
        )
    assert (done.returncode, done.stderr) == (3, b"")


def test_a_terminal_is_not_taken_over() -> None:
    assert show.one_line("a\x1b[31mb\n c") == r"a\x1b[31mb c"


def test_a_tampered_ledger_is_a_difference(tiny: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny, copy)
    assert erasable("log", "verify", folder=copy).exit_code == 0
    with closing(sqlite3.connect(copy / "ledger.db")) as ledger:
        ledger.execute("update request set state = 'completed' where state = 'denied'")
        ledger.commit()
    result = erasable("log", "verify", "--json", folder=copy)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"]


def test_a_receipt_of_another_key_is_a_difference(tiny: Path, tmp_path: Path) -> None:
    erasable("init", folder=tmp_path)
    (tmp_path / "other.pub").write_text(erasable("key", folder=tmp_path).stdout)
    receipt = str(tiny / "receipt.json")
    args = ["receipt", "check", receipt, "--key", "other.pub"]
    result = erasable(*args, "--json", folder=tmp_path)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["holds"] is False
    told = erasable(*args, "--html", "receipt.html", folder=tmp_path).stdout
    assert "DOES NOT HOLD" in told
    assert not (tmp_path / "receipt.html").exists()


def test_a_model_that_differs_is_a_difference(tiny: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny, copy)
    for path in (copy / "artifacts" / "models" / "risk").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    result = erasable("verify", "risk", "--json", folder=copy)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["equal"] is False

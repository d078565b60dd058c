"""Standard streams that are closed, full or without a reader: all is done, and the code says so."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.fuzzing import commands
from cli.running import ROOT, erasable, make_tiny, told
from erasable.cli import frame
from erasable.cli.streams import OutputStream
from naming import named

FULL = Path("/dev/full")

LINES = """
init --workspace new
status
report report.html
key
workspace migrate
workspace copy elsewhere-still --database postgresql://nobody@127.0.0.1:1/none
backup monday.tar
restore ../monday.tar --to new --no-suppressions --keys keys.json
dataset add more more.csv --id visit
dataset append visits more.csv
dataset sync visits visits.csv
dataset list
dataset show visits
model fit again --dataset visits --estimator naive_bayes.GaussianNB --target sick
model refresh
model policy risk never
model list
model show risk
model predict risk more.csv --output out.csv
model register program --dataset visits
model export risk risk.model
model retire tree
model publish risk none
select visits.csv --id visit --target sick --k 5 --staying 0.6 --features age,dose
request patient-7 patient-8
correct visits v7 --set age=31
process
work --drain
tasks
retry
remove-domain visits --where 'age > 60' --budget 2 --features age,dose --yes
requests
deny PENDING --reason 'a legal duty'
cancel PENDING
hold PENDING --reason 'in doubt'
extend PENDING --reason 'many at once'
verify
audit risk
receipt show COMPLETED
receipt check receipt.json --key workspace.pub
log show
log verify
log head
subject show patient-7
subject link patient-7 patient-9
suppress list
suppress release patient-3
suppress export --output erased.json
suppress import erased.json
target scan visits.csv
target add more sqlite:///more.db --subject patients.id
target list
target check
target erase sqlite:///more.db --subject patients.id
target remove clinic
compile
--version
--help
request
log verify --since erased.json
"""
"""Every command, so that it does something; the last two end with an error."""

HOW = [("closed", False), ("full", False), ("gone", True), ("full", True)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("streams") / "ws"
    folder.mkdir()
    states = make_tiny(folder)
    told("backup", "../monday.tar", folder=folder)
    return folder, states


@contextmanager
def broken(how: str) -> Iterator[Any]:
    """Lend a stream that cannot be written to: None is how Python has one that is closed."""
    if how == "closed":
        yield None
        return
    if how == "full":
        descriptor = os.open(FULL, os.O_WRONLY)
    else:
        reading, descriptor = os.pipe()
        os.close(reading)
    stream = os.fdopen(descriptor, "w", encoding="utf-8")
    try:
        yield stream
    finally:
        stream.close()  # what is left in it goes to the null device by now, or this fails


def run(folder: Path, line: list[str], **streams: Any) -> int:
    """Run a command line with other streams than those of this process; return its exit code."""
    before = sys.stdout, sys.stderr, Path.cwd()
    os.chdir(folder)
    try:
        sys.stdout = streams.get("stdout", sys.stdout)
        sys.stderr = streams.get("stderr", sys.stderr)
        with pytest.raises(SystemExit) as ended:
            ROOT.main(line)
    finally:
        sys.stdout, sys.stderr, folder = before
        os.chdir(folder)
    return int(ended.value.code or 0)


def content(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Return what a command has done: rows of each table, requests by state, and files."""
    with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        names = [
            row[0] for row in ledger.execute("select name from sqlite_master where type='table'")
        ]
        rows = {
            name: ledger.execute(f'select count(*) from "{name}"').fetchone()[0] for name in names
        }
        for state, n in ledger.execute("select state, count(*) from request group by state"):
            rows[f"request {state}"] = n
    return rows, sorted(path.name for path in folder.iterdir() if "ledger.db-" not in path.name)


def words(line: str, states: dict[str, str]) -> list[str]:
    return [states.get(word.lower(), word) for word in shlex.split(line)]


def test_every_command_is_tried() -> None:
    paths = {tuple(line.split()[: len(path)]) for path in commands() for line in LINES.splitlines()}
    assert set(commands()) <= paths


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.sampled(15)
@pytest.mark.parametrize(("how", "json"), HOW, ids=named)
@pytest.mark.parametrize("line", LINES.strip().splitlines(), ids=named)
def test_a_command_does_its_work_without_streams(
    tiny: tuple[Path, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    how: str,
    json: bool,
) -> None:
    monkeypatch.setattr("erasable.utils.compiling.compile_kernels", lambda *_, **__: [])
    folder, states = tiny
    shutil.copy(folder.parent / "monday.tar", tmp_path)
    args = words(line, states) + (["--json"] if json and line[0] != "-" else [])
    for name in ("usual", "output", "both", "errors"):
        shutil.copytree(folder, tmp_path / name)
    usual = erasable(*args, folder=tmp_path / "usual")
    assert usual.fault is None
    expected = content(tmp_path / "usual")
    with broken(how) as output:
        code = run(tmp_path / "output", args, stdout=output)
    assert code == (3 if usual.exit_code == 0 and usual.stdout else usual.exit_code)
    assert content(tmp_path / "output") == expected
    with broken(how) as output, broken(how) as errors:
        assert run(tmp_path / "both", args, stdout=output, stderr=errors) == code
    assert content(tmp_path / "both") == expected
    with broken(how) as errors:
        assert run(tmp_path / "errors", args, stderr=errors) == usual.exit_code
    assert content(tmp_path / "errors") == expected


SHELL = [
    (">&-", 3, "it is closed"),
    (">/dev/full", 3, "No space left on device"),
    ("2>&-", 0, ""),
    (">&- 2>&-", 3, ""),
    ("<&- >&- 2>&-", 3, ""),
    ("2>/dev/full", 0, ""),
    ("| true", 3, ""),
]


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.sampled(7)
@pytest.mark.parametrize(("redirection", "code", "said"), SHELL, ids=[each[0] for each in SHELL])
def test_a_process_without_streams(
    tiny: tuple[Path, dict[str, str]], tmp_path: Path, redirection: str, code: int, said: str
) -> None:
    """As a shell starts it; a hook that prints writes into no file of the workspace."""
    folder = tmp_path / "ws"
    shutil.copytree(tiny[0], folder)
    told("model", "fit", "risk", "--hook", "sh -c 'echo hooked; echo hooked >&2'", folder=folder)
    program = f"{shlex.quote(sys.executable)} -m erasable process"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {program} {redirection}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    errors = [each for each in done.stderr.splitlines() if each.startswith("error: ")]
    assert len(errors) == bool(said)
    assert said in "".join(errors)
    assert told("status", folder=folder)["requests"]["completed"] == 2
    assert erasable("log", "verify", folder=folder).exit_code == 0


def test_standard_input_that_is_closed(
    tiny: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run(tiny[0], ["request", "--file", "-"]) == 2
    assert "standard input is closed; expected one identity a line" in capsys.readouterr().err


def test_a_command_that_minds_its_streams_is_noticed(
    tiny: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: OutputStream, text: str) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(OutputStream, "write", fail)
    shutil.copytree(tiny[0], tmp_path / "ws")
    with pytest.raises(OSError, match="No space"):
        ROOT.main(["request", "patient-7", "--workspace", str(tmp_path / "ws")])


def test_a_broken_pipe_that_is_not_of_a_stream_is_told(capsys: Any) -> None:
    assert frame._report(BrokenPipeError(32, "Broken pipe")) == 2
    assert "Broken pipe" in capsys.readouterr().err

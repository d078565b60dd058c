"""Signals at any import, and at any effect: one line, the exit code of a shell, no traceback."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import make_tiny
from cli.running import told as as_json
from effort import THOROUGH

CHILD = """
import os, sys
number, left, of = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]

def pass_one(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), number)

class Finder:
    find_spec = pass_one

from erasable.cli import interrupts, run
if "careless" in of:
    interrupts.take = lambda: None
if "imports" in of:
    sys.meta_path.insert(0, Finder())
else:
    from erasable.workspace.store import crash_points
    crash_points._watcher = pass_one
try:
    run()
finally:
    if left > 0:
        os.write(2, b"not reached")
"""
"""Is the command, and sends itself a signal at the n-th import, or the n-th effect on the disk."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("interrupts") / "ws"
    folder.mkdir()
    return folder, make_tiny(folder)["pending"]


@pytest.fixture
def tiny(made: tuple[Path, str]) -> Path:
    return made[0]


def run(folder: Path, number: int, at: int, of: str, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(int(number)), str(at), of, *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("at", [1, 40, 300, *(range(2, 380, 23) if THOROUGH else ())])
def test_an_interruption_of_an_import_is_one_line(tiny: Path, at: int) -> None:
    code, errors = run(tiny, signal.SIGINT, at, "imports", "status")
    (line,) = errors.splitlines()
    assert code == 130, errors
    assert line.startswith("error: the command was interrupted")
    assert "; expected it to end" in line


def test_an_interruption_that_nobody_takes_is_noticed(tiny: Path) -> None:
    _, errors = run(tiny, signal.SIGINT, 40, "careless imports", "status")
    assert "Traceback" in errors


@pytest.mark.parametrize(
    ("number", "at", "told", "states"),
    [
        (signal.SIGTERM, 20, "its requests are pending again", {"pending"}),
        (signal.SIGINT, 45, "its requests are carried out", {"swapped", "purged", "completed"}),
    ],
)
def test_what_is_said_of_a_batch_holds(
    made: tuple[Path, str], tmp_path: Path, number: int, at: int, told: str, states: set[str]
) -> None:
    folder, pending = tmp_path / "ws", made[1]
    shutil.copytree(made[0], folder)
    code, errors = run(folder, number, at, "effects", "process")
    assert code == 128 + number, errors
    (line,) = [each for each in errors.splitlines() if each.startswith("error: ")]
    assert told in line
    found = {each["id"]: each["state"] for each in as_json("requests", folder=folder)["requests"]}
    assert found[pending] in states

"""The soak of exit codes finds processes that are aborted, or end with another code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.running import make_tiny

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from exits import Command, Forks, end, how  # noqa: E402

pytestmark = pytest.mark.soak


def make(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    make_tiny(folder)
    return folder


def test_a_wrong_code_is_found(tmp_path: Path) -> None:
    folder = make(tmp_path)
    some = [Command(("status",)), Command(("status",), 1), Command(("status", "--nothing"))]
    wrong, codes = end(folder, some, 120.0, loops=1)
    assert [each.splitlines()[0] for each in wrong] == [
        "erasable status: exit code 0",
        "erasable status --nothing: exit code 2",
    ]
    assert codes == {0: 2, 2: 1}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import os; print('done'); sys.stdout.flush(); os.abort()", "SIGABRT"),
        ("import atexit, os; atexit.register(os.abort); sys.exit(0)", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("sys.exit(2)", "exit code 2"),
        ("", "exit code 0"),
    ],
)
def test_how_a_process_ends_is_told(tmp_path: Path, program: str, expected: str) -> None:
    with Forks(tmp_path, tmp_path / "output", prelude="", program=program) as forks:
        assert how(forks.run([])) == expected

"""What comes before a command: the version, and what a shell asks to complete a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import erasable
from erasable import __version__


def run(*args: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "erasable", *args],
        capture_output=True, text=True, check=True, env=os.environ | environment,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def test_the_version(tmp_path: Path) -> None:
    result = erasable("--version", folder=tmp_path)
    assert (result.exit_code, result.stdout) == (0, f"erasable {__version__}\n")
    assert run("--version") == f"erasable {__version__}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("erasable data", {"dataset"}),
        ("erasable dataset ", {"add", "append", "sync", "list", "show"}),
        ("erasable status --j", {"--json"}),
    ],
)
def test_a_shell_is_told_what_may_come_next(line: str, expected: set[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    told = run(_ERASABLE_COMPLETE="complete_bash", **words)
    assert set(told.split()) == expected


def test_completion_is_installed(tmp_path: Path) -> None:
    told = run(
        "--install-completion",
        "bash",
        HOME=str(tmp_path),
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
    )
    assert "completion installed" in told
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "_ERASABLE_COMPLETE=complete_bash" in script.read_text()

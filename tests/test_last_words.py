"""A worker of pytest-xdist that dies is told with its signal, and with where it was."""

from __future__ import annotations

import functools
import os
import signal as signals
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = """
import functools
import os

def test_dies():
    os.kill(os.getpid(), {signal})

def test_lives():
    pass
"""

CONFTEST = """
import last_words

def pytest_configure(config):
    config.pluginmanager.register(last_words)
"""


def run(folder: Path, tests: str) -> str:
    (folder / "test_it.py").write_text(tests)
    (folder / "conftest.py").write_text(CONFTEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-c", os.devnull, "--rootdir", ".", "."],
        cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(HERE)},
    )  # fmt: skip
    return done.stdout


in_soak = functools.partial(pytest.param, marks=pytest.mark.soak)


@pytest.mark.parametrize("signal", ["SIGSEGV", *map(in_soak, ("SIGABRT", "SIGKILL", "signal 40"))])
def test_who_dies_is_told(tmp_path: Path, signal: str) -> None:
    printed = run(tmp_path, TESTS.format(signal=getattr(signals, signal, 40)))
    assert f"worker 'gw0' was killed by {signal}\n" in printed
    assert ("in test_dies" in printed) == (signal in ("SIGSEGV", "SIGABRT"))
    assert "1 failed, 1 passed" in printed  # another worker goes on


def test_who_lives_is_not(tmp_path: Path) -> None:
    printed = run(tmp_path, TESTS.format(signal=0) + "\ndel test_dies\n")
    assert "1 passed" in printed
    assert "killed" not in printed

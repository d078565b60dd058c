"""Say why a worker of pytest-xdist died: its signal, and where in Python it was.

It tells no more than "crashed" by itself, and what faulthandler prints to standard error is lost
among thousands of dots.
"""

from __future__ import annotations

import faulthandler
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

_FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()
_TOLD = pytest.StashKey[list[str]]()
_PLACE = "erasable_last_words"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where to write; runs in the process that has them all."""
    stash = node.config.stash
    if _FOLDER not in stash:
        stash[_FOLDER] = tempfile.TemporaryDirectory(prefix="last-words-")
    node.workerinput[_PLACE] = str(Path(stash[_FOLDER].name) / node.gateway.id)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have a worker write there, if it dies, and not to standard error, as pytest has it."""
    place = getattr(session.config, "workerinput", {}).get(_PLACE)
    if place is not None:
        faulthandler.enable(open(place, "w"))  # noqa: SIM115  # for as long as it lives


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Remember what is known of a worker that went before it was done."""
    if not error:
        return
    place = Path(node.workerinput[_PLACE])
    words = place.read_text(errors="replace") if place.is_file() else ""
    told = f"worker {node.gateway.id!r} {how_it_ended(node.gateway)}\n{words}"
    node.config.stash.setdefault(_TOLD, []).append(told)


def how_it_ended(gateway: Any) -> str:
    """Say with which signal or exit code; "killed by SIGKILL" is what is said of no memory."""
    try:
        code = gateway._io.popen.wait(timeout=10)
    except (AttributeError, subprocess.TimeoutExpired):
        return "is gone"
    if code >= 0:
        return f"exited with {code}"
    names = {int(each): each.name for each in signal.Signals}
    return f"was killed by {names.get(-code, f'signal {-code}')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it above the closing line."""
    for told in terminalreporter.config.stash.get(_TOLD, []):
        terminalreporter.write_line(told, red=True)

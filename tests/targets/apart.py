"""Erasures in processes of their own, which are killed at chosen points; and independent readers.

A kill falls before a chosen line of the target's module: a first run counts the lines that an
erasure passes, the others are killed at places spread evenly over these.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent

_ERASURE = """
import os, signal, sys
sys.path.insert(0, {here!r})
from people import erased
from erasable.workspace.targets import kinds
from erasable.workspace.targets.protocol import Settings, Subject
target = kinds.opened({place!r}, Settings((Subject(*{subject!r}),)))
module, at, n = sys.modules[type(target).__module__].__file__, {at!r}, 0
begun, ended = not {begin!r}, False
def line(frame, event, _):
    global n, begun, ended
    begun = begun or frame.f_code.co_name == {begin!r}
    ended = ended or frame.f_code.co_name == {end!r}
    if begun and not ended and event == "line":
        n += 1
        if n == at:
            os.kill(os.getpid(), signal.SIGKILL)
    return line
sys.settrace(lambda frame, *_: line if frame.f_code.co_filename == module else None)
with target:
    _, verdict = erased(target, *{identities!r})
sys.settrace(None)
print(n, verdict.word, verdict.reason)
"""


def erased_apart(
    place: str,
    subject: tuple[str, str],
    identities: Iterable[Any],
    at: int = 0,
    begin: str = "",
    end: str = "",
) -> int | None:
    """Erase people in another process; return how many lines it passed, None if it was killed.

    Lines are counted from the first call of a method `begin`, or from the start, until that of
    `end`, or throughout.
    """
    code = _ERASURE.format(
        here=str(_HERE), place=place, subject=subject, at=at, identities=list(identities),
        begin=begin, end=end,
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[0])


def answer_apart(code: str, *arguments: str) -> Any:
    """Return what a program prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_files(folder: Path, values: Iterable[bytes]) -> int:
    """Count the values that any file below a folder holds as they are."""
    every = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    return sum(any(value in data for data in every) for value in values)

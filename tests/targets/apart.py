"""Programs in processes of their own: erasures that are killed at chosen points, and readers.

A kill falls before a chosen line of the target's module: a first run counts the lines that an
erasure passes, the others are killed at places spread evenly over these. Or it falls at a chosen
call of a client's, see `DYING`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


def run(code: str, *arguments: object) -> str | None:
    """Run a program; return what it prints, None if it was killed, else it has to succeed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer_apart(code: str, *arguments: object) -> Any:
    """Return what a program prints as JSON on its last line."""
    told = run(code, *arguments)
    assert told is not None
    return json.loads(told.splitlines()[-1])


DYING = """
import os, signal, sys
n_left = int(sys.argv[2])
def dying(call):
    def count(*arguments, **named):
        global n_left
        n_left -= 1
        if n_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    return count
"""
"""Kill the process before the n-th call, from 0, of all functions that `dying` has made."""


def killed(script: str, place: object, n: int) -> bool:
    """Run a script with `DYING`, whose first argument is a place; tell whether it was killed."""
    return run(DYING + script, place, n) is None


_ERASURE = """
import os, signal, sys
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
    erased(target, *{identities!r})
sys.settrace(None)
print(n)
"""


def erased_apart(
    place: str, identities: Iterable[Any], at: int = 0, begin: str = "", end: str = ""
) -> int | None:
    """Erase people by their address; return how many lines it passed, None if it was killed.

    Lines are counted from the first call of a method `begin`, or from the start, until that of
    `end`, or throughout.
    """
    code = _ERASURE.format(
        place=place, subject=("email", "email"), at=at, identities=list(identities), begin=begin,
        end=end,
    )  # fmt: skip
    told = run(code)
    return None if told is None else int(told)


def killed_erasures(
    fresh: Callable[[str], tuple[Path, str]],
    identities: Sequence[Any],
    begin: str = "",
    end: str = "",
) -> Iterator[tuple[Path, str]]:
    """Return four folders and places that `fresh` has made, after an erasure that was killed."""
    _, place = fresh("whole")
    n_lines = erased_apart(place, identities, begin=begin, end=end)
    assert n_lines is not None
    n_lines -= n_lines // 50  # a few more or less are passed each time
    for kill in range(4):
        folder, place = fresh(f"killed{kill}")
        at = 1 + kill * (n_lines - 1) // 3
        assert erased_apart(place, identities, at, begin, end) is None
        yield folder, place


def in_files(folder: Path, values: Iterable[bytes]) -> int:
    """Count the values that any file below a folder holds as they are."""
    every = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    return sum(any(value in data for data in every) for value in values)

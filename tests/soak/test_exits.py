"""Hundreds of processes on a busy machine end with the exit codes of their commands."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import make_tiny

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from exits import Command, Forks, afresh, busy, commands, how  # noqa: E402

from effort import SEED  # noqa: E402

pytestmark = pytest.mark.soak
PROCESSES, LEAST, SECONDS = 400, 100, 240.0
EVERY = 8  # one of so many is not forked, but begun afresh
LOOPS = 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "ws"
    place.mkdir()
    make_tiny(place)
    return place


def wrong_ends(folder: Path, some: Iterator[Command], n: int) -> tuple[list[str], Counter[int]]:
    """Run commands; return those that ended otherwise, and how many ended with which code."""
    output, wrong, codes = folder.parent / "output", [], Counter[int]()
    until = time.monotonic() + SECONDS
    with Forks(folder, output) as forks, busy(LOOPS, 2 * SECONDS):
        for number, command in zip(range(n), some, strict=False):
            if time.monotonic() > until:
                break
            fresh = number % EVERY == 0
            code = afresh(folder, output, command.words) if fresh else forks.run(command.words)
            codes[code] += 1
            if code != command.code:
                told = output.read_text(errors="replace")[-2000:]
                wrong.append(f"{' '.join(command.words)}: {how(code)}\n{told}")
    return wrong, codes


def test_every_process_ends_with_the_code_of_its_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, codes = wrong_ends(folder, commands(SEED, folder), PROCESSES)
    with capsys.disabled():
        print(f"\n{codes.total()} processes ended: {dict(codes)}; not as they should: {len(wrong)}")
    assert not wrong, "\n\n".join(wrong)
    assert codes.total() >= LEAST
    assert min(codes[0], codes[1], codes[2]) > 0


def test_a_wrong_code_is_found(folder: Path) -> None:
    some = [Command(("status",)), Command(("status",), 1), Command(("status", "--nothing"))]
    wrong, codes = wrong_ends(folder, iter(some), 3)
    assert [each.splitlines()[0] for each in wrong] == [
        "status: exit code 0",
        "status --nothing: exit code 2",
    ]
    assert codes == {0: 2, 2: 1}


def test_an_abort_is_found(tmp_path: Path) -> None:
    output = tmp_path / "output"
    for program, expected in [
        ("import os; print('done'); sys.stdout.flush(); os.abort()", "SIGABRT"),
        ("import atexit, os; atexit.register(os.abort); sys.exit(0)", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("sys.exit(2)", "exit code 2"),
    ]:
        with Forks(tmp_path, output, prelude="", program=program) as forks:
            assert how(forks.run([])) == expected

"""What takes long says so, on standard error; what does not says nothing."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from cli.running import erasable, make_tiny
from erasable.cli import progress
from erasable.cli.progress import Meter


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_come_once_a_second() -> None:
    stream, clock = io.StringIO(), Clock()
    with Meter(stream, clock)("rewriting visits", 16) as advance:
        for _ in range(16):
            clock.now += 0.4
            advance()
    lines = stream.getvalue().splitlines()
    assert lines == [f"rewriting visits {n}/16" for n in (3, 6, 9, 12, 15)]


def test_a_total_that_nobody_knows_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), Clock()
    with Meter(stream, clock)("reading visits", None) as advance:
        for _ in range(4):
            clock.now += 0.6
            advance(100)
    assert stream.getvalue().splitlines() == [f"reading visits {n}" for n in (200, 400)]
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    terminal = Terminal()
    with Meter(terminal)("reading visits", None) as advance:
        for timer in [each for each in threading.enumerate() if isinstance(each, threading.Timer)]:
            timer.join()
        advance(100)
    assert "reading visits" in terminal.getvalue()


def test_nothing_is_said_within_a_second() -> None:
    stream, clock = io.StringIO(), Clock()
    with Meter(stream, clock)("rewriting visits", 16) as advance:
        for _ in range(16):
            clock.now += 0.06
            advance()
    assert stream.getvalue() == ""


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    stream = Terminal()
    meter = Meter(stream)
    with meter("[red]models", 2) as advance:
        timers = [each for each in threading.enumerate() if isinstance(each, threading.Timer)]
        for timer in timers:
            timer.join()
        with meter("within", 3) as inner:
            inner(3)
        advance()
    assert "[red]models" in stream.getvalue()
    assert "/2" in stream.getvalue()


def test_a_bar_that_was_not_shown_leaves_nothing() -> None:
    stream = Terminal()
    with Meter(stream)("models", 2) as advance:
        advance(2)
    assert "models" not in stream.getvalue()
    assert not [each for each in threading.enumerate() if isinstance(each, threading.Timer)]


def test_it_goes_to_standard_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tiny(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    result = erasable("process", "--json", folder=tmp_path)
    assert "updating models 1/" in result.stderr
    assert "updating" not in result.stdout

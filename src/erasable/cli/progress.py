"""Progress of a long command on standard error: a bar on a terminal, lines in a file.

Nothing is shown in the first second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

PATIENCE = 1.0
"""Seconds after which a user wants to know; also between two plain lines."""


class Meter:
    r"""A progress display; see `Context.progress`.

    >>> import io
    >>> stream, seconds = io.StringIO(), iter(range(0, 99, 2))
    >>> with Meter(stream, lambda: next(seconds))("rewriting visits", 16) as advance:
    ...     advance(3)
    >>> stream.getvalue()
    'rewriting visits 3/16\n'
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._bars: Any = None

    @contextmanager
    def __call__(self, label: str, total: int | None) -> Iterator[Callable[..., None]]:
        """Show how much of `total` (None: unknown) is done when the yielded function is called."""
        how = self._bar if _is_terminal(self._stream) else self._lines
        with how(label, total) as advance:
            yield advance

    @contextmanager
    def _lines(self, label: str, total: int | None) -> Iterator[Callable[..., None]]:
        last, done = self._clock(), 0

        def advance(n: int = 1) -> None:
            nonlocal last, done
            done += n
            now = self._clock()
            if (total is None or done < total) and now - last >= PATIENCE:
                last = now
                of = "" if total is None else f"/{total}"
                self._stream.write(f"{label} {done}{of}\n")
                self._stream.flush()

        yield advance

    @contextmanager
    def _bar(self, label: str, total: int | None) -> Iterator[Callable[..., None]]:
        if self._bars is not None:  # one within another
            with self._task(label, total) as advance:
                yield advance
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        console = Console(file=self._stream, highlight=False, markup=False, emoji=False)
        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn(), Remaining())
        self._bars = Progress(*columns, console=console, transient=True)
        timer = threading.Timer(PATIENCE, self._bars.start)
        timer.daemon = True
        timer.start()
        try:
            with self._task(label, total) as advance:
                yield advance
        finally:
            timer.cancel()
            timer.join()
            self._bars.stop()
            self._bars = None

    @contextmanager
    def _task(self, label: str, total: int | None) -> Iterator[Callable[..., None]]:
        task = self._bars.add_task(label, total=total)
        try:
            yield lambda n=1: self._bars.advance(task, n)
        finally:
            self._bars.remove_task(task)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False

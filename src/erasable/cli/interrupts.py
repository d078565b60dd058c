"""Handling of Ctrl-C, SIGTERM and SIGHUP: one line, and the exit code of a shell.

The law kept here: before a command has begun there is nothing to undo, and the process ends at
once. From then on an interruption is raised, so that the current change is undone or finished.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_SHELL = 128
"""What a shell adds to the number of a signal."""

_taken: list[signal.Signals] = []


class Stopped(KeyboardInterrupt):
    """The exception for a signal that ends the process.

    >>> exit_code(Stopped(15)), exit_code(KeyboardInterrupt())
    (143, 130)
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code(error: KeyboardInterrupt) -> int:
    """Return the exit code of a command that was interrupted."""
    return _SHELL + (error.number if isinstance(error, Stopped) else signal.SIGINT)


def take() -> None:
    """Have signals end this process in one line; ignored signals stay ignored."""
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (
            signal.SIG_DFL,
            signal.default_int_handler,
        ):
            signal.signal(number, _end)
            _taken.append(number)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise the signals as exceptions inside the block; after it, they end the process silently.

    Nothing changes in a process whose signals were not taken.
    """
    _have(_raise)
    try:
        yield
    finally:
        _have(signal.SIG_DFL)


def _have(handler: Any) -> None:
    for number in _taken:
        signal.signal(number, handler)


def _raise(number: int, frame: Any) -> None:
    raise Stopped(number)


def _end(number: int, frame: Any) -> None:
    with contextlib.suppress(OSError):
        os.write(2, b"error: the command was interrupted before it began; expected it to end\n")
    os._exit(_SHELL + number)

"""Durations of the phases of carrying out requests, to see where the time went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_seconds: ContextVar[dict[str, float] | None] = ContextVar("seconds", default=None)


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Measure the phases inside of the block; yields their seconds, by their names.

    >>> with measured() as seconds:
    ...     with phase("one"), phase("two"):
    ...         pass
    >>> sorted(seconds)
    ['one', 'two']
    """
    found: dict[str, float] = {}
    token = _seconds.set(found)
    try:
        yield found
    finally:
        _seconds.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Count the time of the block to a phase; a phase inside of another counts to both."""
    began = time.perf_counter()
    try:
        yield
    finally:
        found = _seconds.get()
        if found is not None:
            found[name] = found.get(name, 0.0) + time.perf_counter() - began

"""Crash points: every effect of a workspace on the disk passes one of them.

The law kept here: no file of a workspace is opened for writing, written, synced, renamed or
removed, no object is put or deleted, and no transaction is committed, outside a point. A test
watches the audit events of the interpreter for other effects; others stop the process, or let the
disk fail, at each point in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_watcher: Callable[[str, str], None] | None = None
_depth = 0


@contextmanager
def crash_point(effect: str, where: str) -> Iterator[None]:
    """Announce an effect on a path or key, and have it inside the block.

    It is "open", "write", "sync", "rename", "sync folder", "remove", "commit" or "checkpoint"; of
    an object store "put", "delete" or "abort".
    """
    global _depth
    if _watcher is not None:
        _watcher(effect, where)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def inside() -> bool:
    """Tell whether an effect is under way; see `crash_point`."""
    return _depth > 0


@contextmanager
def watch(watcher: Callable[[str, str], None]) -> Iterator[None]:
    """Call `watcher` before every effect, with its name and place; see `crash_point`.

    Its errors are raised in place of the effect: an OSError is a failing disk.
    """
    global _watcher
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before

"""The points at which a process may die: every effect of a workspace on the disk passes one.

The law kept here: no file of a workspace is opened for writing, written, synced, renamed or
removed, no object is put or deleted, and no transaction is committed, outside a point. A test
watches the interpreter's own audit events, and fails where one of them comes from elsewhere; others
stop the process, or let the disk fail, at each point in turn.
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

    >>> passed = []
    >>> with watch(lambda effect, where: passed.append((effect, where))):
    ...     with crash_point("write", "models/3"):
    ...         inside()
    True
    >>> passed, inside()
    ([('write', 'models/3')], False)
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
    """Have `watcher` called before every effect, with its name and place; see `crash_point`.

    What it raises is raised where the effect would have been: an OSError is a failing disk.
    """
    global _watcher
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before

"""Lock of a workspace by a file, which the system releases when a process dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace.locking import Claim
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.store.disk import disk_errors, may_write


class FolderLock:
    """A `Lock` of a workspace on one machine: a claim on any part locks all of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = FolderLock(Path(folder, "lock"))
    ...     with lock.hold(Claim.of(["model:risk"]), wait=1):
    ...         lock.others()
    set()
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_held = False

    @property
    def owner(self) -> str:
        """Return an empty name: only one process makes files."""
        return ""

    @contextmanager
    def hold(self, claim: Claim, wait: float) -> Iterator[None]:
        """Hold the whole workspace inside the block; see `Lock.hold`."""
        if self._is_held or (not claim.changes and not self._may_be_written()):
            yield  # a copy that is for reading alone does not change
            return
        lock = FileLock(self._path, timeout=wait)
        with disk_errors(self._path), crash_point("open", self._path.name):
            try:
                lock.acquire()
            except Timeout:  # an OSError, but the disk is well
                raise busy(wait) from None
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            lock.release()

    def _may_be_written(self) -> bool:
        there = self._path if self._path.exists() else self._path.parent
        return may_write(there)

    def others(self) -> set[str]:
        """Return an empty set: only one process is at work."""
        return set()


def busy(wait: float) -> WorkspaceBusyError:
    """Return the error for a lock that another process holds."""
    return WorkspaceBusyError(
        "another process is at work on this workspace; expected it to end within "
        f"{wait:g} seconds; wait for it, and run the command again"
    )

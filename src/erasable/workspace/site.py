"""One workspace on the disk: its folder, its ledger, its files, its keys, and who is at work on it.

Every room of the workspace is handed a `Site`, and asks it for these.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from sqlalchemy import delete, select

from erasable.core.errors import (
    EvidenceError,
    NotInWorkspaceError,
    WorkspaceBusyError,
    WorkspaceError,
)
from erasable.workspace.ledger.engine import Ledger, sqlite_url
from erasable.workspace.ledger.schema import fragment, garbage, model_version
from erasable.workspace.store.artifacts import ArtifactStore, LocalStore
from erasable.workspace.store.disk import PARTIAL, Disk, told
from erasable.workspace.store.points import at

if TYPE_CHECKING:
    from erasable.workspace.identity.keys import Keys

__all__ = ["Progress", "Site"]

LEDGER, LOCK, SCRATCH, ARTIFACTS = "ledger.db", "lock", "scratch", "artifacts"

Progress = Callable[[str, int], AbstractContextManager[Callable[..., None]]]
"""Called with a label and a total; the context is a function that advances."""


@contextmanager
def _silent(label: str, total: int) -> Iterator[Callable[..., None]]:
    yield lambda n=1: None


class Site:
    """A workspace that is open.

    Parameters
    ----------
    root : path-like
        Its folder.
    wait : float, default=10.0
        Seconds to wait for another process that is at work on it.

    Attributes
    ----------
    root : Path
    disk : Disk
        The folder's files.
    store : ArtifactStore
        Models and data.
    ledger : Ledger
    keys : Keys
    progress : callable
        Given a label and a total, returns a context whose value advances; says nothing unless a
        user interface sets it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     site = Site.create(folder)
    ...     with site.lock():
    ...         site.clean()
    ...     sorted(path.name for path in site.root.iterdir())
    ['artifacts', 'keys.json', 'ledger.db', ..., 'lock']
    """

    def __init__(self, root: str | os.PathLike[str], *, wait: float = 10.0) -> None:
        self.root = Path(root).resolve()
        self.disk = Disk(self.root, private=True)
        self.store: ArtifactStore = LocalStore(Disk(self.root / ARTIFACTS, private=True))
        self.ledger = Ledger(sqlite_url(self.root / LEDGER))
        self.progress: Progress = _silent
        self._wait = wait
        self._keys: Keys | None = None

    @classmethod
    def create(cls, root: str | os.PathLike[str]) -> Site:
        """Make a workspace in a folder, which is made too.

        Raises
        ------
        WorkspaceError
            There is a workspace already.
        """
        from erasable.workspace.evidence import log
        from erasable.workspace.identity.keys import Keys

        site = cls(root)
        if (site.root / LEDGER).exists():
            raise WorkspaceError(
                f"{str(site.root)!r} holds a workspace already; expected a folder without one; "
                "use it, or choose another folder"
            )
        with at("open", str(site.root)):
            site.root.mkdir(0o700, parents=True, exist_ok=True)
        site.disk.make(ARTIFACTS)
        keys = Keys.make(site.disk)
        site._remove_unfinished_ledger()
        # SQLite gives its other files the mode of this one, which it would make for all to read.
        site.disk.write(f"{LEDGER}.new", b"")
        building = Ledger(sqlite_url(site.root / f"{LEDGER}.new"))
        building.create()
        now = site.now()
        with building.transaction() as connection:
            building.set(connection, "workspace", secrets.token_hex(16))
            building.set(connection, "created_at", now.isoformat())
            building.set(connection, "key_id", keys.key_id)
            building.set(connection, "key_fingerprint", keys.fingerprint)
            site._keys = keys
            log.append(site, connection, "workspace", keys.key_id, {}, now)
        building.checkpoint()
        building.close()
        site.disk.rename(f"{LEDGER}.new", LEDGER)
        site._remove_unfinished_ledger()
        return site

    @classmethod
    def open(cls, root: str | os.PathLike[str], *, wait: float = 10.0) -> Site:
        """Open the workspace of a folder.

        Raises
        ------
        NotInWorkspaceError
            There is none.
        WorkspaceVersionError
            It was made by a newer version.
        EvidenceError
            The keys are not those of the workspace.
        """
        site = cls(root, wait=wait)
        if not (site.root / LEDGER).is_file():
            raise NotInWorkspaceError(
                f"{str(site.root)!r} holds no workspace; expected one; "
                "run `erasable init` there, or name its folder with --workspace"
            )
        site.ledger.check()
        return site

    @property
    def keys(self) -> Keys:
        """The keys, read when they are first asked for, and held against the ledger."""
        if self._keys is None:
            from erasable.workspace.identity.keys import Keys

            keys = Keys.load(self.disk)
            with self.ledger.reading() as connection:
                known = self.ledger.get(connection, "key_fingerprint")
                key_id = self.ledger.get(connection, "key_id")
            if (keys.fingerprint, keys.key_id) != (known, key_id):
                raise EvidenceError(
                    "the keys are not those of this workspace; expected the file that "
                    "`erasable init` made; restore it, or name it in ERASABLE_KEYS"
                )
            self._keys = keys
        return self._keys

    def now(self) -> datetime:
        """Return the time, UTC."""
        return datetime.now(UTC)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only process that changes data and models; clean up after one that died.

        Raises
        ------
        WorkspaceBusyError
            Another process holds the lock for too long.
        """
        lock = FileLock(self.root / LOCK, timeout=self._wait)
        with told(self.root / LOCK), at("open", LOCK):
            try:
                lock.acquire()
            except Timeout:  # an OSError, but the disk is well
                raise WorkspaceBusyError(
                    "another process is at work on this workspace; expected it to end within "
                    f"{self._wait:g} seconds; wait for it, and run the command again"
                ) from None
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Lend a folder for a program of the user's; it is removed with all it holds."""
        key = f"{SCRATCH}/{secrets.token_hex(8)}"
        self.disk.make(key)
        try:
            yield self.disk.path(key)
        finally:
            self.disk.remove_folder(key)

    def clean(self) -> None:
        """Remove what nothing refers to: garbage, unfinished files, scratch. Hold the lock."""
        if (self.root / SCRATCH).exists():
            self.disk.remove_folder(SCRATCH)
        for path in self.root.glob(f"{PARTIAL}*"):
            self.disk.remove(path.name)
        self._remove_unfinished_ledger()
        with self.ledger.reading() as connection:
            kept = set(connection.execute(select(fragment.c.key)).scalars())
            kept |= set(connection.execute(select(model_version.c.key)).scalars())
            dropped = list(connection.execute(select(garbage.c.key)).scalars())
        for key in list(self.store.list()):
            if key not in kept:
                self.store.delete(key)
        if dropped:
            with self.ledger.transaction() as connection:
                connection.execute(delete(garbage))

    def _remove_unfinished_ledger(self) -> None:
        """Remove what the making of the ledger left, where it was cut off or SQLite did."""
        for path in self.root.glob(f"{LEDGER}.new*"):
            self.disk.remove(path.name)

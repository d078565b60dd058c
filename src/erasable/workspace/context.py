"""Context of a workspace: its folder, ledger, files, keys and locks, for its packages."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, Connection, literal, select, union_all

from erasable.core.errors import ErasableError, EvidenceError, NotInWorkspaceError, WorkspaceError
from erasable.core.mapped.disk import PARTIAL
from erasable.workspace.evidence import log, seals
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.address import PLACE, Address
from erasable.workspace.ledger.bulk import delete_in
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.ledger.schema import (
    fragment,
    garbage,
    model_version,
    request,
    step,
    target,
)
from erasable.workspace.ledger.sqlite import sqlite_url
from erasable.workspace.locking import Claim, Lock, hold
from erasable.workspace.locking.folder import FolderLock
from erasable.workspace.locking.leases import Leases, OvertakenError
from erasable.workspace.store import accelerators, own_files
from erasable.workspace.store.artifacts import ARTIFACTS, is_made_key, new_key, owner_of
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import STORE, Location
from erasable.workspace.store.objects import ObjectStore, store_at

if TYPE_CHECKING:
    from erasable.core.remote import Workers

LEDGER, LOCK, SCRATCH = "ledger.db", "lock", "scratch"

RESTORING = "restoring.json"
"""The file that marks a folder while a backup is being restored there."""

Progress = Callable[[str, int | None], AbstractContextManager[Callable[..., None]]]
"""Takes a label and a total, or None; its `with` block gets a function that advances."""


@contextmanager
def _silent(label: str, total: int | None) -> Iterator[Callable[..., None]]:
    yield lambda n=1: None


class Context:
    """An open workspace in the folder `root`; `wait` is in seconds, for other processes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     context = Context.create(folder)
    ...     with context.lock():
    ...         context.clean()
    ...     sorted(path.name for path in context.root.iterdir())
    ['artifacts', 'keys.json', 'ledger.db', ..., 'lock']
    """

    def __init__(self, root: str | os.PathLike[str], *, wait: float = 10.0) -> None:
        self.root = Path(root).resolve()
        self.disk = Disk(self.root, private=True)
        location = Location.read(self.disk)
        self.store = store_at(self.root, location)
        address = Address.read(self.disk)
        self.ledger = (
            Ledger(sqlite_url(self.root / LEDGER)) if address is None else address.ledger()
        )
        self.ledger.sealer = self._seal_setting
        self.locks = self._make_locks()
        self.progress: Progress = _silent  # set by a user interface
        self.memory: int | None = None  # see `erasable.workspace.Workspace.open`
        self.workers: Workers | None = None  # of a cluster that models learn on
        self._wait = wait
        self._keys: Keys | None = None

    @classmethod
    def create(
        cls,
        root: str | os.PathLike[str],
        address: Address | None = None,
        location: Location | None = None,
    ) -> Context:
        """Make a workspace in a folder, which is made too.

        Without an address, the ledger is a file in the folder; without a location, data and models
        are in the folder. Raise WorkspaceError if one of the three is in use, or the folder has no
        name, as where a variable of the shell is not set.
        """
        if not os.fspath(root):
            raise WorkspaceError("the name of the folder is empty; expected one; '.' is this one")
        context = cls(root)
        context._refuse_unfinished()
        known = Location.read(context.disk)
        if known is not None and location is not None and known.url == location.url:
            location = known  # continues a creation that was cut off
        elsewhere = known is not None and known != location
        if (context.root / LEDGER).exists() or elsewhere or _is_elsewhere(context, address):
            raise WorkspaceError(
                f"{str(context.root)!r} holds a workspace already; expected a folder without one; "
                "use it, or choose another folder"
            )
        context._refuse_folders()
        if address is not None:
            context.ledger = address.check_free()
            context.ledger.sealer = context._seal_setting
            context.locks = context._make_locks()
        store = None if location is None else ObjectStore(location)
        if store is not None:
            store.check_free()
        with crash_point("open", str(context.root)):
            context.root.mkdir(0o700, parents=True, exist_ok=True)
        context._keys = Keys.make(context.disk)
        if location is None or store is None:
            context.disk.make(ARTIFACTS)
            context._make_ledger(address)
            return context
        location.write(context.disk)
        try:
            store.take()
            context.store = store
            context._make_ledger(address)
        except BaseException:
            with suppress(ErasableError):  # the first error counts
                store.leave()
            context.disk.remove(STORE)
            raise
        return context

    def _refuse_folders(self) -> None:
        """Refuse folders with files of others: a workspace would remove them."""
        for name in (ARTIFACTS, accelerators.FOLDER, SCRATCH):
            place = self.disk.path(name)
            if place.exists() and not (place.is_dir() and not any(place.iterdir())):
                raise WorkspaceError(
                    f"{str(place)!r} is there already; expected no {name!r} in the folder of a "
                    "workspace, which makes its own; move it, or choose another folder"
                )

    def _make_locks(self) -> Lock:
        shared = self.ledger.engine.dialect.name != "sqlite"
        return Leases(self.ledger) if shared else FolderLock(self.root / LOCK)

    def _make_ledger(self, address: Address | None) -> None:
        if address is None:
            self._make_file()
        else:
            self._make_tables(address)

    def _make_file(self) -> None:
        """Make the ledger under another name, and rename it when it is whole."""
        self._remove_unfinished_ledger()
        # SQLite gives its other files the mode of this one, which it would make for all to read.
        self.disk.write(f"{LEDGER}.new", b"")
        building = Ledger(sqlite_url(self.root / f"{LEDGER}.new"))
        building.create()
        with building.transaction() as connection:
            self._begin(connection)
        building.checkpoint()
        building.close()
        self.disk.rename(f"{LEDGER}.new", LEDGER)
        self._remove_unfinished_ledger()

    def _make_tables(self, address: Address) -> None:
        """Make the ledger in one transaction, after the folder says where it is.

        A process that dies in between leaves a folder with an empty schema: it can be made again.
        """
        address.write(self.disk)
        try:
            with self.ledger.transaction() as connection:
                address.refuse_taken(connection)  # no other process makes one there from now on
                self.ledger.build(connection)
                self._begin(connection)
        except BaseException:
            self.disk.remove(PLACE)
            raise

    def _begin(self, connection: Connection) -> None:
        """Write the identity of this workspace."""
        now = self.now()
        self.ledger.set(connection, "workspace", secrets.token_hex(16))
        self.ledger.set(connection, "created_at", now.isoformat())
        self.ledger.set(connection, "key_id", self.keys.key_id)
        self.ledger.set(connection, "key_fingerprint", self.keys.fingerprint)
        log.append(self, connection, "workspace", self.keys.key_id, seals.MARK, now)

    @classmethod
    def open(cls, root: str | os.PathLike[str], *, wait: float = 10.0) -> Context:
        """Open the workspace of a folder.

        Raises
        ------
        NotInWorkspaceError
            The folder holds no workspace.
        WorkspaceVersionError
            It was made by a newer version, or its tables have to be brought up to date.
        WorkspaceServerError
            The server of its ledger cannot be reached, or refuses.
        EvidenceError
            The keys are not those of the workspace.
        """
        context = cls.find(root, wait=wait)
        context.ledger.check()
        return context

    @classmethod
    def find(cls, root: str | os.PathLike[str], *, wait: float = 10.0) -> Context:
        """Find the workspace of a folder, without looking into its ledger."""
        context = cls(root, wait=wait)
        context._refuse_unfinished()
        if not (context.root / PLACE).is_file() and not (context.root / LEDGER).is_file():
            raise NotInWorkspaceError(
                f"{str(context.root)!r} holds no workspace; expected one; "
                "run `erasable init` there, or name its folder with --workspace"
            )
        return context

    def _refuse_unfinished(self) -> None:
        if (self.root / RESTORING).exists():
            raise WorkspaceError(
                f"{str(self.root)!r} holds a backup that is not restored yet: who was erased since "
                "it was made may be in it; expected a restore that has ended; wait for it, or, if "
                "it was cut off, run `erasable restore` into this folder again"
            )

    @property
    def keys(self) -> Keys:
        """The keys, read at the first use, and compared with the ledger."""
        if self._keys is None:
            keys = Keys.load(self.disk)
            with self.ledger.looking() as connection:
                known = self.ledger.get(connection, "key_fingerprint")
                key_id = self.ledger.get(connection, "key_id")
            if (keys.fingerprint, keys.key_id) != (known, key_id):
                raise EvidenceError(
                    "the keys are not those of this workspace; expected the file that "
                    "`erasable init` made; restore it, or name it in ERASABLE_KEYS"
                )
            self._keys = keys
        return self._keys

    def _seal_setting(self, name: str, value: Any) -> str:
        return seals.of_setting(self.keys, name, value)

    def now(self) -> datetime:
        """Return the time, UTC."""
        return datetime.now(UTC)

    @contextmanager
    def lock(
        self, changes: Iterable[str] = (), *, reads: Iterable[str] = (), wait: float | None = None
    ) -> Iterator[None]:
        """Lock data sets and models inside the block; by default, the whole workspace.

        No other process holds what is changed, nor changes what is read; see `workspace.locking`.
        Raise WorkspaceBusyError after `wait` seconds, by default those of the workspace.
        """
        owner = ""
        try:
            claim = Claim.of(changes, reads=reads)
            with hold(self.locks, claim, self._wait if wait is None else wait, self.root):
                before, owner = self.store.owner, self.locks.owner
                self.store.owner = self.disk.owner = owner
                try:
                    yield
                finally:
                    self.store.owner = self.disk.owner = before
        except OvertakenError:
            # The process that has it now may have cleaned up already, before these files were made.
            with suppress(ErasableError):
                self._remove_made_by(owner)
            raise

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a folder for a program of the user's; it is removed with all it holds."""
        key = new_key(SCRATCH, self.locks.owner)
        self.disk.make(key)
        try:
            yield self.disk.path(key)
        finally:
            self.disk.remove_folder(key)

    def clean(self) -> None:
        """Remove garbage, unfinished files and scratch, which nothing refers to. Hold the lock.

        Files that other processes are making stay. So files are listed before the ledger and the
        owners at work are read: files made meanwhile are not in the list. Files with names that
        erasable does not give stay, too. Raise WorkspaceError, and remove nothing, if a folder of
        the workspace is or holds a symbolic link.
        """
        scratch = [f"{SCRATCH}/{path.name}" for path in self.disk.path(SCRATCH).glob("*")]
        places = {key: self.disk.path(key) for key in scratch if is_made_key(key)}
        quick = accelerators.folders(self.disk)
        keys = set(self.store.list())
        others = self.locks.others()
        for key, path in places.items():
            if owner_of(key) not in others:
                (self.disk.remove_folder if path.is_dir() else self.disk.remove)(key)
        if not others:
            for path in self.root.glob(f"{PARTIAL}*"):
                if own_files.is_own_name(path.name):
                    self.disk.remove(path.name)
        self._remove_unfinished_ledger()
        with self.ledger.reading() as connection:
            kept, current = _referred_to(connection)
            dropped = list(connection.execute(select(garbage.c.key)).scalars())
        made = {key for key in keys if is_made_key(key) and owner_of(key) not in others}
        for key in sorted((made | set(dropped)) - kept):
            self.store.delete(key)
        accelerators.settle_all(self.disk, quick, current, kept, others, lambda: self.keys)
        if dropped:
            with self.ledger.transaction() as connection:
                delete_in(connection, garbage.c.key, dropped)

    def _remove_made_by(self, owner: str) -> None:
        """Remove the files of a claim that has ended, unless the ledger refers to them."""
        made = {key for key in self.store.list() if owner and owner_of(key) == owner}
        with self.ledger.reading() as connection:
            kept, _ = _referred_to(connection)
        for key in sorted(made - kept):
            self.store.delete(key)

    def _remove_unfinished_ledger(self) -> None:
        """Remove files of an interrupted creation of the ledger, and those of SQLite."""
        for path in self.root.glob(f"{LEDGER}.new*"):
            if own_files.is_own_name(path.name):
                self.disk.remove(path.name)


_KEYS = union_all(
    *(
        select(column, literal(column is model_version.c.key, Boolean).label("is_model")).where(
            column.is_not(None)
        )
        for column in (
            fragment.c.key, model_version.c.key, request.c.values_key, step.c.key,
            step.c.wanted_key, target.c.plan_key,
        )
    )
)  # fmt: skip


def _referred_to(connection: Connection) -> tuple[set[str], set[str]]:
    """Return the keys of all files that the ledger refers to, and those of models among them."""
    found = connection.execute(_KEYS).all()
    return {key for key, _ in found}, {key for key, is_model in found if is_model}


def _is_elsewhere(context: Context, address: Address | None) -> bool:
    """Tell whether a folder names another ledger; a creation that was cut off may go on."""
    known = Address.read(context.disk)
    return known is not None and known != address

"""The place where a backup is restored: marked until it is done, and cleared where it was cut off.

The law kept here: from before the first byte of a backup until the last effect of its restore the
folder is marked, and no workspace can be opened there. A schema, and a place in an object store,
is cleared only if all that it holds is of this restore.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import text

from erasable.core import _interruptions
from erasable.core.errors import ErasableError, LedgerError, WorkspaceBusyError, WorkspaceError
from erasable.core.mapped.disk import PARTIAL
from erasable.workspace.context import RESTORING, Context
from erasable.workspace.identity.keys import KEYS
from erasable.workspace.ledger.address import Address
from erasable.workspace.ledger.engine import Ledger
from erasable.workspace.store.artifacts import ARTIFACTS
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.store.disk import Disk, disk_errors
from erasable.workspace.store.location import Location
from erasable.workspace.store.objects import ObjectStore
from erasable.workspace.store.own_files import is_own_name

RESTORING_LOCK = "restoring.lock"
_MARKED = "what it restored is not whole: run `erasable restore` into the same folder again"


@dataclass(frozen=True, slots=True)
class _Mark:
    """The mark of a restore: its id, and where it was under way."""

    id: str
    address: Address | None
    location: Location | None


class Ground:
    """The folder, schema and place in an object store that are restored into.

    Without an address the ledger is to be a file in the folder; without a location, data and models
    are to be in it, too. `id` is that of the restore; it is in the ledger, too, from the start.
    """

    def __init__(
        self, root: Path, address: Address | None, location: Location | None = None
    ) -> None:
        self.root = root
        self.address = address
        self.location = location
        self.disk = Disk(root, private=True)
        self.id = secrets.token_hex(16)

    def check(self, *, resumes: bool = True) -> None:
        """Raise WorkspaceError unless the place is free, or left by a restore and `resumes`."""
        if self.root.exists() and (not self.root.is_dir() or not _is_free(self.root, resumes)):
            raise WorkspaceError(
                f"{str(self.root)!r} is in use; expected a folder that is empty or not there"
            )
        if not self.root.parent.is_dir():
            raise WorkspaceError(
                f"{str(self.root)!r} cannot be made; expected a folder "
                f"{str(self.root.parent)!r}; make it first"
            )
        before = _read_mark(self.disk)
        if self.address is not None and (before is None or before.address != self.address):
            self.address.check_free().close()
        left = None if before is None else before.location
        if self.location is not None and (left is None or left.url != self.location.url):
            ObjectStore(self.location).check_free()

    def mark(self) -> None:
        """Clear the rest of an earlier restore, and mark the place."""
        before = _read_mark(self.disk)
        if before is not None and before.address is not None:
            _drop(before.address, before.id)
        self._clear(None if before is None else before.location)
        said: dict[str, Any] = {"version": 1, "id": self.id, "ledger": None, "store": None}
        if self.address is not None:
            said["ledger"] = {"url": self.address.url, "schema": self.address.schema}
        if self.location is not None:
            said["store"] = {"url": self.location.url, "claim": self.location.claim}
        self.disk.write(RESTORING, json.dumps(said, indent=2).encode() + b"\n")

    def take_back(self) -> None:
        """Remove all of it; if that fails, the place stays marked."""
        if self.address is not None:
            _drop(self.address, self.id)
        self._clear(self.location)
        self.disk.remove(RESTORING)

    def begin(self, keys: bytes | None) -> Context:
        """Write the files beside the ledger: keys, and the places of ledger and artifacts."""
        if keys is not None:
            self.disk.write(KEYS, keys, 0o600)
        if self.location is None:
            self.disk.make(ARTIFACTS)
        else:
            self.location.write(self.disk)
            ObjectStore(self.location).take()
        if self.address is not None:
            self.address.write(self.disk)
        return Context(self.root)

    def _clear(self, location: Location | None) -> None:
        if location is not None:
            ObjectStore(location).leave()
        _remove_made(self.disk, but=(RESTORING, RESTORING_LOCK))


@contextmanager
def removed_on_failure(ground: Ground) -> Iterator[None]:
    """Remove a folder if the block fails, with all that it wrote there."""
    was_there = ground.root.is_dir()
    try:
        Disk(ground.root.parent, private=True).make(ground.root.name)
        yield
    except BaseException:
        if ground.location is not None:
            with suppress(ErasableError):  # the first error counts
                ObjectStore(ground.location).leave()
        _remove_made(ground.disk)
        _remove_if_empty(ground.root, was_there)
        raise


@contextmanager
def marked(ground: Ground) -> Iterator[None]:
    """Restore inside the block, alone; remove the mark at its end, and everything if it fails.

    Raise WorkspaceBusyError if another process is restoring there.
    """
    was_there = ground.root.is_dir()
    Disk(ground.root.parent, private=True).make(ground.root.name)
    lock = FileLock(ground.root / RESTORING_LOCK, timeout=0)
    with disk_errors(ground.root / RESTORING_LOCK), crash_point("open", RESTORING_LOCK):
        try:
            lock.acquire()
        except Timeout:
            raise WorkspaceBusyError(
                f"another process is restoring into {str(ground.root)!r}; expected it to end; "
                "wait for it, or name another folder"
            ) from None
    try:
        try:
            ground.check()
            ground.mark()
            yield
        except BaseException as error:
            _interruptions.explain(error, _MARKED)
            with suppress(ErasableError, OSError):  # then the mark stays, with the remedy
                ground.take_back()
                _interruptions.explain(error, "nothing of the backup was left there")
            raise
        ground.disk.remove(RESTORING)
    finally:
        lock.release()
        with suppress(ErasableError, OSError):
            ground.disk.remove(RESTORING_LOCK)
            _remove_if_empty(ground.root, was_there)


def _is_free(root: Path, resumes: bool) -> bool:
    names = set(os.listdir(root))
    if not resumes:
        return not names
    left = is_own_name if RESTORING in names else _is_left_of_marking
    return all(map(left, names))


def _is_left_of_marking(name: str) -> bool:
    return name == RESTORING_LOCK or (name.startswith(PARTIAL) and is_own_name(name))


def _read_mark(disk: Disk) -> _Mark | None:
    if not disk.path(RESTORING).is_file():
        return None
    try:
        said = json.loads(disk.read(RESTORING))
        ledger, store = said["ledger"], said.get("store")
        address = None if ledger is None else Address.parse(ledger["url"], ledger["schema"])
        location = None if store is None else Location(store["url"], store["claim"])
        return _Mark(str(said["id"]), address, location)
    except (ValueError, KeyError, TypeError, WorkspaceError):
        raise LedgerError(
            f"{RESTORING!r} does not say what is restored there; expected what `erasable restore` "
            "wrote; remove the folder"
        ) from None


def _remove_made(disk: Disk, but: tuple[str, ...] = ()) -> None:
    """Remove the files of erasable in a folder; others stay."""
    for name in os.listdir(disk.root) if disk.root.is_dir() else ():
        if name not in but and is_own_name(name):
            (disk.remove_folder if disk.path(name).is_dir() else disk.remove)(name)


def _remove_if_empty(root: Path, was_there: bool) -> None:
    """Remove a folder of a workspace, if it is empty."""
    if not was_there and root.is_dir() and not any(root.iterdir()):
        Disk(root.parent).remove_folder(root.name)


def _drop(address: Address, id: str) -> None:
    """Drop the tables of a schema, if they are those of a restore."""
    from erasable.workspace.ledger.postgres import holds_tables

    ledger: Ledger = address.ledger()
    try:
        with ledger.transaction() as connection:
            if not holds_tables(connection, address.schema):
                return
            there = "SELECT 1 FROM pg_tables WHERE schemaname = :schema AND tablename = 'meta'"
            known = connection.execute(text(there), {"schema": address.schema}).first()
            restored = ledger.get(connection, "restored") if known else None
            if restored is None or restored["id"] != id:
                return  # another's; the process that makes tables there finds it in use
            names = connection.execute(
                text("SELECT tablename FROM pg_tables WHERE schemaname = :schema"),
                {"schema": address.schema},
            ).scalars()
            listed = ", ".join(f'"{address.schema}"."{name}"' for name in names)
            connection.exec_driver_sql(f"DROP TABLE {listed} CASCADE")
    finally:
        ledger.close()

"""Artifacts, the stored models and data: immutable files under keys that are used once."""

from __future__ import annotations

import hashlib
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from erasable.core.errors import WorkspaceError
from erasable.core.mapped.disk import PARTIAL
from erasable.workspace.store.disk import UNFINISHED, Disk

ARTIFACTS = "artifacts"
"""Their folder in a workspace, unless they are in an object store."""

_MADE = re.compile(rf"([0-9a-f]+-)?[0-9a-f]{{24}}|{UNFINISHED}")
_LONGEST = 120  # characters of a folder: the ledger has room for 200 of a key


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """An artifact in the ledger."""

    key: str  # relative to the store, never used twice
    sha256: str  # of its bytes, hexadecimal


class ArtifactStore(ABC):
    """Base of stores of artifacts: `LocalStore`, or `erasable.workspace.store.objects`.

    An artifact that `put` has returned survives a power loss. There is no other way to change one
    than to put another and delete it.

    `owner` is the name of the process in new keys (see `new_key`).
    """

    owner = ""

    @property
    def unreached(self) -> tuple[str, ...]:
        """Places where the store keeps deleted artifacts, beyond the reach of `delete`."""
        return ()

    def put(self, folder: str, data: bytes | memoryview) -> StoredArtifact:
        """Keep bytes under a new key below `folder`.

        Raise WorkspaceDiskError or WorkspaceServerError, and keep nothing, if the disk or the
        server fails.
        """
        key = new_key(folder, self.owner)
        self.write(key, data)
        return StoredArtifact(key, hashlib.sha256(data).hexdigest())

    @abstractmethod
    def write(self, key: str, data: bytes | memoryview) -> None:
        """Keep bytes under a given key, that of another store."""

    @abstractmethod
    def open(self, stored: StoredArtifact) -> bytes:
        """Read an artifact and check its bytes."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an artifact for good, if it is there."""

    @abstractmethod
    def list(self) -> Iterator[str]:
        """List all keys, those of unfinished files too."""


class LocalStore(ArtifactStore):
    """An `ArtifactStore` in a folder of a disk; by default, in all of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LocalStore(Disk(folder))
    ...     stored = store.put("models/1", b"abc")
    ...     store.open(stored)
    ...     store.delete(stored.key)
    ...     list(store.list())
    b'abc'
    []
    """

    def __init__(self, disk: Disk, folder: str = "") -> None:
        self._disk, self._folder = disk, folder
        self._prefix = f"{folder}/" if folder else ""

    def write(self, key: str, data: bytes | memoryview) -> None:
        """Keep bytes under a given key, that of another store."""
        self._disk.write(self._prefix + key, data)

    def open(self, stored: StoredArtifact) -> bytes:
        """Read an artifact and check its bytes.

        Raise NotInWorkspaceError if it is not there, and WorkspaceError if it differs.
        """
        return checked_bytes(stored, self._disk.read(self._prefix + stored.key))

    def delete(self, key: str) -> None:
        """Delete an artifact for good, if it is there."""
        self._disk.remove(self._prefix + key)

    def list(self) -> Iterator[str]:
        """List all keys, those of unfinished files too."""
        return self._disk.keys(self._folder)


def new_key(folder: str, owner: str = "") -> str:
    """Return a new key below a folder, which names its owner."""
    name = secrets.token_hex(12)
    return f"{folder[:_LONGEST]}/{owner}-{name}" if owner else f"{folder[:_LONGEST]}/{name}"


def is_made_key(key: str) -> bool:
    """Tell whether a key is of `new_key`, or of an unfinished file; others are never removed."""
    return _MADE.fullmatch(key.rpartition("/")[2]) is not None


def owner_of(key: str) -> str:
    """Return the owner in a key, also of an unfinished file; see `new_key`."""
    owner, dash, _ = key.rpartition("/")[2].removeprefix(PARTIAL).partition("-")
    return owner if dash else ""


def checked_bytes(stored: StoredArtifact, data: bytes) -> bytes:
    """Return the bytes of an artifact; raise WorkspaceError if they are not what was put."""
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise WorkspaceError(
            f"the file {stored.key!r} has been altered or damaged; expected the bytes that "
            "were put there; restore it from a backup, or fit the model or add the data again"
        )
    return data

"""Artifacts, the stored models and data: immutable files under keys that are used once."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

from erasable.core.errors import WorkspaceError
from erasable.core.mapped.disk import PARTIAL
from erasable.workspace.store.disk import UNFINISHED, Disk

ARTIFACTS = "artifacts"
"""The folder of a workspace that has them, unless they are in an object store."""

_MADE = re.compile(rf"([0-9a-f]+-)?[0-9a-f]{{24}}|{UNFINISHED}")
_LONGEST = 120  # characters of a folder: the ledger has room for 200 of a key


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """What the ledger keeps of an artifact.

    Attributes
    ----------
    key : str
        Relative, never used twice.
    sha256 : str
        Of its bytes, hexadecimal.

    Examples
    --------
    >>> StoredArtifact("models/2/7c", "00").key
    'models/2/7c'
    """

    key: str
    sha256: str


class ArtifactStore:
    """What a store of artifacts does: `LocalStore`, or `erasable.workspace.store.objects`.

    An artifact that `put` has returned survives a power loss. There is no other way to change one
    than to put another and delete it.

    Attributes
    ----------
    owner : str
        Names who puts artifacts now, where several processes may; see `new_key`.
    unreached : tuple of str
        What the store keeps of deleted artifacts where `delete` does not reach.
    """

    owner = ""

    @property
    def unreached(self) -> tuple[str, ...]:
        """See above."""
        return ()

    def put(self, folder: str, data: bytes | memoryview) -> StoredArtifact:
        """Keep bytes under a new key below `folder`.

        Raises
        ------
        WorkspaceDiskError, WorkspaceServerError
            The disk is full or fails, or the server cannot be reached or refuses; nothing is kept.
        """
        key = new_key(folder, self.owner)
        self.write(key, data)
        return StoredArtifact(key, hashlib.sha256(data).hexdigest())

    def write(self, key: str, data: bytes | memoryview) -> None:
        """Keep bytes under the key that they have in another store."""
        raise NotImplementedError

    def open(self, stored: StoredArtifact) -> bytes:
        """Read an artifact, and check that it is what was put."""
        raise NotImplementedError

    def delete(self, key: str) -> None:
        """Delete for good, if it is there."""
        raise NotImplementedError

    def list(self) -> Iterator[str]:
        """List all keys, those of files that were never finished included."""
        raise NotImplementedError


class LocalStore(ArtifactStore):
    """An `ArtifactStore` in a folder.

    Parameters
    ----------
    disk : Disk
    folder : str, default=""
        Of the disk; by default all of it is the store's.

    Examples
    --------
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
        """Keep bytes under the key that they have in another store."""
        self._disk.write(self._prefix + key, data)

    def open(self, stored: StoredArtifact) -> bytes:
        """Read an artifact, and check that it is what was put.

        Raise NotInWorkspaceError if it is not there, and WorkspaceError if it differs.
        """
        return checked(stored, self._disk.read(self._prefix + stored.key))

    def delete(self, key: str) -> None:
        """Delete for good, if it is there."""
        self._disk.remove(self._prefix + key)

    def list(self) -> Iterator[str]:
        """List all keys, those of files that were never finished included."""
        return self._disk.keys(self._folder)


def new_key(folder: str, owner: str = "") -> str:
    """Return a key below a folder that was never used, and tells who made it.

    >>> key = new_key("models/risk", "07f3")
    >>> key.startswith("models/risk/07f3-"), owner_of(key), owner_of(new_key("models/risk"))
    (True, '07f3', '')
    """
    name = secrets.token_hex(12)
    return f"{folder[:_LONGEST]}/{owner}-{name}" if owner else f"{folder[:_LONGEST]}/{name}"


def is_made(key: str) -> bool:
    """Tell whether a key is one of `new_key`, or of a file that was never finished.

    What has another name is not the workspace's, wherever it lies, and is not removed.

    >>> is_made(new_key("models/risk", "07f3")), is_made("models/risk/notes.txt")
    (True, False)
    """
    return _MADE.fullmatch(key.rpartition("/")[2]) is not None


def owner_of(key: str) -> str:
    """Return who made a key, also of a file that was never finished; see `new_key`."""
    owner, dash, _ = key.rpartition("/")[2].removeprefix(PARTIAL).partition("-")
    return owner if dash else ""


def checked(stored: StoredArtifact, data: bytes) -> bytes:
    """Return the bytes of an artifact; raise WorkspaceError if they are not what was put.

    >>> checked(StoredArtifact("models/2/7c", hashlib.sha256(b"abc").hexdigest()), b"abd")
    Traceback (most recent call last):
    erasable.core.errors.WorkspaceError: the file 'models/2/7c' has been altered or damaged; ...
    """
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise WorkspaceError(
            f"the file {stored.key!r} has been altered or damaged; expected the bytes that "
            "were put there; restore it from a backup, or fit the model or add the data again"
        )
    return data

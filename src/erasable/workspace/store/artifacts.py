"""Where models and data are kept: immutable files under keys that are used once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from erasable.core.errors import WorkspaceError
from erasable.workspace.store.disk import Disk

__all__ = ["ArtifactStore", "LocalStore", "Stored"]


@dataclass(frozen=True, slots=True)
class Stored:
    """What the ledger keeps of an artifact.

    Attributes
    ----------
    key : str
        Relative, never used twice.
    sha256 : str
        Of its bytes, hexadecimal.

    Examples
    --------
    >>> Stored("models/2/7c", "00").key
    'models/2/7c'
    """

    key: str
    sha256: str


class ArtifactStore(Protocol):
    """What a store of artifacts does; `LocalStore` is one.

    An artifact that `put` has returned survives a power loss. There is no other way to change one
    than to put another and delete it.
    """

    def put(self, folder: str, data: bytes | memoryview) -> Stored:
        """Keep bytes under a new key below `folder`."""

    def open(self, stored: Stored) -> bytes:
        """Read an artifact, and check that it is what was put."""

    def delete(self, key: str) -> bool:
        """Delete for good; return whether it was there."""

    def list(self) -> Iterator[str]:
        """List all keys, those of files that were never finished included."""


class LocalStore:
    """An `ArtifactStore` in a folder.

    Parameters
    ----------
    disk : Disk

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = LocalStore(Disk(folder))
    ...     stored = store.put("models/1", b"abc")
    ...     store.open(stored), store.delete(stored.key), list(store.list())
    (b'abc', True, [])
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def put(self, folder: str, data: bytes | memoryview) -> Stored:
        """Keep bytes under a new key below `folder`.

        Raises
        ------
        WorkspaceDiskError
            The disk is full or fails; nothing is kept.
        """
        key = f"{folder}/{secrets.token_hex(12)}"
        self._disk.write(key, data)
        return Stored(key, hashlib.sha256(data).hexdigest())

    def open(self, stored: Stored) -> bytes:
        """Read an artifact, and check that it is what was put.

        Raises
        ------
        NotInWorkspaceError
            The file is not there.
        WorkspaceError
            The file is not what was put.
        """
        data = self._disk.read(stored.key)
        if hashlib.sha256(data).hexdigest() != stored.sha256:
            raise WorkspaceError(
                f"the file {stored.key!r} has been altered or damaged; expected the bytes that "
                "were put there; restore it from a backup, or fit the model or add the data again"
            )
        return data

    def delete(self, key: str) -> bool:
        """Delete for good; return whether it was there."""
        return self._disk.remove(key)

    def list(self) -> Iterator[str]:
        """List all keys, those of files that were never finished included."""
        return self._disk.keys()

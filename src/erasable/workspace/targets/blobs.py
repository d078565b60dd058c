"""Files of a folder, or objects below a prefix: read, replaced and removed if nobody changed them.

The law kept here: a file is whole under its name, the old one or the new one; what another program
put there since it was read stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple


class ChangedError(Exception):
    """Another program has changed or removed a file since it was read."""


class Blob(NamedTuple):
    """A file or an object; one with a `version` is an older version of an object."""

    name: str  # relative to the place, with slashes
    size: int
    version: str | None = None


class Store(ABC):
    """The files of a place; `shown` names it in messages."""

    shown: str

    @abstractmethod
    def blobs(self) -> list[Blob]:
        """Return all files, in order, with the older versions of a bucket."""

    @abstractmethod
    @contextmanager
    def opened(self, blob: Blob) -> Iterator[tuple[BinaryIO, Any]]:
        """Open a file for reading; return its state, too; raise ChangedError if it is gone."""

    @abstractmethod
    @contextmanager
    def replacing(self, name: str, state: Any) -> Iterator[BinaryIO]:
        """Have a file written anew in the block; raise ChangedError if it has another state."""

    @abstractmethod
    def remove(self, blob: Blob, state: Any = None) -> None:
        """Remove a file, of any state if none is given; one that is gone is no error."""

    @abstractmethod
    @contextmanager
    def paths(self) -> Iterator[list[Path]]:
        """Have all files under paths, those of a store as copies, inside the block."""

    def check_writable(self, name: str) -> None:  # noqa: B027 - a store says so when asked
        """Raise SourceError if a file cannot be replaced."""

    def clean(self) -> list[str]:
        """Remove what an earlier attempt left; return where files may be besides."""
        return []

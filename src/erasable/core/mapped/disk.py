"""Files of one folder, as `MappedFile` needs them; a workspace has its own."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from erasable.core.errors import ArtifactError

__all__ = ["PARTIAL", "Files", "Folder", "link_in", "open_no_link", "separate", "stat_of"]

PARTIAL = ".partial-"
"""Prefix of the names of unfinished files."""

_AT_ONCE = 1 << 20  # bytes that are copied together


class Files(Protocol):
    """Files under keys such as ``"now/arrays"``; a file is whole under its name, or absent.

    Only `patch` changes a file in place; it may be repeated after an interruption. A key that is a
    symbolic link, or goes through one, is refused: its target belongs to another.
    """

    def path(self, key: str) -> Path:
        """Return the path of a key."""

    def writing(
        self, key: str
    ) -> contextlib.AbstractContextManager[Callable[[bytes | memoryview], None]]:
        """Yield a function that appends to a new file; the file appears at the end of the block."""

    def patch(self, key: str, runs: Iterable[tuple[int, bytes | memoryview]]) -> None:
        """Write runs of bytes at their offsets into a file, and sync it."""

    def remove(self, key: str) -> bool:
        """Remove a file for good; return whether there was one."""

    def remove_folder(self, key: str) -> None:
        """Remove a folder and its contents for good."""


class Folder:
    """Files below a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def path(self, key: str) -> Path:
        """Return the path of a key; raise ArtifactError for a symbolic link on the way to it."""
        if (link := link_in(self.root, key)) is not None:
            raise ArtifactError(
                f"{str(link)!r} is a symbolic link; expected a file or folder; put what it points "
                "at in its place"
            )
        return self.root / key

    @contextlib.contextmanager
    def writing(self, key: str) -> Iterator[Callable[[bytes | memoryview], None]]:
        """Yield a function that appends to a new file; the file appears at the end of the block."""
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(PARTIAL + path.name)
        try:
            beside.unlink(missing_ok=True)
            with open(beside, "xb") as file:
                yield lambda data: _write_all(file.fileno(), data)
                os.fsync(file.fileno())
            os.replace(beside, path)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
        _sync_folder(path.parent)

    def patch(self, key: str, runs: Iterable[tuple[int, bytes | memoryview]]) -> None:
        """Write runs of bytes at their offsets into a file, and sync it."""
        separate(self, key)
        with open(self.path(key), "r+b", opener=open_no_link) as file:
            for offset, data in runs:
                file.seek(offset)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def remove(self, key: str) -> bool:
        """Remove a file for good; return whether there was one."""
        path = self.path(key)
        if not os.path.exists(path):
            return False
        path.unlink()
        _sync_folder(path.parent)
        return True

    def rename(self, key: str, new: str) -> None:
        """Rename a file or folder to a free name."""
        os.replace(self.path(key), self.path(new))
        _sync_folder(self.path(new).parent)

    def remove_folder(self, key: str) -> None:
        """Remove a folder and its contents for good."""
        path = self.path(key)
        if os.path.exists(path):  # which is false of a name that is too long
            shutil.rmtree(path)
            _sync_folder(path.parent)


def link_in(root: Path, key: str) -> Path | None:
    """Return the first symbolic link on the way from a folder to one of its keys, or None."""
    place = os.fspath(root)
    for part in Path(key).parts:
        place = os.path.join(place, part)
        if os.path.islink(place):
            return Path(place)
    return None


def open_no_link(path: str, flags: int) -> int:
    """Open a file as an `opener` for `open`; refuse a symbolic link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def stat_of(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return numbers that change when a file is written, or replaced by another."""
    told = os.stat(path)
    return told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino


def separate(files: Files, key: str) -> None:
    """Replace a file that has other names (hard links) by a copy, so that these keep theirs."""
    path = files.path(key)
    if os.stat(path).st_nlink > 1:
        with open(path, "rb", opener=open_no_link) as file, files.writing(key) as append:
            while data := file.read(_AT_ONCE):
                append(data)


def _write_all(handle: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # a folder cannot be opened on Windows
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

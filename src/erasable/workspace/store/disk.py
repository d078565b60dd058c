"""Files of a workspace: the only place where they are written, renamed and removed.

The law kept here: a file is complete and on the disk under its name, or it is not there. Bytes
are written beside their place, synced, renamed, and the folder is synced, in this order. No
symbolic link is followed, but one directly below the root: a key file that is mounted.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from erasable.core.errors import (
    NotInWorkspaceError,
    TamperedError,
    WorkspaceDiskError,
    WorkspaceError,
)
from erasable.core.mapped.disk import PARTIAL, link_in, open_no_link, separate
from erasable.workspace.store.crash_points import crash_point

UNFINISHED = rf"{re.escape(PARTIAL)}.*-[0-9a-f]{{16}}"
"""Regular expression of the names of unfinished files; see `_beside`."""


class Disk:
    """Files below one folder, by keys such as ``"data/3/0a7f"``.

    If `private`, only their owner may read files and folders, where the platform has such modes.
    `owner` names the process in the names of unfinished files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     disk = Disk(folder)
    ...     disk.write("models/1", b"abc")
    ...     disk.read("models/1"), list(disk.keys()), disk.remove("models/1"), list(disk.keys())
    (b'abc', ['models/1'], True, [])
    """

    owner = ""

    def __init__(self, root: str | os.PathLike[str], *, private: bool = False) -> None:
        self.root = Path(root)
        self._file_mode, self._folder_mode = (0o600, 0o700) if private else (0o644, 0o777)

    def path(self, key: str) -> Path:
        """Return the path of a key.

        Raise TamperedError if it is outside of the folder, and WorkspaceError if it goes through a
        symbolic link, or is one that may not be there.
        """
        if ".." in key.split("/") or Path(key).is_absolute():
            raise TamperedError(
                f"the key {key!r} is outside of the folder of the workspace; expected one inside: "
                "the ledger was damaged, or tampered with; restore it from a backup"
            )
        link = link_in(self.root, key)
        if link is not None and (len(Path(key).parts) > 1 or link.is_dir()):
            raise link_error(str(link))
        return self.root / key

    def make(self, folder: str) -> None:
        """Make a folder, and those above it up to the root."""
        path = self.path(folder)
        if path.is_dir():
            return
        with disk_errors(path):
            for one in [*reversed(path.relative_to(self.root).parents), Path(folder)]:
                made = self.root / one
                if not made.is_dir():
                    self._make(made)

    def write(self, key: str, data: bytes | memoryview, mode: int | None = None) -> None:
        """Write a file, whole and synced, or leave the old one."""
        with self.writing(key, mode) as append:
            append(data)

    @contextlib.contextmanager
    def filling(self, key: str) -> Iterator[BinaryIO]:
        """Write a scratch file piece by piece; it is not synced, since it is not kept."""
        path = self.path(key)
        with disk_errors(path), crash_point("write", str(path)):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._file_mode)
            with os.fdopen(handle, "wb") as file:
                yield file

    @contextlib.contextmanager
    def writing(
        self, key: str, mode: int | None = None
    ) -> Iterator[Callable[[bytes | memoryview], None]]:
        """Yield a function that writes a new file piece by piece; it is there at the block's end.

        If the disk is full or fails, raise WorkspaceDiskError, and there is no file.
        """
        path = self.path(key)
        self.make(str(Path(key).parent))
        beside = _beside(path, self.owner)
        with disk_errors(path):
            try:
                with crash_point("open", str(beside)):
                    mode = self._file_mode if mode is None else mode
                    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                try:
                    yield partial(self._append, beside, handle)
                    self._sync(beside, handle)
                finally:
                    os.close(handle)
                self._rename(beside, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    self._remove(beside)
                raise
            self._sync_folder(path.parent)

    def read(self, key: str) -> bytes:
        """Read a file; raise NotInWorkspaceError if there is none."""
        path = self.path(key)
        with disk_errors(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                raise NotInWorkspaceError(
                    f"the file {key!r} is not in the workspace; expected it there; "
                    "restore it from a backup"
                ) from None

    def remove(self, key: str) -> bool:
        """Remove a file for good; return whether there was one."""
        path = self.path(key)
        if not path.exists():
            return False
        with disk_errors(path):
            self._remove(path)
            self._sync_folder(path.parent)
        return True

    def patch(self, key: str, runs: Iterable[tuple[int, bytes | memoryview]]) -> None:
        """Write runs of bytes at their offsets into a file, and sync it.

        This is not atomic: after an interruption the caller has to write all runs again.
        """
        path = self.path(key)
        with disk_errors(path):
            separate(self, key)
            with crash_point("open", str(path)):
                handle = open_no_link(str(path), os.O_WRONLY)
            try:
                self._patch(path, handle, runs)
                self._sync(path, handle)
            finally:
                os.close(handle)

    def rename(self, key: str, new: str) -> None:
        """Give a file another name in its folder; a file of that name is replaced."""
        path = self.path(new)
        with disk_errors(path):
            self._rename(self.path(key), path)
            self._sync_folder(path.parent)

    def remove_folder(self, key: str) -> None:
        """Remove a folder for good, with all it holds."""
        path = self.path(key)
        with disk_errors(path):
            while path.exists():
                # A program that was stopped late may be removing files, too.
                with crash_point("remove", str(path)), contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(path)
            if path.parent.is_dir():
                self._sync_folder(path.parent)

    def keys(self, folder: str = "") -> Iterator[str]:
        """List all files below a folder, unfinished ones included, by their keys.

        Of each folder its files come first, by name, and then those of the folders in it. Raise
        WorkspaceError if one is a symbolic link: to remove it would leave what it points at.
        """
        return _keys_below(str(self.path(folder) if folder else self.root), "")

    # -- the effects: a test replaces them with those of a disk that loses power -------------------

    def _make(self, path: Path) -> None:
        with crash_point("open", str(path)):
            path.mkdir(self._folder_mode, exist_ok=True)
        self._sync_folder(path.parent)

    def _append(self, path: Path, handle: int, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            with crash_point("write", str(path)):
                rest = rest[os.write(handle, rest) :]

    def _patch(
        self, path: Path, handle: int, runs: Iterable[tuple[int, bytes | memoryview]]
    ) -> None:
        with crash_point("write", str(path)):
            for offset, data in runs:
                os.lseek(handle, offset, os.SEEK_SET)
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(handle, rest) :]

    def _sync(self, path: Path, handle: int) -> None:
        with crash_point("sync", str(path)):
            os.fsync(handle)

    def _rename(self, source: Path, target: Path) -> None:
        with crash_point("rename", str(target)):
            os.replace(source, target)

    def _remove(self, path: Path) -> None:
        with crash_point("remove", str(path)):
            path.unlink(missing_ok=True)

    def _sync_folder(self, path: Path) -> None:
        with crash_point("sync folder", str(path)):
            try:
                handle = os.open(path, os.O_RDONLY)
            except PermissionError:  # a folder cannot be opened on Windows
                return
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def may_write(path: Path) -> bool:
    """Tell whether this process, by its effective user, may write to a file or folder."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _keys_below(folder: str, prefix: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=attrgetter("name"))
    except OSError:  # it was removed meanwhile
        return
    for entry in entries:
        if entry.is_symlink():
            raise link_error(entry.path)
    yield from (prefix + entry.name for entry in entries if not entry.is_dir())
    for entry in entries:
        if entry.is_dir():
            yield from _keys_below(entry.path, f"{prefix}{entry.name}/")


def link_error(path: str) -> WorkspaceError:
    """Return the error for a symbolic link in the workspace."""
    return WorkspaceError(
        f"{path!r} is a symbolic link; expected a file or folder, because an erasure would remove "
        "the link and leave what it points at; put what it points at in its place"
    )


def _beside(path: Path, owner: str) -> Path:
    """Return the path of a file until it is finished; its name has the owner."""
    name = f"{owner}-{path.name}" if owner else path.name
    return path.parent / f"{PARTIAL}{name[:64]}-{secrets.token_hex(8)}"


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system about a path, inside the block, into WorkspaceDiskError."""
    try:
        yield
    except WorkspaceDiskError:
        raise
    except OSError as error:
        raised = WorkspaceDiskError(
            f"{str(path)!r} cannot be written or read ({error.strerror or error}); expected a "
            "working disk with free space; mend that and run the command again"
        )
        raised.errno = error.errno
        raise raised from None

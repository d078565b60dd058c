"""Files of a folder, or objects below a prefix: read, replaced and removed if nobody changed them.

The law kept here: a file is whole under its name, the old one or the new one; what another program
put there since it was read stays.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from erasable.core.artifact import sync_folder
from erasable.core.errors import SourceError
from erasable.workspace.data import files
from erasable.workspace.store.crash_points import crash_point

ENDING = ".erasing"
"""The end of the name of a file that is being written, and whose name begins with a dot."""
_LONGEST = 200  # bytes of the name of a file that are in the name of its successor


class ChangedError(Exception):
    """Another program has changed or removed a file since it was read."""


class Blob(NamedTuple):
    """A file or an object; one with a `version` is an older version of an object."""

    name: str  # relative to the place, with slashes
    size: int
    version: str | None = None
    n_names: int = 1  # hard links of a file


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
    def paths(self) -> Iterator[dict[Path, Path]]:
        """Have all files under paths, those of a store as copies, inside the block.

        Each is given with the folder below which its path is its name in the place.
        """

    def names(self) -> list[str]:
        """Return the names of all files, and of folders, also of those without files."""
        return [blob.name for blob in self.blobs()]

    def check_writable(self, name: str) -> None:  # noqa: B027 - a store says so when asked
        """Raise SourceError if a file cannot be replaced."""

    def clean(self) -> list[str]:
        """Remove what an earlier attempt left; return where files may be besides."""
        return []


class LocalStore(Store):
    """A folder of this machine, or one file."""

    def __init__(self, path: Path) -> None:
        files.check_there(path)
        self._root = path.resolve() if path.is_dir() else path.absolute().parent.resolve()
        self._only = None if path.is_dir() else path.name
        self._links: list[str] = []
        self.shown = str(path)

    def blobs(self) -> list[Blob]:
        """Return all files, in order."""
        if self._only is not None:
            status = self._path(self._only).stat()
            return [Blob(self._only, status.st_size, n_names=status.st_nlink)]
        found, self._links = list[Blob](), []
        for folder, folders, names in os.walk(self._root, onerror=_refuse_unread):
            own = Path(folder)
            self._links += [str(own / each) for each in folders if (own / each).is_symlink()]
            for name in names:
                path = own / name
                with suppress(FileNotFoundError):
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):  # a pipe would have a reader wait
                        name = path.relative_to(self._root).as_posix()
                        found.append(Blob(name, status.st_size, n_names=status.st_nlink))
        return sorted(found)

    def names(self) -> list[str]:
        """Return the names of all files, links and folders."""
        if self._only is not None:
            return [self._only]
        walked = os.walk(self._root)
        every = (Path(folder, each) for folder, *of in walked for names in of for each in names)
        return [path.relative_to(self._root).as_posix() for path in every]

    @contextmanager
    def opened(self, blob: Blob) -> Iterator[tuple[BinaryIO, Any]]:
        """Open a file for reading."""
        try:
            file = self._path(blob.name).open("rb")
        except FileNotFoundError:
            raise ChangedError from None
        except PermissionError:
            raise SourceError(
                f"{blob.name!r} in {self.shown!r} cannot be read; expected files that you may read"
            ) from None
        with file:
            yield file, _state(os.fstat(file.fileno()))

    def check_writable(self, name: str) -> None:
        """Raise SourceError if a file is not to be written, or its folder."""
        path = self._path(name)
        for each in (path, path.parent):
            if not (each.stat().st_mode & 0o222 and os.access(each, os.W_OK)):
                raise SourceError(
                    f"{str(each)!r} is read-only; expected files and folders that can be written; "
                    "nothing was changed"
                )

    @contextmanager
    def replacing(self, name: str, state: Any) -> Iterator[BinaryIO]:
        """Have a file written beside, and renamed."""
        path = self._path(name)
        new = path.with_name(f".{os.fsdecode(os.fsencode(path.name)[:_LONGEST])}{ENDING}")
        with crash_point("open", str(new)):
            file = new.open("wb")
        try:
            with file:
                _lock(file, new)
                yield file
                with crash_point("sync", str(new)):
                    file.flush()
                    os.fsync(file.fileno())
                _have_rights_of(path, file.fileno())
                with crash_point("rename", str(path)):
                    _swap(new, path, state)
            with crash_point("sync folder", str(path.parent)):
                sync_folder(path.parent)
        except FileNotFoundError:
            raise ChangedError from None
        finally:
            new.unlink(missing_ok=True)

    def remove(self, blob: Blob, state: Any = None) -> None:
        """Remove a file, and the folders that it leaves empty."""
        path = self._path(blob.name)
        if not path.is_relative_to(self._root):  # a log may name any path
            return
        try:
            if state is not None and _state(path.stat()) != state:
                raise ChangedError
            with crash_point("remove", str(path)):
                path.unlink()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
                raise
        for folder in path.parents:
            if folder == self._root or not folder.is_relative_to(self._root):
                break
            try:
                folder.rmdir()
            except OSError:
                break

    @contextmanager
    def paths(self) -> Iterator[dict[Path, Path]]:
        """Have all files under their paths."""
        yield {self._root / blob.name: self._root for blob in self.blobs()}

    def clean(self) -> list[str]:
        """Remove files that an attempt left which was killed, and partitions without files."""
        reasons = []
        for folder, *_ in os.walk(self._root, topdown=False) if self._only is None else ():
            if "=" in os.path.basename(folder):  # its name may be a value of rows
                with suppress(OSError):
                    os.rmdir(folder)
        for blob in self.blobs():
            path = self._root / blob.name
            if path.name.startswith(".") and path.name.endswith(ENDING):
                with suppress(FileNotFoundError), path.open("rb") as file:
                    _lock(file, path)
                    path.unlink()
        if self._links:
            reasons.append(f"{len(self._links)} linked folders were not read")
        return reasons

    def _path(self, name: str) -> Path:
        return (self._root / name).resolve()


class Notes:
    """Names of what a change writes; `before` has those of an attempt that died."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file = file
        lines = file.read().decode().splitlines(keepends=True) if file is not None else []
        self.before = [line[:-1] for line in lines if line.endswith("\n")]

    def add(self, name: str) -> None:
        """Note a name, before there is something under it."""
        if self._file is not None:
            self._file.write(f"{name}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())


@contextmanager
def notes_in(folder: Path) -> Iterator[Notes]:
    """Have notes in a folder, which stay there if the process dies in the block."""
    path = folder / f".written{ENDING}"
    with path.open("a+b") as file:
        _lock(file, path)
        file.seek(0)
        try:
            yield Notes(file)
        finally:
            path.unlink(missing_ok=True)


def _refuse_unread(error: OSError) -> None:
    raise SourceError(
        f"the folder {error.filename!r} cannot be read; expected folders that you may read"
    ) from None


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SourceError(
            f"{path.name!r} is being written by another erasure; expected one at a time"
        ) from None


def _have_rights_of(path: Path, file: int) -> None:
    status = path.stat()
    os.fchmod(file, status.st_mode & 0o7777)
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(file, status.st_uid, status.st_gid)


_EXCHANGE = 2  # of renameat2: both names stay, each with the file of the other
_HERE = -100


def _swap(new: Path, path: Path, state: Any) -> None:
    """Put a new file in the place of another if that has a state, else leave that as it is.

    The files change their names at once, so that a file that was put there meanwhile is seen, and
    gets its name back; a file system that cannot do so is asked for the state before.
    """
    if _state(path.stat()) != state:
        raise ChangedError
    if not _exchange(new, path):
        new.replace(path)
    elif _state(new.stat()) != state:
        _exchange(new, path)
        raise ChangedError


def _exchange(one: Path, other: Path) -> bool:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(error, os.strerror(error))

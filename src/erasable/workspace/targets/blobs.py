"""Files of a folder, or objects below a prefix: read, replaced and removed if nobody changed them.

The law kept here: a file is whole under its name, the old one or the new one; what another program
put there since it was read stays.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, unquote

from erasable.core.errors import ErasableError, SourceError
from erasable.workspace.data import files
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.residue import Found

ENDING = ".erasing"
"""The end of the name of a file that is being written, and whose name begins with a dot."""

_MOST = 5 << 30  # bytes of an object that one request puts


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


def opened_store(place: str) -> Store:
    """Return the files of a path or URL; nothing is read yet but whether it is there."""
    if place.startswith("file://"):
        place = place.removeprefix("file://")
    if "://" not in place:
        return LocalStore(Path(place))
    shown = files.store_place(place)
    files.open_store(shown)  # refuses one without a driver
    import fsspec

    fs, root = fsspec.core.url_to_fs(shown, use_listings_cache=False, skip_instance_cache=True)
    if shown.partition("://")[0].lower() in ("s3", "s3a"):
        return S3Store(fs, root, shown)
    return RemoteStore(fs, root, shown)


def search(store: Store, marks: Marks, living: Marks) -> Found:
    """Look for values in all files of a store, and in their names."""
    with store.paths() as paths:
        found = residue.search(paths, marks, living)
    for blob in store.blobs():
        if there := residue.marks_among([unquote(blob.name).encode()], marks.every()):
            found.n_left += marks.count(there)
            found.where.append("the name of a file")
    return found


# -- a folder --------------------------------------------------------------------------------------


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
            return [Blob(self._only, self._path(self._only).stat().st_size)]
        found, self._links = list[Blob](), []
        for folder, folders, names in os.walk(self._root, onerror=_refuse_unread):
            own = Path(folder)
            self._links += [str(own / each) for each in folders if (own / each).is_symlink()]
            for name in names:
                path = own / name
                with suppress(FileNotFoundError):
                    found.append(Blob(path.relative_to(self._root).as_posix(), path.stat().st_size))
        return sorted(found)

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
        new = path.with_name(f".{path.name}{ENDING}")
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
            _sync_folder(path.parent)
        except FileNotFoundError:
            raise ChangedError from None
        finally:
            new.unlink(missing_ok=True)

    def remove(self, blob: Blob, state: Any = None) -> None:
        """Remove a file, and the folders that it leaves empty."""
        path = self._path(blob.name)
        if not path.is_relative_to(self._root):  # a log may name any path
            return
        with suppress(FileNotFoundError):
            if state is not None and _state(path.stat()) != state:
                raise ChangedError
            with crash_point("remove", str(path)):
                path.unlink()
        for folder in path.parents:
            if folder == self._root or not folder.is_relative_to(self._root):
                break
            try:
                folder.rmdir()
            except OSError:
                break

    @contextmanager
    def paths(self) -> Iterator[list[Path]]:
        """Have all files under their paths."""
        yield [self._root / blob.name for blob in self.blobs()]

    def clean(self) -> list[str]:
        """Remove files that an attempt left which was killed."""
        reasons = []
        for blob in self.blobs():
            path = self._root / blob.name
            if path.name.startswith(".") and path.name.endswith(ENDING):
                with suppress(FileNotFoundError), path.open("rb") as file:
                    _lock(file, path)
                    path.unlink()
            elif path.stat().st_nlink > 1:
                reasons.append(f"{blob.name} has another name (a hard link)")
        if self._links:
            reasons.append(f"{len(self._links)} linked folders were not read")
        return reasons

    def _path(self, name: str) -> Path:
        return (self._root / name).resolve()


def _refuse_unread(error: OSError) -> None:
    raise SourceError(
        f"the folder {error.filename!r} cannot be read; expected folders that you may read"
    ) from None


def _state(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SourceError(
            f"{path.name!r} is being written by another erasure; expected one at a time"
        ) from None


def _have_rights_of(path: Path, file: int) -> None:
    stat = path.stat()
    os.fchmod(file, stat.st_mode & 0o7777)
    if (stat.st_uid, stat.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(file, stat.st_uid, stat.st_gid)


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


def _sync_folder(folder: Path) -> None:
    with crash_point("sync folder", str(folder)):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# -- an object store -------------------------------------------------------------------------------


class RemoteStore(Store):
    """A prefix of an object store, by fsspec.

    Whether an object was changed is asked before it is put: without conditions in the request, a
    change in between is lost.
    """

    def __init__(self, fs: Any, root: str, shown: str) -> None:
        self.fs = fs
        self.shown = shown
        self.root = root.rstrip("/")

    def blobs(self) -> list[Blob]:
        """Return all objects, in order."""
        with self._explained():
            self.fs.invalidate_cache()
            try:
                found = self.fs.find(self.root, detail=True)
            except FileNotFoundError:
                return []
            return sorted(Blob(self._name(path), info["size"]) for path, info in found.items())

    @contextmanager
    def opened(self, blob: Blob) -> Iterator[tuple[BinaryIO, Any]]:
        """Copy an object into a temporary file without a name, and open that."""
        with ExitStack() as stack:
            with self._explained():
                file = stack.enter_context(tempfile.TemporaryFile())
                state = self._fetch(blob, file)
                file.seek(0)
            yield file, state

    @contextmanager
    def replacing(self, name: str, state: Any) -> Iterator[BinaryIO]:
        """Have an object written into a temporary file, and put."""
        with tempfile.TemporaryFile() as file:
            yield file
            size = file.tell()
            if size > _MOST:
                raise SourceError(
                    f"the object {name!r} has more than 5 GiB; expected smaller ones, which one "
                    "request puts"
                )
            file.seek(0)
            with self._explained(), crash_point("put", name):
                self._put(name, file, state)

    def remove(self, blob: Blob, state: Any = None) -> None:
        """Delete an object."""
        with self._explained(), crash_point("delete", blob.name):
            if state is not None and self._state(blob.name) != state:
                raise ChangedError
            with suppress(FileNotFoundError):
                self.fs.rm_file(self._path(blob.name))

    @contextmanager
    def paths(self) -> Iterator[list[Path]]:
        """Have copies of all objects in a temporary folder."""
        with tempfile.TemporaryDirectory(prefix="erasable-") as folder:
            blobs, found = self.blobs(), list[Path]()
            if sum(blob.size for blob in blobs) > shutil.disk_usage(folder).free:
                raise SourceError(
                    f"there is no room for a copy of {self.shown!r}, which is to be searched; "
                    "expected a temporary folder (TMPDIR) on a larger disk"
                )
            for blob in blobs:
                end = f"@{blob.version}" if blob.version else ""
                path = Path(folder, blob.name.replace("/", "%2F")[-200:] + end)
                with suppress(ChangedError), self.opened(blob) as (file, _):
                    with path.open("wb") as to:
                        shutil.copyfileobj(file, to)
                    found.append(path)
            yield found

    def clean(self) -> list[str]:
        """Return where objects may be besides."""
        if self.shown.startswith("memory:"):
            return []
        return ["the store may keep older versions of objects, which are not seen from here"]

    def _fetch(self, blob: Blob, to: Any) -> Any:
        state = self._state(blob.name)
        with self.fs.open(self._path(blob.name), "rb") as file:
            shutil.copyfileobj(file, to, 1 << 20)
        return state

    def _put(self, name: str, file: Any, state: Any) -> None:
        if self._state(name) != state:
            raise ChangedError
        self.fs.pipe_file(self._path(name), file.read())

    def _state(self, name: str) -> Any:
        self.fs.invalidate_cache()
        info = self.fs.info(self._path(name))
        told = {
            key: str(value)
            for key, value in info.items()
            if key.lower() in ("etag", "generation", "created", "last_modified", "mtime", "size")
        }
        return sorted(told.items())

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _name(self, path: str) -> str:
        return path.removeprefix(self.root).lstrip("/")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (ErasableError, ChangedError):
            raise
        except FileNotFoundError:
            raise ChangedError from None
        except Exception as error:  # each driver has its own
            raise SourceError(
                f"the store at {self.shown!r} cannot be used ({type(error).__name__}); expected "
                "one that answers, and whose objects you may list, read and put"
            ) from None


_KEPT = (
    "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType",
    "Metadata", "SSEKMSKeyId", "ServerSideEncryption", "StorageClass",
)  # fmt: skip


class S3Store(RemoteStore):
    """A prefix of a bucket of S3; objects are put, and deleted, under the condition of their ETag.

    Older versions are files as well: those that hold people are deleted.
    """

    def __init__(self, fs: Any, root: str, shown: str) -> None:
        super().__init__(fs, root, shown)
        self._bucket, _, self._prefix = self.root.partition("/")
        self._unseen: list[str] = []

    def blobs(self) -> list[Blob]:
        """Return all objects and their older versions, in order."""
        with self._explained():
            try:
                found = list(self._current())
            except FileNotFoundError:
                raise SourceError(
                    f"the bucket of {self.shown!r} is not there; expected one that is"
                ) from None
            self._unseen = []
            try:
                if self._versioned():
                    found += self._older()
            except PermissionError:
                self._unseen = ["whether the bucket keeps older versions cannot be seen from here"]
        return sorted(found, key=lambda each: (each.name, each.version or ""))

    def _versioned(self) -> bool:
        try:
            told = self.fs.call_s3("get_bucket_versioning", Bucket=self._bucket)
        except OSError as error:
            if error.errno == errno.ENOSYS:  # a server without versions
                return False
            raise
        return bool(told.get("Status"))  # also where it only had them once

    def _current(self) -> Iterator[Blob]:
        markers = {"ContinuationToken": "NextContinuationToken"}
        for page in self._pages("list_objects_v2", markers):
            for each in page.get("Contents", ()):
                if self._is_within(each["Key"]):
                    yield Blob(self._of_key(each["Key"]), each["Size"])

    def _older(self) -> Iterator[Blob]:
        markers = {"KeyMarker": "NextKeyMarker", "VersionIdMarker": "NextVersionIdMarker"}
        for page in self._pages("list_object_versions", markers):
            for each in page.get("Versions", ()):
                if self._is_within(each["Key"]) and not each["IsLatest"]:
                    yield Blob(self._of_key(each["Key"]), each["Size"], each["VersionId"])

    def _is_within(self, key: str) -> bool:
        """Tell whether a key is below the prefix: "lake" has no part of "lakes/visits.csv"."""
        own = self._prefix
        return not own or key == own or key.startswith(f"{own}/")

    def remove(self, blob: Blob, state: Any = None) -> None:
        """Delete an object with its current version, or one older version."""
        key = self._key(blob.name)
        with self._explained(), crash_point("delete", blob.name):
            if blob.version is not None:
                self.fs.call_s3(
                    "delete_object", Bucket=self._bucket, Key=key, VersionId=blob.version
                )
                return
            if state is not None and self._state(blob.name) != state:
                raise ChangedError
            version = self._version(key)
            self.fs.call_s3("delete_object", Bucket=self._bucket, Key=key)
            if version is not None:  # it is only hidden
                self.fs.call_s3("delete_object", Bucket=self._bucket, Key=key, VersionId=version)

    def clean(self) -> list[str]:
        """Return what cannot be seen."""
        self.blobs()
        return self._unseen

    def _version(self, key: str) -> str | None:
        try:
            told = self.fs.call_s3("head_object", Bucket=self._bucket, Key=key)
        except FileNotFoundError:
            return None
        found = told.get("VersionId")
        return found if found != "null" else None

    def _fetch(self, blob: Blob, to: Any) -> Any:
        key = self._key(blob.name)
        extra = {} if blob.version is None else {"VersionId": blob.version}
        head = self.fs.call_s3("head_object", Bucket=self._bucket, Key=key, **extra)
        at, size, etag = 0, head["ContentLength"], head["ETag"]
        path = f"{self._bucket}/{key}"
        reader = self.fs if blob.version is None else _of_versions(self.fs)
        own = {} if blob.version is None else {"version_id": blob.version}
        with reader.open(path, "rb", **own) as file:
            while at < size:
                part = file.read(min(1 << 23, size - at))
                if not part:
                    raise ChangedError
                to.write(part)
                at += len(part)
        if blob.version is None and self._state(blob.name) != etag:
            raise ChangedError
        return etag

    def _state(self, name: str) -> Any:
        return self.fs.call_s3("head_object", Bucket=self._bucket, Key=self._key(name))["ETag"]

    def _put(self, name: str, file: Any, state: Any) -> None:
        key = self._key(name)
        head = self.fs.call_s3("head_object", Bucket=self._bucket, Key=key)
        if head["ETag"] != state:
            raise ChangedError
        kept = {each: head[each] for each in _KEPT if head.get(each)}
        if head.get("TagCount"):
            tags = self.fs.call_s3("get_object_tagging", Bucket=self._bucket, Key=key)["TagSet"]
            kept["Tagging"] = "&".join(f"{quote(e['Key'])}={quote(e['Value'])}" for e in tags)
        try:
            self.fs.call_s3(
                "put_object", Bucket=self._bucket, Key=key, Body=file.read(), IfMatch=state, **kept
            )
        except OSError as error:
            response = getattr(error.__cause__, "response", None) or {}
            if response.get("Error", {}).get("Code") in _CHANGED:
                raise ChangedError from None
            raise
        before = head.get("VersionId")
        if before and before != "null":
            with crash_point("delete", name):
                self.fs.call_s3("delete_object", Bucket=self._bucket, Key=key, VersionId=before)

    def _pages(self, method: str, markers: dict[str, str]) -> Iterator[dict[str, Any]]:
        at: dict[str, Any] = {}
        while True:
            page = self.fs.call_s3(method, Bucket=self._bucket, Prefix=self._prefix, **at)
            yield page
            if not page.get("IsTruncated"):
                return
            at = {name: page[key] for name, key in markers.items() if page.get(key)}

    def _key(self, name: str) -> str:
        return "/".join(filter(None, (self._prefix, name)))

    def _of_key(self, key: str) -> str:
        return key.removeprefix(self._prefix).lstrip("/") if key != self._prefix else ""


_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")


def _of_versions(fs: Any) -> Any:
    # One that was made before may have another endpoint.
    return type(fs)(**{**fs.storage_options, "version_aware": True, "skip_instance_cache": True})

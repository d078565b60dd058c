"""Objects below a prefix of an object store; see `erasable.workspace.targets.blobs`."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from erasable.core.errors import SourceError
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.targets.addresses import refused_as
from erasable.workspace.targets.blobs import Blob, ChangedError, Store

_MOST = 5 << 30  # bytes of an object that one request puts
_LONGEST = 255  # bytes of the name of a file
_ATTEMPTS = 5  # where other programs change an object while it is copied


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
    def paths(self) -> Iterator[dict[Path, Path]]:
        """Have copies of all objects in a temporary folder, each below one of its own.

        There are names that are the folder of another, and older versions have the same one.
        """
        with tempfile.TemporaryDirectory(prefix="erasable-") as folder:
            blobs, found = self.blobs(), dict[Path, Path]()
            if sum(blob.size for blob in blobs) > shutil.disk_usage(folder).free:
                raise SourceError(
                    f"there is no room for a copy of {self.shown!r}, which is to be searched; "
                    "expected a temporary folder (TMPDIR) on a larger disk"
                )
            for number, blob in enumerate(blobs):
                own = Path(folder, str(number))
                name = blob.name or self.root.rpartition("/")[2]
                path = own.joinpath(*map(_as_file_name, filter(None, name.split("/"))))
                path.parent.mkdir(parents=True)
                if self._copied(blob, path):
                    found[path] = own
            yield found

    def _copied(self, blob: Blob, path: Path) -> bool:
        """Copy an object, once more where it was changed meanwhile; tell whether it is there."""
        for _ in range(_ATTEMPTS):
            with suppress(ChangedError), self.opened(blob) as (file, _), path.open("wb") as to:
                shutil.copyfileobj(file, to)
                return True
            if all(each.name != blob.name for each in self.blobs()):
                return False
        raise SourceError(
            f"{blob.name!r} in {self.shown!r} is changed by another program again and again; "
            "expected it to stay for as long as it is searched; try it again"
        )

    def clean(self) -> list[str]:
        """Remove partitions without files; return where objects may be besides."""
        self._remove_folders()
        if self.shown.startswith("memory:"):
            return []
        return ["the store may keep older versions of objects, which are not seen from here"]

    def _remove_folders(self) -> None:
        """Remove objects that stand for partitions without files: a name may be a value of rows."""
        blobs = self.blobs()
        markers = {blob: folder for blob in blobs if (folder := _folder_of(blob)) is not None}
        files = [blob.name for blob in blobs if blob not in markers]
        used = {name[:at] for name in files for at, sign in enumerate(name) if sign == "/"}
        for blob, folder in markers.items():
            if "=" in folder.rpartition("/")[2] and folder not in used:
                self.remove(blob)

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
        place = f"the store at {self.shown!r}"
        expected = "one that answers, and whose objects you may list, read and put"
        with refused_as(place, "cannot be used", expected, ChangedError):
            try:
                yield
            except FileNotFoundError:
                raise ChangedError from None


def _folder_of(blob: Blob) -> str | None:
    """Return the folder that an object without data stands for, as consoles and Hadoop make it."""
    ends = [end for end in ("/", "_$folder$") if blob.name.endswith(end) and not blob.size]
    return blob.name.removesuffix(ends[0]) if ends else None


def _as_file_name(part: str) -> str:
    """Return a part of the name of an object as one that a file can have."""
    if part in (".", ".."):
        return part.replace(".", "%2E")
    return os.fsdecode(os.fsencode(part)[-_LONGEST:])


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
        for page in self._pages("list_object_versions", _OF_VERSIONS):
            for each in page.get("Versions", ()):
                if self._is_within(each["Key"]) and not each["IsLatest"]:
                    yield Blob(self._of_key(each["Key"]), each["Size"], each["VersionId"])

    def _delete_markers(self) -> Iterator[tuple[str, str]]:
        """Return the delete markers of a bucket with versions: their keys and versions."""
        for page in self._pages("list_object_versions", _OF_VERSIONS):
            for each in page.get("DeleteMarkers", ()):
                if self._is_within(each["Key"]):
                    yield each["Key"], each["VersionId"]

    def _is_within(self, key: str) -> bool:
        """Tell whether a key is below the prefix: "lake" has no part of "lakes/visits.csv"."""
        own = self._prefix
        return not own or key == own or key.startswith(f"{own}/")

    def remove(self, blob: Blob, state: Any = None) -> None:
        """Delete an object with its current version, or one older version."""
        key = self._key(blob.name)
        with self._explained(), crash_point("delete", blob.name):
            if blob.version is not None:
                self._call("delete_object", key, VersionId=blob.version)
                return
            if state is not None and self._state(blob.name) != state:
                raise ChangedError
            version = self._version(key)
            self._call("delete_object", key)
            if version is not None:  # it is only hidden
                self._call("delete_object", key, VersionId=version)

    def clean(self) -> list[str]:
        """Remove partitions without files, and their delete markers; return what is not seen."""
        self._remove_folders()
        there = {self._key(blob.name) for blob in self.blobs()}
        if not self._unseen:
            with self._explained():
                for key, version in list(self._delete_markers()) if self._versioned() else ():
                    if "=" in self._of_key(key) and key not in there:
                        self._call("delete_object", key, VersionId=version)
        return self._unseen

    def _version(self, key: str) -> str | None:
        try:
            told = self._call("head_object", key)
        except FileNotFoundError:
            return None
        found = told.get("VersionId")
        return found if found != "null" else None

    def _fetch(self, blob: Blob, to: Any) -> Any:
        key = self._key(blob.name)
        extra = {} if blob.version is None else {"VersionId": blob.version}
        head = self._call("head_object", key, **extra)
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
        return self._call("head_object", self._key(name))["ETag"]

    def _put(self, name: str, file: Any, state: Any) -> None:
        key = self._key(name)
        head = self._call("head_object", key)
        if head["ETag"] != state:
            raise ChangedError
        kept = {each: head[each] for each in _KEPT if head.get(each)}
        if head.get("TagCount"):
            tags = self._call("get_object_tagging", key)["TagSet"]
            kept["Tagging"] = "&".join(f"{quote(e['Key'])}={quote(e['Value'])}" for e in tags)
        try:
            self._call("put_object", key, Body=file.read(), IfMatch=state, **kept)
        except OSError as error:
            response = getattr(error.__cause__, "response", None) or {}
            if response.get("Error", {}).get("Code") in _CHANGED:
                raise ChangedError from None
            raise
        before = head.get("VersionId")
        if before and before != "null":
            with crash_point("delete", name):
                self._call("delete_object", key, VersionId=before)

    def _call(self, method: str, key: str, **more: Any) -> Any:
        return self.fs.call_s3(method, Bucket=self._bucket, Key=key, **more)

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


_OF_VERSIONS = {"KeyMarker": "NextKeyMarker", "VersionIdMarker": "NextVersionIdMarker"}
_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")


def _of_versions(fs: Any) -> Any:
    # One that was made before may have another endpoint.
    return type(fs)(**{**fs.storage_options, "version_aware": True, "skip_instance_cache": True})

"""Prefixes of object stores, through fsspec, and their errors.

The law kept here: an object is complete under its name, or not there. A put is one request, or
several whose parts become an object at once. No listing is cached.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from erasable.core.errors import ErasableError, WorkspaceError, WorkspaceServerError
from erasable.workspace.store.crash_points import crash_point
from erasable.workspace.store.location import Location

UNREACHED = (
    "what the object store keeps of deleted objects on its own disks",
    "replicas and backups of the object store",
    "the access logs of the object store",
)
"""Places of deleted objects that only the administrator of an object store reaches."""

_MORE = (
    "earlier versions of objects, deleted ones that can be restored, and uploads that were cut "
    "off, where the object store keeps such",
)
_LIBRARIES = (
    "adlfs", "aiobotocore", "aiohttp", "azure", "botocore", "fsspec", "gcsfs", "google",
    "requests", "s3fs", "urllib3",
)  # fmt: skip


class Bucket:
    """The objects below a prefix, by names such as ``"data/3/0a7f"``; `root` is bucket and prefix.

    >>> bucket = open_bucket(Location.parse("memory://doctest/buckets"))
    >>> bucket.write("models/1", b"abc")
    >>> bucket.read("models/1"), list(bucket.names())
    (b'abc', ['models/1'])
    >>> bucket.remove("models/1")
    >>> list(bucket.names())
    []
    """

    def __init__(self, fs: Any, root: str) -> None:
        self.fs = fs
        self.root = root

    def check(self) -> None:
        """Check that the bucket is there; raise WorkspaceError if it keeps deleted objects."""

    def write(self, name: str, data: bytes) -> None:
        """Put an object."""
        with crash_point("put", name):
            self.fs.pipe_file(self.path(name), data)

    def create(self, name: str, data: bytes) -> None:
        """Put an object if there is none; without support in the store, replace one."""
        self.write(name, data)

    def read(self, name: str) -> bytes | None:
        """Read an object; None where there is none."""
        return self.read_path(self.path(name))

    def read_path(self, path: str) -> bytes | None:
        """Read an object by its path in the store, also above the prefix."""
        try:
            return bytes(self.fs.cat_file(path))
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Delete an object, if it is there."""
        with crash_point("delete", name):
            try:
                self.fs.rm_file(self.path(name))
            except FileNotFoundError:
                return

    def names(self) -> Iterator[str]:
        """List objects, in order."""
        self.fs.invalidate_cache()
        below = f"{self.root}/"
        found = (path for path in self.fs.find(self.root) if path.startswith(below))
        yield from sorted(path[len(below) :] for path in found)

    def path(self, name: str) -> str:
        """Return the path of a name in the store."""
        return f"{self.root}/{name}"


def open_bucket(location: Location) -> Bucket:
    """Connect to an object store, with the credentials that its library finds."""
    try:
        from fsspec.core import url_to_fs

        # A cached listing hides objects; a cached connection hides later changes of the endpoint
        # and the credentials in the environment.
        fs, root = url_to_fs(location.url, use_listings_cache=False, skip_instance_cache=True)
    except ImportError as error:
        named = "run `pip install 'erasable[s3]'`" if location.kind == "s3" else "install it"
        raise WorkspaceError(
            f"{location.url!r} cannot be used ({_line(error)}); expected the package for "
            f"{location.kind}://; {named}"
        ) from None
    except Exception as error:  # each library has its own errors for what it misses
        raise _refused(location, error, *_REFUSED) from None
    if location.kind == "s3":
        return S3Bucket(fs, root)
    return Bucket(fs, root)


def unreached_in(kind: str) -> tuple[str, ...]:
    """Return the places where a kind of object store may keep deleted objects."""
    return UNREACHED if kind == "s3" else (*UNREACHED, *_MORE)


@contextmanager
def explained(location: Location) -> Iterator[None]:
    """Turn errors of the store, or of its library, inside the block into WorkspaceServerError."""
    try:
        yield
    except ErasableError:
        raise
    except Exception as error:
        ours = not isinstance(error, OSError)
        if ours and type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        raise _as_error(location, error) from None


_REFUSED = (
    "credentials that may list, read, put and delete there, versions and unfinished uploads "
    "included",
    "give them where the store's own tools look for them, or ask its administrator",
)
_ABSENT = ("a bucket that is there", "make it, or correct the URL or the endpoint")
_AWAY = (
    "an object store that can be reached",
    "check the network and the endpoint, and run the command again",
)
_FAILED = ("an object store that works", "run the command again, or ask its administrator")


def _as_error(location: Location, error: Exception) -> WorkspaceServerError:
    name = type(error).__name__
    if isinstance(error, PermissionError) or "Credential" in name or "Authentic" in name:
        expected, remedy = _REFUSED
    elif isinstance(error, FileNotFoundError) or "NotFound" in name:
        expected, remedy = _ABSENT
    elif isinstance(error, ConnectionError | TimeoutError) or "Connect" in name or "Time" in name:
        expected, remedy = _AWAY
    else:
        expected, remedy = _FAILED
    return _refused(location, error, expected, remedy)


def _refused(
    location: Location, error: Exception, expected: str, remedy: str
) -> WorkspaceServerError:
    return WorkspaceServerError(
        f"{location.url!r} cannot be used ({_line(error)}); expected {expected}; {remedy}"
    )


def _line(error: BaseException) -> str:
    """Return the first line of an error, with the operation that was refused."""
    operation = getattr(error.__cause__, "operation_name", None)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = (lines[0] if lines else type(error).__name__).rstrip(".")[:200]
    return f"{operation}: {said}" if operation else said


_PARTS_AT_ONCE = 4  # of 50 MB, of an upload


class S3Bucket(Bucket):
    """The objects below a prefix of a bucket of S3, or of a server that is compatible with it."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._bucket, _, prefix = root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._hides = False  # whether a deletion only hides, as last seen
        self._uploads: dict[str, list[str]] = {}  # unfinished ones, by name, as last listed

    def check(self) -> None:
        """Check that the bucket is there, and that versions in it can be deleted."""
        if self._versioning().get("MFADelete") == "Enabled":
            raise WorkspaceError(
                f"the bucket {self._bucket!r} keeps versions that only a second factor deletes; "
                "expected one in which versions can be deleted; name another bucket, or switch "
                "MFA delete off"
            )

    def write(self, name: str, data: bytes) -> None:
        """Put an object; a large one in parts."""
        with crash_point("put", name):
            self.fs.pipe_file(self.path(name), data, max_concurrency=_PARTS_AT_ONCE)

    def create(self, name: str, data: bytes) -> None:
        """Put an object where there is none; one that is there stays."""
        with crash_point("put", name):
            try:
                self.fs.pipe_file(self.path(name), data, mode="create")
            except OSError as error:
                if error.errno == errno.ENOSYS:  # a server that cannot tell
                    self.fs.pipe_file(self.path(name), data)
                elif _code(error) not in ("PreconditionFailed", "ConditionalRequestConflict"):
                    raise

    def read_path(self, path: str) -> bytes | None:
        """Read an object by its path in the store, also above the prefix."""
        try:
            return bytes(self.fs.cat_file(path, max_concurrency=1))  # does not ask its size first
        except FileNotFoundError as error:
            if _code(error) == "NoSuchBucket":
                raise
            return None

    def remove(self, name: str) -> None:
        """Delete an object, every version of it, and its unfinished uploads as last listed."""
        key = self._prefix + name
        if not self._hides:
            with crash_point("delete", name):
                answer = self._call("delete_object", Key=key)
            self._hides = "VersionId" in answer or bool(answer.get("DeleteMarker"))
        if self._hides:
            for each, version in list(self._versions(key)):
                if each == key:
                    with crash_point("delete", name):
                        self._call("delete_object", Key=key, VersionId=version)
        for upload in self._uploads.pop(name, ()):
            with crash_point("abort", name):
                try:
                    self._call("abort_multipart_upload", Key=key, UploadId=upload)
                except FileNotFoundError:
                    continue

    def names(self) -> Iterator[str]:
        """List names with an object, a version or an unfinished upload, in order."""
        keys = set(self._objects())
        self._hides = bool(self._versioning().get("Status"))  # also where it only had it once
        if self._hides:
            keys |= {key for key, _ in self._versions(self._prefix)}
        self._uploads = {}
        for key, upload in self._unfinished():
            keys.add(key)
            self._uploads.setdefault(key[len(self._prefix) :], []).append(upload)
        yield from sorted(key[len(self._prefix) :] for key in keys)

    # -- calls of the server ----------------------------------------------------------------------

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.fs.call_s3(method, Bucket=self._bucket, **arguments)
        return answer

    def _versioning(self) -> dict[str, Any]:
        try:
            return self._call("get_bucket_versioning")
        except OSError as error:
            if error.errno == errno.ENOSYS:  # a server without versions
                return {}
            raise

    def _objects(self) -> Iterator[str]:
        for page in self._pages(
            "list_objects_v2", {"ContinuationToken": "NextContinuationToken"}, self._prefix
        ):
            yield from (each["Key"] for each in page.get("Contents", ()))

    def _versions(self, prefix: str) -> Iterator[tuple[str, str]]:
        """List versions and delete markers: keys and numbers."""
        markers = {"KeyMarker": "NextKeyMarker", "VersionIdMarker": "NextVersionIdMarker"}
        for page in self._pages("list_object_versions", markers, prefix):
            for each in [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]:
                yield each["Key"], each["VersionId"]

    def _unfinished(self) -> Iterator[tuple[str, str]]:
        """List uploads whose parts became no object: keys and numbers."""
        markers = {"KeyMarker": "NextKeyMarker", "UploadIdMarker": "NextUploadIdMarker"}
        for page in self._pages("list_multipart_uploads", markers, self._prefix):
            for each in page.get("Uploads", ()):
                yield each["Key"], each["UploadId"]

    def _pages(self, method: str, markers: dict[str, str], prefix: str) -> Iterator[dict[str, Any]]:
        at_page: dict[str, Any] = {}
        while True:
            page = self._call(method, Prefix=prefix, **at_page)
            yield page
            if not page.get("IsTruncated"):
                return
            at_page = {name: page[key] for name, key in markers.items() if page.get(key)}


def _code(error: OSError) -> str:
    """Return the error code of the server."""
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))

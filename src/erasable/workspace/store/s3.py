"""Buckets of S3 with versions, which outlive a deletion, and uploads that were cut off.

In a bucket with versions a deletion only hides an object. So every version is deleted by its
number, and what has a version, or a part of an upload, is listed as an object is.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from erasable.core.errors import WorkspaceError
from erasable.workspace.store.buckets import Bucket
from erasable.workspace.store.crash_points import crash_point

_PARTS_AT_ONCE = 4  # of 50 MB, of an upload


class S3Bucket(Bucket):
    """The objects below a prefix of a bucket of S3, or of a server that speaks as S3 does.

    Parameters
    ----------
    fs : s3fs.S3FileSystem
    root : str
        Bucket and prefix.
    """

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
        """Read what is under a path of the store, also above the prefix."""
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
        """List what has an object, a version or an unfinished upload, in order."""
        keys = set(self._objects())
        self._hides = bool(self._versioning().get("Status"))  # also where it only had it once
        if self._hides:
            keys |= {key for key, _ in self._versions(self._prefix)}
        self._uploads = {}
        for key, upload in self._unfinished():
            keys.add(key)
            self._uploads.setdefault(key[len(self._prefix) :], []).append(upload)
        yield from sorted(key[len(self._prefix) :] for key in keys)

    # -- what the server is asked ------------------------------------------------------------------

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.fs.call_s3(method, Bucket=self._bucket, **arguments)
        return answer

    def _versioning(self) -> dict[str, Any]:
        try:
            return self._call("get_bucket_versioning")
        except OSError as error:
            if error.errno == errno.ENOSYS:  # a server that knows no versions
                return {}
            raise

    def _objects(self) -> Iterator[str]:
        for page in self._pages(
            "list_objects_v2", {"ContinuationToken": "NextContinuationToken"}, self._prefix
        ):
            yield from (each["Key"] for each in page.get("Contents", ()))

    def _versions(self, prefix: str) -> Iterator[tuple[str, str]]:
        """List versions, and what hides them: keys and numbers."""
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
    """Return the server's word for what is wrong."""
    response = getattr(error.__cause__, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))

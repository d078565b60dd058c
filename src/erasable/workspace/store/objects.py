"""Store of artifacts below a URL of an object store.

The law kept here: a place is one workspace's alone. It was empty when it was taken, it bears the
workspace's claim, and nothing in it is read, put or deleted before the claim was seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from erasable.core.errors import NotInWorkspaceError, WorkspaceError, WorkspaceServerError
from erasable.workspace.store.artifacts import (
    ARTIFACTS,
    ArtifactStore,
    LocalStore,
    StoredArtifact,
    checked_bytes,
)
from erasable.workspace.store.buckets import Bucket, explained, open_bucket, unreached_in
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import Location

CLAIM = ".erasable"
"""The object with the claim of a workspace; it is no artifact."""

_PROBE = ".erasable-probe"


def store_at(root: Path, location: Location | None) -> ArtifactStore:
    """Return the store of a workspace in a folder, at the location that the folder names."""
    if location is None:
        return LocalStore(Disk(root, private=True), ARTIFACTS)
    return ObjectStore(location)


class ObjectStore(ArtifactStore):
    """An `erasable.workspace.store.artifacts.ArtifactStore` in an object store.

    >>> store = ObjectStore(Location.parse("memory://doctest/objects"))
    >>> store.take()
    >>> stored = store.put("models/1", b"abc")
    >>> store.open(stored), list(store.list()) == [stored.key]
    (b'abc', True)
    >>> store.leave()
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._opened: tuple[int, Bucket] | None = None  # by which process; none survives a fork
        self._is_claimed = False

    @property
    def unreached(self) -> tuple[str, ...]:
        """Places where the store keeps deleted artifacts, beyond the reach of `delete`."""
        return unreached_in(self._location.kind)

    def write(self, key: str, data: bytes | memoryview) -> None:
        """Keep bytes under a given key, that of another store."""
        with explained(self._location):
            self._claimed().write(key, bytes(data))

    def open(self, stored: StoredArtifact) -> bytes:
        """Read an artifact and check its bytes; for errors see `LocalStore.open`."""
        with explained(self._location):
            data = self._claimed().read(stored.key)
        if data is None:
            raise NotInWorkspaceError(
                f"the file {stored.key!r} is not in the workspace; expected it below "
                f"{self._location.url!r}; restore it from a backup"
            )
        return checked_bytes(stored, data)

    def delete(self, key: str) -> None:
        """Delete an artifact for good, if it is there."""
        with explained(self._location):
            self._claimed().remove(key)

    def list(self) -> Iterator[str]:
        """List all keys, those of unfinished uploads too."""
        with explained(self._location):
            names = list(self._claimed().names())
        yield from (name for name in names if name != CLAIM)

    # -- the claim ---------------------------------------------------------------------------------

    def check_free(self) -> None:
        """Raise WorkspaceError unless the place is free, and not inside a taken one."""
        with explained(self._location):
            bucket = self._bucket()
            bucket.check()
            there = set(bucket.names()) - {CLAIM, _PROBE}  # `take` may have been cut off
            if there or bucket.read(CLAIM) not in (None, self._claim) or self._is_within(bucket):
                raise self._in_use()

    def take(self) -> None:
        """Claim the place for this workspace, and check that it keeps and deletes objects."""
        self.check_free()
        with explained(self._location):
            bucket = self._bucket()
            bucket.create(CLAIM, self._claim)
            if bucket.read(CLAIM) != self._claim:  # another workspace was quicker
                raise self._in_use()
            bucket.write(_PROBE, b"to see whether it can be deleted")
            bucket.remove(_PROBE)
            if list(bucket.names()) != [CLAIM]:
                raise WorkspaceError(
                    f"{self._location.url!r} kept what was deleted; expected an object store that "
                    "deletes for good"
                )
        self._is_claimed = True

    def leave(self) -> None:
        """Delete everything, the claim last, if it is ours."""
        with explained(self._location):
            bucket = self._bucket()
            if bucket.read(CLAIM) != self._claim:
                return
            for name in [each for each in bucket.names() if each != CLAIM]:
                bucket.remove(name)
            bucket.remove(CLAIM)
        self._is_claimed = False

    def _in_use(self) -> WorkspaceError:
        return WorkspaceError(
            f"{self._location.url!r} is in use, by another workspace or something else; expected a "
            "place of the object store that is empty, and not within that of another workspace"
        )

    @property
    def _claim(self) -> bytes:
        return self._location.claim.encode()

    def _claimed(self) -> Bucket:
        """Return the bucket; raise WorkspaceServerError if it does not bear our claim."""
        bucket = self._bucket()
        if not self._is_claimed and bucket.read(CLAIM) != self._claim:
            raise WorkspaceServerError(
                f"{self._location.url!r} does not bear the claim of this workspace; expected the "
                "place that `erasable init` took; check the endpoint and the credentials, or "
                "restore it from a backup"
            )
        self._is_claimed = True
        return bucket

    def _bucket(self) -> Bucket:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), open_bucket(self._location)
        return self._opened[1]

    def _is_within(self, bucket: Bucket) -> bool:
        """Tell whether the place is within a taken one, whose workspace would clean it."""
        parts = bucket.root.split("/")
        for n in range(1, len(parts)):
            above = "/".join(parts[:n])
            try:
                if above and bucket.read_path(f"{above}/{CLAIM}") is not None:
                    return True
            except PermissionError:  # only the prefix may be read
                continue
        return False

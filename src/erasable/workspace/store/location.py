"""Location of the artifacts of a workspace: its folder, or below a URL of an object store.

A folder whose artifacts are in an object store says so in `store.json`: the URL, never a password
or key, and the claim that stands there too, so that no two workspaces take one place.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass

from erasable.core.errors import WorkspaceError
from erasable.workspace.store.disk import Disk

STORE = "store.json"
"""The file of a workspace that says where its artifacts are, unless in the folder itself."""

KINDS = ("s3", "gs", "abfs", "memory")
"""Object stores of fsspec. What is in `memory` is gone when the process ends."""

_VERSION = 1
_URL = re.compile(r"([a-z0-9]+)://([A-Za-z0-9][A-Za-z0-9._-]*(?:@[A-Za-z0-9.-]+)?)((?:/[^/]+)*)/?")
_PART = re.compile(r"[A-Za-z0-9._=+-]+")
_CLAIM = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in an object store that is a workspace's own.

    Attributes
    ----------
    url : str
        Bucket and prefix.
    claim : str
        What the workspace has written there, to know the place by.

    Examples
    --------
    >>> Location.parse("s3://clinic/models/").url
    's3://clinic/models'
    """

    url: str
    claim: str

    @property
    def kind(self) -> str:
        """Which kind of object store; one of `KINDS`."""
        return self.url.partition(":")[0]

    @classmethod
    def parse(cls, url: str) -> Location:
        """Check a URL, as a user gives it, for a place that is to be taken.

        Raise WorkspaceError, which does not repeat the URL, if it cannot be used or holds a
        password or key.

        >>> Location.parse("s3://AKIA7:secret@clinic/models")
        Traceback (most recent call last):
        erasable.core.errors.WorkspaceError: the URL of the object store cannot be used; expected...
        """
        found = _URL.fullmatch(url)
        if found is None or not _is_usable(*found.groups()):
            raise WorkspaceError(
                "the URL of the object store cannot be used; expected s3://BUCKET/PREFIX (or gs, "
                "abfs) of letters, digits and '._=+-', without a password or key; give these where "
                "the store's own tools look for them"
            )
        return cls(url.rstrip("/"), secrets.token_hex(16))

    @classmethod
    def read(cls, disk: Disk) -> Location | None:
        """Return what a workspace's folder says, or None where its artifacts are in it."""
        if not disk.path(STORE).is_file():
            return None
        try:
            said = json.loads(disk.read(STORE))
            if said["version"] == _VERSION and _CLAIM.fullmatch(said["claim"]):
                return cls(cls.parse(said["url"]).url, said["claim"])
        except (ValueError, KeyError, TypeError, AttributeError, WorkspaceError):
            pass
        raise WorkspaceError(
            f"{STORE!r} does not say where data and models are; expected what `erasable init` "
            "wrote there, by this version or an older one; restore it from a backup"
        )

    def write(self, disk: Disk) -> None:
        """Have a workspace's folder say it."""
        said = {"version": _VERSION, "url": self.url, "claim": self.claim}
        disk.write(STORE, json.dumps(said, indent=2).encode() + b"\n")


def _is_usable(kind: str, bucket: str, prefix: str) -> bool:
    parts = prefix.split("/")[1:]
    return (
        kind in KINDS
        and ("@" not in bucket or kind == "abfs")  # there it is the name of an account
        and all(_PART.fullmatch(part) and part.strip(".") for part in parts)
    )

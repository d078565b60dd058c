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
"""The file of a workspace that names the place of its artifacts in an object store."""

KINDS = ("s3", "gs", "abfs", "memory")
"""Object stores of fsspec. `memory` lasts as long as the process."""

_VERSION = 1
_URL = re.compile(r"([a-z0-9]+)://([A-Za-z0-9][A-Za-z0-9._-]*(?:@[A-Za-z0-9.-]+)?)((?:/[^/]+)*)/?")
_PART = re.compile(r"[A-Za-z0-9._=+-]+")
_CLAIM = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Location:
    """A place in an object store that belongs to one workspace."""

    url: str  # bucket and prefix
    claim: str  # written there by the workspace, to recognise the place

    @property
    def kind(self) -> str:
        """Kind of object store; one of `KINDS`."""
        return self.url.partition(":")[0]

    @classmethod
    def parse(cls, url: str) -> Location:
        """Check the URL that a user gives for a new place.

        Raise WorkspaceError, which does not repeat the URL, if it cannot be used or holds a
        password or key.
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
        """Return the location in a workspace's folder, None if its artifacts are in the folder."""
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
        """Write it into a workspace's folder."""
        said = {"version": _VERSION, "url": self.url, "claim": self.claim}
        disk.write(STORE, json.dumps(said, indent=2).encode() + b"\n")


def _is_usable(kind: str, bucket: str, prefix: str) -> bool:
    parts = prefix.split("/")[1:]
    return (
        kind in KINDS
        and ("@" not in bucket or kind == "abfs")  # there it is the name of an account
        and all(_PART.fullmatch(part) and part.strip(".") for part in parts)
    )

"""Manifest of a backup: whose it is, what is in it, and how long the log was.

The law kept here: it is signed with the key of the workspace. Without the key no backup can be
made up, and no part of one exchanged.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from erasable.core.errors import EvidenceError
from erasable.workspace.backups.archive import MANIFEST, Archive, Member, damaged
from erasable.workspace.evidence.envelope import peek, seal, unseal
from erasable.workspace.evidence.wire import pack, unpack
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.kinds import fits

PAYLOAD_TYPE = "application/vnd.erasable.backup+json"

_SHAPES = {
    "version": int,
    "workspace": str,
    "made_at": str,
    "erasable": str,
    "revision": str,
    "key_id": str,
    "secret": str,
    "log_size": int,
    "log_root": str,
    "tables": [{"name": str, "columns": [str], "n_rows": int}],
    "members": [{"name": str, "size": int, "sha256": str}],
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself.

    Attributes
    ----------
    workspace : str
        Its id.
    made_at : str
        When the ledger was read, RFC 3339.
    erasable : str
        The version that made it.
    revision : str
        Of the ledger's tables.
    key_id, secret : str
        Which public key and which secret the workspace has; neither is told.
    log_size : int
    log_root : str
        Hexadecimal.
    tables : list of dict
        name, columns and n_rows, in an order in which they can be loaded.
    members : list of dict
        Of the archive but for the manifest: name, size (bytes) and sha256.
    version : int
    """

    workspace: str
    made_at: str
    erasable: str
    revision: str
    key_id: str
    secret: str
    log_size: int
    log_root: str
    tables: list[dict[str, Any]]
    members: list[dict[str, Any]]
    version: int = 1

    def sealed(self, keys: Keys) -> bytes:
        """Return it signed, as it is written."""
        return pack(seal(keys.signer, pack(asdict(self)), PAYLOAD_TYPE))


def read_manifest(archive: Archive, keys: Keys) -> Manifest:
    """Check the manifest of a backup, and all of the backup against it."""
    data = archive.read(MANIFEST)
    sealed = unpack(data, f"the manifest of the backup {str(archive.path)!r}")
    claimed = unpack(peek(sealed), "the manifest of the backup")
    if (claimed.get("key_id"), claimed.get("secret")) != (keys.key_id, keys.fingerprint):
        raise EvidenceError(
            f"the keys are not those of the workspace in the backup {str(archive.path)!r}; "
            "expected its key file; name it with --keys or in ERASABLE_KEYS"
        )
    said = unpack(unseal(sealed, keys.public_pem, PAYLOAD_TYPE), "the manifest of the backup")
    if pack(sealed) != data:
        raise damaged(archive.path, "its manifest was altered")
    if said.get("version") != 1 or not fits(said, _SHAPES) or set(said) != set(_SHAPES):
        raise damaged(archive.path, "its manifest is of a newer version of erasable, or none")
    found = Manifest(**{each.name: said[each.name] for each in fields(Manifest)})
    if [Member(**each) for each in found.members] != archive.members:
        raise damaged(archive.path, "it holds something else than its manifest says")
    return found

"""Archives: tar files of one form for backups, which any tar unpacks.

The law kept here: the reader takes only what the writer wrote. Headers, padding and end have one
form, and the last member lists the others with their hashes: if any byte is altered, added or
missing, the file is refused.
"""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from erasable.core.errors import EvidenceError, NotInWorkspaceError
from erasable.workspace.evidence.envelope import peek, seal, unseal
from erasable.workspace.evidence.formats import pack, unpack
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.kinds import fits_shape
from erasable.workspace.store.disk import disk_errors

MANIFEST = "manifest.json"
"""The last member."""

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 2**20
_END = bytes(2 * _BLOCK)


class Member(NamedTuple):
    """A member in the manifest."""

    name: str
    size: int  # bytes
    sha256: str  # hexadecimal


class Writer:
    """Writes an archive, member by member."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self.members: list[Member] = []

    def add(self, name: str, data: bytes) -> None:
        """Add a member."""
        self._write(_header(name, len(data)))
        self._write(data)
        self._write(bytes(-len(data) % _BLOCK))
        self.members.append(Member(name, len(data), hashlib.sha256(data).hexdigest()))

    def end(self, manifest: bytes) -> None:
        """Add the manifest, and the end."""
        self.add(MANIFEST, manifest)
        self._write(_END)


class Archive:
    """An archive that is read, with checks of its form and that it is whole.

    Raise NotInWorkspaceError without the file, EvidenceError if it is no archive of ours, was
    altered or is not whole, and WorkspaceDiskError if it cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._places: dict[str, tuple[int, Member]] = {}
        with self._opened() as file:
            for offset, member in self._walk(file):
                if member.name in self._places:
                    raise damaged_backup(path, f"it holds {member.name!r} twice")
                self._places[member.name] = offset, member
        if not self._places or list(self._places)[-1] != MANIFEST:
            raise damaged_backup(path, "it does not end with its manifest")

    @property
    def members(self) -> list[Member]:
        """All members but the manifest, in their order."""
        return [member for _, member in self._places.values()][:-1]

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def read(self, name: str) -> bytes:
        """Return a member; raise EvidenceError if it is missing, or changed since opening."""
        if name not in self._places:
            raise damaged_backup(self.path, f"it lacks {name!r}")
        offset, member = self._places[name]
        with self._opened() as file:
            file.seek(offset)
            data = file.read(member.size)
        if hashlib.sha256(data).hexdigest() != member.sha256:
            raise damaged_backup(self.path, f"{name!r} has changed while it was read")
        return data

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        place = Path(self.path)
        with disk_errors(place):
            try:
                file = place.open("rb")
            except (FileNotFoundError, IsADirectoryError):
                raise NotInWorkspaceError(
                    f"there is no backup {str(self.path)!r}; expected a file that `erasable "
                    "backup` wrote"
                ) from None
            with file:
                yield file

    def _walk(self, file: BinaryIO) -> Iterator[tuple[int, Member]]:
        while any(header := file.read(_BLOCK)):
            name, size = self._named(header)
            offset, left, sha256 = file.tell(), size, hashlib.sha256()
            while left and (piece := file.read(min(left, _PIECE))):
                sha256.update(piece)
                left -= len(piece)
            padding = file.read(-size % _BLOCK)
            if left or len(padding) != -size % _BLOCK:
                raise damaged_backup(self.path, "it is cut off")
            if any(padding):
                raise damaged_backup(self.path, f"there is something behind {name!r}")
            yield offset, Member(name, size, sha256.hexdigest())
        if len(header) < _BLOCK or header + file.read(_BLOCK + 1) != _END:
            raise damaged_backup(self.path, "it is cut off, or something was added to it")

    def _named(self, header: bytes) -> tuple[str, int]:
        try:
            found = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
            if _header(found.name, found.size) == header:
                return found.name, found.size
        except (tarfile.TarError, ValueError):
            pass
        raise damaged_backup(self.path, "a header has another form")


def damaged_backup(path: str | Path, why: str) -> EvidenceError:
    """Return the error for a backup that does not hold."""
    return EvidenceError(
        f"the backup {str(path)!r} does not hold: {why}; expected a file as `erasable backup` "
        "wrote it; take another backup"
    )


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


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
    """The description of a backup, in it."""

    workspace: str  # its id
    made_at: str  # when the ledger was read, RFC 3339
    erasable: str  # the version that made it
    revision: str  # of the ledger's tables
    key_id: str  # of the public key
    secret: str  # the fingerprint of the secret
    log_size: int
    log_root: str  # hexadecimal
    # name, columns and n_rows, in an order in which they can be loaded
    tables: list[dict[str, Any]]
    members: list[dict[str, Any]]  # of the archive but for the manifest: name, size and sha256
    version: int = 1

    def sealed(self, keys: Keys) -> bytes:
        """Return the signed bytes."""
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
        raise damaged_backup(archive.path, "its manifest was altered")
    if said.get("version") != 1 or not fits_shape(said, _SHAPES) or set(said) != set(_SHAPES):
        raise damaged_backup(
            archive.path, "its manifest is of a newer version of erasable, or none"
        )
    found = Manifest(**{each.name: said[each.name] for each in fields(Manifest)})
    if [Member(**each) for each in found.members] != archive.members:
        raise damaged_backup(archive.path, "it holds something else than its manifest says")
    return found

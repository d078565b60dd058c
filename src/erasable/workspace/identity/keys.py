"""Secrets of a workspace: one makes tokens of identities, the other signs evidence.

They are in a file that only its owner may read, beside the ledger or where ERASABLE_KEYS says.
Without them the ledger does not allow even a guess at an identity.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from erasable.core.errors import EvidenceError, NotInWorkspaceError
from erasable.workspace.identity.canonical import canonical, check_type, former
from erasable.workspace.store.disk import Disk

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEYS, ELSEWHERE = "keys.json", "ERASABLE_KEYS"

_VERSION = 1
_TOKEN = 32  # hexadecimal digits: 128 bits, so that tokens do not meet by chance
_SECRET = 32  # bytes
_DAMAGED = (
    "the key file {path!r} {what}; expected the one that `erasable init` made; "
    "restore it from a backup"
)


class Keys:
    """The secrets of a workspace; `Keys.new` and `Keys.load` make them.

    `secret`, of 32 bytes, makes tokens; the PEMs are an Ed25519 key pair (PKCS #8 and
    SubjectPublicKeyInfo).

    >>> keys = Keys.new()
    >>> keys.token("id", 17) == keys.token("id", "17.0"), len(keys.token("id", 17))
    (True, 32)
    >>> keys.token("id", 17) == keys.token("staff/id", 17)
    False
    """

    def __init__(self, secret: bytes, private_pem: bytes, public_pem: bytes) -> None:
        self._secret = secret
        self._private_pem = private_pem
        self.public_pem = public_pem
        self._keyed: dict[str, hmac.HMAC] = {}  # by type: the state after the secret and the type

    def __repr__(self) -> str:
        return f"Keys(key_id={self.key_id!r})"

    @classmethod
    def new(cls) -> Keys:
        """Draw new keys."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        signer = Ed25519PrivateKey.generate()
        private = signer.private_bytes(
            form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
        )
        public = signer.public_key().public_bytes(
            form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
        )
        return cls(secrets.token_bytes(_SECRET), private, public)

    @classmethod
    def make(cls, disk: Disk) -> Keys:
        """Make the keys of a workspace, or read those of an interrupted attempt."""
        disk, name = _place(disk)
        if disk.path(name).exists():
            return cls._read(disk, name)
        keys = cls.new()
        disk.write(name, keys.to_json(), mode=0o600)
        return keys

    @classmethod
    def load(cls, disk: Disk) -> Keys:
        """Read the keys of a workspace."""
        return cls._read(*_place(disk))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Keys:
        """Read a key file that the user names; see `load`."""
        place = Path(path).resolve()
        return cls._read(Disk(place.parent, private=True), place.name)

    def token(self, type: str, value: Any, region: str | None = None) -> str:
        """Return the token of an identity; for errors see `canonical`."""
        return self._hash(type, canonical(type, value, region))

    def former_token(self, type: str, value: Any) -> str | None:
        """Return the token that earlier versions made of an identity, None if it is the same."""
        spelled = former(type, value)
        return None if spelled is None else self._hash(type, spelled)

    def _hash(self, type: str, spelled: str) -> str:
        keyed = self._keyed.get(type)
        if keyed is None:
            opening = f"{check_type(type)}\0".encode()
            keyed = self._keyed[type] = hmac.new(self._secret, opening, "sha256")
        keyed = keyed.copy()
        keyed.update(spelled.encode())
        return keyed.hexdigest()[:_TOKEN]

    def tokens(
        self, type: str, values: Sequence[Any], region: str | None = None
    ) -> list[str | None]:
        """Return the tokens of many identities; each is hashed once, and None stays None."""
        check_type(type)
        kinds = set(map(_class, values))
        if len(kinds - {_NONE}) <= 1:
            return self._tokens(type, values, region)
        # A dictionary would take True for the 1 that it has seen.
        found: list[str | None] = [None] * len(values)
        for kind in kinds - {_NONE}:
            places = [place for place, value in enumerate(values) if _class(value) is kind]
            of_kind = self._tokens(type, [values[place] for place in places], region)
            for place, token in zip(places, of_kind, strict=True):
                found[place] = token
        return found

    def _tokens(self, type: str, values: Sequence[Any], region: str | None) -> list[str | None]:
        known: dict[Any, str | None]
        try:
            known = dict.fromkeys(values)
        except TypeError:  # such as a list, which has no hash; `token` refuses it
            return [None if value is None else self.token(type, value, region) for value in values]
        for value in known:
            if value is not None:
                known[value] = self.token(type, value, region)
        return list(map(known.__getitem__, values))

    @cached_property
    def signer(self) -> Ed25519PrivateKey:
        """The key that signs receipts and heads of the log."""
        from cryptography.exceptions import InternalError, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(self._private_pem, None)
        except (TypeError, ValueError, InternalError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PrivateKey) or (
            key.public_key().public_bytes_raw() != _raw(self.public_pem)
        ):
            raise EvidenceError(
                "the private key is damaged, or does not belong to the public one; expected the "
                "key file that `erasable init` made; restore it from a backup"
            )
        return key

    @cached_property
    def key_id(self) -> str:
        """The name of the public key, as securesystemslib computes it."""
        public = f'"keyval":{{"public":"{_raw(self.public_pem).hex()}"}}'
        named = f'{{"keytype":"ed25519",{public},"scheme":"ed25519"}}'
        return hashlib.sha256(named.encode()).hexdigest()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the secret, by which the ledger recognises it."""
        return hmac.digest(self._secret, b"erasable", "sha256").hex()

    def to_json(self) -> bytes:
        """Return the bytes of a key file."""
        kept = {
            "version": _VERSION,
            "secret": self._secret.hex(),
            "private_key": self._private_pem.decode(),
            "public_key": self.public_pem.decode(),
        }
        return (json.dumps(kept, indent=2) + "\n").encode()

    @classmethod
    def _read(cls, disk: Disk, name: str) -> Keys:
        path = disk.path(name)
        _check_private(path)
        try:
            data = disk.read(name)
        except NotInWorkspaceError:
            raise EvidenceError(
                f"there is no key file {str(path)!r}; expected the one that `erasable init` made; "
                f"restore it from a backup, or name it in {ELSEWHERE}"
            ) from None
        return cls.parse(data, path)

    @classmethod
    def parse(cls, data: bytes, path: str | os.PathLike[str]) -> Keys:
        """Read the bytes of a key file, which `path` names in a message.

        Raise EvidenceError if they are damaged, or of a newer version.
        """
        try:
            kept = json.loads(data)
            version = kept["version"]
            if type(version) is not int or version < 1:
                raise ValueError
            if version > _VERSION:
                newer = "is of a newer version of erasable"
                raise EvidenceError(_DAMAGED.format(path=str(path), what=newer))
            keys = cls(
                bytes.fromhex(kept["secret"]),
                kept["private_key"].encode(),
                kept["public_key"].encode(),
            )
            if len(keys._secret) != _SECRET:
                raise ValueError
            _raw(keys.public_pem)
        except EvidenceError:
            raise
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise EvidenceError(_DAMAGED.format(path=str(path), what="is damaged")) from None
        return keys


_NONE = type(None)


def _class(value: Any) -> type:
    return value.__class__  # type: ignore[no-any-return]


def _place(disk: Disk) -> tuple[Disk, str]:
    elsewhere = os.environ.get(ELSEWHERE)
    if not elsewhere:
        return disk, KEYS
    path = Path(elsewhere).resolve()
    return Disk(path.parent, private=True), path.name


def _check_private(path: Path) -> None:
    if os.name == "nt":  # its permissions are of another kind
        return
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # reading it raises a better error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise EvidenceError(
            f"the key file {str(path)!r} can be read by others; expected its owner alone; "
            f"run `chmod 600 {path}`"
        )


def _raw(public_pem: bytes) -> bytes:
    """Return the 32 bytes at the end of a public key, without loading cryptography for it."""
    lines = public_pem.strip().splitlines()
    if len(lines) != 3 or lines[0] != b"-----BEGIN PUBLIC KEY-----":
        raise ValueError("no public key")
    key = base64.b64decode(lines[1], validate=True)
    if len(key) != 44 or not key.startswith(bytes.fromhex("302a300506032b6570032100")):
        raise ValueError("no Ed25519 key")
    return key[12:]

"""Salted commitments: say which model it was, later and to whom we choose, and nothing until then.

Training is deterministic. A bare digest of an old model would let anybody who holds the remaining
records try out guesses of the erased one: refit with each, and compare. With 32 random bytes
hashed in, and destroyed when the version is superseded, there is nothing to compare with.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

_SALT = 32  # bytes


def commit(digest: str) -> tuple[str, str]:
    """Commit to a digest, or any other text, under a new salt; return salt and commitment.

    Both have 64 hexadecimal digits. The salt is a secret: destroy it together with what it commits
    to.

    >>> salt, made = commit("erasable:1:ab")
    >>> matches(salt, made, "erasable:1:ab"), matches(salt, made, "erasable:1:ac")
    (True, False)
    """
    salt = secrets.token_hex(_SALT)
    return salt, commitment(salt, digest)


def commitment(salt: str, digest: str) -> str:
    """Return the commitment to a digest under a salt that is known.

    >>> commitment("00" * 32, "erasable:1:ab")[:16]
    '5cd9fc5f0a573291'
    """
    return hashlib.sha256(bytes.fromhex(salt) + digest.encode()).hexdigest()


def matches(salt: str, made: str, digest: str) -> bool:
    """Tell whether a commitment is one to this digest.

    >>> matches("00" * 32, commitment("00" * 32, "a"), "a")
    True
    """
    return hmac.compare_digest(commitment(salt, digest), made)

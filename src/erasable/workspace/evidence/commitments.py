"""Salted commitments: they prove a digest later, and disclose nothing until then.

Training is deterministic. A bare digest of an old model would let anybody who holds the remaining
records try out guesses of the erased one: refit with each, and compare. A commitment hashes 32
random bytes too, which are destroyed when the version is superseded, so that no guess can be
tested.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

_SALT = 32  # bytes


def commit(digest: str) -> tuple[str, str]:
    """Commit to a text, such as a digest, under a new salt; return salt and commitment.

    Both have 64 hexadecimal digits. The salt is a secret: destroy it with what it commits to.
    """
    salt = secrets.token_hex(_SALT)
    return salt, commitment(salt, digest)


def commitment(salt: str, digest: str) -> str:
    """Return the commitment to a digest under a given salt."""
    return hashlib.sha256(bytes.fromhex(salt) + digest.encode()).hexdigest()


def matches(salt: str, made: str, digest: str) -> bool:
    """Tell whether a commitment is one to this digest."""
    return hmac.compare_digest(commitment(salt, digest), made)

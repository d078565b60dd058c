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
    """Commit to a digest, under a new salt.

    Parameters
    ----------
    digest : str
        Or any other text.

    Returns
    -------
    salt, commitment : str
        Hexadecimal, 64 digits each. The salt is a secret; destroy it with what it is of.

    Examples
    --------
    >>> salt, made = commit("erasable:1:ab")
    >>> matches(salt, made, "erasable:1:ab"), matches(salt, made, "erasable:1:ac")
    (True, False)
    """
    salt = secrets.token_hex(_SALT)
    return salt, commitment(salt, digest)


def commitment(salt: str, digest: str) -> str:
    """Return the commitment to a digest under a salt that is known.

    Examples
    --------
    >>> commitment("00" * 32, "erasable:1:ab")[:16]
    '5cd9fc5f0a573291'
    """
    return hashlib.sha256(bytes.fromhex(salt) + digest.encode()).hexdigest()


def matches(salt: str, made: str, digest: str) -> bool:
    """Tell whether a commitment is one to this digest.

    Examples
    --------
    >>> matches("00" * 32, commitment("00" * 32, "a"), "a")
    True
    """
    return hmac.compare_digest(commitment(salt, digest), made)

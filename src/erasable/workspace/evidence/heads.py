"""Signed heads of a log, read with nothing but the public key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence.envelope import unseal
from erasable.workspace.evidence.wire import hexadecimal, unpack

HEAD_TYPE = "application/vnd.erasable.log-head+json"
"""Media type of what a signed head holds."""


def read_head(envelope: Any, public_pem: bytes) -> dict[str, Any]:
    """Check the envelope of a head with the public key alone; return what `log.head` returned.

    Raise EvidenceError if it is no head, was changed, or was signed by another key.
    """
    payload = unpack(unseal(envelope, public_pem, HEAD_TYPE), "the log head")
    expected = {"workspace": str, "size": int, "root": str, "time": str}
    if {name: type(value) for name, value in payload.items()} != expected:
        raise EvidenceError(
            "the log head does not say what a head says; expected the workspace, the size, the "
            "root and the time; pass a head that this version of erasable can read"
        )
    hexadecimal(payload["root"], "the root in the log head")
    return {**payload, "envelope": envelope}


def read_kept(kept: Any, public_pem: bytes) -> dict[str, Any]:
    """Check a head that was kept elsewhere: what `head` returned, or its envelope alone."""
    whole = isinstance(kept, Mapping) and "envelope" in kept
    signed = read_head(kept["envelope"] if whole else kept, public_pem)
    if whole and kept != signed:
        raise EvidenceError(
            "the log head says something else than what was signed; expected the same; "
            "pass the file as it was written"
        )
    return signed

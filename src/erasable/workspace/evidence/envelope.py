"""Signed envelopes: DSSE with Ed25519, by securesystemslib.

An envelope has one form: whatever byte of it is changed, it does not open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence.formats import hexadecimal, unpack

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def seal(signer: Ed25519PrivateKey, payload: bytes, payload_type: str) -> dict[str, Any]:
    """Sign bytes and their media type; return a DSSE envelope, for JSON."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

    envelope = Envelope(payload, payload_type, {})
    envelope.sign(CryptoSigner(signer))
    written: dict[str, Any] = envelope.to_dict()
    return written


def unseal(envelope: Any, public_pem: bytes, payload_type: str) -> bytes:
    """Check an envelope and return the signed bytes.

    Raise EvidenceError if the key (PEM) or the envelope is malformed, if the envelope is of another
    type, or if another key signed it.
    """
    from securesystemslib.exceptions import VerificationError

    key = _public(public_pem)
    read = _read(envelope)
    if read.payload_type != payload_type:
        raise EvidenceError(
            f"the envelope holds another kind of thing; expected {payload_type!r}; "
            "pass the file that was asked for"
        )
    try:
        read.verify([key], 1)
    except VerificationError:
        raise EvidenceError(
            "the signature does not hold: the file was changed, or another key signed it; "
            "expected a signature of the given key; ask who gave you the two"
        ) from None
    payload: bytes = read.payload
    return payload


def peek(envelope: Any) -> bytes:
    """Return the payload of an envelope without checking its signature."""
    payload: bytes = _read(envelope).payload
    return payload


def _public(public_pem: bytes) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

    try:
        key = load_pem_public_key(public_pem)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise EvidenceError(
            "the public key cannot be read; expected an Ed25519 key in PEM; "
            "pass the file that the workspace published"
        )
    return SSlibKey.from_crypto(key)


def _read(envelope: Any) -> Any:
    from securesystemslib.dsse import Envelope

    try:
        signatures = [dict(one) for one in envelope["signatures"]]  # from_dict changes them
        read = Envelope.from_dict({**envelope, "signatures": signatures})
        whole = read.to_dict() == envelope  # no other way to write the same, and nothing beside it
    except Exception:  # the library raises errors of many kinds, with one meaning
        whole = False
    if not whole:
        raise EvidenceError(
            "the envelope cannot be read; expected a DSSE envelope as it was written; "
            "pass the file unchanged"
        )
    return read


HEAD_TYPE = "application/vnd.erasable.log-head+json"
"""Media type of a signed head."""


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

"""Forged receipts are refused, and garbage is told from them in one line."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import EvidenceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import log, receipts
from erasable.workspace.evidence.envelope import peek, seal
from erasable.workspace.evidence.formats import pack
from erasable.workspace.identity.keys import Keys
from workspace_scene import DONE

PEM = Keys.new().public_pem


def test_another_key_is_refused(body: bytes) -> None:
    with pytest.raises(EvidenceError, match="signature does not hold"):
        receipts.check(body, Keys.new().public_pem)


@pytest.mark.parametrize("pem", [b"", b"no key", b"\xff\x00"], ids=repr)
def test_what_is_no_key_is_told(body: bytes, pem: bytes) -> None:
    with pytest.raises(EvidenceError, match="public key cannot be read"):
        receipts.check(body, pem)


def test_a_key_of_another_kind_is_told(body: bytes) -> None:
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(EvidenceError, match="expected an Ed25519 key"):
        receipts.check(body, pem)


def test_no_byte_can_be_changed(scene: Context, body: bytes) -> None:
    # Every byte, each with one random bit; a receipt has a few thousand.
    draw = random.Random(0)
    for place in range(len(body)):
        changed = bytearray(body)
        changed[place] ^= 1 << draw.randrange(8)
        with pytest.raises(EvidenceError) as caught:
            receipts.check(bytes(changed), scene.keys.public_pem)
        assert "\n" not in str(caught.value)


@given(data=st.data())
def test_no_garbage_raises_anything_else(data: st.DataObject) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["envelope", "proof", "head", "payload", "payloadType", "signatures", "sig"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
    garbage = data.draw(
        st.binary(max_size=50) | st.builds(lambda value: json.dumps(value).encode(), values)
    )
    with pytest.raises(EvidenceError):
        receipts.check(garbage, PEM)
    with pytest.raises(EvidenceError):
        receipts.show(garbage)


def test_deep_nesting_is_told() -> None:
    with pytest.raises(EvidenceError, match="cannot be read"):
        receipts.show(b"[" * 100_000)


def rebuilt(scene: Context, body: bytes, how: Any) -> bytes:
    parts = json.loads(body)
    how(scene, parts)
    return pack(parts)


def own_statement(scene: Context, parts: Any, **changes: Any) -> None:
    """Sign another statement with the right key: only the log can tell."""
    payload = json.loads(peek(parts["envelope"]))
    payload["predicate"].update(changes)
    parts["envelope"] = seal(scene.keys.signer, pack(payload), "application/vnd.in-toto+json")


def more_records(scene: Context, parts: Any) -> None:
    own_statement(scene, parts, records=5)


def other_request(scene: Context, parts: Any) -> None:
    own_statement(scene, parts, request="R-NONE")


def other_entry(scene: Context, parts: Any) -> None:
    with scene.ledger.reading() as connection:
        other = json.loads(receipts.fetch(connection, "R-NONE") or b"")
    parts["proof"] = other["proof"]


def other_position(scene: Context, parts: Any) -> None:
    parts["proof"]["position"] -= 1


def other_size(scene: Context, parts: Any) -> None:
    parts["proof"]["size"] += 1


def a_hash_less(scene: Context, parts: Any) -> None:
    parts["proof"]["hashes"].pop()


def head_of_another_size(scene: Context, parts: Any) -> None:
    with scene.ledger.transaction() as connection:
        log.append(scene, connection, "request-started", "R-LATER", {}, DONE)
        parts["head"] = log.head(scene, connection)["envelope"]


def statement_for_a_head(scene: Context, parts: Any) -> None:
    parts["head"] = parts["envelope"]


def something_more(scene: Context, parts: Any) -> None:
    parts["note"] = "trust me"


def two_signatures(scene: Context, parts: Any) -> None:
    parts["envelope"]["signatures"] *= 2


def another_type(scene: Context, parts: Any) -> None:
    payload = json.loads(peek(parts["envelope"]))
    payload["predicateType"] = "urn:erasable:receipt:v2"
    parts["envelope"] = seal(scene.keys.signer, pack(payload), "application/vnd.in-toto+json")


def no_subject(scene: Context, parts: Any) -> None:
    payload = json.loads(peek(parts["envelope"]))
    payload["subject"] = []
    parts["envelope"] = seal(scene.keys.signer, pack(payload), "application/vnd.in-toto+json")


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (more_records, "names another receipt"),
        (other_request, "about something else"),
        (other_entry, "about something else"),
        (other_position, "does not lead to the signed head"),
        (other_size, "does not lead to the signed head"),
        (a_hash_less, "does not lead to the signed head"),
        (head_of_another_size, "does not lead to the signed head"),
        (statement_for_a_head, "another kind of thing"),
        (something_more, "has more than these"),
        (two_signatures, "envelope cannot be read"),
        (another_type, "newer version"),
        (no_subject, "what it is about"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_forged_receipt_is_refused(scene: Context, body: bytes, how: Any, told: str) -> None:
    with pytest.raises(EvidenceError, match=told):
        receipts.check(rebuilt(scene, body, how), scene.keys.public_pem)


def test_a_receipt_of_an_abandoned_log_is_refused(
    scene: Context, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right key and an honest proof, but under a head of another workspace."""
    monkeypatch.setattr(log, "_refuse_forged", lambda *_: None)
    with scene.ledger.transaction() as connection:
        scene.ledger.set(connection, "workspace", "00" * 16)
        head = log.head(scene, connection)
        parts = json.loads(body)
        position = parts["proof"]["position"]
        hashes = [one.hex() for one in log.tree(connection).inclusion(position)]
    parts["head"] = head["envelope"]
    parts["proof"] |= {"size": head["size"], "hashes": hashes}
    with pytest.raises(EvidenceError, match="another workspace"):
        receipts.check(pack(parts), scene.keys.public_pem)

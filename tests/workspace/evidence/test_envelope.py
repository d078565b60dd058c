"""Envelopes open for their own key and type alone; salts are used once."""

from __future__ import annotations

import copy

import pytest

from erasable.core.errors import EvidenceError
from erasable.workspace.context import Context
from erasable.workspace.evidence.commitments import commit
from erasable.workspace.evidence.envelope import seal, unseal


def test_an_envelope_is_left_as_it_was(scene: Context) -> None:
    envelope = seal(scene.keys.signer, b"abc", "text/plain")
    before = copy.deepcopy(envelope)
    assert unseal(envelope, scene.keys.public_pem, "text/plain") == b"abc"
    assert envelope == before


def test_another_type_of_payload_is_refused(scene: Context) -> None:
    envelope = seal(scene.keys.signer, b"abc", "text/plain")
    with pytest.raises(EvidenceError, match="another kind of thing"):
        unseal(envelope, scene.keys.public_pem, "text/html")
    envelope["payloadType"] = "text/html"
    with pytest.raises(EvidenceError, match="signature does not hold"):
        unseal(envelope, scene.keys.public_pem, "text/html")


def test_salts_are_never_used_twice() -> None:
    salts, made = zip(*[commit("the same") for _ in range(100)], strict=True)
    assert len(set(salts)) == len(set(made)) == 100
    assert all(len(one) == 64 for one in salts + made)

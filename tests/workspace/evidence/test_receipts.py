"""Receipts: a stranger checks them with the public key alone; no byte of them can be changed."""

from __future__ import annotations

import base64
import copy
import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from sqlalchemy import delete, select

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence import log, receipts
from erasable.workspace.evidence.commitments import commit, matches
from erasable.workspace.evidence.envelope import peek, seal, unseal
from erasable.workspace.evidence.merkle import leaf_hash, verify_inclusion
from erasable.workspace.evidence.wire import pack
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.schema import (
    dataset,
    fragment,
    log_entry,
    model_version,
    request,
)
from erasable.workspace.site import Site
from workspace_scene import DIGEST, DONE, HOLD, PERSON, REASON

PEM = Keys.new().public_pem


@pytest.fixture
def body(scene: Site) -> bytes:
    """The receipt of R-DONE."""
    with scene.ledger.reading() as connection:
        found = receipts.fetch(connection, "R-DONE")
    assert found is not None
    return found


def said(body: bytes) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(base64.b64decode(json.loads(body)["envelope"]["payload"]))
    return payload


# -- what it says ----------------------------------------------------------------------------------


def test_it_says_what_was_done(scene: Site, body: bytes) -> None:
    predicate = said(body)["predicate"]
    with scene.ledger.reading() as connection:
        made = [row._asdict() for row in connection.execute(select(model_version))]
        workspace = scene.ledger.get(connection, "workspace")
    risk, small, risk2 = (
        next(v["commitment"] for v in made if (v["model_id"], v["number"]) == which)
        for which in ((1, 1), (2, 1), (1, 2))
    )
    software = predicate.pop("software")
    assert {"erasable", "python", "numpy", "scikit-learn"} <= software.keys()
    after = predicate["datasets"][0].pop("after")
    assert predicate == {
        "request": "R-DONE",
        "regulation": "gdpr",
        "received": "2026-11-02T09:30:00.000000Z",
        "due": "2026-12-02T09:30:00.000000Z",
        "extended": None,
        "completed": "2026-11-20T15:00:00.000000Z",
        "in_time": True,
        "days_left": 11.77,
        "matched": True,
        "records": 3,
        "datasets": [
            {
                "name": "visits",
                "version": 2,
                "treatment": "rewritten",
                "records": 3,
                "seconds": 0.5,
            }
        ],
        "models": [
            {
                "name": name,
                "version": version,
                "treatment": treatment,
                "exactness": exactness,
                "records": 3,
                "seconds": 0.5,
                "before": before,
                "after": later,
            }
            for name, version, treatment, exactness, before, later in (
                ("risk", 2, "deleted", "bitwise", risk, risk2),
                ("small", 1, "retired", "gone", small, None),
                ("elsewhere", 0, "not covered", None, None, None),
            )
        ],
        "not_covered": ["elsewhere"],
        "out_of_reach": [
            "free blocks of the disk",
            "snapshots and backups of it",
            "archived logs of other programs",
            "the source of a data set",
        ],
        "workspace": workspace,
        "key": scene.keys.key_id,
        "log": {"position": json.loads(body)["proof"]["position"]},
    }
    subject = {one["name"]: one["digest"]["sha256"] for one in said(body)["subject"]}
    assert set(subject) == {"request/R-DONE", "dataset/visits", "model/risk"}
    assert subject["model/risk"] == risk2
    assert subject["dataset/visits"] == after


def test_a_data_set_can_be_shown_to_be_the_one_of_the_receipt(scene: Site, body: bytes) -> None:
    with scene.ledger.reading() as connection:
        salt = connection.execute(select(dataset.c.salt)).scalar()
        files = sorted(connection.execute(select(fragment.c.sha256)).scalars())
    made = said(body)["predicate"]["datasets"][0]["after"]
    assert matches(salt, made, "\n".join(files))
    assert not matches(salt, made, "\n".join(files[:1]))


def test_the_request_is_named_by_its_acknowledgement(scene: Site, body: bytes) -> None:
    with scene.ledger.reading() as connection:
        row = connection.execute(
            select(log_entry).where(
                log_entry.c.subject == "R-DONE", log_entry.c.kind == "request-acknowledged"
            )
        ).one()
    assert said(body)["subject"][0] == {
        "name": "request/R-DONE",
        "digest": {"sha256": sha256(row.body).hexdigest()},
    }


def test_nobody_matched_is_a_receipt_too(scene: Site) -> None:
    with scene.ledger.reading() as connection:
        body = receipts.fetch(connection, "R-NONE")
        assert receipts.fetch(connection, "R-LATER") is None
    assert body is not None
    checked = receipts.check(body, scene.keys.public_pem)
    predicate = checked.statement["predicate"]
    assert (predicate["matched"], predicate["records"]) == (False, 0)
    assert predicate["datasets"] == predicate["models"] == []
    assert [one["name"] for one in checked.statement["subject"]] == ["request/R-NONE"]


def test_a_late_completion_says_so(scene: Site) -> None:
    from datetime import timedelta

    with scene.ledger.transaction() as connection:
        (late,) = receipts.issue(scene, connection, ["R-LATER"], DONE + timedelta(days=14)).values()
    predicate = said(late)["predicate"]
    assert (predicate["in_time"], predicate["days_left"]) == (False, -2.23)


def test_issuing_completes_the_requests(scene: Site) -> None:
    with scene.ledger.reading() as connection:
        rows = connection.execute(select(request).where(request.c.state == "completed")).all()
    assert {row.id for row in rows} == {"R-DONE", "R-NONE"}
    assert all((row.completed_at, row.salt, row.tokens) == (DONE, None, None) for row in rows)
    with scene.ledger.transaction() as connection:
        assert receipts.issue(scene, connection, [], DONE) == {}


def test_no_receipt_without_an_acknowledgement(scene: Site) -> None:
    with scene.ledger.transaction() as connection:
        connection.execute(delete(log_entry).where(log_entry.c.subject == "R-LATER"))
    with (
        pytest.raises(EvidenceError, match="does not know of request R-LATER"),
        scene.ledger.transaction() as connection,
    ):
        receipts.issue(scene, connection, ["R-LATER"], DONE)


def test_showing_does_not_need_a_key(body: bytes) -> None:
    shown = receipts.show(body)
    assert shown["request"] == "R-DONE"
    assert shown["subject"] == said(body)["subject"]
    assert set(shown["log"]) == {"position", "size"}


def test_neither_log_nor_receipts_betray_anybody(scene: Site, body: bytes) -> None:
    keys = scene.keys
    secrets = [PERSON, REASON, HOLD, "Schmidt", "4711", DIGEST, "5f3a91c07be2"]
    secrets += [keys.token(kind, PERSON) for kind in ("id", "email", "exact")]
    with scene.ledger.reading() as connection:
        salts = [row.salt for row in connection.execute(select(model_version))]
        salts += connection.execute(select(dataset.c.salt)).scalars()
        salts += [salt for salt in connection.execute(select(request.c.salt)).scalars() if salt]
        secrets += [row.sha256 for row in connection.execute(select(fragment))]
        written = list(connection.execute(select(log_entry.c.body)).scalars())
        written += [peek(json.loads(one)["envelope"]) for one in _all(connection)] + _all(
            connection
        )
    assert len(written) > 25
    for one in secrets + salts:
        assert not any(one.encode() in text for text in written), one


# -- a stranger ------------------------------------------------------------------------------------


def test_a_stranger_checks_it_with_the_public_key_alone(
    scene: Site, body: bytes, tmp_path: Path
) -> None:
    (tmp_path / "key.pem").write_bytes(scene.keys.public_pem)
    checked = receipts.check(body, (tmp_path / "key.pem").read_bytes())
    assert checked.request == "R-DONE"
    assert checked.statement == said(body)
    with scene.ledger.reading() as connection:
        kept = log.last_head(scene, connection)
    assert kept is not None
    assert (checked.root, checked.size, checked.time) == (kept["root"], kept["size"], kept["time"])


def test_securesystemslib_opens_the_envelope(scene: Site, body: bytes) -> None:
    key = SSlibKey.from_crypto(load_pem_public_key(scene.keys.public_pem))
    envelope = Envelope.from_dict(json.loads(body)["envelope"])
    assert envelope.verify([key], 1) == {key.keyid: key}
    assert key.keyid == scene.keys.key_id
    assert envelope.payload_type == "application/vnd.in-toto+json"
    other = SSlibKey.from_crypto(load_pem_public_key(Keys.new().public_pem), keyid=key.keyid)
    with pytest.raises(VerificationError):
        envelope.verify([other], 1)


def test_the_statement_is_one_of_in_toto(body: bytes) -> None:
    from google.protobuf import json_format
    from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    payload = base64.b64decode(json.loads(body)["envelope"]["payload"])
    message = json_format.Parse(payload, Message())  # refuses fields that are not in the standard
    made = Statement.copy_from_pb(message)
    made.validate()
    for one in made.pb.subject:
        descriptor = ResourceDescriptor.copy_from_pb(one)
        descriptor.validate()
        assert list(one.digest) == ["sha256"]
        assert len(bytes.fromhex(one.digest["sha256"])) == 32
    assert made.pb.type == "https://in-toto.io/Statement/v1"
    assert made.pb.predicate_type == "urn:erasable:receipt:v1"
    names = [one.name for one in made.pb.subject]
    assert len(set(names)) == len(names)


def test_the_proof_is_checked_by_hand(scene: Site, body: bytes) -> None:
    parts = json.loads(body)
    proof, head = parts["proof"], json.loads(base64.b64decode(parts["head"]["payload"]))
    assert verify_inclusion(
        leaf_hash(proof["entry"].encode()),
        proof["position"],
        head["size"],
        [bytes.fromhex(one) for one in proof["hashes"]],
        bytes.fromhex(head["root"]),
    )
    entry = json.loads(proof["entry"])
    assert entry["receipt"] == sha256(base64.b64decode(parts["envelope"]["payload"])).hexdigest()
    assert (entry["kind"], entry["subject"]) == ("request-completed", "R-DONE")


# -- forgers ---------------------------------------------------------------------------------------


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


def test_no_byte_can_be_changed(scene: Site, body: bytes) -> None:
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


def rebuilt(scene: Site, body: bytes, how: Any) -> bytes:
    parts = json.loads(body)
    how(scene, parts)
    return pack(parts)


def own_statement(scene: Site, parts: Any, **changes: Any) -> None:
    """Sign another statement with the right key: only the log can tell."""
    payload = json.loads(peek(parts["envelope"]))
    payload["predicate"].update(changes)
    parts["envelope"] = seal(scene.keys.signer, pack(payload), "application/vnd.in-toto+json")


def more_records(scene: Site, parts: Any) -> None:
    own_statement(scene, parts, records=5)


def other_request(scene: Site, parts: Any) -> None:
    own_statement(scene, parts, request="R-NONE")


def other_entry(scene: Site, parts: Any) -> None:
    with scene.ledger.reading() as connection:
        other = json.loads(receipts.fetch(connection, "R-NONE") or b"")
    parts["proof"] = other["proof"]


def other_position(scene: Site, parts: Any) -> None:
    parts["proof"]["position"] -= 1


def other_size(scene: Site, parts: Any) -> None:
    parts["proof"]["size"] += 1


def a_hash_less(scene: Site, parts: Any) -> None:
    parts["proof"]["hashes"].pop()


def head_of_another_size(scene: Site, parts: Any) -> None:
    with scene.ledger.transaction() as connection:
        log.append(scene, connection, "request-started", "R-LATER", {}, DONE)
        parts["head"] = log.head(scene, connection)["envelope"]


def statement_for_a_head(scene: Site, parts: Any) -> None:
    parts["head"] = parts["envelope"]


def something_more(scene: Site, parts: Any) -> None:
    parts["note"] = "trust me"


def two_signatures(scene: Site, parts: Any) -> None:
    parts["envelope"]["signatures"] *= 2


def another_type(scene: Site, parts: Any) -> None:
    payload = json.loads(peek(parts["envelope"]))
    payload["predicateType"] = "urn:erasable:receipt:v2"
    parts["envelope"] = seal(scene.keys.signer, pack(payload), "application/vnd.in-toto+json")


def no_subject(scene: Site, parts: Any) -> None:
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
def test_a_forged_receipt_is_refused(scene: Site, body: bytes, how: Any, told: str) -> None:
    with pytest.raises(EvidenceError, match=told):
        receipts.check(rebuilt(scene, body, how), scene.keys.public_pem)


def test_a_receipt_of_an_abandoned_log_is_refused(scene: Site, body: bytes) -> None:
    """The right key and an honest proof, but under a head of another workspace."""
    with scene.ledger.transaction() as connection:
        scene.ledger.set(connection, "workspace", "00" * 16)
        head = log.head(scene, connection)
        parts = json.loads(body)
        position = parts["proof"]["position"]
        hashes = [one.hex() for one in log.inclusion(connection, position)]
    parts["head"] = head["envelope"]
    parts["proof"] |= {"size": head["size"], "hashes": hashes}
    with pytest.raises(EvidenceError, match="another workspace"):
        receipts.check(pack(parts), scene.keys.public_pem)


# -- envelopes and commitments ---------------------------------------------------------------------


def test_an_envelope_is_left_as_it_was(scene: Site) -> None:
    envelope = seal(scene.keys.signer, b"abc", "text/plain")
    before = copy.deepcopy(envelope)
    assert unseal(envelope, scene.keys.public_pem, "text/plain") == b"abc"
    assert envelope == before


def test_another_type_of_payload_is_refused(scene: Site) -> None:
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

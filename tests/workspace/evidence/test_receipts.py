"""Receipts: a stranger checks them with the public key alone; no byte of them can be changed."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    load_pem_public_key,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from sqlalchemy import delete, select

from erasable.core.errors import TamperedError
from erasable.workspace.context import Context
from erasable.workspace.evidence import issuing, log, receipts
from erasable.workspace.evidence.commitments import matches
from erasable.workspace.evidence.envelope import peek
from erasable.workspace.evidence.merkle import leaf_hash, verify_inclusion
from erasable.workspace.identity.keys import Keys
from erasable.workspace.ledger.schema import (
    dataset,
    fragment,
    log_entry,
    model_version,
    receipt,
    request,
)
from workspace_scene import DIGEST, DONE, HOLD, PERSON, REASON

DATABASE_KEEPS = {
    "sqlite": [],
    "postgres": [
        "the write-ahead log of the database server, and its archive",
        "replicas and backups of the database server",
        "the log files of the database server",
        "files that the database server leaves in its folder when it crashes",
    ],
}


def said(body: bytes) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(base64.b64decode(json.loads(body)["envelope"]["payload"]))
    return payload


# -- what it says ----------------------------------------------------------------------------------


def test_it_says_what_was_done(scene: Context, body: bytes, backend: str) -> None:
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
        "types": ["email"],
        "received": "2026-11-02T09:30:00.000000Z",
        "due": "2026-12-02T09:30:00.000000Z",
        "extended": None,
        "completed": "2026-11-20T15:00:00.000000Z",
        "in_time": True,
        "days_left": 11.77,
        "matched": True,
        "outcome": "erased",
        "searched": [{"dataset": "visits", "column": "patient", "type": "email"}],
        "followed": [
            {
                "dataset": "visits",
                "from": "patient",
                "from_type": "email",
                "to": "card",
                "to_type": "id",
                "identities": 1,
            }
        ],
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
        "targets": [],
        "not_covered": ["elsewhere"],
        "out_of_reach": [
            "free blocks of the disk",
            "snapshots and backups of it",
            "archived logs of other programs",
            "the source of a data set",
            *DATABASE_KEEPS[backend],
        ],
        "workspace": workspace,
        "key": scene.keys.key_id,
        "log": {"position": json.loads(body)["proof"]["position"]},
    }
    subject = {one["name"]: one["digest"]["sha256"] for one in said(body)["subject"]}
    assert set(subject) == {"request/R-DONE", "dataset/visits", "model/risk"}
    assert subject["model/risk"] == risk2
    assert subject["dataset/visits"] == after


def test_a_data_set_can_be_shown_to_be_the_one_of_the_receipt(scene: Context, body: bytes) -> None:
    with scene.ledger.reading() as connection:
        salt = connection.execute(select(dataset.c.salt)).scalar()
        files = sorted(connection.execute(select(fragment.c.sha256)).scalars())
    made = said(body)["predicate"]["datasets"][0]["after"]
    assert matches(salt, made, "\n".join(files))
    assert not matches(salt, made, "\n".join(files[:1]))


def test_the_request_is_named_by_its_acknowledgement(scene: Context, body: bytes) -> None:
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


def test_nobody_matched_is_a_receipt_too(scene: Context) -> None:
    with scene.ledger.reading() as connection:
        body = receipts.fetch(connection, "R-NONE")
        assert receipts.fetch(connection, "R-LATER") is None
    assert body is not None
    checked = receipts.check(body, scene.keys.public_pem)
    predicate = checked.statement["predicate"]
    assert (predicate["matched"], predicate["records"]) == (False, 0)
    assert predicate["datasets"] == predicate["models"] == []
    assert [one["name"] for one in checked.statement["subject"]] == ["request/R-NONE"]


def test_a_late_completion_says_so(scene: Context) -> None:
    from datetime import timedelta

    with scene.ledger.transaction() as connection:
        (late,) = issuing.issue(scene, connection, ["R-LATER"], DONE + timedelta(days=14)).values()
    predicate = said(late)["predicate"]
    assert (predicate["in_time"], predicate["days_left"]) == (False, -2.23)


def test_issuing_completes_the_requests(scene: Context) -> None:
    with scene.ledger.reading() as connection:
        rows = connection.execute(select(request).where(request.c.state == "completed")).all()
    assert {row.id for row in rows} == {"R-DONE", "R-NONE"}
    assert all((row.completed_at, row.salt, row.tokens) == (DONE, None, None) for row in rows)
    with scene.ledger.transaction() as connection:
        assert issuing.issue(scene, connection, [], DONE) == {}


def test_no_receipt_without_an_acknowledgement(scene: Context) -> None:
    with scene.ledger.transaction() as connection:
        connection.execute(delete(log_entry).where(log_entry.c.subject == "R-LATER"))
    with (
        pytest.raises(TamperedError, match="request 'R-LATER': the log does not know of it"),
        scene.ledger.transaction() as connection,
    ):
        issuing.issue(scene, connection, ["R-LATER"], DONE)


def test_showing_does_not_need_a_key(body: bytes) -> None:
    shown = receipts.show(body)
    assert shown["request"] == "R-DONE"
    assert shown["subject"] == said(body)["subject"]
    assert set(shown["log"]) == {"position", "size"}


def test_neither_log_nor_receipts_betray_anybody(scene: Context, body: bytes) -> None:
    keys = scene.keys
    secrets = [PERSON, REASON, HOLD, "Schmidt", "court order", DIGEST, "5f3a91c07be2"]
    secrets += [keys.token(kind, PERSON) for kind in ("id", "email", "exact")]
    with scene.ledger.reading() as connection:
        salts = [row.salt for row in connection.execute(select(model_version))]
        salts += connection.execute(select(dataset.c.salt)).scalars()
        salts += [salt for salt in connection.execute(select(request.c.salt)).scalars() if salt]
        secrets += [row.sha256 for row in connection.execute(select(fragment))]
        written = list(connection.execute(select(log_entry.c.body)).scalars())
        given = list(connection.execute(select(receipt.c.body)).scalars())
        written += [*given, *(peek(json.loads(one)["envelope"]) for one in given)]
    assert len(written) > 25
    for one in secrets + salts:
        assert not any(one.encode() in text for text in written), one


# -- a stranger ------------------------------------------------------------------------------------


def test_a_stranger_checks_it_with_the_public_key_alone(
    scene: Context, body: bytes, tmp_path: Path
) -> None:
    (tmp_path / "key.pem").write_bytes(scene.keys.public_pem)
    checked = receipts.check(body, (tmp_path / "key.pem").read_bytes())
    assert checked.request == "R-DONE"
    assert checked.statement == said(body)
    with scene.ledger.reading() as connection:
        kept = log.last_head(scene, connection)
    assert kept is not None
    assert (checked.root, checked.size, checked.time) == (kept["root"], kept["size"], kept["time"])


def test_securesystemslib_opens_the_envelope(scene: Context, body: bytes) -> None:
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


def test_the_proof_is_checked_by_hand(scene: Context, body: bytes) -> None:
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

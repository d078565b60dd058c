from __future__ import annotations

import copy
import json
from base64 import b64decode
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from erasable.core.errors import (
    EvidenceError,
    InvalidIdsError,
    NotInWorkspaceError,
    WorkspaceDiskError,
)
from erasable.workspace.evidence import envelope, log
from erasable.workspace.identity import subjects, suppression
from erasable.workspace.ledger.schema import log_entry
from erasable.workspace.site import Site

EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(2026, 2, 1, 3, 4, 5, 678901, tzinfo=UTC)


def suppress(site, *identities, request="R-1", now=EARLY):
    with site.ledger.transaction() as connection:
        return suppression.suppress(
            connection,
            [(site.keys.token(type, value), type) for type, value in identities],
            request,
            now,
        )


def listing(site):
    with site.ledger.reading() as connection:
        return suppression.listing(connection)


def restored(site, tmp_path):
    """Make a workspace with the keys and the name of another, and nothing else: a backup."""
    (tmp_path / "restored").mkdir()
    keys = site.disk.read("keys.json")
    (tmp_path / "restored" / "keys.json").write_bytes(keys)
    (tmp_path / "restored" / "keys.json").chmod(0o600)
    made = Site.create(tmp_path / "restored")
    with site.ledger.reading() as connection:
        name = site.ledger.get(connection, "workspace")
    with made.ledger.transaction() as connection:
        made.ledger.set(connection, "workspace", name)
    return made


def test_first_entry_of_a_token_stays(site):
    assert suppress(site, ("id", 17), ("id", "17"), ("email", "a@x.com")) == 2
    assert suppress(site, ("id", 17), ("id", 18), request="R-2", now=LATE) == 1
    kept = {entry["token"]: entry for entry in listing(site)}
    first = kept[site.keys.token("id", 17)]
    assert (first["request_id"], first["since"], first["type"]) == ("R-1", EARLY, "id")
    assert kept[site.keys.token("id", 18)]["request_id"] == "R-2"
    assert [entry["since"] for entry in listing(site)] == [EARLY, EARLY, LATE]


@pytest.mark.parametrize("n_asked", [1, 3, 50], ids=["fewer", "as many", "more"])
def test_suppressed_tokens_are_told_from_others(site, n_asked):
    suppress(site, *[("id", number) for number in range(3)])
    asked = [site.keys.token("id", number) for number in range(n_asked)]
    with site.ledger.reading() as connection:
        found = suppression.suppressed(connection, [*asked, asked[0]])
        assert suppression.suppressed(connection, [site.keys.token("email", "1")]) == set()
        assert suppression.suppressed(connection, []) == set()
    assert found == set(asked[:3])


def test_release_takes_one_identity_off(site):
    suppress(site, ("staff/id", 17), ("email", "a@x.com"))
    assert suppression.release(site, " 17.0") == "staff/id"
    assert [entry["type"] for entry in listing(site)] == ["email"]
    assert suppression.release(site, "A@X.COM", "email") == "email"
    assert listing(site) == []


def test_release_is_logged_without_identity(site):
    suppress(site, ("id", 17), request="R-7")
    token = site.keys.token("id", 17)
    suppression.release(site, 17)
    with site.ledger.reading() as connection:
        (body,) = connection.execute(
            select(log_entry.c.body).where(log_entry.c.kind == "suppression-released")
        ).scalars()
    assert json.loads(body)["subject"] == "R-7"
    assert token.encode() not in body
    assert log.verify_log(site) == []


def test_release_of_what_is_not_there_changes_nothing(site):
    suppress(site, ("id", 17))
    with site.ledger.reading() as connection:
        before = log.next_position(site, connection)
    for value, type in [(18, None), (17, "email/id"), ("a@x.com", "email")]:
        with pytest.raises(NotInWorkspaceError, match="not on the suppression list"):
            suppression.release(site, value, type)
    with site.ledger.reading() as connection:
        assert log.next_position(site, connection) == before
    assert len(listing(site)) == 1


def test_release_under_two_types_needs_one(site):
    suppress(site, ("staff/id", 17), ("record.visits/id", 17))
    with pytest.raises(InvalidIdsError, match="--type"):
        suppression.release(site, 17)
    assert len(listing(site)) == 2
    assert suppression.release(site, 17, "record.visits/id") == "record.visits/id"


def test_suppression_does_not_add_to_the_types_that_requests_are_tried_under(site):
    suppress(site, ("record.visits/id", 17))
    with site.ledger.reading() as connection:
        assert subjects.types_in_use(connection) == []


def test_export_is_signed_and_holds_no_identity(site):
    suppress(site, ("email", "a@x.com"), now=LATE)
    exported = suppression.export(site)
    payload = envelope.unseal(exported, site.keys.public_pem, suppression.PAYLOAD_TYPE)
    (entry,) = json.loads(payload)["entries"]
    assert entry == {
        "token": site.keys.token("email", "a@x.com"),
        "type": "email",
        "request_id": "R-1",
        "since": "2026-02-01T03:04:05.678901+00:00",
    }
    assert b"a@x.com" not in payload


def test_import_brings_a_restored_backup_up_to_date(site, tmp_path):
    suppress(site, ("id", 17))
    suppress(site, ("email", "a@x.com"), request="R-2", now=LATE)
    exported = json.loads(json.dumps(suppression.export(site)))
    backup = restored(site, tmp_path)
    suppress(backup, ("id", 17), ("id", 18), request="R-0")
    assert suppression.import_list(backup, exported) == 1
    kept = {entry["token"]: entry["request_id"] for entry in listing(backup)}
    assert kept[backup.keys.token("id", 17)] == "R-0"
    assert kept[backup.keys.token("email", "a@x.com")] == "R-2"
    assert len(kept) == 3
    assert suppression.import_list(backup, exported) == 0


def sealed(site, **changes):
    with site.ledger.reading() as connection:
        name = site.ledger.get(connection, "workspace")
    kept = {"version": 1, "workspace": name, "at": "", "entries": []} | changes
    return envelope.seal(site.keys.signer, json.dumps(kept).encode(), suppression.PAYLOAD_TYPE)


FOREIGN = {
    "none": lambda site: None,
    "empty": lambda site: {},
    "text": lambda site: "x",
    "other thing": lambda site: envelope.seal(site.keys.signer, b"{}", "text/plain"),
    "no JSON": lambda site: envelope.seal(site.keys.signer, b"\xff", suppression.PAYLOAD_TYPE),
    "a list": lambda site: envelope.seal(site.keys.signer, b"[]", suppression.PAYLOAD_TYPE),
    "version 2": lambda site: sealed(site, version=2),
    "another workspace": lambda site: sealed(site, workspace="w"),
    "entries of numbers": lambda site: sealed(site, entries=[1]),
    "no entries": lambda site: sealed(site, entries=None),
    "unknown type": lambda site: sealed(
        site, entries=[{"token": "x", "type": "no", "request_id": "R", "since": "2026-01-01"}]
    ),
    "no zone": lambda site: sealed(
        site, entries=[{"token": "x", "type": "id", "request_id": "R", "since": "2026-01-01"}]
    ),
    "no time": lambda site: sealed(
        site, entries=[{"token": "x", "type": "id", "request_id": "R", "since": "noon"}]
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_no_export_of_this_workspace_is_refused(site, what):
    with pytest.raises(EvidenceError) as told:
        suppression.import_list(site, FOREIGN[what](site))
    assert "\n" not in str(told.value)
    assert listing(site) == []


def test_an_empty_list_is_taken(site):
    assert suppression.import_list(site, sealed(site)) == 0


def test_altered_export_is_refused(site):
    suppress(site, ("id", 17))
    exported = suppression.export(site)
    altered = copy.deepcopy(exported)
    payload = b64decode(altered["payload"]).replace(b"R-1", b"R-2")
    other = Site.create(site.root.parent / "other")
    forged = envelope.seal(other.keys.signer, payload, suppression.PAYLOAD_TYPE)
    altered["payload"] = forged["payload"]
    for one in (altered, forged):
        with pytest.raises(EvidenceError, match="signature does not hold"):
            suppression.import_list(site, one)
    assert suppression.import_list(site, exported) == 0


def test_publishing_writes_list_and_head_outside(site, tmp_path, monkeypatch):
    assert suppression.publish(site) is None
    outside = tmp_path / "outside"
    monkeypatch.setenv("ERASABLE_EXPORT", str(outside))
    for n in (1, 2):
        suppress(site, ("id", n))
        assert suppression.publish(site) == outside
        exported = json.loads((outside / "suppression.json").read_text())
        head = json.loads((outside / "head.json").read_text())
        payload = envelope.unseal(exported, site.keys.public_pem, suppression.PAYLOAD_TYPE)
        assert len(json.loads(payload)["entries"]) == n
        assert log.verify_since(site, head["envelope"]) == []
    assert sorted(path.name for path in outside.iterdir()) == ["head.json", "suppression.json"]


def test_a_restored_backup_does_not_write_over_what_knows_of_erasures_since(
    site, tmp_path, monkeypatch
):
    monkeypatch.setenv(suppression.OUTSIDE, str(tmp_path / "outside"))
    backup = restored(site, tmp_path)
    suppress(site, ("id", 17))
    suppression.release(site, 17)  # which is in the log
    suppress(site, ("id", 17))
    suppression.publish(site)
    before = (tmp_path / "outside" / "suppression.json").read_bytes()
    with pytest.raises(EvidenceError, match="was not written over"):
        suppression.publish(backup)
    assert (tmp_path / "outside" / "suppression.json").read_bytes() == before
    suppression.publish(site)


def test_publishing_where_nothing_can_be_written_says_so(site, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ERASABLE_EXPORT", str(tmp_path / "file" / "folder"))
    with pytest.raises(WorkspaceDiskError, match="cannot be written"):
        suppression.publish(site)

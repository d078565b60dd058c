from __future__ import annotations

import copy
import json
from base64 import b64decode

import pytest
from kept_out import EARLY, LATE, listing, restored, suppress
from sqlalchemy import delete, select, update

from erasable.core.errors import EvidenceError, WorkspaceDiskError
from erasable.workspace.context import Context
from erasable.workspace.evidence import envelope, log, suppressions
from erasable.workspace.identity import external_files, suppression
from erasable.workspace.identity.suppression import TakenIn
from erasable.workspace.ledger.schema import log_entry
from erasable.workspace.ledger.schema import suppression as suppression_table


def test_export_is_signed_and_holds_no_identity(context):
    suppress(context, ("email", "a@x.com"), now=LATE)
    exported = external_files.export(context)
    payload = envelope.unseal(exported, context.keys.public_pem, external_files.PAYLOAD_TYPE)
    (entry,) = json.loads(payload)["entries"]
    assert entry == {
        "token": context.keys.token("email", "a@x.com"),
        "type": "email",
        "request_id": "R-1",
        "since": "2026-02-01T03:04:05.678901+00:00",
    }
    assert b"a@x.com" not in payload


def take_in(context, exported):
    listed = external_files.read_list(context, exported)
    with context.ledger.transaction() as connection:
        return suppression.take_in(context, connection, listed)


def test_import_brings_a_restored_backup_up_to_date(context, tmp_path):
    suppress(context, ("id", 17))
    suppress(context, ("email", "a@x.com"), request="R-2", now=LATE)
    exported = json.loads(json.dumps(external_files.export(context)))
    backup = restored(context, tmp_path)
    suppress(backup, ("id", 17), ("id", 18), request="R-0")
    assert take_in(backup, exported) == TakenIn(2, 1, 0, 0)
    kept = {entry["token"]: entry["request_id"] for entry in listing(backup)}
    assert kept[backup.keys.token("id", 17)] == "R-0"
    assert kept[backup.keys.token("email", "a@x.com")] == "R-2"
    assert len(kept) == 3
    assert suppressions.compare_list_with_log(backup) == []
    before = listing(backup)
    assert take_in(backup, exported).n_new == 0
    assert listing(backup) == before


def sealed(context, **changes):
    with context.ledger.reading() as connection:
        name = context.ledger.get(connection, "workspace")
    kept = {
        "version": 1, "workspace": name, "secret": context.keys.fingerprint, "at": "",
        "entries": [],
    } | changes  # fmt: skip
    return envelope.seal(
        context.keys.signer, json.dumps(kept).encode(), external_files.PAYLOAD_TYPE
    )


FOREIGN = {
    "none": lambda context: None,
    "empty": lambda context: {},
    "text": lambda context: "x",
    "other thing": lambda context: envelope.seal(context.keys.signer, b"{}", "text/plain"),
    "no JSON": lambda context: envelope.seal(
        context.keys.signer, b"\xff", external_files.PAYLOAD_TYPE
    ),
    "a list": lambda context: envelope.seal(
        context.keys.signer, b"[]", external_files.PAYLOAD_TYPE
    ),
    "version 2": lambda context: sealed(context, version=2),
    "another workspace": lambda context: sealed(context, workspace="w"),
    "another secret": lambda context: sealed(context, secret="00" * 32),
    "entries of numbers": lambda context: sealed(context, entries=[1]),
    "no entries": lambda context: sealed(context, entries=None),
    "unknown type": lambda context: sealed(
        context, entries=[{"token": "x", "type": "no", "request_id": "R", "since": "2026-01-01"}]
    ),
    "no zone": lambda context: sealed(
        context, entries=[{"token": "x", "type": "id", "request_id": "R", "since": "2026-01-01"}]
    ),
    "no time": lambda context: sealed(
        context, entries=[{"token": "x", "type": "id", "request_id": "R", "since": "noon"}]
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_no_export_of_this_workspace_is_refused(context, what):
    with pytest.raises(EvidenceError) as told:
        take_in(context, FOREIGN[what](context))
    assert "\n" not in str(told.value)
    assert listing(context) == []


def test_an_empty_list_is_taken(context):
    assert take_in(context, sealed(context)) == TakenIn(0, 0, 0, 0)


def test_the_list_of_another_workspace_is_refused_with_what_to_do(context, tmp_path):
    other = Context.create(tmp_path / "other")
    suppress(other, ("id", 17))
    with pytest.raises(EvidenceError) as told:
        take_in(context, external_files.export(other))
    assert "another secret" in str(told.value)
    assert "expected one that this workspace exported" in str(told.value)
    assert "\n" not in str(told.value)
    assert listing(context) == []


def test_altered_export_is_refused(context):
    suppress(context, ("id", 17))
    exported = external_files.export(context)
    altered = copy.deepcopy(exported)
    payload = b64decode(altered["payload"]).replace(b"R-1", b"R-2")
    other = Context.create(context.root.parent / "other")
    forged = envelope.seal(other.keys.signer, payload, external_files.PAYLOAD_TYPE)
    altered["payload"] = forged["payload"]
    for one in (altered, forged):
        with pytest.raises(EvidenceError, match="signature does not hold"):
            take_in(context, one)
    assert take_in(context, exported) == TakenIn(1, 0, 0, 0)


def test_publishing_writes_list_and_head_outside(context, tmp_path, monkeypatch):
    assert external_files.write(context) is None
    folder = tmp_path / "outside"
    monkeypatch.setenv("ERASABLE_EXPORT", str(folder))
    for n in (1, 2):
        suppress(context, ("id", n))
        assert external_files.write(context) == folder
        exported = json.loads((folder / "suppression.json").read_text())
        head = json.loads((folder / "head.json").read_text())
        payload = envelope.unseal(exported, context.keys.public_pem, external_files.PAYLOAD_TYPE)
        assert len(json.loads(payload)["entries"]) == n
        assert log.verify_since(context, head["envelope"]) == []
    assert sorted(path.name for path in folder.iterdir()) == ["head.json", "suppression.json"]


def test_a_restored_backup_does_not_write_over_what_knows_of_erasures_since(
    context, tmp_path, monkeypatch
):
    monkeypatch.setenv(external_files.OUTSIDE, str(tmp_path / "outside"))
    backup = restored(context, tmp_path)
    suppress(context, ("id", 17))
    suppression.release(context, 17)  # which is in the log
    suppress(context, ("id", 17))
    external_files.write(context)
    before = (tmp_path / "outside" / "suppression.json").read_bytes()
    with pytest.raises(EvidenceError, match="was not written over"):
        external_files.write(backup)
    assert (tmp_path / "outside" / "suppression.json").read_bytes() == before
    external_files.write(context)


def test_publishing_where_nothing_can_be_written_says_so(context, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ERASABLE_EXPORT", str(tmp_path / "file" / "folder"))
    with pytest.raises(WorkspaceDiskError, match="cannot be written"):
        external_files.write(context)


# -- what the log says decides ---------------------------------------------------------------------


def of_log(context, kind):
    with context.ledger.reading() as connection:
        rows = connection.execute(select(log_entry.c.body).where(log_entry.c.kind == kind))
        return [json.loads(body) for body in rows.scalars()]


def test_an_import_has_an_entry_of_its_own_for_each_request(context, tmp_path):
    suppress(context, ("id", 1), ("email", "a@x.com"))
    suppress(context, ("id", 2), request="R-2")
    backup = restored(context, tmp_path)
    exported = external_files.export(context)
    take_in(backup, exported)
    take_in(backup, exported)
    said = of_log(backup, "suppression-imported")
    assert sorted(each["subject"] for each in said) == ["R-1", "R-2"]
    assert len({each["suppressed"] for each in said}) == 2
    theirs = {each["suppressed"] for each in of_log(context, "request-erased")}
    assert theirs.isdisjoint(each["suppressed"] for each in said)  # the salts are others
    assert suppressions.compare_list_with_log(backup) == []


def test_who_was_let_in_again_stays_so(context):
    suppress(context, ("id", 1), ("id", 2))
    exported = external_files.export(context)
    suppression.release(context, 1)
    assert take_in(context, exported) == TakenIn(2, 0, 1, 0)
    assert [each["token"] for each in listing(context)] == [context.keys.token("id", 2)]
    assert suppressions.compare_list_with_log(context) == []


def taken_off(connection, token):
    connection.execute(delete(suppression_table).where(suppression_table.c.token == token))


def put_on(connection, token):
    row = {"token": "00" * 16, "type": "id", "request_id": "R-1", "since": EARLY}
    connection.execute(suppression_table.insert().values(row))


def altered(connection, token):
    at = suppression_table.c.token == token
    connection.execute(update(suppression_table).where(at).values(since=LATE))


def moved(connection, token):
    at = suppression_table.c.token == token
    connection.execute(update(suppression_table).where(at).values(request_id="R-2"))


@pytest.mark.parametrize("tamper", [taken_off, put_on, altered, moved])
def test_a_list_that_was_tampered_with_is_mended_by_an_exported_one(context, tamper):
    suppress(context, ("id", 1), ("id", 2))
    before, exported = listing(context), external_files.export(context)
    with context.ledger.transaction() as connection:
        tamper(connection, context.keys.token("id", 1))
    assert suppressions.compare_list_with_log(context) != []
    assert take_in(context, exported).n_mended == 1
    assert listing(context) == before
    assert suppressions.compare_list_with_log(context) == []


def test_a_list_that_is_older_than_the_log_does_not_mend(context):
    suppress(context, ("id", 1), ("id", 2), ("id", 3))
    exported = external_files.export(context)
    suppression.release(context, 3)
    with context.ledger.transaction() as connection:
        taken_off(connection, context.keys.token("id", 1))
    before = listing(context)
    with pytest.raises(EvidenceError, match="newest one, or restore the ledger") as told:
        take_in(context, exported)
    assert "\n" not in str(told.value)
    assert listing(context) == before

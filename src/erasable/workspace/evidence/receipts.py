"""Receipts: signed statements of what was done for a request, which anyone can verify.

A receipt is an in-toto statement (v1) in a DSSE envelope; beside it lie the entry of the log that
names it, a proof that the entry is there, and the signed head that the proof leads to. The public
key alone is enough to check all of it. It names data sets and models, never a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, select, update

from erasable.core.errors import EvidenceError, TamperedError
from erasable.workspace.context import Context
from erasable.workspace.evidence import entries, log
from erasable.workspace.evidence.commitments import commit
from erasable.workspace.evidence.envelope import peek, read_head, seal, unseal
from erasable.workspace.evidence.formats import hexadecimal, pack, unpack
from erasable.workspace.evidence.merkle import leaf_hash, verify_inclusion
from erasable.workspace.evidence.statements import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    statement,
    unreached,
)
from erasable.workspace.ledger.bulk import rows_in, update_in
from erasable.workspace.ledger.kinds import fits_shape
from erasable.workspace.ledger.schema import dataset, fragment, log_entry, model, receipt, task
from erasable.workspace.ledger.schema import request as request_table

PAYLOAD_TYPE = "application/vnd.in-toto+json"

_FILE = "the receipt"


@dataclass(frozen=True, slots=True)
class Checked:
    """A receipt that holds."""

    request: str  # its id
    statement: dict[str, Any]  # the signed in-toto statement
    position: int  # of its entry in the log
    size: int  # entries that the head covers
    root: str  # of the head, hexadecimal
    time: str  # when the head was signed


def issue(
    context: Context, connection: Connection, requests: Sequence[str], at: datetime
) -> dict[str, bytes]:
    """Complete requests, with a receipt each, in the caller's transaction.

    Entries are appended to the log, a head is signed over all of them, and the receipts are kept.
    The records that were to be erased must be out of the workspace by now. Return the receipts by
    id of request. Raise TamperedError if rows of the ledger differ from the log.
    """
    from erasable.workspace.evidence import ledger_checks

    if not requests:
        return {}
    ledger_checks.check(context, connection, requests)
    rows = {
        row.id: row
        for row in rows_in(connection, select(request_table), request_table.c.id, requests)
    }
    tasks: dict[str, list[Row[Any]]] = {id: [] for id in requests}
    for row in rows_in(connection, select(task), task.c.request_id, requests):
        tasks[row.request_id].append(row)
    acknowledged = _acknowledgements(connection, requests)
    names = {
        "model": {row.id: row for row in connection.execute(select(model))},
        "dataset": {row.id: row for row in connection.execute(select(dataset))},
    }
    touched = {one.target_id for id in requests for one in tasks[id] if one.target == "dataset"}
    commitments = {id: _commit_to(connection, id) for id in sorted(touched)}
    common = {
        "out_of_reach": unreached(context.ledger, context.store, connection),
        "workspace": context.ledger.get(connection, "workspace"),
        "key": context.ledger.get(connection, "key_id"),
        **_branch(context, connection),
    }
    first = log.next_position(context, connection)
    sealed, completions = {}, []
    for position, id in enumerate(requests, first):
        payload = pack(
            statement(
                rows[id], tasks[id], names, commitments, acknowledged[id], at,
                {**common, "log": {"position": position}},
            )
        )  # fmt: skip
        sealed[id] = seal(context.keys.signer, payload, PAYLOAD_TYPE)
        body = entries.completed(at, sha256(payload).hexdigest())
        completions.append(log.Entry("request-completed", id, body, at))
    log.append_many(context, connection, completions)
    head = log.head(context, connection)
    tree = log.tree(connection)
    appended = select(log_entry.c.position, log_entry.c.body).where(log_entry.c.position >= first)
    written = {row.position: row.body for row in connection.execute(appended)}
    made = {}
    for position, id in enumerate(requests, first):
        proof = {
            "position": position,
            "size": head["size"],
            "hashes": [one.hex() for one in tree.inclusion(position)],
            "entry": written[position].decode(),
        }
        made[id] = pack({"envelope": sealed[id], "proof": proof, "head": head["envelope"]})
    kept = [{"request_id": id, "body": body} for id, body in made.items()]
    connection.execute(receipt.insert(), kept)
    ended = {"state": "completed", "completed_at": at, "changed_at": at, "salt": None}
    update_in(connection, request_table.c.id, requests, **ended)
    return made


def fetch(connection: Connection, request: str) -> bytes | None:
    """Return the receipt of a request, or None."""
    kept = select(receipt.c.body).where(receipt.c.request_id == request)
    return connection.execute(kept).scalar()


def check(body: bytes, public_pem: bytes) -> Checked:
    """Check a receipt with the public key (PEM) alone; raise EvidenceError if it does not hold.

    The checks: the key signed the statement; the statement has the form of a receipt; the log has
    an entry that names it, at the position in the receipt, under a head signed by the same key.
    """
    envelope, proof, head_envelope = _parts(body)
    payload = unseal(envelope, public_pem, PAYLOAD_TYPE)
    said = _read(payload)
    predicate = said["predicate"]
    head = read_head(head_envelope, public_pem)
    entry = unpack(proof["entry"], "the entry of the log in the receipt")
    leaf = leaf_hash(proof["entry"].encode())
    hashes = [hexadecimal(one, "a hash of the proof") for one in proof["hashes"]]
    position, size = proof["position"], proof["size"]
    held = size == head["size"] and verify_inclusion(
        leaf, position, size, hashes, bytes.fromhex(head["root"])
    )
    if not held:
        raise _broken("its proof does not lead to the signed head of the log")
    if (entry.get("kind"), entry.get("subject")) != ("request-completed", predicate["request"]):
        raise _broken("its entry of the log is about something else")
    if entry.get("receipt") != sha256(payload).hexdigest():
        raise _broken("its entry of the log names another receipt")
    if predicate["workspace"] != head["workspace"] or predicate["log"] != {"position": position}:
        raise _broken("its log is of another workspace, or has it at another place")
    return Checked(predicate["request"], said, position, size, head["root"], head["time"])


def check_kept(body: bytes, request: str, public_pem: bytes) -> None:
    """Raise TamperedError if the receipt that the ledger keeps of a request does not hold."""
    try:
        found = check(body, public_pem).request
        message = None if found == request else "it is of another request"
    except EvidenceError as error:
        message = str(error)
    if message is not None:
        raise TamperedError(
            f"the ledger was tampered with: the receipt of {request}: {message}; expected the one "
            "that was signed; restore the ledger from a backup"
        )


def show(body: bytes) -> dict[str, Any]:
    """Return the statement of a receipt, and its place in the log, without checking it."""
    envelope, proof, _ = _parts(body)
    said = _read(peek(envelope))
    place = {"position": proof["position"], "size": proof["size"]}
    return {**said["predicate"], "subject": said["subject"], "log": place}


# -- how a receipt is made -------------------------------------------------------------------------


def _commit_to(connection: Connection, dataset_id: int) -> str:
    """Commit to a data set as it is, under a new salt; the old one is destroyed."""
    files = connection.execute(
        select(fragment.c.sha256)
        .where(fragment.c.dataset_id == dataset_id)
        .order_by(fragment.c.sha256)
    ).scalars()
    salt, commitment = commit("\n".join(files))
    connection.execute(update(dataset).where(dataset.c.id == dataset_id).values(salt=salt))
    return commitment


def _branch(context: Context, connection: Connection) -> dict[str, Any]:
    """Return where the log branched off since a backup was restored."""
    restored = context.ledger.get(connection, "restored")
    if restored is None:
        return {}
    named = ("position", "at", "made_at", "log_size", "head_size")
    return {"restored": {name: restored[name] for name in named}}


def _acknowledgements(connection: Connection, requests: Sequence[str]) -> dict[str, bytes]:
    """Return the entries of the log that took the requests in."""
    found = {}
    for row in rows_in(connection, select(log_entry), log_entry.c.subject, requests):
        if row.kind == "request-acknowledged":
            found[row.subject] = row.body
    missing = [id for id in requests if id not in found]
    if missing:
        raise EvidenceError(
            f"the log does not know of request {missing[0]}; expected its acknowledgement; "
            "run `erasable log verify`, and restore the ledger from a backup"
        )
    return found


# -- how it is read --------------------------------------------------------------------------------

_PROOF = {"position": int, "size": int, "hashes": list, "entry": str}


def _parts(body: bytes) -> tuple[Any, dict[str, Any], Any]:
    parts = unpack(body, _FILE)
    proof = parts.get("proof")
    if set(parts) != {"envelope", "proof", "head"} or not isinstance(proof, dict):
        raise _broken("it lacks its envelope, proof or head, or has more than these")
    if {name: type(value) for name, value in proof.items()} != _PROOF:
        raise _broken("its proof is malformed")
    return parts["envelope"], proof, parts["head"]


def _read(payload: bytes) -> dict[str, Any]:
    """Read a statement, and check its shape as far as its readers rely on it."""
    said = unpack(payload, "the statement in the receipt")
    predicate, subject = said.get("predicate"), said.get("subject")
    if (said.get("_type"), said.get("predicateType")) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise _broken("its statement is of another type, or of a newer version of erasable")
    if not isinstance(predicate, dict) or not {"request", "workspace", "log"} <= predicate.keys():
        raise _broken("its statement does not say what was done")
    if not subject or not fits_shape(subject, [{"name": str, "digest": {"sha256": str}}]):
        raise _broken("its statement does not say what it is about")
    return said


def _broken(why: str) -> EvidenceError:
    return EvidenceError(
        f"the receipt does not hold: {why}; expected one as `erasable receipt show` gave it out; "
        "ask who gave it to you"
    )

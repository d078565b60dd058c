"""Receipts: signed statements of what was done for a request, which anyone can verify.

A receipt is an in-toto statement (v1) in a DSSE envelope; beside it lie the entry of the log that
names it, a proof that the entry is there, and the signed head that the proof leads to. The public
key alone is enough to check all of it. It names data sets and models, never a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from erasable.core.display import facts, table
from erasable.core.errors import EvidenceError, TamperedError
from erasable.workspace.evidence.envelope import peek, read_head, unseal
from erasable.workspace.evidence.formats import hexadecimal, unpack
from erasable.workspace.evidence.merkle import leaf_hash, verify_inclusion
from erasable.workspace.evidence.statements import PREDICATE_TYPE, STATEMENT_TYPE
from erasable.workspace.ledger.kinds import fits_shape
from erasable.workspace.ledger.schema import receipt

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


class Receipt(bytes):
    """The file of a receipt; a notebook shows what it says, without checking it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        says = show(self)
        done = ("outcome", "records", "received", "due", "completed", "in_time", "log")
        targets = [
            {"kind": kind, **{name: each[name] for name in ("name", "version", "treatment")}}
            for kind, part in (("data set", "datasets"), ("model", "models"))
            for each in says[part]
        ]
        return facts(f"receipt of {says['request']}", {name: says[name] for name in done}) + table(
            targets
        )


def fetch(connection: Connection, request: str) -> Receipt | None:
    """Return the receipt of a request, or None."""
    kept = select(receipt.c.body).where(receipt.c.request_id == request)
    body = connection.execute(kept).scalar()
    return None if body is None else Receipt(body)


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


# -- how a receipt is read -------------------------------------------------------------------------

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

"""Completion of requests, with a receipt each; see `erasable.workspace.evidence.receipts`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select, update

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence import entries, ledger_checks, log
from erasable.workspace.evidence.commitments import commit
from erasable.workspace.evidence.context import Context
from erasable.workspace.evidence.envelope import seal
from erasable.workspace.evidence.formats import pack
from erasable.workspace.evidence.receipts import PAYLOAD_TYPE
from erasable.workspace.evidence.statements import statement, unreached
from erasable.workspace.ledger.bulk import update_in
from erasable.workspace.ledger.engine import settings
from erasable.workspace.ledger.schema import dataset, fragment, log_entry, receipt
from erasable.workspace.ledger.schema import request as request_table


def issue(
    context: Context, connection: Connection, requests: Sequence[str], at: datetime
) -> dict[str, bytes]:
    """Complete requests, with a receipt each, in the caller's transaction.

    Entries are appended to the log, a head is signed over all of them, and the receipts are kept.
    The records that were to be erased must be out of the workspace by now. Return the receipts by
    id of request. Raise TamperedError if rows of the ledger differ from the log.
    """
    if not requests:
        return {}
    checked = ledger_checks.check(context, connection, requests)
    missing = [id for id in requests if id not in checked.acknowledged]
    if missing:
        raise EvidenceError(
            f"the log does not know of request {missing[0]}; expected its acknowledgement; "
            "run `erasable log verify`, and restore the ledger from a backup"
        )
    tasks = {id: checked.tasks.get(id, []) for id in requests}
    touched = {one.target_id for id in requests for one in tasks[id] if one.target == "dataset"}
    commitments = {id: _commit_to(connection, id) for id in sorted(touched)}
    said = settings(connection, ("workspace", "key_id", "restored"))
    common = {
        "out_of_reach": unreached(context.ledger, context.store, connection),
        "workspace": said.get("workspace"),
        "key": said.get("key_id"),
        **_branch(said.get("restored")),
    }
    first = log.next_position(context, connection)
    sealed, completions = {}, []
    for position, id in enumerate(requests, first):
        payload = pack(
            statement(
                checked.requests[id], tasks[id], checked.things, commitments,
                checked.acknowledged[id], at,
                {**common, "log": {"position": position}},
            )
        )  # fmt: skip
        sealed[id] = seal(context.keys.signer, payload, PAYLOAD_TYPE)
        body = entries.completed(at, sha256(payload).hexdigest())
        completions.append(log.Entry("request-completed", id, body, at))
    log.append_many(context, connection, completions)
    head, tree = log.sign(context, connection)
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


def _branch(restored: dict[str, Any] | None) -> dict[str, Any]:
    """Return where the log branched off since a backup was restored."""
    if restored is None:
        return {}
    named = ("position", "at", "made_at", "log_size", "head_size")
    return {"restored": {name: restored[name] for name in named}}

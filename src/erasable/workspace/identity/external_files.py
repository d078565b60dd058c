"""Files kept outside of the workspace: the suppression list, and a head of the log.

The law kept here: both are signed. A restored backup of the workspace learns from them who was
erased since, and cannot pass for the newest state.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from erasable.core.errors import EvidenceError, InvalidParameterError, NotInWorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.evidence import envelope, ledger_checks, log, suppressions
from erasable.workspace.evidence.envelope import read_kept
from erasable.workspace.identity.canonical import check_type
from erasable.workspace.identity.keys import Keys
from erasable.workspace.identity.suppression import listing
from erasable.workspace.ledger.schema import request
from erasable.workspace.store.disk import Disk

OUTSIDE = "ERASABLE_EXPORT"
"""The environment variable of the folder for exports, which a restored backup needs."""

PAYLOAD_TYPE = "application/vnd.erasable.suppression+json"

_LIST, _HEAD = "suppression.json", "head.json"  # the exported files
_VERSION = 1
_FOREIGN = "the suppression list {what}; expected one that this workspace exported"
_OTHER_SECRET = (
    "was made under another secret than this workspace's, so that its tokens mean nobody here"
)


class Listed(NamedTuple):
    """A list that was exported, checked."""

    entries: list[dict[str, Any]]  # as of `listing`
    log_size: int | None  # entries of the log at the export; None from older versions
    sha256: str  # of the signed bytes
    # requests that corrected records: request_id, dataset, columns, at
    corrections: list[dict[str, Any]]


def export(context: Context) -> dict[str, Any]:
    """Return the list as signed JSON (a DSSE envelope), to be kept outside the workspace.

    It holds tokens, which say nothing without the workspace's keys.

    Raises
    ------
    TamperedError
        It is not what the log says.
    """
    with context.ledger.reading() as connection:
        ledger_checks.check(context, connection)
        suppressions.check_list(connection)
        kept = {
            "version": _VERSION,
            "workspace": context.ledger.get(connection, "workspace"),
            "secret": context.keys.fingerprint,
            "at": context.now().isoformat(),
            "log_size": log.next_position(context, connection),
            "entries": [
                {**entry, "since": entry["since"].isoformat()} for entry in listing(connection)
            ],
            "corrections": _corrections(connection),
        }
    payload = json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
    return envelope.seal(context.keys.signer, payload, PAYLOAD_TYPE)


def read_list(context: Context, exported: Any) -> list[dict[str, Any]]:
    """Read an export, made here or before a backup was restored, as a `listing`.

    Raise EvidenceError if it is not a signed list, or another workspace signed it.
    """
    with context.ledger.reading() as connection:
        workspace = context.ledger.get(connection, "workspace")
    return check_list(exported, context.keys, workspace).entries


def check_list(exported: Any, keys: Keys, workspace: str) -> Listed:
    """Check an export of the workspace with an id and keys; see `read_list`."""
    payload = _unsealed(keys, exported)
    try:
        kept = json.loads(payload)
        if kept["version"] != _VERSION:
            raise EvidenceError(_FOREIGN.format(what="is of another version"))
        if kept["secret"] != keys.fingerprint:
            raise EvidenceError(_FOREIGN.format(what=_OTHER_SECRET))
        entries = [
            {
                "token": str(entry["token"]),
                "type": check_type(entry["type"]),
                "request_id": str(entry["request_id"]),
                "since": _moment(entry["since"]),
            }
            for entry in kept["entries"]
        ]
        size = kept.get("log_size")
        listed = Listed(
            list({entry["token"]: entry for entry in entries}.values()),
            None if size is None else int(size),
            sha256(payload).hexdigest(),
            [
                {
                    "request_id": str(each["request_id"]), "dataset": str(each["dataset"]),
                    "columns": [str(name) for name in each["columns"]],
                    "at": _moment(each["at"]),
                }
                for each in kept.get("corrections", ())  # older versions of erasable had none
            ],
        )  # fmt: skip
    except EvidenceError:
        raise
    except (InvalidParameterError, KeyError, RecursionError, TypeError, ValueError):
        raise EvidenceError(_FOREIGN.format(what="is damaged")) from None
    if kept.get("workspace") != workspace:
        raise EvidenceError(_FOREIGN.format(what="is of another workspace"))
    return listed


def write(context: Context) -> Path | None:
    """Write the list and a signed head of the log into the folder for exports; return the folder.

    `erasable init --export` names it, or ERASABLE_EXPORT, which goes first; without either, return
    None. It has to be outside the workspace, so that a restored backup does not bring back who was
    erased since.

    Raise EvidenceError, and leave the files there, if their head is not of the past of this log, as
    after a backup was restored: then they alone know who was erased since.
    """
    with context.ledger.reading() as connection:
        folder = os.environ.get(OUTSIDE) or context.ledger.get(connection, "export")
    if not folder:
        return None
    outside = Disk(Path(folder).absolute())
    _check_past(context, outside)
    with context.ledger.transaction() as connection:
        head = log.head(context, connection)
    for name, kept in ((_LIST, export(context)), (_HEAD, head)):
        outside.write(name, (json.dumps(kept, indent=2) + "\n").encode())
    return outside.root


def _check_past(context: Context, outside: Disk) -> None:
    """Refuse to replace a head that is neither of this log nor taken in by a restore."""
    try:
        kept = json.loads(outside.read(_HEAD))
    except (NotInWorkspaceError, ValueError):
        return  # none yet, or nothing that could tell of erasures
    try:
        messages = log.verify_since(context, kept)
    except EvidenceError:
        messages = ["it is not a head of this workspace"]
    if messages and not _is_taken_in(context, outside, kept):
        raise EvidenceError(
            f"{str(outside.path(_HEAD))!r} was not written over ({messages[0]}); expected a head "
            "of the past of this log; where a backup was restored, run `erasable suppress import` "
            "with the list beside it, then move both files away"
        )


def _is_taken_in(context: Context, outside: Disk, kept: Any) -> bool:
    """Tell whether the last restore took in this very head, and the list beside it."""
    with context.ledger.reading() as connection:
        restored = context.ledger.get(connection, "restored")
    try:
        head = read_kept(kept, context.keys.public_pem)
        listed = sha256(envelope.peek(json.loads(outside.read(_LIST)))).hexdigest()
    except (EvidenceError, NotInWorkspaceError, ValueError):
        return False
    return restored is not None and (restored["head_root"], restored["list"]) == (
        head["root"],
        listed,
    )


def _corrections(connection: Connection) -> list[dict[str, Any]]:
    """Return which requests corrected which columns; without values, or whose records they are."""
    r = request.c
    query = select(r.id, r.corrects, r.completed_at).where(r.state == "completed", r.matched > 0)
    return [
        {"request_id": row.id, **row.corrects, "at": row.completed_at.isoformat()}
        for row in connection.execute(query.order_by(r.completed_at, r.id))
        if row.corrects is not None
    ]


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment


def _unsealed(keys: Keys, exported: Any) -> bytes:
    """Return the signed bytes; the error names another workspace as the signer."""
    try:
        return envelope.unseal(exported, keys.public_pem, PAYLOAD_TYPE)
    except EvidenceError:
        if _secret_of(exported) in (None, keys.fingerprint):
            raise
        raise EvidenceError(_FOREIGN.format(what=_OTHER_SECRET)) from None


def _secret_of(exported: Any) -> Any:
    """Return the secret that a list names, or None, without checking its signature."""
    try:
        return json.loads(envelope.peek(exported))["secret"]
    except (EvidenceError, KeyError, RecursionError, TypeError, ValueError):
        return None

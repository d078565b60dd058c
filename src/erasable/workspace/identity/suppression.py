"""Who is not to be let in again: the tokens of subjects that were erased.

The law kept here: what is on the list is dropped at every later ingestion, until it is released.
The list can be kept outside, signed, so that a restored backup learns of the erasures since.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, select

from erasable.core.errors import (
    EvidenceError,
    InvalidIdsError,
    InvalidParameterError,
    NotInWorkspaceError,
)
from erasable.workspace.evidence import envelope, log
from erasable.workspace.identity.canonical import check_type
from erasable.workspace.identity.subjects import hashed, held, types_in_use
from erasable.workspace.ledger.schema import suppression
from erasable.workspace.store.disk import Disk

if TYPE_CHECKING:
    from erasable.workspace.site import Site

__all__ = [
    "OUTSIDE",
    "export",
    "import_list",
    "listing",
    "publish",
    "release",
    "suppress",
    "suppressed",
    "uses",
]

OUTSIDE = "ERASABLE_EXPORT"
"""The environment variable that names a folder for what a restored backup needs."""

PAYLOAD_TYPE = "application/vnd.erasable.suppression+json"

_LIST, _HEAD = "suppression.json", "head.json"  # what is written outside
_VERSION = 1
_FOREIGN = (
    "the suppression list {what}; expected one that this workspace exported; choose that file"
)


def suppressed(connection: Connection, tokens: Iterable[str]) -> set[str]:
    """Return which of the tokens are on the list.

    The cost is that of the shorter of the two.
    """
    wanted = set(tokens)
    length = connection.execute(select(func.count()).select_from(suppression)).scalar_one()
    if length <= len(wanted):
        return wanted.intersection(connection.execute(select(suppression.c.token)).scalars())
    return held(connection, suppression.c.token, wanted)


def suppress(
    connection: Connection,
    identities: Iterable[tuple[str, str]],
    request_id: str,
    now: datetime,
) -> int:
    """Put tokens on the list; those that are there already stay as they are.

    Parameters
    ----------
    connection : Connection
        Of a transaction.
    identities : iterable of (token, type)
    request_id : str
        Why they are on it.
    now : datetime

    Returns
    -------
    int
        How many were new.
    """
    return _add(
        connection,
        [
            {"token": token, "type": type, "request_id": request_id, "since": now}
            for token, type in identities
        ],
    )


def release(site: Site, value: Any, type: str | None = None) -> str:
    """Take an identity off the list: its owner has consented again.

    Only this identity is released; others of the same person stay on the list. The log says that
    a release happened and of which request, not of whom.

    Returns
    -------
    str
        The type that it was on the list under.

    Raises
    ------
    NotInWorkspaceError
        It is not on the list.
    InvalidIdsError
        It is there under several types, or suits none.
    InvalidParameterError
        There is no such type.
    """
    with site.ledger.transaction() as connection:
        types = {*types_in_use(connection), *connection.execute(_TYPES).scalars()}
        tried = hashed(site, value, [type] if type is not None else sorted(types))
        rows = connection.execute(
            select(suppression).where(suppression.c.token.in_(list(tried)))
        ).all()
        if not rows:
            raise NotInWorkspaceError(
                "the identity is not on the suppression list; expected one that is; "
                "correct it or its type"
            )
        if len(rows) > 1:
            several = ", ".join(sorted(repr(row.type) for row in rows))
            raise InvalidIdsError(
                f"the identity is on the suppression list under the types {several}; expected one; "
                "name the type with --type"
            )
        (row,) = rows
        connection.execute(delete(suppression).where(suppression.c.token == row.token))
        log.append(site, connection, "suppression-released", row.request_id, {}, site.now())
        return str(row.type)


def uses(connection: Connection, type: str) -> bool:
    """Tell whether any token of a type is on the list."""
    kept = select(suppression.c.token).where(suppression.c.type == type).limit(1)
    return connection.execute(kept).first() is not None


def listing(connection: Connection) -> list[dict[str, Any]]:
    """Return the list, the oldest entries first.

    Returns
    -------
    list of dict
        token, type, request_id and since (a time).
    """
    rows = connection.execute(
        select(suppression).order_by(suppression.c.since, suppression.c.token)
    )
    return [dict(row) for row in rows.mappings()]


def export(site: Site) -> dict[str, Any]:
    """Return the list as signed JSON (a DSSE envelope), to be kept outside the workspace.

    It holds tokens, which say nothing without the workspace's keys.
    """
    with site.ledger.reading() as connection:
        kept = {
            "version": _VERSION,
            "workspace": site.ledger.get(connection, "workspace"),
            "at": site.now().isoformat(),
            "entries": [
                {**entry, "since": entry["since"].isoformat()} for entry in listing(connection)
            ],
        }
    payload = json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
    return envelope.seal(site.keys.signer, payload, PAYLOAD_TYPE)


def import_list(site: Site, exported: Any) -> int:
    """Put on the list what an export holds, as after a backup was restored.

    Nothing is taken off. A release since the export is undone, and has to be made again. Records
    of these subjects that came back with the backup are still to be erased, by a request.

    Parameters
    ----------
    site : Site
    exported : dict
        What `export` returned.

    Returns
    -------
    int
        How many entries were new.

    Raises
    ------
    EvidenceError
        The export was not signed by this workspace, or is none.
    """
    payload = envelope.unseal(exported, site.keys.public_pem, PAYLOAD_TYPE)
    try:
        kept = json.loads(payload)
        if kept["version"] != _VERSION:
            raise EvidenceError(_FOREIGN.format(what="is of another version"))
        entries = [
            {
                "token": str(entry["token"]),
                "type": check_type(entry["type"]),
                "request_id": str(entry["request_id"]),
                "since": _moment(entry["since"]),
            }
            for entry in kept["entries"]
        ]
    except EvidenceError:
        raise
    except (InvalidParameterError, KeyError, TypeError, ValueError):
        raise EvidenceError(_FOREIGN.format(what="is damaged")) from None
    with site.ledger.transaction() as connection:
        if kept.get("workspace") != site.ledger.get(connection, "workspace"):
            raise EvidenceError(_FOREIGN.format(what="is of another workspace"))
        return _add(connection, entries)


def publish(site: Site) -> Path | None:
    """Write the list and a signed head of the log into the folder that was named for them.

    `erasable init --export` names it, or ERASABLE_EXPORT, which goes before.

    It is to be outside the workspace, so that a backup of the workspace, restored, does not bring
    back who was erased since, and cannot pass for the newest state.

    Returns
    -------
    Path or None
        The folder; None where none was named.

    Raises
    ------
    EvidenceError
        The head there is not of the past of this log, as after a backup was restored; what is
        there stays: it alone knows who was erased since.
    WorkspaceDiskError
        The folder cannot be written to.
    """
    with site.ledger.reading() as connection:
        folder = os.environ.get(OUTSIDE) or site.ledger.get(connection, "export")
    if not folder:
        return None
    outside = Disk(Path(folder).absolute())
    _check_past(site, outside)
    with site.ledger.transaction() as connection:
        head = log.head(site, connection)
    for name, kept in ((_LIST, export(site)), (_HEAD, head)):
        outside.write(name, (json.dumps(kept, indent=2) + "\n").encode())
    return outside.root


def _check_past(site: Site, outside: Disk) -> None:
    """Refuse to write over a head that this log does not contain."""
    try:
        kept = json.loads(outside.read(_HEAD))
    except (NotInWorkspaceError, ValueError):
        return  # none yet, or nothing that could tell of erasures
    try:
        told = log.verify_since(site, kept)
    except EvidenceError:
        told = ["it is not a head of this workspace"]
    if told:
        raise EvidenceError(
            f"{str(outside.path(_HEAD))!r} was not written over ({told[0]}); expected a head of "
            "the past of this log; where a backup was restored, erase again whom the list beside "
            "it names, then move both files away"
        )


_TYPES = select(suppression.c.type).distinct()


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return moment


def _add(connection: Connection, entries: Iterable[dict[str, Any]]) -> int:
    wanted: dict[str, dict[str, Any]] = {}
    for entry in entries:
        wanted.setdefault(entry["token"], entry)
    there = suppressed(connection, wanted)
    new = [entry for token, entry in wanted.items() if token not in there]
    if new:
        connection.execute(suppression.insert(), new)
    return len(new)

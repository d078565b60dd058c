"""Who is not to be let in again: the tokens of subjects that were erased.

The law kept here: what is on the list is dropped at every later ingestion, until it is released.
The list can be kept outside, signed, so that a restored backup learns of the erasures since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, func, select

from erasable.core.errors import (
    EvidenceError,
    InvalidIdsError,
    InvalidParameterError,
    NotInWorkspaceError,
)
from erasable.workspace.identity.canonical import check_type
from erasable.workspace.identity.subjects import hashed, held, types_in_use
from erasable.workspace.ledger.schema import suppression

if TYPE_CHECKING:
    from erasable.workspace.site import Site

__all__ = [
    "Suppressed",
    "export",
    "import_list",
    "listing",
    "release",
    "suppress",
    "suppressed",
]

PAYLOAD_TYPE = "application/vnd.erasable.suppression+json"

_VERSION = 1
_FOREIGN = (
    "the suppression list {what}; expected one that `erasable suppress export` wrote in this "
    "workspace; choose that file"
)


_KINDS = select(suppression.c.type).distinct()


@dataclass(frozen=True, slots=True)
class Suppressed:
    """An entry of the list.

    Attributes
    ----------
    token, type : str
    request_id : str
        The request that put it there.
    since : datetime

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> Suppressed("7c", "id", "r-1", datetime(2026, 1, 1, tzinfo=UTC)).type
    'id'
    """

    token: str
    type: str
    request_id: str
    since: datetime


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
    identities : iterable of (token, type)

    Returns
    -------
    int
        How many were new.
    """
    entries = [Suppressed(token, type, request_id, now) for token, type in identities]
    return _add(connection, entries)


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
    from erasable.workspace.evidence import log

    with site.ledger.transaction() as connection:
        types = {*types_in_use(connection), *connection.execute(_KINDS).scalars()}
        tried = hashed(site, value, [type] if type is not None else sorted(types))
        rows = connection.execute(select(suppression).where(suppression.c.token.in_(tried))).all()
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


def listing(connection: Connection) -> list[Suppressed]:
    """Return the list, the oldest entries first."""
    rows = connection.execute(
        select(
            suppression.c.token,
            suppression.c.type,
            suppression.c.request_id,
            suppression.c.since,
        ).order_by(suppression.c.since, suppression.c.token)
    )
    return [Suppressed(*row) for row in rows]


def export(site: Site) -> dict[str, Any]:
    """Return the list as signed JSON (a DSSE envelope), to be kept outside the workspace.

    It holds tokens, which say nothing without the workspace's keys.
    """
    from erasable.workspace.evidence import envelope

    with site.ledger.reading() as connection:
        kept = {
            "version": _VERSION,
            "workspace": site.ledger.get(connection, "workspace"),
            "at": site.now().isoformat(),
            "entries": [
                {
                    "token": entry.token,
                    "type": entry.type,
                    "request": entry.request_id,
                    "since": entry.since.isoformat(),
                }
                for entry in listing(connection)
            ],
        }
    payload = json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()
    return envelope.seal(site.keys.signer, payload, PAYLOAD_TYPE)


def import_list(site: Site, exported: dict[str, Any]) -> int:
    """Put on the list what an export holds, as after a backup was restored.

    Nothing is taken off. A release since the export is undone, and has to be made again.

    Returns
    -------
    int
        How many entries were new.

    Raises
    ------
    EvidenceError
        The export was not signed by this workspace, or is none.
    """
    from erasable.workspace.evidence import envelope

    kept = json.loads(envelope.unseal(exported, site.keys.public_pem, PAYLOAD_TYPE))
    try:
        if kept["version"] != _VERSION:
            raise EvidenceError(_FOREIGN.format(what="is of another version"))
        entries = [
            Suppressed(
                str(entry["token"]),
                check_type(entry["type"]),
                str(entry["request"]),
                datetime.fromisoformat(entry["since"]),
            )
            for entry in kept["entries"]
        ]
    except (InvalidParameterError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, EvidenceError):
            raise
        raise EvidenceError(_FOREIGN.format(what="is damaged")) from None
    with site.ledger.transaction() as connection:
        if kept.get("workspace") != site.ledger.get(connection, "workspace"):
            raise EvidenceError(_FOREIGN.format(what="is of another workspace"))
        return _add(connection, entries)


def _add(connection: Connection, entries: Iterable[Suppressed]) -> int:
    wanted: dict[str, Suppressed] = {}
    for entry in entries:
        wanted.setdefault(entry.token, entry)
    there = suppressed(connection, wanted)
    new = [entry for token, entry in wanted.items() if token not in there]
    if new:
        connection.execute(
            suppression.insert(),
            [
                {
                    "token": entry.token,
                    "type": entry.type,
                    "request_id": entry.request_id,
                    "since": entry.since,
                }
                for entry in new
            ],
        )
    return len(new)

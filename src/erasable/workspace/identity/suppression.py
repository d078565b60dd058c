"""Suppression list: the tokens of subjects that were erased and are not to be let in again.

The law kept here: every later ingestion drops records of subjects on the list, until they are
released. The log commits to all of it; see `evidence.suppressions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress as suppress_errors
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select

from erasable.core.errors import (
    EvidenceError,
    InvalidIdsError,
    NotInWorkspaceError,
    WorkspaceBusyError,
)
from erasable.workspace.context import Context
from erasable.workspace.evidence import log, suppressions
from erasable.workspace.identity.canonical import may_be_one_person
from erasable.workspace.identity.subjects import hashed, types_in_use
from erasable.workspace.ledger.bulk import delete_in, rows_in, values_held
from erasable.workspace.ledger.schema import suppression


@dataclass(frozen=True, slots=True)
class TakenIn:
    """Counts of the import of an exported list."""

    n_listed: int  # identities in it
    n_new: int  # put on the list of the workspace
    n_released: int  # left out: they were let in again, as the log knows
    n_mended: int  # requests whose part of the list had been changed behind the log's back


def suppressed(connection: Connection, tokens: Iterable[str]) -> set[str]:
    """Return which tokens are on the list, at the cost of the shorter of the two."""
    wanted = set(tokens)
    length = connection.execute(select(func.count()).select_from(suppression)).scalar_one()
    if length <= len(wanted):
        return wanted.intersection(connection.execute(select(suppression.c.token)).scalars())
    return values_held(connection, suppression.c.token, wanted)


def every(connection: Connection) -> list[str]:
    """Return all tokens on the list."""
    return list(connection.execute(select(suppression.c.token)).scalars())


def suppress(
    connection: Connection, identities: Iterable[tuple[str, str, str]], now: datetime
) -> dict[str, str]:
    """Put tokens on the list; those that are there already stay as they are.

    `identities` have token, type and request id. Return, for each request that put a token on the
    list, the commitment to its whole part of the list, for the log.
    """
    new = _not_there(
        connection,
        [
            {"token": token, "type": type, "request_id": request, "since": now}
            for token, type, request in identities
        ],
    )
    by_request = _by_request(new)
    before = suppressions.kept_out(connection, by_request)
    if new:
        connection.execute(suppression.insert(), new)
    # Entries that the log does not commit to are left out, so that they are reported.
    rows = {
        request: [*before[request].rows, *own]
        if request in before and before[request].is_said_of(before[request].rows)
        else own
        for request, own in by_request.items()
    }
    return suppressions.commit_to(connection, rows)


def release(context: Context, value: Any, type: str | None = None) -> str:
    """Take a person off the list: they have consented again.

    With it go the identities beside it in the records that were erased, or one of these would keep
    them out; identities of other people stay, and those that were linked to it by hand. Nothing of
    a token is left in the ledger, nor in the list that is kept outside. The log says that a release
    happened and of which request, not of whom.

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
    EvidenceError
        The list was changed behind the log's back.
    """
    with context.ledger.transaction() as connection:
        types = {*types_in_use(connection), *connection.execute(_TYPES).scalars()}
        tried = hashed(context, value, [type] if type is not None else sorted(types))
        rows = connection.execute(
            select(suppression).where(suppression.c.token.in_(list(tried)))
        ).all()
        if not rows:
            raise NotInWorkspaceError(
                "the identity is not on the suppression list; expected one that is; "
                "correct it or its type"
            )
        if len({row.type for row in rows}) > 1:
            several = ", ".join(sorted(repr(row.type) for row in rows))
            raise InvalidIdsError(
                f"the identity is on the suppression list under the types {several}; expected one; "
                "name the type with --type"
            )
        for row in rows:
            _release(context, connection, row)
    with suppress_errors(WorkspaceBusyError):  # then the next one that processes empties it
        context.ledger.purge()
    return str(rows[0].type)


def _release(context: Context, connection: Connection, row: Any) -> None:
    kept = suppressions.committed_rows(connection, row.request_id)
    theirs = {each["token"] for each in kept if may_be_one_person(each["type"], row.type)}
    gone = {row.token, *theirs}
    delete_in(connection, suppression.c.token, sorted(gone))
    left = [each for each in kept if each["token"] not in gone]
    made = suppressions.commit_to(connection, {row.request_id: left})
    body = {"suppressed": made[row.request_id]}
    log.append(context, connection, "suppression-released", row.request_id, body, context.now())


def uses(connection: Connection, type: str) -> bool:
    """Tell whether any token of a type is on the list."""
    kept = select(suppression.c.token).where(suppression.c.type == type).limit(1)
    return connection.execute(kept).first() is not None


def listing(connection: Connection) -> list[dict[str, Any]]:
    """Return the list (token, type, request_id, since), the oldest entries first."""
    rows = connection.execute(
        select(suppression).order_by(suppression.c.since, suppression.c.token)
    )
    return [dict(row) for row in rows.mappings()]


def entries_of(connection: Connection, tokens: Iterable[str]) -> list[dict[str, Any]]:
    """Return the entries of some tokens (type, request_id, since), the oldest first."""
    c = suppression.c
    rows = rows_in(connection, select(c.type, c.request_id, c.since), c.token, sorted(tokens))
    found = [row._asdict() for row in rows]
    return sorted(found, key=lambda each: (each["since"], each["type"]))


def take_in(context: Context, connection: Connection, listed: Sequence[dict[str, Any]]) -> TakenIn:
    """Put the entries of an exported list on the list, as after a backup was restored.

    A request that is not in the log as keeping anybody out is added. Of one that is, missing
    tokens were released, and stay out. Where the list was changed behind the log's back, the
    exported one replaces it if the log commits to it. Each change has an entry in the log.

    `listed` comes from `external_files.read_list`. Raise EvidenceError if the log commits to
    neither list.
    """
    by_request = _by_request(listed)
    known = suppressions.kept_out(connection, by_request)
    there = suppressed(connection, [entry["token"] for entry in listed])
    absent = [entry for entry in listed if entry["token"] not in there]
    new: list[dict[str, Any]] = []
    rows: dict[str, list[dict[str, Any]]] = {}
    n_released = n_mended = 0
    for request, own in by_request.items():
        kept = known.get(request, suppressions.KeptOut())
        if kept.said is None:
            vouched = [row for row in kept.rows if row in own]
            added = [entry for entry in own if entry["token"] not in there]
            if vouched or added:
                rows[request] = [*vouched, *added]
            new += added
        elif kept.difference() is None:
            n_released += sum(entry["token"] not in there for entry in own)
        elif kept.is_said_of(own):
            _take_off(connection, request, own)
            n_mended += 1
            rows[request] = own
            new += own
        else:
            raise EvidenceError(
                f"the suppression list was changed behind the log's back: for request {request!r} "
                f"it holds {kept.difference()}; expected an exported list that says what the log "
                "says; pass the newest one, or restore the ledger from a backup first"
            )
    if new:
        connection.execute(suppression.insert(), new)
    made, now = suppressions.commit_to(connection, rows), context.now()
    log.append_many(
        context,
        connection,
        [
            ("suppression-imported", request, {"suppressed": one}, now)
            for request, one in made.items()
        ],
    )
    return TakenIn(len(listed), len(absent) - n_released, n_released, n_mended)


_TYPES = select(suppression.c.type).distinct()


def _not_there(connection: Connection, entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each new entry once."""
    wanted: dict[str, dict[str, Any]] = {}
    for entry in entries:
        wanted.setdefault(entry["token"], entry)
    there = suppressed(connection, wanted)
    return [entry for token, entry in wanted.items() if token not in there]


def _take_off(connection: Connection, request: str, entries: Iterable[dict[str, Any]]) -> None:
    """Take all entries of a request off the list, and these entries of any request."""
    connection.execute(delete(suppression).where(suppression.c.request_id == request))
    delete_in(connection, suppression.c.token, [entry["token"] for entry in entries])


def _by_request(entries: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        found.setdefault(entry["request_id"], []).append(entry)
    return found
